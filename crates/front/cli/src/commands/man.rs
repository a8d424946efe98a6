//! `nandscape man`.

use crate::output::{Fault, cannot_write};
use config::Diagnostic;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Existing output folder
    folder: PathBuf,
}

/// Writes a man page for `command` and for each of its subcommands.
///
/// # Errors
/// The pages cannot be written.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<bool, Fault> {
    if !args.folder.is_dir() {
        let folder = args.folder.display();
        let (what, help) = match args.folder.exists() {
            true => (format!("`{folder}` is a file, not a folder"), "give a folder"),
            false => {
                (format!("the folder `{folder}` does not exist"), "create it first, or give a different one")
            }
        };
        return Err(Diagnostic::new(what).help(help).into());
    }
    clap_mangen::generate_to(command, &args.folder).map_err(|fault| cannot_write(&args.folder, &fault))?;
    Ok(true)
}
