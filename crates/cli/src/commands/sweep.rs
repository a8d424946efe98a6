//! `nandscape sweep`.

use crate::output::{print, write_whole};
use crate::outside::catch_interrupts;
use crate::progress::counting;
use crate::sweep::{Outcome, Store, Sweep, csv, human, points, run_all};
use config::Diagnostic;
use std::num::NonZeroUsize;
use std::path::PathBuf;

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
seed, reading options and program version; --resume takes what lies there."#;

/// What to sweep.
#[derive(clap::Args)]
#[command(after_help = FILE_HELP)]
pub(crate) struct Args {
    /// The sweep, a TOML file
    file: PathBuf,
    /// Runs at a time; as many as there are processors if left out
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// The folder for summary.csv and the result documents (runs/); out/NAME if left out
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Takes what is in the folder from there; only the rest runs
    #[arg(long)]
    resume: bool,
}

/// Runs the sweep; whether every run was well.
///
/// # Errors
/// An unusable file; unusable values are failures of their runs.
pub(crate) fn run(args: &Args) -> Result<bool, Diagnostic> {
    let sweep = Sweep::read(&args.file)?;
    sweep.count()?;
    let points = points(&sweep);
    let name = args.file.file_stem().unwrap_or_default();
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("out").join(name));
    let store = Store::new(&out.join("runs"), points.iter().map(|point| &point.plan));
    let jobs = args.jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    catch_interrupts()?;
    let bar = counting(points.len() as u64);
    let outcomes = run_all(&points, &store, jobs, args.resume, &bar);
    bar.finish_and_clear();
    write_whole(&out.join("summary.csv"), &csv(&sweep, &points, &outcomes)?)?;
    print(&human(&sweep, &points, &outcomes))?;
    for (diagnostic, runs) in failures(&outcomes) {
        eprintln!("{diagnostic}\n  in {}\n", numbered(&runs));
    }
    let well = outcomes.iter().filter(|outcome| outcome.is_well()).count();
    eprintln!("{well} of {} runs are well; {}", points.len(), out.join("summary.csv").display());
    Ok(well == points.len())
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
