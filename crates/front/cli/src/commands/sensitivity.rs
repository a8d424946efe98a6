//! `nandscape sensitivity`.

use crate::complete;
use crate::options::{self, PlanArgs};
use crate::output::{Fault, Files, columns, print, wrapped, write_whole};
use crate::outside::{STOP, catch_interrupts, result_is_coming};
use crate::progress::Counter;
use crate::states::shared;
use config::Place;
use machine::plan::nearby::nearby;
use machine::result::metrics;
use machine::state::States;
use report::{Bar, shown_as};
use serde_json::json;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use sweep::{Effect, Sensitivity, Side, plans, sensitivity};

/// Help text: the output of the command, and how to choose.
const HELP: &str = "\
Each number of the spec is divided and multiplied by the factor, one key at a time; every change is a run of its own.
Changes under 0.5 % count as no effect.

Examples:
  nandscape sensitivity d16 --workload 'fio:rw=randread,bs=4k,iodepth=16' --metric io.read.latency_ns.p99
  nandscape sensitivity zng --workload back --metric gpu.0.ipc --key mem --by 1.5 --html tornado.html";

/// Arguments of `sensitivity`.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Workload, as for `run`; repeatable
    #[arg(long, required = true, add = clap_complete::ArgValueCompleter::new(complete::workloads))]
    workload: Vec<String>,
    /// Metric to move, by its key in the result document (docs/metrics.md)
    #[arg(long, add = clap_complete::ArgValueCompleter::new(complete::figures))]
    metric: String,
    /// Vary only keys that begin with this; repeatable
    #[arg(long, value_name = "START", add = clap_complete::ArgValueCompleter::new(complete::keys))]
    key: Vec<String>,
    /// Factor between neighbouring values
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0)]
    by: f64,
    /// System, and how the workload runs on it
    #[command(flatten)]
    plan: PlanArgs,
    /// Runs at a time; one for each processor by default
    #[arg(long, value_parser = options::jobs_at_once)]
    jobs: Option<usize>,
    /// Cache directory for preconditioned states; `none` disables sharing
    #[arg(long, value_name = "DIR", help_heading = "States")]
    state_cache: Option<PathBuf>,
    /// List keys without effect too
    #[arg(long, help_heading = "Output")]
    all: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Also draw the result as one HTML file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    html: Option<PathBuf>,
}

/// Runs the analysis; whether every run was made.
///
/// # Errors
/// Unusable input.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    metrics::refuse_unknown(&args.metric)
        .map_err(|fault| fault.at(Place { source: "--metric".to_owned(), ..Place::default() }))?;
    let plan = args.plan.plan(&args.workload)?;
    let keys = nearby(&plan, &args.key, args.by).map_err(|fault| args.plan.named(fault.into()))?;
    let mut files =
        Files::default().writes("--html", args.html.as_deref()).reads_named("SYSTEM", args.plan.system());
    for workload in &args.workload {
        files = files.reads_named("--workload", workload);
    }
    files.apart()?;
    let all = plans(&plan, &keys);
    catch_interrupts()?;
    result_is_coming();
    let states = shared(args.state_cache.as_deref(), Some(all.iter()))?;
    let counter = Counter::new();
    let tell = |done: usize| counter.show(done, all.len(), 0);
    let jobs = args.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, NonZeroUsize::get));
    let states = states.as_deref().map(|states| states as &(dyn States + Sync));
    let found = sensitivity(&plan, keys, &args.metric, jobs, states, &STOP, &tell)
        .map_err(|fault| args.plan.named(fault.into()))?;
    drop(counter);
    if let Some(path) = &args.html {
        let title = format!("{} on {}", found.metric, plan.system);
        write_whole(
            path,
            report::tornado(&title, &args.workload, &facts(&found, args.by), &bars(&found)).as_bytes(),
        )?;
    }
    print(&if args.json {
        let document = json!({
            "schema": "nandscape.sensitivity/1",
            "system": plan.system,
            "workload": plan.workloads,
            "seed": plan.seed,
            "factor": args.by,
            "found": found,
        });
        // Text and numbers: serialising cannot fail.
        serde_json::to_string_pretty(&document).unwrap_or_default()
    } else {
        wrapped(&human(args, &found))
    })?;
    Ok(!found.partial)
}

/// The result in one sentence.
fn facts(found: &Sensitivity, by: f64) -> String {
    let moving = found.effects.iter().filter(|effect| effect.moves()).count();
    let base = shown_as(&found.metric, found.base);
    format!(
        "{} is {base}; {moving} of {} keys move it by 0.5 % or more when divided or multiplied by {by}",
        found.metric,
        found.effects.len()
    )
}

/// The keys with an effect, as bars.
fn bars(found: &Sensitivity) -> Vec<Bar> {
    let side = |side: &Side, value: &Option<String>| (value.clone().unwrap_or_default(), side.relative);
    let moving = found.effects.iter().filter(|effect| effect.moves());
    moving
        .map(|effect| Bar {
            key: effect.key.key.clone(),
            now: effect.key.now.clone(),
            less: side(&effect.with_less, &effect.key.less),
            more: side(&effect.with_more, &effect.key.more),
        })
        .collect()
}

fn human(args: &Args, found: &Sensitivity) -> String {
    let mut text = format!("{}\n", facts(found, args.by));
    if found.partial {
        text.push_str("interrupted: some runs are missing\n");
    }
    let (moving, still): (Vec<&Effect>, Vec<&Effect>) =
        found.effects.iter().partition(|effect| effect.moves() || args.all && effect.refused().is_none());
    table(&moving, args.by, columns(), &mut text);
    let (refused, without): (Vec<&Effect>, Vec<&Effect>) =
        still.iter().partition(|effect| effect.refused().is_some());
    if !without.is_empty() {
        let _ = writeln!(text, "\nno effect: {} keys; --all lists them", without.len());
    }
    if !refused.is_empty() {
        let _ = writeln!(text, "\ncannot be changed alone:");
        for effect in refused {
            let _ = writeln!(text, "  {}: {}", effect.key.key, effect.refused().unwrap_or_default());
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// Narrowest and widest half of a bar, in characters.
const BAR: (usize, usize) = (4, 12);

/// Writes a line for each key: its value, the change of the metric in both directions, and a bar of both.
fn table(effects: &[&Effect], by: f64, columns: usize, text: &mut String) {
    let Some(widest) = effects.first().map(|effect| effect.width()).filter(|width| *width > 0.0) else {
        return;
    };
    let now: Vec<String> = effects.iter().map(|effect| shortened(&effect.key.now)).collect();
    let longest = |all: &mut dyn Iterator<Item = usize>| all.max().unwrap_or(0);
    let value = longest(&mut now.iter().map(|now| now.chars().count())).max(3);
    let key = longest(&mut effects.iter().map(|effect| effect.key.key.chars().count()));
    let heads = [format!("1/{by}"), format!("x{by}")];
    let fixed = 2 + 2 + value + 2 + 9 + 2 + 9 + 2;
    let half = (columns.saturating_sub(fixed + key + 1) / 2).clamp(BAR.0, BAR.1);
    let key = key.min(columns.saturating_sub(fixed + 2 * half + 1)).max(12);
    let _ = writeln!(text, "\n  {:key$}  {:>value$}  {:>9}  {:>9}", "key", "now", heads[0], heads[1]);
    for (effect, now) in effects.iter().zip(&now) {
        let change = |side: &Side| {
            side.relative.map_or("-".to_owned(), |relative| format!("{:+.1} %", 100.0 * relative))
        };
        let name = &effect.key.key;
        if name.chars().count() > key {
            let _ = write!(text, "  {name}\n  {:key$}", "");
        } else {
            let _ = write!(text, "  {name:key$}");
        }
        let (less, more) = (change(&effect.with_less), change(&effect.with_more));
        let bar = bar(effect, widest, half);
        let _ = writeln!(text, "  {now:>value$}  {less:>9}  {more:>9}  {}", bar.trim_end());
    }
}

/// Bar of both changes around the current metric: `-` for the smaller value, `+` for the larger.
fn bar(effect: &Effect, widest: f64, half: usize) -> String {
    let mut cells = vec![' '; 2 * half + 1];
    cells[half] = '|';
    for (side, mark) in [(&effect.with_less, '-'), (&effect.with_more, '+')] {
        let Some(relative) = side.relative else { continue };
        let length = (relative.abs() / widest * half as f64).round() as usize;
        for step in 1..=length.min(half) {
            let at = if relative < 0.0 { half - step } else { half + step };
            cells[at] = if cells[at] == ' ' { mark } else { '#' };
        }
    }
    cells.into_iter().collect()
}

/// Longest value shown, in characters.
const SHOWN: usize = 14;

/// A value without the brackets of a list of one, and cut at its end.
fn shortened(text: &str) -> String {
    let single = text.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]"));
    let text = single.filter(|inner| !inner.contains('"')).unwrap_or(text);
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN - 3).chain("...".chars()).collect()
}
