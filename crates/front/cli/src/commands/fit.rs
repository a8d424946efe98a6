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

/// What to fit to what.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What fio wrote with --output-format=json of jobs on one drive: reads, writes, random, in order, at several depths
    results: Vec<PathBuf>,
    /// The system that the fit begins with: a shipped drive of the same class, or a TOML file
    #[arg(long, value_name = "SYSTEM")]
    like: String,
    /// A point by hand: a job in fio's words and what was measured of it (rw=randread,bs=4k,iodepth=1,clat=80us); repeatable
    #[arg(long, value_name = "JOB")]
    point: Vec<String>,
    /// A point that chooses nothing: it is held against what the others have chosen; repeatable
    #[arg(long, value_name = "JOB")]
    check: Vec<String>,
    /// What is known of the drive besides: geometry, cell, link (key.path=value); repeatable
    #[arg(long)]
    set: Vec<String>,
    /// Fits the time of programs too, by the largest writes in order
    #[arg(long)]
    program: bool,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1, value_parser = options::whole)]
    seed: u64,
    /// Runs that go on at once; results do not depend on it
    #[arg(long, default_value_t = 1, value_parser = options::jobs_at_once)]
    jobs: usize,
    /// Prints the fit as JSON
    #[arg(long)]
    json: bool,
    /// Writes the fitted drive as a file that `run` takes
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Fits; whether every figure that chose a value is met.
///
/// # Errors
/// Results that are no fio's, or say too little, or are not of one SSD; a system without a drive to fit.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if let Some(out) = &args.out {
        refuse_no_place(out)?;
        let files = Files::default().reads_named("--like", &args.like).writes("--out", Some(out));
        let read = |files: Files, path: &PathBuf| files.reads("RESULTS", path);
        args.results.iter().fold(files, read).apart()?;
    }
    let (points, mut left_out) = points(args)?;
    if points.is_empty() {
        let fault =
            Diagnostic::new("there is nothing to fit to: no job of these results is one that a fit compares");
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

/// Points of all results and those by hand, and why others were left out.
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
