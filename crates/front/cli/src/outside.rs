//! Process state hidden from the simulation: signals, clocks and memory use.

use crate::output::remove_unfinished;
use config::Diagnostic;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) use ::outside::{Clocks, peak_rss};

/// Stop flag, set by the first signal to end (interrupt, termination, hang-up). The second signal ends the process.
pub(crate) static STOP: AtomicBool = AtomicBool::new(false);

/// True if a result exists that a signal must not lose.
static RESULT: AtomicBool = AtomicBool::new(false);

/// Exit status of a command that was interrupted without a result: work was left undone.
const UNDONE: i32 = 1;

/// Switches signals to a clean stop with a partial result. Before this call nothing can be lost, and a signal ends the
/// process at once, whatever it is doing.
pub(crate) fn result_is_coming() {
    RESULT.store(true, Ordering::Relaxed);
}

/// Catches the signals to end.
///
/// # Errors
/// The operating system refuses.
pub(crate) fn catch_interrupts() -> Result<(), Diagnostic> {
    signals::listen(|signal| {
        if STOP.swap(true, Ordering::Relaxed) {
            quit(signal.status);
        }
        let name = signal.name;
        if RESULT.load(Ordering::Relaxed) {
            say(&format!("\n{name}: finishing with a partial result; a second signal quits at once"));
        } else {
            say(&format!("\n{name} before there was a result"));
            quit(UNDONE);
        }
    })
    .map_err(|fault| Diagnostic::new(format!("cannot catch interrupts: {fault}")))
}

/// Writes a line to standard error; a closed terminal is ignored.
fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Ends the process without half-written files.
fn quit(status: i32) -> ! {
    remove_unfinished();
    std::process::exit(status)
}

#[cfg(not(unix))]
mod signals {
    //! Signals that end a process on a console: Control-C.

    use std::io;

    /// Signal to end.
    #[derive(Clone, Copy)]
    pub(super) struct Signal {
        /// Word for the interruption, such as `interrupted`.
        pub(super) name: &'static str,
        /// Exit status after the second signal.
        pub(super) status: i32,
    }

    /// Calls `heard` for each signal, in a thread of its own.
    ///
    /// # Errors
    /// The operating system refuses.
    pub(super) fn listen(heard: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
        let heard = move || heard(Signal { name: "interrupted", status: 130 });
        ctrlc::set_handler(heard).map_err(io::Error::other)
    }
}

#[cfg(unix)]
mod signals {
    //! Signals that end a process: Control-C, `kill`, the time limit of a batch system, a closed terminal.

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    use std::io;

    /// Signal to end.
    #[derive(Clone, Copy)]
    pub(super) struct Signal {
        number: i32,
        /// Word for the interruption, such as `interrupted`.
        pub(super) name: &'static str,
        /// Exit status after the second signal, as a shell reports it for a process that the signal ended.
        pub(super) status: i32,
    }

    const ALL: [Signal; 3] = [
        Signal { number: SIGINT, name: "interrupted", status: 128 + SIGINT },
        Signal { number: SIGTERM, name: "terminated", status: 128 + SIGTERM },
        Signal { number: SIGHUP, name: "hung up", status: 128 + SIGHUP },
    ];

    /// Calls `heard` for each signal, in a thread of its own.
    ///
    /// # Errors
    /// The operating system refuses.
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

    /// Returns whether hang-ups were ignored when the process began, as under `nohup`; true where the system cannot
    /// tell.
    fn outlives_its_terminal() -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        ignored.is_none_or(|mask| mask >> (SIGHUP - 1) & 1 == 1)
    }
}
