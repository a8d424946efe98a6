//! What the simulation must not see: signals, and what the process lends to a run.

#[cfg(not(unix))]
mod console;
#[cfg(unix)]
mod signals;

#[cfg(not(unix))]
use console as signals;

use crate::output::remove_unfinished;
use config::Diagnostic;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use ::outside::{Clocks, peak_rss};

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
