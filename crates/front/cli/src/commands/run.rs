//! `nandscape run`.

use crate::complete;
use crate::imported::{Planned, planned};
use crate::observe::{RequestFile, RequestLog, TimelineFile, keep, show};
use crate::options::PlanArgs;
use crate::output::{Fault, Files, print};
use crate::outside::{Clocks, STOP, catch_interrupts, peak_rss, result_is_coming};
use crate::progress::RunBar;
use crate::results::{Printed, ResultFolder};
use crate::states::{Folder, Given, Saved, folder_of, left_out};
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Observers, Outside, Plan, Several, Stage, run_observed};
use machine::state::States;
use std::path::PathBuf;

/// Examples of the help.
const EXAMPLES: &str = "\
Examples:
  nandscape run d16 --workload randread
  nandscape run pm9a3 --workload 'fio:rw=randrw,rwmixread=70,bs=4k,iodepth=64,number_ios=100000' --precondition steady
  nandscape run my-drive.toml --workload trace.csv --queue-depth 32 --out out/mine
  nandscape run zng --workload betw:scale=12 --set memory.direct.registers.count=16";

/// Arguments of `run`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shipped workload, trace (A+B or @LIST joins), fio job file or inline job (fio:rw=randread,bs=4k), GPU or server
    /// program (betw, tatp:size=1GiB), or recording (`list formats`); repeatable
    #[arg(long, required = true, add = clap_complete::ArgValueCompleter::new(complete::workloads))]
    workload: Vec<String>,
    /// System and run options
    #[command(flatten)]
    plan: PlanArgs,
    /// Print the result document as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Output format: text, json (as --json), or fio's own for fio tools: `fio` or `json+`; `--format fio` does the
    /// same
    #[arg(long, value_name = "FORMAT", value_parser = ["text", "json", "json+", "fio"], help_heading = "Output")]
    output_format: Option<String>,
    /// Also write the result document (result.json) and the resolved spec (spec.toml) into this folder
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Write a line per request, warm-up included, as in fio latency logs: completion (ms), latency (ns), direction,
    /// bytes, offset, priority, issue time (ns)
    #[arg(long, value_name = "FILE", help_heading = "Records of the run")]
    log: Option<PathBuf>,
    /// Write a row per host request, warm-up included, into a .csv or .parquet file: times, milestones, blocking
    /// requests, die and channel (docs/running.md)
    #[arg(long, value_name = "FILE", help_heading = "Records of the run")]
    requests: Option<PathBuf>,
    /// Requests to include: `all`, `sample=10000` at random, the `slowest=1000`, or those completed in a
    /// `window=1ms..2ms`
    #[arg(
        long,
        value_name = "WHICH",
        requires = "requests",
        default_value = "all",
        help_heading = "Records of the run"
    )]
    requests_keep: String,
    /// Write a timeline of requests, channels, dies, cores and kernel phases: for Perfetto if the name ends in
    /// .pftrace, else Chrome Trace Event JSON
    #[arg(long, value_name = "FILE", help_heading = "Records of the run")]
    timeline: Option<PathBuf>,
    /// Part of the run to show, warm-up included: `all`, a `window=1ms..2ms`, or the surroundings of the `slowest`
    /// request
    #[arg(
        long,
        value_name = "WHICH",
        requires = "timeline",
        default_value = "all",
        help_heading = "Records of the run"
    )]
    timeline_show: String,
    /// Save the states after preconditioning drives and filling server memory, for --load-state
    #[arg(long, value_name = "FILE", conflicts_with_all = ["load_state", "state_cache"], help_heading = "States")]
    save_state: Option<PathBuf>,
    /// Load states written by --save-state instead of preconditioning and filling; a different machine, precondition,
    /// seed or server program is refused
    #[arg(long, value_name = "FILE", conflicts_with = "state_cache", help_heading = "States")]
    load_state: Option<PathBuf>,
    /// Cache folder for preconditioned states; `none` disables it
    #[arg(long, value_name = "DIR", help_heading = "States")]
    state_cache: Option<PathBuf>,
}

/// Runs; returns whether every check passed and all work was done.
///
/// # Errors
/// The input is unusable.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let mut plan = args.plan.plan(&args.workload)?;
    let printed = Printed::of(args.json, args.output_format.as_deref(), &mut plan)?;
    let all = planned(plan)?;
    args.refuse_several(all.len(), printed)?;
    args.refuse_overlap(&all)?;
    let mut well = true;
    for one in &all {
        one.title.iter().for_each(|title| tell!("{title}"));
        well &= run_plan(args, one, printed).map_err(|fault| args.plan.named(one.placed(fault)))?;
    }
    Ok(well)
}

impl Args {
    /// Refuses to write over what is read, or two files into one.
    fn refuse_overlap(&self, all: &[Planned]) -> Result<(), Fault> {
        let mut files = Files::default()
            .writes_in("--out", self.out.as_deref(), &ResultFolder::NAMES)
            .writes("--log", self.log.as_deref())
            .writes("--requests", self.requests.as_deref())
            .writes("--timeline", self.timeline.as_deref())
            .writes("--save-state", self.save_state.as_deref());
        files = files.reads_named("SYSTEM", self.plan.system());
        for set in self.plan.overrides() {
            files = files.reads_named("--set", set);
        }
        if let Some(path) = &self.load_state {
            files = files.reads("--load-state", path);
        }
        for workload in self.workload.iter().chain(all.iter().flat_map(|one| &one.plan.workloads)) {
            files = files.reads_named("--workload", workload);
        }
        files.apart()
    }

    /// Refuses options that take one result when there are several scenarios.
    fn refuse_several(&self, runs: usize, printed: Printed) -> Result<(), Diagnostic> {
        let taken = [
            ("a result for programs", printed != Printed::Text),
            ("--out", self.out.is_some()),
            ("--log", self.log.is_some()),
            ("--requests", self.requests.is_some()),
            ("--timeline", self.timeline.is_some()),
            ("--save-state", self.save_state.is_some()),
            ("--load-state", self.load_state.is_some()),
        ];
        match taken.iter().find(|(_, given)| runs > 1 && *given) {
            Some((option, _)) => {
                let help = "choose one: `--workload workload.xml:scenario=1`";
                Err(Diagnostic::new(format!("{option} takes one run, and the workload has {runs} scenarios"))
                    .help(help))
            }
            None => Ok(()),
        }
    }
}

fn run_plan(args: &Args, planned: &Planned, printed: Printed) -> Result<bool, Fault> {
    let plan = &planned.plan;
    catch_interrupts()?;
    // First, so that an unreadable or unwritable file costs no run.
    let keeper = Keeper::open(args, plan)?;
    let folder = match &args.out {
        Some(folder) => Some(ResultFolder::open(folder, plan.load()?)?),
        None => None,
    };
    let log = args.log.as_deref().map(RequestLog::create).transpose()?;
    let (kept, shown) = (keep(&args.requests_keep)?, show(&args.timeline_show)?);
    let create = |path: &PathBuf| RequestFile::create(path, kept, plan.seed);
    let requests = args.requests.as_ref().map(create).transpose()?;
    let timeline =
        args.timeline.as_deref().map(|path| TimelineFile::create(path, shown, plan)).transpose()?;
    let mut bar = RunBar::new();
    let observers = observers(log.as_ref(), requests.as_ref(), timeline.as_ref());
    let document = simulate(plan, &mut bar, keeper.states(), observers);
    bar.end();
    let Some(mut document) = document? else { return Ok(false) };
    document.warnings.splice(0..0, planned.notes.iter().cloned());
    let mut delivered = true;
    let mut deliver = |done: Result<(), Fault>| {
        if let Err(fault) = done {
            tell!("{fault}");
            delivered = false;
        }
    };
    // A file that fills the disk is removed, which makes room for the result.
    deliver(log.map_or(Ok(()), |log| log.finish()));
    deliver(requests.map_or(Ok(()), |requests| requests.finish()));
    deliver(timeline.map_or(Ok(()), |timeline| timeline.finish(&document).map(say_what_is_left_out)));
    deliver(keeper.finish());
    deliver(folder.map_or(Ok(()), |folder| folder.deliver(&document)));
    deliver(print(&printed.text(&document, plan)));
    if document.is_stuck() {
        document.warnings.iter().for_each(|line| tell!("{line}"));
    }
    Ok(document.ok && !document.partial && delivered)
}

/// Keeper of the run's states.
enum Keeper {
    Nobody,
    Saved(Box<Saved>),
    Given(Given),
    Folder(Folder),
}

impl Keeper {
    fn open(args: &Args, plan: &Plan) -> Result<Keeper, Fault> {
        let named = |option: &str| {
            let loaded = plan.load()?;
            let left_out = left_out(option, plan, &loaded)?;
            left_out.iter().for_each(|text| tell!("note: {option}: {text}"));
            Ok::<(), Diagnostic>(())
        };
        if let Some(path) = &args.save_state {
            named("--save-state")?;
            return Ok(Keeper::Saved(Box::new(Saved::open(path)?)));
        }
        if let Some(path) = &args.load_state {
            named("--load-state")?;
            return Ok(Keeper::Given(Given::read(path)?));
        }
        let Some(folder) = args.state_cache.as_deref().and_then(folder_of) else { return Ok(Keeper::Nobody) };
        named("--state-cache")?;
        Folder::open(folder).map(Keeper::Folder)
    }

    fn states(&self) -> Option<&dyn States> {
        match self {
            Keeper::Nobody => None,
            Keeper::Saved(saved) => Some(&**saved),
            Keeper::Given(given) => Some(given),
            Keeper::Folder(folder) => Some(folder),
        }
    }

    fn finish(self) -> Result<(), Fault> {
        if let Keeper::Saved(saved) = self { saved.finish() } else { Ok(()) }
    }
}

fn simulate(
    plan: &Plan,
    bar: &mut RunBar,
    states: Option<&dyn States>,
    observers: Observers,
) -> Result<Option<Document>, Diagnostic> {
    let clocks = Clocks::start();
    let mut watch = |stage: Stage<'_>| {
        if matches!(stage, Stage::Running(_)) {
            result_is_coming();
        }
        bar.show(stage);
    };
    let mut outside = Outside {
        cpu_s: &|| clocks.cpu_s(),
        wall_s: &|| clocks.wall_s(),
        peak_rss: &peak_rss,
        stop: &STOP,
        watch: &mut watch,
        states,
    };
    run_observed(plan, &mut outside, observers)
}

fn observers(
    log: Option<&RequestLog>,
    file: Option<&RequestFile>,
    timeline: Option<&TimelineFile>,
) -> Observers {
    let mut observers = timeline.map(TimelineFile::observers).unwrap_or_default();
    let mut requests: Vec<Box<dyn requests::inject::Observer>> = Vec::new();
    if let Some(log) = log {
        requests.push(Box::new(log.clone()));
    }
    if let Some(file) = file {
        requests.push(Box::new(file.clone()));
    }
    requests.extend(observers.requests.take());
    observers.requests =
        if requests.len() > 1 { Some(Box::new(Several(requests)) as _) } else { requests.pop() };
    observers
}

fn say_what_is_left_out(told: Vec<String>) {
    told.iter().for_each(|text| tell!("note: the timeline: {text}"));
}
