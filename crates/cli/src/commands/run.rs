//! `nandscape run`.

use crate::outside::{Clocks, STOP, catch_interrupts, peak_rss};
use config::Diagnostic;
use config::units::Duration;
use indicatif::{ProgressBar, ProgressStyle};
use kernel::Time;
use machine::precondition;
use machine::result::human;
use machine::run::{Outside, Plan, run as simulate};
use machine::{Machine, Warmup};
use std::io::IsTerminal;
use std::path::PathBuf;
use workload::trace::{Remap, TraceOptions};

/// What to run.
#[derive(clap::Args)]
pub struct Args {
    /// A shipped system or a TOML file
    system: String,
    /// A shipped workload, a trace file, an fio job file, or an inline job (fio:rw=randread,bs=4k,...); repeatable
    #[arg(long, required = true)]
    workload: Vec<String>,
    /// Overrides a value of the spec (key.path=value); repeatable
    #[arg(long)]
    set: Vec<String>,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// State of the device before the run (none, sequential, steady:share=90%, ...); overrides the spec
    #[arg(long)]
    precondition: Option<String>,
    /// Leaves out of the results what completes before this many requests or this simulated time (5000, 10ms)
    #[arg(long)]
    warmup: Option<String>,
    /// Prints the result document as JSON
    #[arg(long)]
    json: bool,
    /// Also writes the result document and the resolved spec into this folder
    #[arg(long)]
    out: Option<PathBuf>,
    /// How traces are read
    #[command(flatten)]
    trace: TraceArgs,
    /// Replays traces at this queue depth instead of at their own times
    #[arg(long)]
    queue_depth: Option<u32>,
}

/// How traces are read.
#[derive(clap::Args)]
pub struct TraceArgs {
    /// Trace format; recognised by content if left out
    #[arg(long)]
    pub format: Option<String>,
    /// Unit of the trace's times (s, ms, us, 100ns, ns, ps)
    #[arg(long)]
    pub time_unit: Option<String>,
    /// Bytes of the trace's address unit
    #[arg(long)]
    pub sector: Option<u64>,
    /// Multiplies every time (0.5 is twice as fast)
    #[arg(long)]
    pub time_scale: Option<String>,
    /// Drops requests before this time
    #[arg(long)]
    pub start: Option<String>,
    /// Drops requests from this time on
    #[arg(long)]
    pub end: Option<String>,
    /// Reads at most this many requests
    #[arg(long)]
    pub max_requests: Option<u64>,
    /// Skips and counts bad lines
    #[arg(long)]
    pub lenient: bool,
    /// What happens to requests beyond the device: error, wrap, or compact (the default of a run; counted and said)
    #[arg(long)]
    pub remap: Option<String>,
    /// The blkparse event that stands for a request (D, Q, ...)
    #[arg(long)]
    pub action: Option<String>,
    /// Requests held back to put an unsorted trace in order
    #[arg(long)]
    pub sort_window: Option<usize>,
}

impl TraceArgs {
    /// The reader's options; `remap` is what happens to requests beyond the device if the user does not say.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub fn options(&self, remap: Remap) -> Result<TraceOptions, Diagnostic> {
        let default = TraceOptions::default();
        let time = |text: &Option<String>| {
            text.as_deref().map(|t| t.parse::<Duration>().map(|d| d.time())).transpose()
        };
        Ok(TraceOptions {
            format: self.format.clone(),
            time_unit: self.time_unit.as_deref().map(str::parse).transpose()?,
            sector: self.sector,
            time_scale: self.time_scale.as_deref().map(str::parse).transpose()?.unwrap_or(default.time_scale),
            start: time(&self.start)?,
            end: time(&self.end)?,
            max_requests: self.max_requests,
            lenient: self.lenient,
            capacity: None,
            remap: self.remap.as_deref().map(str::parse).transpose()?.unwrap_or(remap),
            action: self.action.as_deref().map(str::parse).transpose()?,
            sort_window: self.sort_window.unwrap_or(default.sort_window),
        })
    }
}

/// Runs; whether everything was well.
///
/// # Errors
/// Unusable input.
pub fn run(args: &Args) -> Result<bool, Diagnostic> {
    let plan = Plan {
        system: args.system.clone(),
        set: args.set.clone(),
        workloads: args.workload.clone(),
        seed: args.seed,
        precondition: args.precondition.as_deref().map(precondition::parse).transpose()?,
        warmup: args.warmup.as_deref().map(warmup).transpose()?,
        trace: args.trace.options(Remap::Compact)?,
        queue_depth: args.queue_depth,
    };
    catch_interrupts()?;
    let clocks = Clocks::start();
    let bar = progress_bar();
    let mut watch = |machine: &Machine| show(&bar, machine);
    let document = simulate(
        &plan,
        &mut Outside {
            cpu_s: &|| clocks.cpu_s(),
            wall_s: &|| clocks.wall_s(),
            peak_rss: &peak_rss,
            stop: &STOP,
            watch: &mut watch,
        },
    );
    bar.finish_and_clear();
    let document = document?;
    if let Some(folder) = &args.out {
        write_out(folder, &document)?;
    }
    if args.json {
        println!("{}", document.to_json());
    } else {
        println!("{}", human(&document));
    }
    Ok(document.ok)
}

fn write_out(folder: &std::path::Path, document: &machine::result::Document) -> Result<(), Diagnostic> {
    let fault = |e: std::io::Error| Diagnostic::new(format!("cannot write into {}: {e}", folder.display()));
    std::fs::create_dir_all(folder).map_err(fault)?;
    std::fs::write(folder.join("result.json"), document.to_json()).map_err(fault)
}

/// A bar on a terminal, nothing elsewhere.
fn progress_bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, machine: &Machine) {
    if bar.is_hidden() {
        return;
    }
    bar.set_message(format!("{} requests, {} simulated", machine.injector.completed, machine.now()));
    bar.tick();
}

/// `5000` requests or `10ms` of simulated time.
fn warmup(text: &str) -> Result<Warmup, Diagnostic> {
    if let Ok(requests) = text.parse() {
        return Ok(Warmup::Requests(requests));
    }
    let time: Time = text
        .parse::<Duration>()
        .map(|d| d.time())
        .map_err(|d| d.help("--warmup takes a number of requests or a time"))?;
    Ok(Warmup::Until(time))
}
