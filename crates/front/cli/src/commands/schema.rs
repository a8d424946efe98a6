//! `nandscape schema`.

use crate::output::{Fault, print};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Document to describe
    #[arg(value_enum, default_value_t = Of::System)]
    of: Of,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Of {
    /// A system file
    System,
    /// The result document of a run
    Result,
}

/// Prints a JSON Schema (2020-12).
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let schema = match args.of {
        Of::System => spec::of_file(),
        Of::Result => machine::result::metrics::schema(),
    };
    print(&format!("{schema:#}"))?;
    Ok(true)
}
