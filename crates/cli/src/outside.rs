//! What the simulation must not see: clocks, memory figures, signals.

#[cfg(not(unix))]
mod console;
#[cfg(unix)]
mod signals;

#[cfg(not(unix))]
use console as signals;

use crate::output::remove_unfinished;
use config::Diagnostic;
use cpu_time::ThreadTime;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Set by the first signal to end (an interrupt, a termination, a hang-up). The second ends the process.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// Whether there is something that such a signal must not lose.
static RESULT: AtomicBool = AtomicBool::new(false);

/// Exit status of a command that was interrupted and leaves nothing: work was left undone.
const UNDONE: i32 = 1;

/// From now on a signal to end ends what is under way cleanly, with the result of a part. Before, there is nothing to lose, and
/// whatever is under way, a trace being read, a graph being built, ends at once with the process.
pub(crate) fn result_is_coming() {
    RESULT.store(true, Ordering::Relaxed);
}

/// Catches signals to end.
///
/// # Errors
/// If the operating system refuses.
pub(crate) fn catch_interrupts() -> Result<(), Diagnostic> {
    signals::listen(|signal| {
        if STOP.swap(true, Ordering::Relaxed) {
            quit(signal.status);
        }
        let name = signal.name;
        if RESULT.load(Ordering::Relaxed) {
            say(&format!("\n{name}: ending what is under way; once more to quit at once"));
        } else {
            say(&format!("\n{name} before there was a result"));
            quit(UNDONE);
        }
    })
    .map_err(|fault| Diagnostic::new(format!("cannot catch interrupts: {fault}")))
}

/// A terminal that has gone away is no reason to go on.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Ends the process, and leaves nothing half written.
fn quit(status: i32) -> ! {
    remove_unfinished();
    std::process::exit(status)
}

/// CPU and wall-clock seconds from a common origin.
pub(crate) struct Clocks {
    cpu: ThreadTime,
    wall: Instant,
}

impl Clocks {
    /// Starts both.
    pub(crate) fn start() -> Clocks {
        Clocks { cpu: ThreadTime::now(), wall: Instant::now() }
    }
    /// CPU seconds of this thread.
    pub(crate) fn cpu_s(&self) -> f64 {
        self.cpu.elapsed().as_secs_f64()
    }
    /// Wall-clock seconds.
    pub(crate) fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }
}

/// Peak resident set in bytes; zero where the operating system does not tell.
pub(crate) fn peak_rss() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}
