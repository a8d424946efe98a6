//! Progress bars: on standard error, and only if it is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use machine::Machine;
use std::io::IsTerminal;
use std::time::Duration;

/// Steps of a bar that shows a share.
const STEPS: u64 = 10_000;

/// How often a bar moves while nobody tells it anything.
const TICK: Duration = Duration::from_millis(200);

/// The progress of one run.
pub(crate) struct RunBar(ProgressBar);

impl RunBar {
    /// A bar, hidden where there is no terminal.
    pub(crate) fn new() -> RunBar {
        if !std::io::stderr().is_terminal() {
            return RunBar(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(STEPS);
        set_style(&bar, "{spinner} [{elapsed}] {wide_msg}");
        // Until the machine runs there is nobody to move the bar.
        bar.set_message("bringing the device into its state");
        bar.enable_steady_tick(TICK);
        RunBar(bar)
    }

    /// Shows how far the machine has come.
    pub(crate) fn show(&self, machine: &Machine) {
        let bar = &self.0;
        if bar.is_hidden() {
            return;
        }
        if let Some(share) = machine.injector.progress() {
            if bar.position() == 0 {
                set_style(bar, "{spinner} {bar:20} {percent:>3} % [{elapsed}, {eta} left] {wide_msg}");
            }
            bar.set_position(((share * STEPS as f64) as u64).max(1));
        }
        bar.set_message(format!("{} requests, {} simulated", machine.completed(), machine.now()));
        bar.tick();
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// A bar that counts runs.
pub(crate) fn counting(all: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(all);
    set_style(&bar, "{spinner} {bar:20} {pos}/{len} runs [{elapsed}, {eta} left]");
    bar.enable_steady_tick(TICK);
    bar
}

fn set_style(bar: &ProgressBar, template: &str) {
    // The templates are ours: one that does not parse leaves the bar in its own style.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}
