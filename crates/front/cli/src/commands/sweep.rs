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

/// Description of the sweep file.
const FILE_HELP: &str = r#"The sweep file; its paths are relative to it:
  system = "d16"                                               an array is an axis
  workloads = ["fio:rw=randread,bs=4k", ["a.csv", "b.csv"]]    an inner array runs together
  seeds = 5                                                    optional: 1 to 5; or seeds = [3, 7]; seed = 7 for one; default 1
  warmup = "10ms"                                              optional, as in `run`
  queue_depth = 32                                             optional, as in `run`
  metrics = ["io.read.latency_ns.p99"]                         optional: columns of the table (docs/metrics.md)
  [trace]                                                      optional: format, time_unit, remap, ... as in `run`
  remap = "wrap"
  [workload]                                                   options of the workloads; of fio if `workloads` is left out
  bs = ["4k", "16k"]
  [set]                                                        every combination of the values in arrays
  flash.ftl.gc.victim = ["greedy", { d_choices = { d = 4 } }]
  flash.geometry.channels = 8                                  one value
  [[zip]]                                                      keys that step together
  flash.geometry.blocks = [256, 512]
  flash.ftl.gc.start = [12, 25]
  [search.crossing]                                            optional: where a metric crosses a limit, not all combinations
  key = "workload.iodepth"
  between = [1, 256]                                           or among = [...]
  metric = "io.read.latency_ns.p99"
  passes = "1ms"
  [search.halving]                                             optional, instead: the best combination
  metric = "io.read.iops"
  best = "most"                                                or "least"
  budget = "workload.number_ios"
  from = 10000

The document of a run is in DIR/runs, named by the SHA-256 of its resolved spec, workloads with file contents, seed,
reading options and program version. --resume reuses it; without --resume, a folder with results is refused.
Invalid values, keys and workloads are refused before the first run. Above 2,000 combinations, the check covers each
value once, beside the first values of the other axes.

The table has a row per run: run, workload, each key that varies, seed, state, metrics, result (its document),
message, and config, the whole resolved spec as JSON. See docs/sweeps.md."#;

/// Arguments of `sweep`.
#[derive(clap::Args)]
#[command(after_help = FILE_HELP)]
pub(crate) struct Args {
    /// Sweep definition, a TOML file
    file: PathBuf,
    /// Number of parallel runs; default: one per processor, or as many as the cluster has room for
    #[arg(long, value_parser = options::jobs_at_once)]
    jobs: Option<usize>,
    /// Folder for the table (summary.csv) and the result documents (runs/); default out/NAME
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Table format: summary.csv, summary.parquet, or both
    #[arg(long, value_enum, default_value_t = Format::Csv)]
    format: Format,
    /// Reuse results in the folder; run only what is missing
    #[arg(long)]
    resume: bool,
    /// Run on a cluster: dask://HOST:PORT (Dask scheduler) or FILE.toml (batch system; docs/sweeps.md). Needs Python
    /// with `distributed` here, nandscape and the files everywhere
    #[arg(long, value_name = "CLUSTER")]
    on: Option<String>,
    /// Cache folder for drive states; left out, runs share states in memory; with `none`, each run preconditions its
    /// own
    #[arg(long, value_name = "DIR")]
    state_cache: Option<PathBuf>,
}

/// Table formats.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// summary.csv
    Csv,
    /// summary.parquet
    Parquet,
    /// summary.csv and summary.parquet
    Both,
}

/// Runs the sweep; returns whether every run succeeded.
///
/// # Errors
/// The file is unusable (found before any run), or no run has a metric of the table. Other faults fail only their runs.
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
    // The folder belongs to this sweep until the table is written.
    let store = Arc::new(Store::open(&out, &sweep, args.resume)?);
    catch_interrupts()?;
    // Finished runs are in the store, and in the table.
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
    tell!("{well} of {} runs succeeded; {written}", points.len());
    absent?;
    if let Some(why) = lost {
        let left = outcomes.iter().filter(|outcome| matches!(outcome, Outcome::NotRun)).count();
        return Err(Fault::Undelivered(
            Diagnostic::new(format!("{why}: {left} runs are not done"))
                .help("finished runs are kept: --resume runs the rest, here or on a cluster"),
        ));
    }
    Ok(well == points.len())
}

/// Chooses where to run; `all` are the runs, if known.
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

/// Writes the table; returns the names of its files.
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

/// Refuses Parquet in a build without it, before any run.
fn refuse_unbuilt_parquet() -> Result<(), Diagnostic> {
    if cfg!(feature = "parquet") {
        return Ok(());
    }
    Err(Diagnostic::new("this program was built without Parquet")
        .help("`cargo build --release --features parquet` builds it with Parquet; --format csv always works"))
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &Table) -> Result<Vec<u8>, Diagnostic> {
    refuse_unbuilt_parquet().map(|()| Vec::new())
}

/// Distinct failures, each with the runs that it stopped.
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

/// Formats run numbers: `run 3`, `runs 2, 3 and 17 more`.
fn numbered(runs: &[usize]) -> String {
    const SHOWN: usize = 12;
    let shown: Vec<String> = runs.iter().take(SHOWN).map(usize::to_string).collect();
    let plural = if runs.len() > 1 { "s" } else { "" };
    let more = if runs.len() > SHOWN { format!(" and {} more", runs.len() - SHOWN) } else { String::new() };
    format!("run{plural} {}{more}", shown.join(", "))
}
