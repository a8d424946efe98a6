//! `nandscape explain-run`.

use crate::output::{Fault, print};
use crate::results::read_run;
use machine::result::told::{Told, told};
use report::Run;
use std::fmt::Write as _;
use std::path::PathBuf;

/// What to explain.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A result document, or a folder with a result.json
    result: PathBuf,
    /// Prints it as JSON
    #[arg(long)]
    json: bool,
}

/// Says what limits a run.
///
/// # Errors
/// A file that is no result document.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let Run { name, document } = read_run(&args.result)?;
    let told = told(&document);
    print(&if args.json {
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&told).unwrap_or_default()
    } else {
        human(&name, &told)
    })?;
    Ok(true)
}

fn human(name: &str, told: &Told) -> String {
    let mut text = format!("{name}\n");
    for finding in &told.findings {
        let _ = writeln!(text, "  * {finding}");
    }
    if told.findings.is_empty() {
        let _ = writeln!(
            text,
            "  nothing in it says where time went: it has no parts, as of a result that was measured"
        );
    }
    if !told.keys.is_empty() {
        let _ = writeln!(text, "\n  worth a try:");
    }
    for key in &told.keys {
        let now = key.now.as_str().map_or_else(|| key.now.to_string(), str::to_owned);
        let _ = writeln!(text, "    {} (now {now}): {}", key.key, key.why);
    }
    text.pop();
    text
}
