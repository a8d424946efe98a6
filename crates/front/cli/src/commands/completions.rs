//! `nandscape completions`.

use crate::output::{Fault, print};
use clap_complete::Shell;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Shell to complete for
    shell: Shell,
}

/// Prints the shell script that completes options and subcommands of `command`.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(args: &Args, mut command: clap::Command) -> Result<bool, Fault> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "nandscape", &mut script);
    print(String::from_utf8_lossy(&script).trim_end())?;
    Ok(true)
}
