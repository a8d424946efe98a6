//! `nandscape import fio-json`.

use super::deliver;
use crate::output::{Fault, Files, refuse_no_place};
use crate::results::bytes;
use std::path::PathBuf;

/// What to import.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What fio wrote with --output-format=json or json+, of one job or several
    file: PathBuf,
    /// The result document to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the document.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
        Files::default().reads("FILE", &args.file).writes("--out", Some(out)).apart()?;
    }
    let document = foreign::fio::read(&args.file.display().to_string(), &bytes(&args.file)?)?;
    for warning in document["warnings"].as_array().into_iter().flatten() {
        tell!("note: {}", warning.as_str().unwrap_or_default());
    }
    // Text and numbers: serialising cannot fail.
    deliver(args.out.as_deref(), &serde_json::to_string_pretty(&document).unwrap_or_default())?;
    Ok(true)
}
