//! `nandscape sweep`.

use crate::number;
use crate::output::{Fault, print, write_whole};
use crate::outside::{catch_interrupts, result_is_coming};
use crate::states::shared;
#[cfg(feature = "parquet")]
use crate::sweep::parquet;
use crate::sweep::{
    Live, Outcome, Store, Sweep, Table, Work, human, points, refuse_absent, refuse_unusable, run_all,
};
use config::Diagnostic;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a file may say.
const FILE_HELP: &str = r#"The file, paths in it relative to it:
  system = "d16"
  workloads = ["fio:rw=randread,bs=4k", ["a.csv", "b.csv"]]    an inner array runs together
  seeds = [1, 2]                                               1 if left out
  warmup = "10ms"                                              optional, as of `run`
  queue_depth = 32                                             optional, as of `run`
  metrics = ["io.read.latency_ns.p99"]                         optional: columns of the table (docs/metrics.md)
  [trace]                                                      optional: format, time_unit, remap, ... as of `run`
  remap = "wrap"
  [set]                                                        every combination of the arrays' values
  flash.ftl.gc.victim = ["greedy", { d_choices = { d = 4 } }]
  flash.geometry.channels = 8                                  one value
  [[zip]]                                                      keys that step together
  flash.geometry.blocks = [256, 512]
  flash.ftl.gc.start = [12, 25]

A run's document lies in DIR/runs under the SHA-256 of its resolved spec, workloads with the content of their files,
seed, reading options and program version; --resume takes what lies there, and without it a folder with results is refused. Values, keys and workloads that cannot be are
refused before the first run (of more than 2,000 combinations, each value beside the first of the other axes).

The table has a row for each run: run, workload, each key that varies, seed, state, metrics, result (its document),
message, and config, the whole resolved spec as JSON. docs/sweeps.md has more."#;

/// What to sweep.
#[derive(clap::Args)]
#[command(after_help = FILE_HELP)]
pub(crate) struct Args {
    /// The sweep, a TOML file
    file: PathBuf,
    /// Runs at a time; as many as there are processors if left out
    #[arg(long, value_parser = number::jobs)]
    jobs: Option<usize>,
    /// The folder for the table (summary.csv) and the result documents (runs/); out/NAME if left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// How the table is written: summary.csv, summary.parquet, or both
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
    /// Takes what is in the folder from there; only the rest runs
    #[arg(long)]
    resume: bool,
    /// Runs take states of drives from this folder, and put there what is not there; left out, runs of the sweep that want the
    /// same state share it in memory; `none` has each run precondition its own
    #[arg(long, value_name = "DIR")]
    state_cache: Option<PathBuf>,
}

/// Files of the table.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// summary.csv
    Csv,
    /// summary.parquet
    Parquet,
    /// Both
    Both,
}

/// Runs the sweep; whether every run was well.
///
/// # Errors
/// An unusable file, before anything runs; a metric that no run has had. What else is only found by running is a failure of its runs.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    if args.format != Format::Csv {
        refuse_unbuilt_parquet()?;
    }
    let sweep = Sweep::read(&args.file)?;
    sweep.count()?;
    refuse_unusable(&sweep)?;
    let points = Arc::new(points(&sweep));
    let states = shared(args.state_cache.as_deref(), points.iter().map(|point| &point.plan))?;
    let name = args.file.file_stem().unwrap_or_default();
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("out").join(name));
    // The folder is this sweep's until the table is written.
    let store = Arc::new(Store::open(&out, points.iter().map(|point| &point.plan), args.resume)?);
    let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let jobs = args.jobs.unwrap_or_else(processors);
    catch_interrupts()?;
    // What has ended is in the store, and in the table.
    result_is_coming();
    let mut live = Live::new(&sweep, &points);
    let (resume, metrics) = (args.resume, sweep.metrics.clone());
    let needed = if sweep.is_alike() { sweep.named().len() } else { 0 };
    let (runs, kept) = (Arc::clone(&points), Arc::clone(&store));
    let work = Work { points: runs, store: kept, jobs, resume, metrics, states, needed };
    let outcomes = run_all(work, &mut live);
    live.end();
    let written = write_tables(&Table::new(&sweep, &points, &outcomes), args.format, &out)?;
    let absent = refuse_absent(&sweep, &outcomes, &store);
    drop(store);
    print(&human(&sweep, &points, &outcomes))?;
    for (diagnostic, runs) in failures(&outcomes) {
        eprintln!("{diagnostic}\n  in {}\n", numbered(&runs));
    }
    let well = outcomes.iter().filter(|outcome| outcome.is_well()).count();
    eprintln!("{well} of {} runs are well; {written}", points.len());
    absent?;
    Ok(well == points.len())
}

/// Writes the table; the names of its files.
fn write_tables(table: &Table, format: Format, out: &Path) -> Result<String, Fault> {
    let mut written = Vec::new();
    if format != Format::Parquet {
        let path = out.join("summary.csv");
        write_whole(&path, &table.csv()?)?;
        written.push(path.display().to_string());
    }
    if format != Format::Csv {
        let path = out.join("summary.parquet");
        write_whole(&path, &parquet(table)?)?;
        written.push(path.display().to_string());
    }
    Ok(written.join(", "))
}

/// Without the feature, says how to build with it, before anything runs.
fn refuse_unbuilt_parquet() -> Result<(), Diagnostic> {
    if cfg!(feature = "parquet") {
        return Ok(());
    }
    Err(Diagnostic::new("this program was built without Parquet").help(
        "`cargo build --release --features parquet` builds it with Parquet; --format csv needs nothing",
    ))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Table) -> Result<Vec<u8>, Diagnostic> {
    refuse_unbuilt_parquet().map(|()| Vec::new())
}

/// What failed, each once, with the runs that it stopped.
fn failures(outcomes: &[Outcome]) -> Vec<(&Diagnostic, Vec<usize>)> {
    let mut found: Vec<(&Diagnostic, Vec<usize>)> = Vec::new();
    for (number, outcome) in outcomes.iter().enumerate() {
        let Outcome::Failed(diagnostic) = outcome else { continue };
        match found.iter_mut().find(|(known, _)| *known == diagnostic) {
            Some((_, runs)) => runs.push(number),
            None => found.push((diagnostic, vec![number])),
        }
    }
    found
}

/// `run 3`, `runs 2, 3 and 17 more`.
fn numbered(runs: &[usize]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = runs.iter().take(SHOWN).map(usize::to_string).collect();
    let plural = if runs.len() > 1 { "s" } else { "" };
    let more = if runs.len() > SHOWN { format!(" and {} more", runs.len() - SHOWN) } else { String::new() };
    format!("run{plural} {}{more}", shown.join(", "))
}
