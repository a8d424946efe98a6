//! `cargo xtask mutants`: the faults planted in the model crates, and which check kills each.

use crate::workspace;
use anyhow::{Context, Result};
use std::process::{Command, Stdio};

/// Runs the suite and prints its table; false if a mutant survives.
pub(crate) fn run() -> Result<bool> {
    let output = Command::new("cargo")
        .current_dir(workspace::root())
        .args(["test", "--quiet", "-p", "nandscape-machine", "--test", "mutants", "--", "--nocapture"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo test did not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    for line in text.lines().filter(|line| line.starts_with('|')) {
        println!("{line}");
    }
    Ok(output.status.success())
}
