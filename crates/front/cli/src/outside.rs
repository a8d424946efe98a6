//! What the simulation must not see: signals, and what the process lends to a run.

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

/// From now on a signal to end ends what is under way cleanly, with the result of a part. Before, there is nothing to
/// lose, and whatever is under way, a trace being read, a graph being built, ends at once with the process.
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

/// Writes a line to standard error; a terminal that has gone away changes nothing.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Ends the process, and leaves nothing half written.
fn quit(status: i32) -> ! {
    remove_unfinished();
    std::process::exit(status)
}

#[cfg(not(unix))]
mod signals {
    //! Signals that tell a process to end, where there is a console: Control-C.

    use std::io;

    /// A signal to end.
    #[derive(Clone, Copy)]
    pub(super) struct Signal {
        /// What has happened to the command.
        pub(super) name: &'static str,
        /// Exit status of a command that was told so twice.
        pub(super) status: i32,
    }

    /// Calls `heard` at each, in a thread of its own.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(super) fn listen(heard: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
        let heard = move || heard(Signal { name: "interrupted", status: 130 });
        ctrlc::set_handler(heard).map_err(io::Error::other)
    }
}

#[cfg(unix)]
mod signals {
    //! Signals that tell a process to end: Control-C, `kill` and the time limit of a batch system, a terminal that goes
    //! away.

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use std::io;

    /// A signal to end.
    #[derive(Clone, Copy)]
    pub(super) struct Signal {
        number: i32,
        /// What has happened to the command.
        pub(super) name: &'static str,
        /// Exit status of a command that was told so twice, as a shell has it for a process that the signal has ended.
        pub(super) status: i32,
    }

    const ALL: [Signal; 3] = [
        Signal { number: SIGINT, name: "interrupted", status: 128 + SIGINT },
        Signal { number: SIGTERM, name: "terminated", status: 128 + SIGTERM },
        Signal { number: SIGHUP, name: "hung up", status: 128 + SIGHUP },
    ];

    /// Calls `heard` at each, in a thread of its own.
    ///
    /// # Errors
    /// If the operating system refuses.
    pub(super) fn listen(heard: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
        let wanted = ALL.into_iter().filter(|signal| signal.number != SIGHUP || !outlives_its_terminal());
        let mut signals = Signals::new(wanted.map(|signal| signal.number))?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for number in signals.forever() {
                ALL.into_iter().filter(|signal| signal.number == number).for_each(&heard);
            }
        })?;
        Ok(())
    }

    /// Whether hang-ups were to be ignored when the process began, as `nohup` has it; yes where the operating system
    /// does not tell.
    fn outlives_its_terminal() -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_none_or(|mask| mask >> (SIGHUP - 1) & 1 == 1)
    }
}
