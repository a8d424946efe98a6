//! How long it will still take, from the share that is done and the time that it took.

use std::time::{Duration, Instant};

/// A part of the work that takes longer than this is announced.
const LONG: Duration = Duration::from_secs(600);

/// Before this, a share says little about the rest.
const EARLY: Duration = Duration::from_secs(5);

/// Time and share of what is under way.
#[derive(Default)]
pub(crate) struct Estimate {
    /// What is under way, since when, and the share that was done then.
    now: Option<(&'static str, Instant, f64)>,
    share: Option<f64>,
    announced: bool,
}

impl Estimate {
    /// What is under way, and the share of it that is done, if it is known.
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

    /// What is left, if that can be told.
    pub(crate) fn left(&self) -> Option<Duration> {
        let (_, since, from) = self.now?;
        left(since.elapsed(), from, self.share?)
    }

    /// A sentence for what turns out to take long, once.
    pub(crate) fn long(&mut self) -> Option<String> {
        if self.announced {
            return None;
        }
        let left = self.left().filter(|left| *left + self.elapsed() > LONG)?;
        self.announced = true;
        let name = self.now.map_or("", |(name, ..)| name);
        Some(format!("note: {name} will take about {}; Control-C ends it", span(left + self.elapsed())))
    }

    /// A sentence, once, for work of unknown length whose turns, drive writes, take long; so many of them are done.
    pub(crate) fn long_turns(&mut self, turns: f64) -> Option<String> {
        let elapsed = self.elapsed();
        if self.announced || elapsed < EARLY || turns <= 0.0 {
            return None;
        }
        let turn =
            Duration::try_from_secs_f64(elapsed.as_secs_f64() / turns).ok().filter(|turn| *turn > LONG)?;
        self.announced = true;
        Some(format!(
            "note: a drive write takes about {} of preconditioning, and a steady state takes some; `--precondition analytic` takes it from theory; Control-C ends it",
            span(turn)
        ))
    }

    /// Share and time left, to stand behind what is under way.
    pub(crate) fn text(&self) -> String {
        let share = self.share.map_or(String::new(), |share| format!(", {:.1} %", 100.0 * share));
        let left = self.left().map_or(String::new(), |left| format!(", about {} left", span(left)));
        share + &left
    }
}

/// The rest, if the work goes on as it did since a share of it was done.
fn left(elapsed: Duration, from: f64, share: f64) -> Option<Duration> {
    let done = share - from;
    if elapsed < EARLY || done <= 0.0 {
        return None;
    }
    Duration::try_from_secs_f64(elapsed.as_secs_f64() * (1.0 - share).max(0.0) / done).ok()
}

/// A time as a person says it.
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
