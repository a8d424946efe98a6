//! `nandscape reproduce`.

use crate::number;
use crate::outside::{STOP, catch_interrupts};
use config::Diagnostic;
use machine::reproduce::{Effort, Report, Request, TARGETS, find, plots, run as reproduce, table};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Names of all targets.
fn names() -> String {
    TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}

/// What to reproduce.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(help = format!("What to hold results against: {}, or all", names()))]
    target: String,
    /// Only rows of this id, or whose id begins with it; repeatable
    #[arg(long)]
    only: Vec<String>,
    /// Runs that go on at once; results do not depend on it
    #[arg(long, default_value_t = 1, value_parser = number::jobs)]
    jobs: usize,
    /// Everything that a paper states, every workload and several seeds: hours instead of minutes
    #[arg(long)]
    full: bool,
    /// Prints the rows as JSON
    #[arg(long)]
    json: bool,
    /// Also writes the rows of each target into this folder (NAME.json), and those that are points of curves as CSV
    #[arg(long)]
    out: Option<PathBuf>,
}

/// Runs; whether every row is within its tolerance.
///
/// # Errors
/// Unusable input.
pub(crate) fn run(args: &Args) -> Result<bool, Diagnostic> {
    let targets = find(&args.target)?;
    catch_interrupts()?;
    let mut reports = Vec::new();
    for target in targets {
        let request = Request {
            only: &args.only,
            jobs: args.jobs,
            effort: if args.full { Effort::Whole } else { Effort::Full },
            stop: &STOP,
            progress: &progress,
        };
        reports.push(reproduce(target, &request)?);
    }
    let rows: Vec<_> = reports.iter().flat_map(|report| report.rows.iter().cloned()).collect();
    if let Some(folder) = &args.out {
        reports.iter().try_for_each(|report| write_out(folder, report))?;
    }
    if args.json {
        println!("{}", json(&rows)?);
    } else {
        println!("{}", table(&rows));
        let checks: usize = reports.iter().map(|report| report.checks).sum();
        if checks > 0 {
            println!("{checks} checks passed in the runs: Little's law on the queues of host and dies");
        }
    }
    if reports.iter().any(|report| report.partial) {
        eprintln!("interrupted: rows are missing");
    }
    Ok(reports.iter().all(Report::ok))
}

fn json(rows: &[machine::reproduce::Row]) -> Result<String, Diagnostic> {
    serde_json::to_string_pretty(rows)
        .map_err(|e| Diagnostic::new(format!("cannot write the rows as JSON: {e}")))
}

fn write_out(folder: &Path, report: &Report) -> Result<(), Diagnostic> {
    let text = json(&report.rows)?;
    let fault = |e: std::io::Error| Diagnostic::new(format!("cannot write into {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(fault)?;
    std::fs::write(folder.join(format!("{}.json", report.target)), text).map_err(fault)?;
    let mut plots = plots(&report.rows).into_iter();
    plots.try_for_each(|plot| {
        std::fs::write(folder.join(format!("{}.csv", plot.name)), plot.csv).map_err(fault)
    })
}

/// A line that rewrites itself on a terminal, nothing elsewhere.
fn progress(done: usize, of: usize) {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        let end = if done == of { "\r\x1b[K" } else { "" };
        // A terminal that has gone away is no reason to stop.
        let _ = write!(terminal, "\r{done} of {of} runs{end}");
        let _ = terminal.flush();
    }
}
