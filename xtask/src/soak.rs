//! The long soak of the flash device: its ignored test, in the release profile.

use crate::workspace;
use clap::Args;
use std::process::Command;

/// How long, and from where.
#[derive(Args)]
pub struct Options {
    /// Operations at least, over all combinations
    #[arg(long, default_value_t = 10_000_000)]
    ops: u64,
    /// First seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs it; false if a combination failed.
pub fn run(options: &Options) -> anyhow::Result<bool> {
    let status = Command::new("cargo")
        .current_dir(workspace::root())
        .args([
            "test",
            "--release",
            "-p",
            "nandscape-flash",
            "--test",
            "soak",
            "--",
            "--ignored",
            "--nocapture",
        ])
        .env("SOAK_OPS", options.ops.to_string())
        .env("SOAK_SEED", options.seed.to_string())
        .status()?;
    Ok(status.success())
}
