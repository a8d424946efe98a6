//! `nandscape gen-docs`: writes the pages of the manual that are generated from the program's own lists.

use crate::output::{Fault, cannot_write, make_folder, write_whole};
use crate::pages::{metrics_page, parameters_page, policies_page};
use std::path::PathBuf;

/// Arguments of `gen-docs`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output folder
    dir: PathBuf,
}

/// Writes metrics.md, parameters.md and policies.md.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    make_folder(&args.dir).map_err(|fault| cannot_write(&args.dir, &fault))?;
    for (name, text) in [
        ("metrics.md", metrics_page()),
        ("parameters.md", parameters_page()),
        ("policies.md", policies_page()),
    ] {
        write_whole(&args.dir.join(name), text.as_bytes())?;
    }
    Ok(true)
}
