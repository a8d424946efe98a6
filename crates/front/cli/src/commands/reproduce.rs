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

/// Arguments of `reproduce`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(help = format!("Target to compare with: {}, or all", names()), add = clap_complete::ArgValueCompleter::new(complete::targets))]
    target: String,
    /// Only rows whose id is or begins with this; repeatable
    #[arg(long)]
    only: Vec<String>,
    /// Use this reading of the paper instead of its first; an unknown name lists them
    #[arg(long, value_name = "ID")]
    reading: Option<String>,
    /// Number of parallel runs; results do not depend on it
    #[arg(long, default_value_t = 1, value_parser = options::jobs_at_once)]
    jobs: usize,
    /// Run everything a paper states, with every workload and several seeds: hours instead of minutes
    #[arg(long)]
    full: bool,
    /// Cache folder for states of drives and server memory; left out, runs share states in memory; `none` disables
    /// sharing
    #[arg(long, value_name = "DIR")]
    state_cache: Option<PathBuf>,
    /// Print the rows as JSON
    #[arg(long)]
    json: bool,
    /// Also write each target's rows into this folder as they complete (NAME.json), and curves as CSV
    #[arg(long)]
    out: Option<PathBuf>,
    /// Also draw the rows as one HTML file, with tolerance and command of each
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs; returns whether every row is within its tolerance.
///
/// # Errors
/// The input is unusable.
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
    // Rows that exist are shown.
    result_is_coming();
    let counter = Counter::new();
    // A folder that cannot be created is reported before the first run.
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
        // Written now, so that a later failure does not lose them.
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
    /// Options that select the rows, as typed.
    fn options(&self) -> String {
        let full = self.full.then(|| "--full".to_owned());
        let reading = self.reading.as_ref().map(|id| format!("--reading {id}"));
        full.into_iter().chain(reading).collect::<Vec<_>>().join(" ")
    }
}

/// Draws the rows as a page, with the options that select them.
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
