//! `nandscape schema`.

use crate::output::{Fault, print};

/// Prints the JSON Schema (2020-12) of a system file.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn run() -> Result<bool, Fault> {
    let schema = machine::spec::of_file();
    print(&format!("{schema:#}"))?;
    Ok(true)
}
