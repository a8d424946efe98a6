//! `nandscape sweep`.

use crate::options;
use crate::output::{Fault, Files, print, write_whole};
use crate::outside::{STOP, catch_interrupts, result_is_coming};
use crate::states::{folder_of, shared};
use crate::sweep_shown::{Shown, found, human};
use config::Diagnostic;
use machine::state::States;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "parquet")]
use sweep::parquet;
use sweep::{
    Made, Outcome, Point, Store, Sweep, Table, Where, answer_csv, make, refuse_absent, refuse_unusable,
};

/// What a file may say.
const FILE_HELP: &str = r#"The file, paths in it relative to it:
  system = "d16"                                               an array is an axis
  workloads = ["fio:rw=randread,bs=4k", ["a.csv", "b.csv"]]    an inner array runs together
  seeds = 5                                                    1 to 5; an array says which, seed = 7 is one; 1 if left out
  warmup = "10ms"                                              optional, as of `run`
  queue_depth = 32                                             optional, as of `run`
  metrics = ["io.read.latency_ns.p99"]                         optional: columns of the table (docs/metrics.md)
  [trace]                                                      optional: format, time_unit, remap, ... as of `run`
  remap = "wrap"
  [workload]                                                   options of the workloads; without `workloads`, fio's
  bs = ["4k", "16k"]
  [set]                                                        every combination of the arrays' values
  flash.ftl.gc.victim = ["greedy", { d_choices = { d = 4 } }]
  flash.geometry.channels = 8                                  one value
  [[zip]]                                                      keys that step together
  flash.geometry.blocks = [256, 512]
  flash.ftl.gc.start = [12, 25]
  [search.crossing]                                            optional: where a metric passes a limit, not all combinations
  key = "workload.iodepth"
  between = [1, 256]                                           or among = [...]
  metric = "io.read.latency_ns.p99"
  passes = "1ms"
  [search.halving]                                             optional, in its place: the best combination
  metric = "io.read.iops"
  best = "most"                                                or "least"
  budget = "workload.number_ios"
  from = 10000

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
    /// Runs at a time; as many as there are processors if left out, or as the cluster has room for
    #[arg(long, value_parser = options::jobs_at_once)]
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
    /// Makes the runs on a cluster: dask://HOST:PORT, a scheduler of Dask; or FILE.toml, a batch system that makes one
    /// (docs/sweeps.md). Python with `distributed` is needed here, nandscape and the same files everywhere
    #[arg(long, value_name = "CLUSTER")]
    on: Option<String>,
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
    let name = args.file.file_stem().unwrap_or_default();
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("out").join(name));
    const WRITTEN: [&str; 4] = ["summary.csv", "summary.parquet", "answer.csv", "digests.jsonl"];
    let file = args.file.display().to_string();
    Files::default().reads_named("FILE", &file).writes_in("--out", Some(&out), &WRITTEN).apart()?;
    // The folder is this sweep's until the table is written.
    let store = Arc::new(Store::open(&out, &sweep, args.resume)?);
    catch_interrupts()?;
    // What has ended is in the store, and in the table.
    result_is_coming();
    let Made { points, outcomes, answer, lost } =
        make(&sweep, &store, args.resume, |all| place(args, all), &STOP, &Shown(&sweep))?;
    let mut written = write_tables(&Table::new(&sweep, &points, &outcomes), args.format, &out)?;
    let absent = refuse_absent(&sweep, &outcomes, &store);
    drop(store);
    print(&human(&sweep, &points, &outcomes))?;
    if let Some(answer) = answer {
        let path = out.join("answer.csv");
        write_whole(&path, &answer_csv(&sweep, &answer)?)?;
        written += &format!(", {}", path.display());
        print(&format!("\n{}", found(&sweep, &points, &answer)))?;
    }
    for (diagnostic, runs) in failures(&outcomes) {
        tell!("{diagnostic}\n  in {}\n", numbered(&runs));
    }
    let well = outcomes.iter().filter(|outcome| outcome.is_well()).count();
    tell!("{well} of {} runs are well; {written}", points.len());
    absent?;
    if let Some(why) = lost {
        let left = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::NotRun)).count();
        return Err(Fault::Undelivered(
            Diagnostic::new(format!("{why}: {left} runs are left"))
                .help("what has come back is kept: --resume runs the rest, here or on a cluster"),
        ));
    }
    Ok(well == points.len())
}

/// Where runs are made; `all` are the runs, if they are known.
fn place(args: &Args, all: Option<&[Point]>) -> Result<Where, Fault> {
    let Some(on) = &args.on else {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let plans = all.map(|points| points.iter().map(|point| &point.plan));
        let states = shared(args.state_cache.as_deref(), plans)?;
        let states = states.map(|states| states as Arc<dyn States + Send + Sync>);
        return Ok(Where::here(args.jobs.unwrap_or_else(processors), states));
    };
    let folder = args.state_cache.as_deref().and_then(folder_of).map(Path::to_owned);
    let place = Where::cluster(on, folder, args.jobs)?;
    if !place.has_workers() {
        tell!("note: the cluster has no workers yet");
    }
    Ok(place)
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
