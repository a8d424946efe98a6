//! What is shown while somebody waits, on standard error: bars on a terminal, else a plain line every ten seconds.

mod estimate;
mod lines;

pub(crate) use lines::Lines;

use estimate::{Estimate, span};
use indicatif::{ProgressBar, ProgressStyle};
use machine::run::Stage;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Steps of a bar that shows a share.
const STEPS: u64 = 10_000;

/// How often a bar moves while nobody tells it anything.
const TICK: Duration = Duration::from_millis(200);

/// Set once, before anything is shown.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether nothing is shown.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

fn has_bars() -> bool {
    !is_quiet() && std::io::stderr().is_terminal()
}

/// The progress of one run.
pub(crate) struct RunBar {
    bar: ProgressBar,
    lines: Lines,
    estimate: Estimate,
}

impl RunBar {
    /// A bar, or lines where there is no terminal.
    pub(crate) fn new() -> RunBar {
        let lines = Lines::about("reading the system".to_owned());
        let estimate = Estimate::default();
        if !has_bars() {
            return RunBar { bar: ProgressBar::hidden(), lines, estimate };
        }
        let bar = ProgressBar::new(STEPS);
        set_style(&bar, "{spinner} [{elapsed}] {wide_msg}");
        // Until the machine runs there is nobody to move the bar.
        bar.enable_steady_tick(TICK);
        RunBar { bar, lines, estimate }
    }

    /// Shows how far the run has come.
    pub(crate) fn show(&mut self, stage: Stage<'_>) {
        if is_quiet() {
            return;
        }
        let (name, share, what) = match stage {
            Stage::Reading(text) => ("reading", None, format!("reading {}", config::plain(text))),
            Stage::Building => ("building", None, "building the machine".to_owned()),
            Stage::Preconditioning(progress) => {
                let writes = progress.drive_writes;
                let what = format!("bringing the device into its state, {writes:.2} drive writes");
                ("preconditioning", progress.share, what)
            }
            Stage::Running(machine) => {
                let what = format!("{} requests, {} simulated", machine.completed(), machine.now());
                ("the run", machine.progress(), what)
            }
            Stage::Checking => ("checking", None, "holding the accounts against each other".to_owned()),
        };
        self.estimate.at(name, share);
        let turns = match stage {
            // The fill costs nothing.
            Stage::Preconditioning(progress) if share.is_none() => progress.drive_writes - 1.0,
            _ => 0.0,
        };
        let long = self.estimate.long().or_else(|| self.estimate.long_turns(turns));
        if let Some(said) = long {
            if self.bar.is_hidden() { self.lines.say(&said) } else { self.bar.println(said) }
        }
        if self.bar.is_hidden() {
            return self.lines.now(format!("{what}{}", self.estimate.text()));
        }
        self.bar(share, what);
    }

    fn bar(&self, share: Option<f64>, what: String) {
        let bar = &self.bar;
        match share {
            Some(share) => {
                if bar.position() == 0 {
                    set_style(bar, "{spinner} {bar:20} {percent:>3} % [{elapsed}] {wide_msg}");
                }
                bar.set_position(((share * STEPS as f64) as u64).max(1));
            }
            None if bar.position() > 0 => {
                set_style(bar, "{spinner} [{elapsed}] {wide_msg}");
                bar.set_position(0);
            }
            None => {}
        }
        let left = self.estimate.left().map_or(String::new(), |left| format!(", about {} left", span(left)));
        bar.set_message(format!("{what}{left}"));
        bar.tick();
    }

    /// Takes the bar away.
    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
        self.lines.end();
    }
}

/// A bar that counts runs, or lines.
pub(crate) struct Counter {
    bar: ProgressBar,
    lines: Lines,
    estimate: std::sync::Mutex<Estimate>,
}

impl Counter {
    /// A counter that has not begun.
    pub(crate) fn new() -> Counter {
        let bar = if has_bars() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if !bar.is_hidden() {
            set_style(&bar, "{spinner} {bar:20} {pos}/{len} runs [{elapsed}, {eta} left]");
            bar.enable_steady_tick(TICK);
        }
        let estimate = std::sync::Mutex::default();
        Counter { bar, lines: Lines::about("no run has ended yet".to_owned()), estimate }
    }

    /// So many runs have ended, of so many; `free` of them cost nothing and say nothing about the rest.
    pub(crate) fn show(&self, done: usize, of: usize, free: usize) {
        if is_quiet() {
            return;
        }
        self.bar.set_length(of as u64);
        self.bar.set_position(done as u64);
        let mut estimate = self.estimate.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let share = (done - free) as f64 / (of - free).max(1) as f64;
        estimate.at("all runs", Some(share));
        if let Some(said) = estimate.long() {
            if self.bar.is_hidden() { self.lines.say(&said) } else { self.bar.println(said) }
        }
        self.lines.now(format!("{done} of {of} runs{}", estimate.text()));
    }

    /// The bar, to print lines above it.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Takes the bar away; what was printed stays.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.end();
    }
}

/// What goes on, without a share.
pub(crate) struct Said {
    bar: ProgressBar,
    lines: Lines,
}

impl Said {
    /// Begins.
    pub(crate) fn new(what: &str) -> Said {
        let bar = if has_bars() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if !bar.is_hidden() {
            set_style(&bar, "{spinner} [{elapsed}] {wide_msg}");
            bar.enable_steady_tick(TICK);
        }
        bar.set_message(what.to_owned());
        Said { bar, lines: Lines::about(what.to_owned()) }
    }

    /// What has come of it.
    pub(crate) fn show(&self, what: String) {
        self.bar.set_message(what.clone());
        self.lines.now(what);
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.lines.end();
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    // The templates are ours: one that does not parse leaves the bar in its own style.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
