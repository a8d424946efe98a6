//! The binary of packages, built twice. The first build counts, while it runs a few systems, which ways its code goes; the second is laid out by these counts
//! (profile-guided optimisation). What it finds is the same, bit for bit; it finds it sooner.

use crate::workspace::{self, Build};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the first build runs: drives, a host, a server, GPUs and accelerators, each for seconds.
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

/// Builds for a target of rustc, with all that a package has, and returns where the binary lies.
pub(crate) fn binary(target: &str) -> Result<PathBuf> {
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
        run(&first, arguments)?;
    }
    let merged = folder.join("counts.profdata");
    let status = Command::new(profdata).arg("merge").arg("--output").arg(&merged).arg(&counts).status();
    if !status.context("llvm-profdata did not start")?.success() {
        bail!("llvm-profdata cannot add up the counts in {}", counts.display());
    }
    let using = format!("-Cprofile-use={}", merged.display());
    workspace::build(&Build { flags: Some(&using), ..build })
}

fn run(binary: &Path, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(binary);
    command.current_dir(workspace::root()).arg("run").args(arguments).arg("--quiet").stdout(Stdio::null());
    if !command.status().context("the binary that counts does not start")?.success() {
        bail!("the binary that counts fails: nandscape run {}", arguments.join(" "));
    }
    Ok(())
}

/// What adds up counts: a part of the toolchain that is not installed with it.
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
