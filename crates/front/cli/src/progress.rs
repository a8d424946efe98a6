//! Progress on standard error: bars on a terminal, else a plain line every ten seconds, with an estimate of the time
//! left.

use indicatif::{ProgressBar, ProgressStyle};
use machine::run::Stage;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Steps of a bar that shows a share.
const STEPS: u64 = 10_000;

/// Interval at which an idle bar moves.
const TICK: Duration = Duration::from_millis(200);

/// Quiet flag, set once, before anything is shown.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets whether progress is suppressed.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

fn has_bars() -> bool {
    !is_quiet() && std::io::stderr().is_terminal()
}

/// Progress of one run.
pub(crate) struct RunBar {
    bar: ProgressBar,
    lines: Lines,
    estimate: Estimate,
}

impl RunBar {
    /// Starts a bar on a terminal, lines elsewhere.
    pub(crate) fn new() -> RunBar {
        let lines = Lines::about("reading the system".to_owned());
        let estimate = Estimate::default();
        if !has_bars() {
            return RunBar { bar: ProgressBar::hidden(), lines, estimate };
        }
        let bar = ProgressBar::new(STEPS);
        set_style(&bar, "{spinner} [{elapsed}] {wide_msg}");
        // Until the machine runs, only the tick moves the bar.
        bar.enable_steady_tick(TICK);
        RunBar { bar, lines, estimate }
    }

    /// Shows the progress of the run.
    pub(crate) fn show(&mut self, stage: Stage<'_>) {
        if is_quiet() {
            return;
        }
        let (name, share, what) = match stage {
            Stage::Reading(text) => ("reading", None, format!("reading {}", config::plain(text))),
            Stage::Building => ("building", None, "building the machine".to_owned()),
            Stage::Preconditioning(progress) => {
                let writes = progress.drive_writes;
                let what = format!("preconditioning the device, {writes:.2} drive writes");
                ("preconditioning", progress.share, what)
            }
            Stage::Running(machine) => {
                let what = format!("{} requests, {} simulated", machine.completed(), machine.now());
                ("the run", machine.progress(), what)
            }
            Stage::Checking => ("checking", None, "checking the accounting".to_owned()),
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

    /// Removes the bar.
    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
        self.lines.end();
    }
}

/// Bar that counts runs, or lines.
pub(crate) struct Counter {
    bar: ProgressBar,
    lines: Lines,
    estimate: std::sync::Mutex<Estimate>,
}

impl Counter {
    /// Creates a counter at zero.
    pub(crate) fn new() -> Counter {
        let bar = if has_bars() { ProgressBar::new(0) } else { ProgressBar::hidden() };
        if !bar.is_hidden() {
            set_style(&bar, "{spinner} {bar:20} {pos}/{len} runs [{elapsed}, {eta} left]");
            bar.enable_steady_tick(TICK);
        }
        let estimate = std::sync::Mutex::default();
        Counter { bar, lines: Lines::about("no run has ended yet".to_owned()), estimate }
    }

    /// Shows that `done` of `of` runs have ended; `free` of them cost nothing and are left out of the estimate.
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

    /// Progress bar, for printing lines above it.
    pub(crate) fn bar(&self) -> &ProgressBar {
        &self.bar
    }

    /// Removes the bar; printed lines stay.
    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.end();
    }
}

/// Progress of work without a known share.
pub(crate) struct Said {
    bar: ProgressBar,
    lines: Lines,
}

impl Said {
    /// Starts showing `what`.
    pub(crate) fn new(what: &str) -> Said {
        let bar = if has_bars() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        if !bar.is_hidden() {
            set_style(&bar, "{spinner} [{elapsed}] {wide_msg}");
            bar.enable_steady_tick(TICK);
        }
        bar.set_message(what.to_owned());
        Said { bar, lines: Lines::about(what.to_owned()) }
    }

    /// Shows the current state.
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
    // The templates are constants: one that does not parse leaves the bar in its default style.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// Interval between two lines.
const EVERY: Duration = Duration::from_secs(10);

/// Prints its latest text every ten seconds, as long as it lives.
pub(crate) struct Lines {
    latest: Arc<Mutex<String>>,
    /// Sender whose drop ends the thread.
    alive: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lines {
    /// Starts the lines, unless standard error is a terminal or progress is suppressed.
    pub(crate) fn about(what: String) -> Lines {
        if is_quiet() || has_bars() {
            return Lines { latest: Arc::default(), alive: None, thread: None };
        }
        Lines::every(EVERY, what, |line| {
            // Errors are ignored: nothing reads the output.
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

    /// Sets the text of the next line.
    pub(crate) fn now(&self, what: String) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = what;
    }

    /// Prints a line at once.
    pub(crate) fn say(&self, what: &str) {
        if self.thread.is_some() {
            let _ = writeln!(std::io::stderr(), "{what}");
        }
    }

    /// Ends the thread.
    pub(crate) fn end(&mut self) {
        self.alive = None;
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing.
            let _ = thread.join();
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.end();
    }
}

/// Duration above which a stage of work is announced.
const LONG: Duration = Duration::from_secs(600);

/// Duration before which a share says little about the rest.
const EARLY: Duration = Duration::from_secs(5);

/// Time and share of the current work.
#[derive(Default)]
pub(crate) struct Estimate {
    /// Name of the current work, its start, and its share at the start.
    now: Option<(&'static str, Instant, f64)>,
    share: Option<f64>,
    announced: bool,
}

impl Estimate {
    /// Sets the current work, and the share that is done, if known.
    pub(crate) fn at(&mut self, name: &'static str, share: Option<f64>) {
        if self.now.is_none_or(|(known, ..)| known != name) {
            *self =
                Estimate { now: Some((name, Instant::now(), share.unwrap_or(0.0))), ..Estimate::default() };
        }
        self.share = share;
    }

    fn elapsed(&self) -> Duration {
        self.now.map_or(Duration::ZERO, |(_, since, _)| since.elapsed())
    }

    /// Time left, if it can be estimated.
    pub(crate) fn left(&self) -> Option<Duration> {
        let (_, since, from) = self.now?;
        left(since.elapsed(), from, self.share?)
    }

    /// Note on work that turns out to take long, once.
    pub(crate) fn long(&mut self) -> Option<String> {
        if self.announced {
            return None;
        }
        let left = self.left().filter(|left| *left + self.elapsed() > LONG)?;
        self.announced = true;
        let name = self.now.map_or("", |(name, ..)| name);
        Some(format!("note: {name} will take about {}; Control-C ends it", span(left + self.elapsed())))
    }

    /// Note, once, on work of unknown length whose turns (drive writes) take long; `turns` of them are done.
    pub(crate) fn long_turns(&mut self, turns: f64) -> Option<String> {
        let elapsed = self.elapsed();
        if self.announced || elapsed < EARLY || turns <= 0.0 {
            return None;
        }
        let turn =
            Duration::try_from_secs_f64(elapsed.as_secs_f64() / turns).ok().filter(|turn| *turn > LONG)?;
        self.announced = true;
        Some(format!(
            "note: a drive write takes about {} of preconditioning, and a steady state needs several; `--precondition analytic` computes it from theory; Control-C ends the run",
            span(turn)
        ))
    }

    /// Share and time left, as a suffix.
    pub(crate) fn text(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!(", {:.1} %", 100.0 * share));
        let left = self.left().map_or(String::new(), |left| format!(", about {} left", span(left)));
        share + &left
    }
}

/// Estimates the time left, if the work goes on at its pace since the share `from`.
fn left(elapsed: Duration, from: f64, share: f64) -> Option<Duration> {
    let done = share - from;
    if elapsed < EARLY || done <= 0.0 {
        return None;
    }
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - share).max(0.0) / done).ok()
}

/// Formats a duration for people.
pub(crate) fn span(time: Duration) -> String {
    const STEPS: [(u64, &str); 4] = [(86_400, "days"), (3600, "h"), (60, "min"), (1, "s")];
    let seconds = time.as_secs();
    let (unit, name) = STEPS.into_iter().find(|(unit, _)| seconds >= 2 * unit).unwrap_or((1, "s"));
    format!("{} {name}", (seconds + unit / 2) / unit)
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

    #[test]
    fn the_rest_follows_from_what_was_done_since() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(10), 0.0, 0.25), Some(seconds(30)));
        // Of what was there at the beginning nothing follows.
        assert_eq!(left(seconds(10), 0.5, 0.75), Some(seconds(10)));
        assert_eq!(left(seconds(4), 0.0, 0.25), None);
        assert_eq!(left(seconds(10), 0.5, 0.5), None);
        // Longer than any clock.
        assert_eq!(left(seconds(10), 0.0, 1e-30), None);
    }

    #[test]
    fn long_work_is_announced_once_and_anew_for_other_work() {
        let mut estimate = Estimate::default();
        estimate.at("the run", Some(0.0));
        estimate.now =
            Instant::now().checked_sub(Duration::from_secs(100)).map(|since| ("the run", since, 0.0));
        estimate.at("the run", Some(0.5));
        assert_eq!(estimate.long(), None, "200 s are not long");
        estimate.at("the run", Some(0.001));
        let said = estimate.long().expect("a day is long");
        assert!(said.contains("the run will take about 28 h"), "{said}");
        assert_eq!(estimate.long(), None);
        assert!(estimate.text().contains("0.1 %, about 28 h left"), "{}", estimate.text());
        estimate.at("preconditioning", Some(0.5));
        assert_eq!((estimate.long(), estimate.left()), (None, None), "it has just begun");
    }

    #[test]
    fn work_of_unknown_length_is_announced_by_its_turns() {
        let mut estimate = Estimate::default();
        estimate.at("preconditioning", None);
        assert_eq!(estimate.long_turns(0.001), None, "it has just begun");
        let since = Instant::now().checked_sub(Duration::from_secs(60));
        estimate.now = since.map(|since| ("preconditioning", since, 0.0));
        assert_eq!(estimate.long_turns(0.5), None, "two minutes are not long");
        let said = estimate.long_turns(0.05).expect("twenty minutes are long");
        assert!(said.contains("a drive write takes about 20 min"), "{said}");
        assert_eq!(estimate.long_turns(0.05), None);
    }

    #[test]
    fn times_are_told_in_the_unit_that_reads_best() {
        let said = |seconds: u64| span(Duration::from_secs(seconds));
        let texts = [said(0), said(119), said(150), said(3 * 3600), said(3 * 86_400)];
        assert_eq!(texts, ["0 s", "119 s", "3 min", "3 h", "3 days"]);
    }
}
