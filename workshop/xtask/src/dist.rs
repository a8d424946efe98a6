//! `cargo xtask dist`: what a package is made of, as one archive: the binary (static where musl is there), its pages for `man`, completions
//! for shells, licences.

use crate::guided;
use crate::workspace::{self, Build};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Arguments of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What to build for: a binary of musl is static and runs on any Linux of its processor. It needs `rustup target add TARGET` and musl's
    /// compiler (Debian: musl-tools)
    #[arg(long, default_value = "x86_64-unknown-linux-musl", value_name = "TARGET")]
    target: String,
    /// Builds once, without counting first which ways the code goes: half of the time to build, a quarter more to run
    #[arg(long)]
    plain: bool,
}

const SHELLS: [(&str, &str); 3] =
    [("bash", "nandscape.bash"), ("zsh", "_nandscape"), ("fish", "nandscape.fish")];
const FILES: [&str; 5] = ["README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE-APACHE", "LICENSE-MIT"];

/// Builds, and prints where the archive is; `Containerfile` takes the folder beside it.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let binary = if options.plain {
        workspace::build(&Build { profile: "dist", target: Some(&options.target), ..Build::default() })?
    } else {
        guided::binary(&options.target)?
    };
    let name = format!("nandscape-{}-{}", env!("CARGO_PKG_VERSION"), options.target);
    let out = workspace::target_directory()?.join("package");
    let folder = out.join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for below in ["man", "completions"] {
        fs::create_dir_all(folder.join(below))?;
    }
    fs::copy(&binary, folder.join("nandscape")).context("the binary cannot be copied")?;
    for file in FILES {
        fs::copy(workspace::root().join(file), folder.join(file)).with_context(|| file.to_owned())?;
    }
    let man = folder.join("man").display().to_string();
    told(&binary, &["man", &man])?;
    for (shell, file) in SHELLS {
        fs::write(folder.join("completions").join(file), told(&binary, &["completions", shell])?)?;
    }
    let archive = packed(&out, &name)?;
    println!("{}", archive.display());
    println!(
        "{} bytes; container: podman build -t nandscape {}",
        fs::metadata(&archive)?.len(),
        folder.display()
    );
    fs::copy(workspace::root().join("Containerfile"), folder.join("Containerfile"))?;
    Ok(true)
}

/// What the binary prints.
fn told(binary: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(binary).args(arguments).output().context("the binary does not start")?;
    if !output.status.success() {
        bail!("nandscape {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// The folder as an archive beside it.
fn packed(out: &Path, name: &str) -> Result<PathBuf> {
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = tar::Builder::new(GzEncoder::new(File::create(&archive)?, Compression::best()));
    // No owners and no times of this machine.
    tar.mode(tar::HeaderMode::Deterministic);
    tar.append_dir_all(name, out.join(name))?;
    tar.into_inner()?.finish()?;
    Ok(archive)
}
