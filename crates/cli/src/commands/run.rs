//! `nandscape run`.

use crate::number;
use crate::observe::{RequestLog, Several, Timeline};
use crate::output::{Fault, print};
use crate::outside::{Clocks, STOP, catch_interrupts, peak_rss, result_is_coming};
use crate::progress::RunBar;
use crate::result_folder::ResultFolder;
use crate::trace_args::{TraceArgs, time};
use config::{Diagnostic, Place};
use machine::result::{Document, human};
use machine::run::{Observers, Outside, Plan, Stage, run_observed};
use machine::{Loaded, Warmup, precondition};
use std::path::PathBuf;
use workload::trace::Remap;

/// What to run.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A shipped system or a TOML file
    system: String,
    /// A shipped workload, a trace file (its parts joined: A+B, or @LIST of their names), an fio job file, an inline job (fio:rw=randread,bs=4k,...), a program of a GPU
    /// (betw, betw:scale=17), programs side by side (betw-back), or the trace of one, a program of a server (tatp:size=1GiB), or the
    /// recording of one (sort.nst:job=20000; `list formats`); repeatable
    #[arg(long, required = true)]
    workload: Vec<String>,
    /// Overrides a value of the spec (key.path=value); repeatable
    #[arg(long)]
    set: Vec<String>,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1, value_parser = number::whole)]
    seed: u64,
    /// State of the device before the run (none, sequential, steady:share=90%, ...); overrides the spec
    #[arg(long)]
    precondition: Option<String>,
    /// Leaves out of the results the first so many requests to complete, exactly, or what completes before this simulated time
    /// (5000, 10ms); a run that ends before has a failed check
    #[arg(long)]
    warmup: Option<String>,
    /// Prints the result document as JSON
    #[arg(long)]
    json: bool,
    /// Also writes the result document (result.json) and the resolved spec (spec.toml) into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Writes a line for each request, warm-up included, as fio's latency logs have it: completion time (ms), latency
    /// (ns), direction (0 read, 1 write, 2 trim, 3 flush), bytes, offset, priority, issue time (ns)
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Writes what every request, channel and die did, as Chrome Trace Event JSON for Perfetto; the first million events
    #[arg(long, value_name = "FILE")]
    timeline: Option<PathBuf>,
    /// How traces are read
    #[command(flatten)]
    trace: TraceArgs,
    /// Replays traces at this queue depth, at least 1, instead of at their own times, which are not used then
    #[arg(long, value_parser = number::whole_u32)]
    queue_depth: Option<u32>,
}

impl Args {
    fn plan(&self) -> Result<Plan, Diagnostic> {
        let mut set = self.set.clone();
        set.extend(self.state()?);
        Ok(Plan {
            system: self.system.clone(),
            set,
            workloads: self.workload.clone(),
            seed: self.seed,
            precondition: None,
            warmup: self.warmup.as_deref().map(warmup).transpose()?,
            trace: self.trace.options(Remap::Fit)?,
            queue_depth: self.queue_depth,
        })
    }

    /// The state of `--precondition` as an override, so that the resolved spec has it.
    fn state(&self) -> Result<Option<String>, Diagnostic> {
        self.precondition.as_deref().map(precondition_assignment).transpose()
    }

    /// A fault of the state stands in what the user wrote, not in the override that was made of it.
    fn named(&self, mut fault: Diagnostic) -> Diagnostic {
        if let (Some(place), Some(text), Ok(Some(set))) = (&mut fault.place, &self.precondition, self.state())
            && place.text == set
        {
            let key = std::mem::take(&mut place.key);
            **place =
                Place { source: "--precondition".to_owned(), text: text.clone(), key, ..Place::default() };
        }
        fault
    }
}

/// Runs; whether everything was well and nothing was left undone.
///
/// # Errors
/// Unusable input.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    run_plan(args, &args.plan()?).map_err(|fault| match fault {
        Fault::Input(fault) => Fault::Input(args.named(fault)),
        undelivered => undelivered,
    })
}

fn run_plan(args: &Args, plan: &Plan) -> Result<bool, Fault> {
    catch_interrupts()?;
    // First, so that what cannot be written costs no run.
    let folder = match &args.out {
        Some(folder) => Some(ResultFolder::open(folder, Loaded::load(&plan.system, &plan.set)?)?),
        None => None,
    };
    let log = args.log.as_deref().map(RequestLog::create).transpose()?;
    let timeline = args.timeline.as_deref().map(Timeline::create).transpose()?;
    let mut bar = RunBar::new();
    let document = simulate(plan, &mut bar, observers(log.as_ref(), timeline.as_ref()));
    bar.end();
    let Some(document) = document? else { return Ok(false) };
    let mut delivered = true;
    let mut deliver = |done: Result<(), Fault>| {
        if let Err(fault) = done {
            eprintln!("{fault}");
            delivered = false;
        }
    };
    // One that fills the disk is removed, and makes room for the result.
    deliver(log.map_or(Ok(()), |log| log.finish()));
    deliver(timeline.map_or(Ok(()), |timeline| timeline.finish().map(say_what_is_left_out)));
    deliver(folder.map_or(Ok(()), |folder| folder.deliver(&document)));
    deliver(print(&if args.json { document.to_json() } else { human(&document) }));
    if document.is_stuck() {
        document.warnings.iter().for_each(|line| eprintln!("{line}"));
    }
    Ok(document.ok && !document.partial && delivered)
}

fn simulate(plan: &Plan, bar: &mut RunBar, observers: Observers) -> Result<Option<Document>, Diagnostic> {
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
    };
    run_observed(plan, &mut outside, observers)
}

fn observers(log: Option<&RequestLog>, timeline: Option<&Timeline>) -> Observers {
    let mut requests: Vec<Box<dyn workload::inject::Observer>> = Vec::new();
    if let Some(log) = log {
        requests.push(Box::new(log.clone()));
    }
    if let Some(timeline) = timeline {
        requests.push(Box::new(timeline.clone()));
    }
    let requests = if requests.len() > 1 { Some(Box::new(Several(requests)) as _) } else { requests.pop() };
    Observers { requests, commands: timeline.map(|t| Box::new(t.clone()) as _) }
}

fn say_what_is_left_out(events: u64) {
    if events > 0 {
        eprintln!("note: the timeline leaves out {events} events");
    }
}

/// The state as `key=value`.
fn precondition_assignment(text: &str) -> Result<String, Diagnostic> {
    let state = precondition::parse(text)?;
    let value = toml::Value::try_from(&state).map_err(|e| Diagnostic::new(format!("--precondition: {e}")))?;
    Ok(format!("precondition={value}"))
}

/// `5000` requests or `10ms` of simulated time.
///
/// # Errors
/// It is neither.
pub(crate) fn warmup(text: &str) -> Result<Warmup, Diagnostic> {
    if let Ok(requests) = text.parse() {
        return Ok(Warmup::Requests(requests));
    }
    let until = time(text).map_err(|d| d.help("--warmup takes a number of requests or a time"))?;
    Ok(Warmup::Until(until))
}
