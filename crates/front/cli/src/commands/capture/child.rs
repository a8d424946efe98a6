//! The program that records, and with it the one that is recorded.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use config::Diagnostic;
use rustix::process::{Pid, Signal, kill_process};

use crate::outside::STOP;

/// How often a program is looked at that nothing is heard of.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// How a program ended.
pub(super) enum End {
    Itself(ExitStatus),
    Limit(u64),
    Interrupt,
}

impl End {
    /// Whether the recording is whole.
    pub(super) fn is_whole(&self) -> bool {
        match self {
            End::Itself(status) => status.signal().is_none(),
            End::Limit(_) => true,
            End::Interrupt => false,
        }
    }

    /// Says it. Standard output is the program's.
    pub(super) fn say(&self, program: &Path) {
        let name = program.display();
        match self {
            End::Itself(status) if status.signal().is_some() => {
                tell!("note: `{name}` was killed ({status}): the recording ends there");
            }
            End::Itself(status) => tell!("note: `{name}` ended: {status}"),
            End::Limit(limit) => tell!("note: `{name}` was ended after {limit} instructions"),
            End::Interrupt => tell!("note: `{name}` was interrupted: the recording ends there"),
        }
    }

    /// How it ended by itself, in parentheses.
    pub(super) fn status(&self) -> String {
        match self {
            End::Itself(status) => format!(" ({status})"),
            End::Limit(_) | End::Interrupt => String::new(),
        }
    }
}

/// A program under another one. It does not outlive this.
pub(super) struct Traced {
    child: Mutex<Child>,
    /// The signal that ends both; what is left when this is dropped is killed.
    last: Signal,
}

impl Traced {
    /// Starts `tool`, which is to be ended by `last`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(tool: &str, command: &mut Command, last: Signal) -> Result<Traced, Diagnostic> {
        let child = command.spawn().map_err(|fault| {
            Diagnostic::new(format!("cannot start `{tool}`: {fault}")).help(format!(
                "programs are recorded with it: install the package `{tool}` (apt install {tool}; dnf, pacman, brew)"
            ))
        })?;
        Ok(Traced { child: Mutex::new(child), last })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Child) -> T) -> T {
        work(&mut self.child.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Tells both to end.
    pub(super) fn stop(&self) {
        self.with(|child| {
            // One that has ended and was waited for has no number any more; one that has just ended need not hear it.
            if let Ok(None) = child.try_wait() {
                let _ = kill_process(Pid::from_child(child), self.last);
            }
        });
    }

    /// Waits for its end, or ends it at the limit that has been reached.
    pub(super) fn end(&self, limit: Option<u64>) -> Result<End, Diagnostic> {
        let unknown =
            |fault: std::io::Error| Diagnostic::new(format!("cannot learn how the program ended: {fault}"));
        let mut told = limit.is_some();
        if told {
            self.stop();
        }
        loop {
            if let Some(status) = self.with(Child::try_wait).map_err(unknown)? {
                return Ok(match limit {
                    _ if STOP.load(Ordering::Relaxed) => End::Interrupt,
                    Some(limit) => End::Limit(limit),
                    None => End::Itself(status),
                });
            }
            if STOP.load(Ordering::Relaxed) && !std::mem::replace(&mut told, true) {
                self.stop();
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.with(|child| {
            // One that has ended already cannot be killed, and need not be.
            let _ = child.kill();
            let _ = child.wait();
        });
    }
}
