//! `nandscape import mqsim | simplessd | fio-json`.

mod fio_json;
mod mqsim;
mod simplessd;

use crate::output::{Fault, print, write_whole};
use clap::Subcommand;
use std::path::Path;

/// What to bring in.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// MQSim's ssdconfig.xml, with its workload.xml, as a system and fio jobs; says which settings are carried, which mean something else here, which are bugs there
    Mqsim(mqsim::Args),
    /// SimpleSSD's configuration (.cfg or .xml) as a system; reported alike
    Simplessd(simplessd::Args),
    /// What fio measured (--output-format=json or json+) as a result document, for `diff`, `report` and Python
    FioJson(fio_json::Args),
}

/// Imports.
///
/// # Errors
/// A file that cannot be used.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    match &args.command {
        Command::Mqsim(args) => mqsim::run(args),
        Command::Simplessd(args) => simplessd::run(args),
        Command::FioJson(args) => fio_json::run(args),
    }
}

/// Writes a text to its file, or to standard output.
fn deliver(out: Option<&Path>, text: &str) -> Result<(), Fault> {
    match out {
        Some(path) => write_whole(path, format!("{}\n", text.trim_end()).as_bytes()),
        None => print(text.trim_end()),
    }
}
