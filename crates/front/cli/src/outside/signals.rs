//! Signals that tell a process to end: Control-C, `kill` and the time limit of a batch system, a terminal that goes away.

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

/// Whether hang-ups were to be ignored when the process began, as `nohup` has it; yes where the operating system does not tell.
fn outlives_its_terminal() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask >> (SIGHUP - 1) & 1 == 1)
}
