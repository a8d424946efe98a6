//! `nandscape gen-docs`: writes the pages of the manual that are generated from the program's own lists.

use crate::output::{Fault, cannot_write, make_folder, write_whole};
use crate::pages::{families_table, metrics_page, parameters_page, policies_page, systems_page};
use std::path::PathBuf;

/// Arguments of `gen-docs`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Output folder
    dir: PathBuf,
}

/// Writes metrics.md, parameters.md, policies.md, systems.md, and the README's table of systems (families.md).
///
/// # Errors
/// A folder that cannot be written.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    make_folder(&args.dir).map_err(|fault| cannot_write(&args.dir, &fault))?;
    for (name, text) in [
        ("metrics.md", metrics_page()),
        ("parameters.md", parameters_page()),
        ("policies.md", policies_page()),
        ("systems.md", systems_page()?),
        ("families.md", families_table()?),
    ] {
        write_whole(&args.dir.join(name), text.as_bytes())?;
    }
    Ok(true)
}
