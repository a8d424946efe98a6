//! Where the workspace lies, and how its release binary is built and found.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Asked at run time: two checkouts that share a target directory share the built xtask, too.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).parent().map_or_else(|| ".".into(), Path::to_path_buf)
}

/// Builds the binary in the profile release, which is made for a short build, and returns its path.
pub(crate) fn release_binary() -> Result<PathBuf> {
    binary("release")
}

/// Builds the binary as packages ship it (profile dist) and returns its path.
pub(crate) fn dist_binary() -> Result<PathBuf> {
    binary("dist")
}

/// Builds the same for a target of rustc, with all that a package has.
pub(crate) fn binary_for(target: &str) -> Result<PathBuf> {
    build("dist", Some(target))
}

fn binary(profile: &str) -> Result<PathBuf> {
    build(profile, None)
}

fn build(profile: &str, target: Option<&str>) -> Result<PathBuf> {
    let mut command = Command::new(cargo());
    command.args(["build", "--quiet", "--profile", profile, "--package", "nandscape", "--bin", "nandscape"]);
    if let Some(target) = target {
        command.args(["--target", target, "--features", "parquet"]);
    }
    let built = command.current_dir(root()).status().context("cargo build did not start")?;
    if !built.success() {
        bail!("the binary does not build");
    }
    let folder = target_directory()?.join(target.unwrap_or_default());
    let binary = folder.join(profile).join(format!("nandscape{}", std::env::consts::EXE_SUFFIX));
    if !binary.is_file() {
        bail!("cargo built no {}", binary.display());
    }
    Ok(binary)
}

/// The data sets: `NANDSCAPE_DATA`, else `shared/data` beside the workspace; `None` where there is neither.
pub(crate) fn data() -> Option<PathBuf> {
    let folder = match std::env::var_os("NANDSCAPE_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => root().parent()?.join("shared/data"),
    };
    folder.is_dir().then_some(folder)
}

/// Where cargo builds.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let output = Command::new(cargo())
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cargo metadata did not start")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let directory =
        metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(directory))
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
