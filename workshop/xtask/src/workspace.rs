//! Where the workspace lies, and how its release binary is built and found.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Root of the workspace.
pub(crate) fn root() -> PathBuf {
    // Asked at run time: two checkouts that share a target directory share the built xtask, too.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&package).ancestors().nth(2).map_or_else(|| ".".into(), Path::to_path_buf)
}

/// Builds the binary in the profile release, which builds fast, and returns its path.
pub(crate) fn release_binary() -> Result<PathBuf> {
    binary("release")
}

/// Builds the binary in the profile of packages (dist) and returns its path.
pub(crate) fn dist_binary() -> Result<PathBuf> {
    binary("dist")
}

fn binary(profile: &str) -> Result<PathBuf> {
    build(&Build { profile, ..Build::default() })
}

/// Build configuration of the binary.
#[derive(Clone, Copy, Default)]
pub(crate) struct Build<'a> {
    pub(crate) profile: &'a str,
    /// Target of rustc, for a package with all features; `None` for this machine.
    pub(crate) target: Option<&'a str>,
    /// Flags for rustc, in addition to those of the environment.
    pub(crate) flags: Option<&'a str>,
    /// Build folder; cargo's own if left out.
    pub(crate) into: Option<&'a Path>,
}

/// Builds the binary and returns its path.
pub(crate) fn build(Build { profile, target, flags, into }: &Build<'_>) -> Result<PathBuf> {
    let into = into.map_or_else(target_directory, |folder| Ok(folder.to_path_buf()))?;
    let mut command = Command::new(cargo());
    command.args(["build", "--quiet", "--profile", profile, "--package", "nandscape", "--bin", "nandscape"]);
    command.arg("--target-dir").arg(&into);
    if let Some(target) = target {
        command.args(["--target", target, "--features", "parquet"]);
    }
    if let Some(flags) = flags {
        let given = std::env::var("RUSTFLAGS").unwrap_or_default();
        command.env("RUSTFLAGS", format!("{given} {flags}").trim());
    }
    let built = command.current_dir(root()).status().context("cargo build did not start")?;
    if !built.success() {
        bail!("the binary does not build");
    }
    let folder = into.join(target.unwrap_or_default());
    let binary = folder.join(profile).join(format!("nandscape{}", std::env::consts::EXE_SUFFIX));
    if !binary.is_file() {
        bail!("cargo did not build {}", binary.display());
    }
    Ok(binary)
}

/// Folder of data sets: `NANDSCAPE_DATA`, else `shared/data` beside the workspace; `None` without either.
pub(crate) fn data() -> Option<PathBuf> {
    let folder = match std::env::var_os("NANDSCAPE_DATA") {
        Some(folder) => PathBuf::from(folder),
        None => root().parent()?.join("shared/data"),
    };
    folder.is_dir().then_some(folder)
}

/// Build folder of cargo.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let output = Command::new(cargo())
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root())
        .output()
        .context("cargo metadata did not start")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("the output of cargo metadata is not JSON")?;
    let directory =
        metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(directory))
}

fn cargo() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
