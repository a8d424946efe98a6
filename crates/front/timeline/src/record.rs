//! Contents of a timeline: the requested part of a run, with a bounded number of events for a run of any length. A
//! partial record always says so.

use super::event::Event;
use config::units::Duration;
use engine::Time;
use std::collections::VecDeque;

/// Maximum number of events of a kind in a timeline. A viewer has trouble with many more.
const MAX_EVENTS: usize = 1_000_000;
/// Number of events kept or dropped together, so that whole stretches remain.
const BLOCK: u64 = 4096;

/// Margin before and after the slowest request: a few reads long, *chosen*.
const MARGIN: Time = Time::from_us(200);

/// Part of a run to show.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Show {
    /// Whole run.
    #[default]
    All,
    /// Events that touch a span of time.
    Window(Time, Time),
    /// Events that touch the life of the slowest request, with a margin of 200 us on both sides.
    Slowest,
}

/// Recorded events.
pub(super) struct Record {
    show: Show,
    limit: usize,
    margin: Time,
    /// Number of events offered that belong to the part to show.
    offered: u64,
    /// Sampling interval: one block in `stride` is kept.
    stride: u64,
    /// Kept blocks; the last is being filled.
    blocks: Vec<Vec<Event>>,
    kept: usize,
    /// Latest events, until the slowest request is known.
    latest: VecDeque<Event>,
    slowest: Option<(Time, (Time, Time))>,
    /// Events around the slowest request that have left `latest`.
    around: Vec<Event>,
    /// Number of events around it that were dropped before it was known to be the slowest.
    lost: u64,
}

impl Record {
    pub(super) fn new(show: Show) -> Record {
        Record::with_limit(show, MAX_EVENTS, MARGIN)
    }

    fn with_limit(show: Show, limit: usize, margin: Time) -> Record {
        Record {
            show,
            limit,
            margin,
            offered: 0,
            stride: 1,
            blocks: Vec::new(),
            kept: 0,
            latest: VecDeque::new(),
            slowest: None,
            around: Vec::new(),
            lost: 0,
        }
    }

    /// Adds an event that has ended.
    pub(super) fn add(&mut self, event: Event) {
        match self.show {
            Show::All => self.sample(event),
            Show::Window(from, to) if touches(&event, (from, to)) => self.sample(event),
            Show::Window(..) => {}
            Show::Slowest => {
                self.latest.push_back(event);
                if self.latest.len() > self.limit / 2
                    && let Some(oldest) = self.latest.pop_front()
                {
                    let wanted = self.slowest.is_some_and(|(_, span)| touches(&oldest, span));
                    if wanted && self.around.len() < self.limit / 2 {
                        self.around.push(oldest);
                    } else {
                        self.lost += u64::from(wanted);
                    }
                }
            }
        }
    }

    fn sample(&mut self, event: Event) {
        let block = self.offered / BLOCK;
        let begins = self.offered.is_multiple_of(BLOCK);
        self.offered += 1;
        if !block.is_multiple_of(self.stride) {
            return;
        }
        if begins {
            self.blocks.push(Vec::new());
        }
        if let Some(last) = self.blocks.last_mut() {
            last.push(event);
            self.kept += 1;
        }
        if self.kept >= self.limit {
            self.stride *= 2;
            let mut at = 0;
            self.blocks.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.kept = self.blocks.iter().map(Vec::len).sum();
        }
    }

    /// Records the end of a request.
    pub(super) fn ended(&mut self, from: Time, to: Time) {
        if self.show != Show::Slowest {
            return;
        }
        let (latency, margin) = (to - from, self.margin);
        if self.slowest.is_none_or(|(slowest, _)| latency > slowest) {
            let span = (from.since(margin), to + margin);
            self.slowest = Some((latency, span));
            self.around.retain(|event| touches(event, span));
            self.lost = 0;
            // Earlier events were dropped if a full buffer of events is younger than its beginning.
            let gone = self.latest.len() >= self.limit / 2;
            let oldest = self.around.iter().chain(self.latest.front()).map(|event| event.to).min();
            if gone && oldest.is_some_and(|oldest| oldest > span.0) {
                self.lost = 1;
            }
        }
    }

    /// Returns the events, with a note on omitted ones.
    pub(super) fn close(&mut self) -> (Vec<Event>, Option<String>) {
        let Some((_, span)) = self.slowest else {
            let all: Vec<Event> = std::mem::take(&mut self.blocks).into_iter().flatten().collect();
            let told = (self.stride > 1).then(|| {
                format!(
                    "{} of {} events, stretches of {BLOCK} spread evenly over the part shown",
                    all.len(),
                    self.offered
                )
            });
            return (all, told);
        };
        let latest = std::mem::take(&mut self.latest);
        let mut all = std::mem::take(&mut self.around);
        all.extend(latest.into_iter().filter(|event| touches(event, span)));
        let told = (self.lost > 0).then(|| {
            format!(
                "{} events: the life of the slowest request has more, and its beginning is not shown",
                all.len()
            )
        });
        (all, told)
    }

    /// Span of time that is shown; `None` for all.
    pub(super) fn span(&self) -> Option<(Time, Time)> {
        match self.show {
            Show::All => None,
            Show::Window(from, to) => Some((from, to)),
            Show::Slowest => self.slowest.map(|(_, span)| span),
        }
    }

    /// Number of events that were dropped.
    pub(super) fn left_out(&self) -> u64 {
        self.offered - self.kept as u64 + self.lost
    }
}

fn touches(event: &Event, (from, to): (Time, Time)) -> bool {
    event.from < to && event.to > from
}

/// Parses `all`, `slowest`, or `window=1ms..2ms`.
///
/// # Errors
/// A message on any other text.
pub fn show(text: &str) -> Result<Show, String> {
    match text.split_once('=') {
        None if text == "all" => Ok(Show::All),
        None if text == "slowest" => Ok(Show::Slowest),
        Some(("window", value)) => window(value).map(|(from, to)| Show::Window(from, to)),
        _ => {
            let word = text.split('=').next().unwrap_or_default();
            Err(match config::diag::nearest(word, ["all", "slowest", "window"]) {
                Some("window") if word == "window" => "`window` takes two times".to_owned(),
                Some(near) if near == word => format!("`{word}` takes no value"),
                Some(near) => format!("unknown value `{word}`; did you mean `{near}`?"),
                None => format!("unknown value `{word}`"),
            })
        }
    }
}

/// Parses a span of time such as `1ms..2ms`.
///
/// # Errors
/// A message on any other text.
pub fn window(text: &str) -> Result<(Time, Time), String> {
    let time = |text: &str| {
        text.parse::<Duration>()
            .map(|time| time.time())
            .map_err(|_| format!("`{text}` is not a time with a unit, such as `1ms`"))
    };
    let (from, to) =
        text.split_once("..").ok_or("`window` takes two times, such as `window=1ms..2ms`".to_owned())?;
    let (from, to) = (time(from)?, time(to)?);
    if from < to {
        Ok((from, to))
    } else {
        Err(format!("the window ends at {to}, which is not after {from}"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Args, Event};
    use super::{BLOCK, Record, Show};
    use engine::Time;

    fn event(from: u64, to: u64) -> Event {
        let [from, to] = [from, to].map(Time::from_ns);
        Event { at: (1, 0), from, to, name: 0, overlaps: false, joins: None, args: Args::None }
    }

    #[test]
    fn of_many_events_whole_stretches_are_left_all_over_the_run() {
        let mut record = Record::with_limit(Show::All, 40 * BLOCK as usize, Time::ZERO);
        let n = 1000 * BLOCK;
        (0..n).for_each(|at| record.add(event(at, at + 1)));
        let left_out = record.left_out();
        let (kept, told) = record.close();
        assert!(kept.len() <= 40 * BLOCK as usize && kept.len() >= 20 * BLOCK as usize, "{}", kept.len());
        assert_eq!(kept.len() as u64 + left_out, n);
        let starts: Vec<u64> = kept.chunks(BLOCK as usize).map(|block| block[0].from.ps() / 1000).collect();
        let stride = starts[1] - starts[0];
        assert!(starts.windows(2).all(|pair| pair[1] - pair[0] == stride) && starts[0] == 0);
        assert!(n - starts[starts.len() - 1] <= stride);
        assert!(told.expect("some are left out").contains(&format!("of {n} events")));
    }

    #[test]
    fn a_window_holds_what_touches_it() {
        let mut record = Record::new(Show::Window(Time::from_ns(10), Time::from_ns(20)));
        for (from, to) in [(0, 10), (5, 11), (12, 13), (19, 40), (20, 21)] {
            record.add(event(from, to));
        }
        let (kept, told) = record.close();
        assert_eq!(kept.iter().map(|e| e.from.ps() / 1000).collect::<Vec<_>>(), [5, 12, 19]);
        assert_eq!(told, None);
    }

    #[test]
    fn around_the_slowest_everything_is_held() {
        let mut record = Record::with_limit(Show::Slowest, 200, Time::from_ns(5));
        // Requests of 3 ns, one of 60 in the middle, an event every nanosecond.
        for at in 0..1000 {
            record.add(event(at, at + 1));
            let latency = if at == 500 { 60 } else { 3 };
            if at >= 3 {
                record.ended(Time::from_ns(at + 1 - latency), Time::from_ns(at + 1));
            }
        }
        let (kept, told) = record.close();
        let found: Vec<u64> = kept.iter().map(|e| e.from.ps() / 1000).collect();
        // From 441 to 501, and 5 more on both sides.
        assert_eq!(found, (436..506).collect::<Vec<_>>());
        assert_eq!(told, None);
    }

    #[test]
    fn a_slowest_that_is_longer_than_what_is_held_is_told() {
        let mut record = Record::with_limit(Show::Slowest, 100, Time::ZERO);
        (0..500).for_each(|at| record.add(event(at, at + 1)));
        record.ended(Time::ZERO, Time::from_ns(500));
        let (kept, told) = record.close();
        assert_eq!(kept.len(), 50);
        assert!(told.expect("it says so").contains("beginning is not shown"));
    }
}
