//! `nandscape import simplessd`.

use super::deliver;
use crate::imported::buildable;
use crate::output::{Fault, Files, refuse_no_place};
use std::path::PathBuf;

/// What to import.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Its configuration: sections with keys (branch 2.0), or XML (branch 2.1)
    file: PathBuf,
    /// The system to write; standard output if left out
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the system; what became of each setting goes to standard error.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
        Files::default().reads("FILE", &args.file).writes("--out", Some(out)).apart()?;
    }
    let name = args.file.display().to_string();
    let mut system = foreign::simplessd::import(&name, &config::read_text(&args.file)?)?;
    let file = args.out.as_ref().map_or("my.toml".to_owned(), |out| out.display().to_string());
    system.usage.push(format!("nandscape run {file} --workload randread"));
    buildable(&system, &[])?;
    deliver(args.out.as_deref(), &system.toml())?;
    tell!("{}", system.report(true).trim_end());
    Ok(true)
}
