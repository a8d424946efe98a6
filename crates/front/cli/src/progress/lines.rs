//! Plain lines for whoever has no terminal: a batch job's log, a pipe.

use super::{has_bars, is_quiet};
use crate::progress::estimate::span;
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// A line every ten seconds, as long as this lives, of what it was told last.
pub(crate) struct Lines {
    latest: Arc<Mutex<String>>,
    /// Goes away to end the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// Begins, unless there is a terminal or nobody wants to know.
    pub(crate) fn about(what: String) -> Lines {
        if is_quiet() || has_bars() {
            return Lines { latest: Arc::default(), alive: None, thread: None };
        }
        Lines::every(EVERY, what, |line| {
            // Whoever does not read is told nothing.
            let _ = writeln!(std::io::stderr(), "{line}");
        })
    }

    fn every(every: Duration, what: String, mut tell: impl FnMut(String) + Send + 'static) -> Lines {
        let latest = Arc::new(Mutex::new(config::plain(&what).into_owned()));
        let (alive, ended) = mpsc::channel();
        let (begun, known) = (Instant::now(), Arc::clone(&latest));
        let thread = std::thread::spawn(move || {
            while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let what = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
                tell(format!("{}: {what}", span(begun.elapsed())));
            }
        });
        Lines { latest, alive: Some(alive), thread: Some(thread) }
    }

    /// What the next line says.
    pub(crate) fn now(&self, what: String) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// Says something at once.
    pub(crate) fn say(&self, what: &str) {
        if self.thread.is_some() {
            let _ = writeln!(std::io::stderr(), "{what}");
        }
    }

    /// Ends.
    pub(crate) fn end(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to say.
            let _ = thread.join();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_says_what_is_known_by_then() {
        let (tell, told) = mpsc::channel();
        let tell = move |line: String| _ = tell.send(line);
        let mut lines = Lines::every(Duration::from_millis(1), "reading".to_owned(), tell);
        assert_eq!(told.recv().unwrap(), "0 s: reading");
        lines.now("running".to_owned());
        // One may have been under way.
        let second = told.iter().find(|line| !line.ends_with("reading")).unwrap();
        assert!(second.ends_with("s: running"), "{second}");
        lines.end();
        let rest = told.iter().count();
        assert!(told.recv().is_err(), "{rest} more lines, and then none");
    }
}
