//! `nandscape man`.

use crate::output::{Fault, cannot_write};
use config::Diagnostic;
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
    if !args.folder.is_dir() {
        let folder = args.folder.display();
        let (what, help) = match args.folder.exists() {
            true => (format!("`{folder}` is a file, and the pages need a folder"), "name a folder"),
            false => (format!("the folder `{folder}` is not there"), "make it first, or name another"),
        };
        return Err(Diagnostic::new(what).help(help).into());
    }
    clap_mangen::generate_to(command, &args.folder).map_err(|fault| cannot_write(&args.folder, &fault))?;
    Ok(true)
}
