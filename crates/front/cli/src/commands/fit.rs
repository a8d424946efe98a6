//! `nandscape fit`.

use crate::options;
use crate::output::{Fault, Files, print, refuse_no_place, write_whole};
use crate::outside::{STOP, catch_interrupts};
use crate::progress::Counter;
use crate::results::bytes;
use crate::states::shared;
use config::Diagnostic;
use fit::{Figures, Fit, Point, Request, fit};
use foreign::fio::{Measured, measured};
use machine::run::Plan;
use machine::state::States;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `fit`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// fio results (--output-format=json) of jobs on one drive: reads and writes, random and sequential, at several
    /// depths
    results: Vec<PathBuf>,
    /// System to start the fit from: a shipped drive of the same class, or a TOML file
    #[arg(long, value_name = "SYSTEM")]
    like: String,
    /// Measured point by hand: fio job and measured value (rw=randread,bs=4k,iodepth=1,clat=80us); repeatable
    #[arg(long, value_name = "JOB")]
    point: Vec<String>,
    /// Point that is not fitted but compared with the fit; repeatable
    #[arg(long, value_name = "JOB")]
    check: Vec<String>,
    /// Known properties of the drive: geometry, cell, link (key.path=value); repeatable
    #[arg(long)]
    set: Vec<String>,
    /// Also fit the program time, from the largest sequential writes
    #[arg(long)]
    program: bool,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1, value_parser = options::whole)]
    seed: u64,
    /// Number of parallel runs; results do not depend on it
    #[arg(long, default_value_t = 1, value_parser = options::jobs_at_once)]
    jobs: usize,
    /// Print the fit as JSON
    #[arg(long)]
    json: bool,
    /// Write the fitted drive as a system file for `run`
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Fits a drive; returns whether every fitted metric is met.
///
/// # Errors
/// The results are not from fio, are insufficient, or are not of one SSD; or the system has no drive to fit.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
        let files = Files::default().reads_named("--like", &args.like).writes("--out", Some(out));
        let read = |files: Files, path: &PathBuf| files.reads("RESULTS", path);
        args.results.iter().fold(files, read).apart()?;
    }
    let (points, mut left_out) = points(args)?;
    if points.is_empty() {
        let fault = Diagnostic::new("nothing to fit: none of these results is a job that a fit can compare");
        let fault = if left_out.is_empty() { fault } else { Diagnostic { listed: left_out, ..fault } };
        return Err(fault
            .help("give results of fio, or `--point rw=randread,bs=4k,iodepth=1,clat=80us`")
            .into());
    }
    catch_interrupts()?;
    let counter = Counter::new();
    let states = shared(None, None::<std::slice::Iter<'_, Plan>>)?;
    let request = Request {
        like: &args.like,
        set: &args.set,
        points,
        program: args.program,
        seed: args.seed,
        jobs: args.jobs,
        stop: &STOP,
        states: states.as_deref().map(|states| states as &(dyn States + Sync)),
        progress: &|done, about| counter.show(done as usize, about as usize, 0),
    };
    let mut found = fit(&request)?;
    drop(counter);
    found.notes.append(&mut left_out);
    if let Some(out) = &args.out {
        write_whole(out, found.to_toml().as_bytes())?;
    }
    if args.json {
        print(&as_json(&found)?)?
    } else {
        print(&found.to_string())?
    }
    Ok(found.is_met())
}

/// Points of all results and of the command line, and the reasons why others were omitted.
fn points(args: &Args) -> Result<(Vec<Point>, Vec<String>), Fault> {
    let read = |path: &PathBuf| Ok::<_, Diagnostic>((path.display().to_string(), bytes(path)?));
    let files: Vec<_> = args.results.iter().map(read).collect::<Result<_, _>>()?;
    let mut points = Vec::new();
    let mut left_out = Vec::new();
    for one in measured(&files)? {
        match of_fio(&one)? {
            Ok(point) => points.push(point),
            Err(why) => left_out.push(why),
        }
    }
    let by_hand = args.point.iter().map(|text| Point::parse("--point", text));
    let held = args.check.iter().map(|text| Ok(Point { held: true, ..Point::parse("--check", text)? }));
    points.extend(by_hand.chain(held).collect::<Result<Vec<_>, Diagnostic>>()?);
    Ok((points, left_out))
}

fn of_fio(one: &Measured) -> Result<Result<Point, String>, Diagnostic> {
    let [p99, p99_9, p99_999] = one.percentiles;
    let figures =
        Figures { iops: Some(one.iops).filter(|iops| *iops > 0.0), mean: one.mean, p99, p99_9, p99_999 };
    Point::of_fio(&one.options, one.write, figures, one.busy, &one.place)
}

fn as_json(found: &Fit) -> Result<String, Diagnostic> {
    let fault = |fault| Diagnostic::new(format!("cannot write the fit as JSON: {fault}"));
    let mut document = serde_json::to_value(found).map_err(fault)?;
    let error = |(axis, mean, rows, worst): (&str, f64, usize, &fit::Row)| json!({ "axis": axis, "mean": mean, "figures": rows, "worst": { "job": worst.job, "error": worst.error() } });
    document["errors"] = found.errors().into_iter().map(error).collect();
    let (inside, ranges) = found.inside();
    document["spread"] = json!({ "inside": inside, "figures": ranges });
    document["met"] = found.is_met().into();
    serde_json::to_string_pretty(&document).map_err(fault)
}
