//! `cargo xtask soak`: the flash device in all combinations under its shadow, a host whose power is cut 10,000 times, the shipped binary for very long, or damaged input.

mod endurance;

use crate::workspace;
use anyhow::{Context, Result};
use clap::Args;
use std::process::{Command, Stdio};

/// How long, and from where.
#[derive(Args)]
pub(crate) struct Options {
    /// Operations at least, over all combinations
    #[arg(long, default_value_t = 10_000_000)]
    ops: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Runs in the profiles dev and release, and compares the digests of all completions
    #[arg(long, conflicts_with = "endurance")]
    profiles: bool,
    /// Instead, this many requests to the shipped binary: its memory must stay flat
    #[arg(long, value_name = "REQUESTS", num_args = 0..=1, default_missing_value = "100000000", value_parser = clap::value_parser!(u64).range(100_000..))]
    endurance: Option<u64>,
    /// Instead, so many seconds of damaged input for everything that is read, whole machines included
    #[arg(long, value_name = "SECONDS", conflicts_with_all = ["endurance", "profiles"])]
    fuzz: Option<u64>,
}

/// Runs it; false if something failed.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(requests) = options.endurance {
        return endurance::run(requests);
    }
    if let Some(seconds) = options.fuzz {
        return Ok(fuzz(seconds, options.seed).status()?.success());
    }
    if options.profiles {
        return compare_profiles(options);
    }
    Ok(test(options, &["--release"]).status()?.success() && cuts(options).status()?.success())
}

/// The ignored test of the host crate: cuts of power.
fn cuts(options: &Options) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace::root())
        .args([
            "test",
            "--release",
            "-p",
            "nandscape-linux",
            "--lib",
            "ten_thousand_cuts",
            "--",
            "--ignored",
            "--nocapture",
        ])
        .env("SOAK_SEED", options.seed.to_string());
    command
}

/// The ignored test of the drive.
fn test(options: &Options, profile: &[&str]) -> Command {
    let mut command = Command::new("cargo");
    command
        .current_dir(workspace::root())
        .arg("test")
        .args(profile)
        .args(["-p", "nandscape-ssd", "--test", "all", "soaked::long", "--", "--ignored", "--nocapture"])
        .env("SOAK_OPS", options.ops.to_string())
        .env("SOAK_SEED", options.seed.to_string());
    command
}

/// The driver of the crate `fuzzing`, with assertions.
fn fuzz(seconds: u64, seed: u64) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(workspace::root()).args(["run", "--quiet", "-p", "nandscape-fuzzing", "--"]).args([
        seconds.to_string(),
        "all".to_owned(),
        seed.to_string(),
    ]);
    command
}

/// Whether assertions and optimisation leave every result as it is.
fn compare_profiles(options: &Options) -> Result<bool> {
    let mut digests = Vec::new();
    for profile in [&[][..], &["--release"]] {
        let output = test(options, profile).stderr(Stdio::inherit()).output()?;
        let text = String::from_utf8_lossy(&output.stdout);
        let digest = text.lines().find_map(|line| line.strip_prefix("digest "));
        let digest = digest.context("the soak printed no digest")?.to_owned();
        let name = profile.first().map_or("dev", |name| name.trim_start_matches('-'));
        println!("{name}: digest {digest}, {}", if output.status.success() { "ok" } else { "FAILED" });
        digests.push((digest, output.status.success()));
    }
    let same = digests.iter().all(|(digest, _)| *digest == digests[0].0);
    println!("{}", if same { "the same in both profiles" } else { "NOT the same in both profiles" });
    Ok(same && digests.iter().all(|(_, ok)| *ok))
}
