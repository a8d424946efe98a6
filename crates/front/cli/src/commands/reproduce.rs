//! `nandscape reproduce`.

use crate::complete;
use crate::options;
use crate::output::{Fault, Files, cannot_write, make_folder, print, refuse_no_place, write_whole};
use crate::outside::{STOP, catch_interrupts, result_is_coming};
use crate::progress::Counter;
use crate::states::shared;
use config::Diagnostic;
use machine::run::Plan;
use machine::state::States;
use reproduce::{Effort, Report, Request, TARGETS, choose, plots, run as reproduce, table};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of all targets.
fn names() -> String {
    TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ")
}

/// What to reproduce.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(help = format!("What to hold results against: {}, or all", names()), add = clap_complete::ArgValueCompleter::new(complete::targets))]
    target: String,
    /// Only rows of this id, or whose id begins with it; repeatable
    #[arg(long)]
    only: Vec<String>,
    /// Works the rows out under this reading of the paper, in place of its first; an unknown name lists them
    #[arg(long, value_name = "ID")]
    reading: Option<String>,
    /// Runs that go on at once; results do not depend on it
    #[arg(long, default_value_t = 1, value_parser = options::jobs_at_once)]
    jobs: usize,
    /// Everything that a paper states, every workload and several seeds: hours instead of minutes
    #[arg(long)]
    full: bool,
    /// Runs take states of drives and of servers' memory from this folder, and put there what is not there; left out, runs that
    /// want the same state share it in memory; `none` has each run make its own
    #[arg(long, value_name = "DIR")]
    state_cache: Option<PathBuf>,
    /// Prints the rows as JSON
    #[arg(long)]
    json: bool,
    /// Also writes the rows of each target into this folder as soon as they are there (NAME.json), and those that are points of curves as CSV
    #[arg(long)]
    out: Option<PathBuf>,
    /// Also draws the rows as one HTML file, each with its tolerance and the command that gives it
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs; whether every row is within its tolerance.
///
/// # Errors
/// Unusable input.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(path) = &args.html {
        refuse_no_place(path)?;
    }
    let effort = if args.full { Effort::Whole } else { Effort::Full };
    let chosen = choose(&args.target, &args.only, effort, args.reading.as_deref())?;
    let rows: Vec<String> = TARGETS.iter().map(|target| format!("{}.json", target.name)).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let files = Files::default().writes("--html", args.html.as_deref());
    files.writes_in("--out", args.out.as_deref(), &rows).apart()?;
    if let Some(folder) = &args.out {
        make_folder(folder).map_err(|fault| cannot_write(folder, &fault))?;
    }
    catch_interrupts()?;
    // Rows that are there are shown.
    result_is_coming();
    let counter = Counter::new();
    // A folder that cannot be made is told before the first run.
    shared(args.state_cache.as_deref(), Some([].iter()))?;
    let states = |plans: &[Plan]| {
        let shared = shared(args.state_cache.as_deref(), Some(plans.iter())).ok()??;
        Some(shared as Arc<dyn States + Send + Sync>)
    };
    let progress = |done, of| counter.show(done, of, 0);
    let request = Request { jobs: args.jobs, stop: &STOP, progress: &progress, states: &states };
    let mut reports = Vec::new();
    let mut readings = Vec::new();
    for chosen in chosen {
        readings.extend(chosen.read_as());
        let report = reproduce(chosen, &request);
        // Now, so that what goes wrong in an hour takes none of it away.
        if let Some(folder) = &args.out
            && !report.rows.is_empty()
        {
            write_out(folder, &report)?;
        }
        let ended = report.partial;
        reports.push(report);
        if ended {
            break;
        }
    }
    drop(counter);
    let rows: Vec<_> = reports.iter().flat_map(|report| report.rows.iter().cloned()).collect();
    if let Some(path) = &args.html {
        write_whole(path, html(&reports, &args.options())?.as_bytes())?;
    }
    if args.json {
        print(&json(&rows)?)?;
    } else {
        for line in readings {
            print(&line)?;
        }
        print(&table(&rows))?;
        let checks: usize = reports.iter().map(|report| report.checks).sum();
        if checks > 0 {
            print(&format!(
                "{checks} checks passed in the runs: Little's law on the queues of host and dies"
            ))?;
        }
    }
    if reports.iter().any(|report| report.partial) {
        tell!("interrupted: rows are missing");
    }
    Ok(reports.iter().all(Report::ok))
}

fn json(rows: &[reproduce::Row]) -> Result<String, Diagnostic> {
    serde_json::to_string_pretty(rows)
        .map_err(|e| Diagnostic::new(format!("cannot write the rows as JSON: {e}")))
}

impl Args {
    /// Options that decide what rows there are, as they were typed.
    fn options(&self) -> String {
        let full = self.full.then(|| "--full".to_owned());
        let reading = self.reading.as_ref().map(|id| format!("--reading {id}"));
        full.into_iter().chain(reading).collect::<Vec<_>>().join(" ")
    }
}

/// The rows as a page, beside the options that decide them.
fn html(reports: &[Report], options: &str) -> Result<String, Diagnostic> {
    let fault = |fault| Diagnostic::new(format!("cannot draw the rows: {fault}"));
    let mut all = Vec::new();
    for report in reports {
        let rows = report.rows.iter().map(|row| serde_json::to_value(row).map_err(fault));
        all.push((report.target, rows.collect::<Result<Vec<_>, _>>()?));
    }
    let named: Vec<_> = all.iter().map(|(target, rows)| (*target, rows.as_slice())).collect();
    Ok(report::rows(&named, options))
}

fn write_out(folder: &Path, report: &Report) -> Result<(), Fault> {
    write_whole(&folder.join(format!("{}.json", report.target)), json(&report.rows)?.as_bytes())?;
    let mut plots = plots(&report.rows).into_iter();
    plots.try_for_each(|plot| write_whole(&folder.join(format!("{}.csv", plot.name)), plot.csv.as_bytes()))
}
