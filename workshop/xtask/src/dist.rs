//! `cargo xtask dist`: what a package is made of, as one archive: the binary (static where musl is there), its pages
//! for `man`, completions for shells, licences.
//!
//! The binary of packages is built twice. The first build counts, while it runs a few systems, which ways its code
//! goes; the second is laid out by these counts (profile-guided optimisation). What it finds is the same, bit for bit;
//! it finds it sooner.

use crate::workspace::{self, Build};
use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Arguments of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Target triple: a musl binary is static and runs on any Linux of its architecture; needs `rustup target add
    /// TARGET` and musl's compiler (Debian: musl-tools)
    #[arg(long, default_value = "x86_64-unknown-linux-musl", value_name = "TARGET")]
    target: String,
    /// Build once, without profile-guided optimisation: half the build time, a quarter more run time
    #[arg(long)]
    plain: bool,
}

const SHELLS: [(&str, &str); 3] =
    [("bash", "nandscape.bash"), ("zsh", "_nandscape"), ("fish", "nandscape.fish")];
const FILES: [&str; 5] = ["README.md", "CHANGELOG.md", "CITATION.cff", "LICENSE-APACHE", "LICENSE-MIT"];

/// Copies a folder with everything in it.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_all(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Builds, and prints the path of the archive; `Containerfile` uses the folder beside it.
pub(crate) fn run(options: &Options) -> Result<bool> {
    let binary = if options.plain {
        workspace::build(&Build { profile: "dist", target: Some(&options.target), ..Build::default() })?
    } else {
        guided_binary(&options.target)?
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
    let book = crate::book::build()?;
    copy_all(&book, &folder.join("book"))?;
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

/// Output of the binary.
fn told(binary: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(binary).args(arguments).output().context("the binary does not start")?;
    if !output.status.success() {
        bail!("nandscape {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Packs the folder into an archive beside it.
fn packed(out: &Path, name: &str) -> Result<PathBuf> {
    let archive = out.join(format!("{name}.tar.gz"));
    let mut tar = tar::Builder::new(GzEncoder::new(File::create(&archive)?, Compression::best()));
    // No owners and no times of this machine.
    tar.mode(tar::HeaderMode::Deterministic);
    tar.append_dir_all(name, out.join(name))?;
    tar.into_inner()?.finish()?;
    Ok(archive)
}

/// Training runs of the first build: drives, a host, a server, GPUs and accelerators, each for seconds.
const RUNS: &[&[&str]] = &[
    &["d16", "--workload", "fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=500000,norandommap=1"],
    &["pm9a3", "--workload", "fio:rw=randread,bs=4k,iodepth=64,number_ios=300000"],
    &["fastdrain", "--workload", "fio:rw=write,bs=64k,size=1g,direct=0"],
    &["astriflash", "--workload", "tatp:size=64MiB", "--set", "cpu.load.jobs=2000"],
    &["zng", "--workload", "betw:scale=12", "--workload", "back:n=4096"],
    &["mqms", "--workload", "gpt2:tokens=1,launches=0..40"],
    &["flashabacus", "--workload", "mx4:assignment=3"],
    &["flashabacus-inter-st", "--workload", "mx4:assignment=3"],
    &["flashabacus-intra-io", "--workload", "2dcon:instances=6"],
    &["flashabacus-simd", "--workload", "mx1:assignment=1"],
];

/// Builds for a target of rustc, with all features of a package, and returns the path of the binary.
pub(crate) fn guided_binary(target: &str) -> Result<PathBuf> {
    let profdata = profdata()?;
    let folder = workspace::target_directory()?.join("guided");
    let counts = folder.join("counts");
    if counts.exists() {
        fs::remove_dir_all(&counts)?;
    }
    let build = Build { profile: "dist", target: Some(target), ..Build::default() };
    let counting = format!("-Cprofile-generate={}", counts.display());
    let first = workspace::build(&Build { flags: Some(&counting), into: Some(&folder), ..build })?;
    for arguments in RUNS {
        run_counted(&first, arguments)?;
    }
    let merged = folder.join("counts.profdata");
    let status = Command::new(profdata).arg("merge").arg("--output").arg(&merged).arg(&counts).status();
    if !status.context("llvm-profdata did not start")?.success() {
        bail!("llvm-profdata cannot merge the counts in {}", counts.display());
    }
    let using = format!("-Cprofile-use={}", merged.display());
    workspace::build(&Build { flags: Some(&using), ..build })
}

fn run_counted(binary: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(binary);
    command.current_dir(workspace::root()).arg("run").args(arguments).arg("--quiet").stdout(Stdio::null());
    if !command.status().context("the instrumented binary does not start")?.success() {
        bail!("the instrumented binary fails: nandscape run {}", arguments.join(" "));
    }
    Ok(())
}

/// Path of llvm-profdata: an optional part of the toolchain.
fn profdata() -> Result<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "target-libdir"]).output().context("rustc did not start")?;
    let libraries = String::from_utf8(output.stdout).context("rustc printed no path")?;
    let tools = Path::new(libraries.trim()).with_file_name("bin");
    let profdata = tools.join(format!("llvm-profdata{}", std::env::consts::EXE_SUFFIX));
    if !profdata.is_file() {
        bail!(
            "llvm-profdata is missing: `rustup component add llvm-tools`, or `--plain` for a binary without counts"
        );
    }
    Ok(profdata)
}
