//! To come.
use crate::output::Fault;
/// What to import.
#[derive(clap::Args)]
pub(crate) struct Args {}
pub(crate) fn run(_args: &Args) -> Result<bool, Fault> { Ok(true) }
