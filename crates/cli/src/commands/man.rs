//! `nandscape man`.

use crate::output::{Fault, cannot_write};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A folder that is there
    folder: PathBuf,
}

/// Writes a page for `command` and for each of its subcommands, as `man` reads them.
///
/// # Errors
/// They cannot be written there.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<bool, Fault> {
    clap_mangen::generate_to(command, &args.folder).map_err(|fault| cannot_write(&args.folder, &fault))?;
    Ok(true)
}
