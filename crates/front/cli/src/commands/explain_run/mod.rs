//! `nandscape explain-run`.

mod trial;

use crate::output::{Fault, print};
use crate::results::read_run;
use machine::result::told::{Told, told};
use report::Run;
use std::fmt::Write as _;
use std::path::PathBuf;
use trial::Trial;

/// What to explain.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A result document, or a folder with a result.json
    result: PathBuf,
    /// Runs the machine of the document again, once as it is and once with each key that may be worth a try, and proposes those alone that make it better
    #[arg(long = "try")]
    tries: bool,
    /// Prints it as JSON
    #[arg(long)]
    json: bool,
}

/// What is told, with what was tried.
#[derive(serde::Serialize)]
struct Page {
    #[serde(flatten)]
    told: Told,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<Trial>,
}

/// Says what limits a run.
///
/// # Errors
/// A file that is not a result document; a machine that cannot be run again.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let Run { name, document } = read_run(&args.result)?;
    let mut page = Page { told: told(&document), trial: None };
    if args.tries {
        let trial = Trial::of(&document)?;
        page.told.keys = trial.proposed();
        page.trial = Some(trial);
    }
    print(&if args.json {
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&page).unwrap_or_default()
    } else {
        human(&name, &page)
    })?;
    Ok(true)
}

fn human(name: &str, page: &Page) -> String {
    let mut text = format!("{name}\n");
    for finding in &page.told.findings {
        let _ = writeln!(text, "  * {finding}");
    }
    if page.told.findings.is_empty() {
        let _ = writeln!(
            text,
            "  nothing in it says where time went: it has no parts, as of a result that was measured"
        );
    }
    if let Some(trial) = &page.trial {
        trial.write(&mut text);
    } else if !page.told.keys.is_empty() {
        let _ = writeln!(text, "\n  worth a try (`--try` runs them):");
        for key in &page.told.keys {
            let _ = writeln!(text, "    {} (now {}, try {}): {}", key.key, key.says(), key.tries(), key.why);
        }
    }
    text.truncate(text.trim_end().len());
    text
}
