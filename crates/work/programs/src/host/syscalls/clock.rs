//! Clock of a log: interpretation of the times of its lines.
//!
//! strace writes a timestamp (`-ttt` seconds since 1970, `-tt` and `-t` the time of day), the time since the previous
//! line (`-r`), or both, with the `-r` time in parentheses. It pads only times of `-r` to six places before the point.

use super::Fault;

/// One second in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// One day in nanoseconds.
const DAY: u64 = 24 * 3_600 * SECOND;
/// Lower bound of times since 1970: 2001-09-09.
const SINCE_1970: u64 = 1_000_000_000 * SECOND;

/// Interpretation of a log's times requested by the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// Detected from the times.
    Auto,
    /// Time since the previous line.
    Relative,
    /// Timestamp.
    Absolute,
}

/// A time without its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// Value in nanoseconds.
    ns: u64,
    /// Resolution of the last digit, in nanoseconds.
    grain: u64,
}

/// Time of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    time: Span,
    /// True if written as hours, minutes and seconds.
    of_day: bool,
    /// True if written with more leading spaces than a timestamp.
    padded: bool,
    /// Time since the previous line, if the line has it as well.
    since: Option<Span>,
}

impl Stamp {
    /// Reads a word as a time; `padded` if it has more leading spaces than a timestamp.
    pub(super) fn read(word: &[u8], padded: bool) -> Option<Stamp> {
        let stamp = |time, of_day| Stamp { time, of_day, padded, since: None };
        if let Some(time) = span(word) {
            return Some(stamp(time, false));
        }
        let mut parts = word.splitn(3, |b| *b == b':');
        let (hours, minutes) = (two_digits(parts.next()?, 24)?, two_digits(parts.next()?, 60)?);
        let seconds = parts.next()?;
        // A leap second has number sixty.
        two_digits(&seconds[..seconds.len().min(2)], 61)?;
        let Span { ns, grain } = span(seconds)?;
        Some(stamp(Span { ns: (hours * 60 + minutes) * 60 * SECOND + ns, grain }, true))
    }

    /// Adds the time since the previous line, as in parentheses: `+     0.000012`.
    pub(super) fn with_since(self, text: &[u8]) -> Option<Stamp> {
        let since = span(text.strip_prefix(b"+")?.trim_ascii())?;
        Some(Stamp { since: Some(since), ..self })
    }
}

fn two_digits(text: &[u8], below: u64) -> Option<u64> {
    let number = Some(text).filter(|text| text.len() == 2).and_then(digits);
    number.filter(|number| *number < below)
}

fn digits(text: &[u8]) -> Option<u64> {
    let all_digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(text).ok().filter(|_| all_digits)?.parse().ok()
}

/// Reads seconds, with up to nine decimals.
pub(super) fn span(text: &[u8]) -> Option<Span> {
    let Some(dot) = memchr::memchr(b'.', text) else {
        return Some(Span { ns: digits(text)?.checked_mul(SECOND)?, grain: SECOND });
    };
    let (whole, fraction) = (&text[..dot], &text[dot + 1..]);
    if fraction.len() > 9 {
        return None;
    }
    let grain = 10_u64.pow(9 - fraction.len() as u32);
    let ns = digits(whole)?.checked_mul(SECOND)?.checked_add(digits(fraction)? * grain)?;
    Some(Span { ns, grain })
}

impl Span {
    /// Returns the value in nanoseconds.
    pub(super) fn ns(self) -> u64 {
        self.ns
    }
}

/// Kind of a log's times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Moment,
    OfDay,
    /// True if they are those in parentheses.
    Relative(bool),
}

/// Clock that follows a log line by line.
#[derive(Debug)]
pub(super) struct Clock {
    choice: Choice,
    kind: Option<Kind>,
    /// Time of the previous line in nanoseconds, including the days that have passed.
    last: u64,
    /// Time of the midnights so far, in nanoseconds.
    days: u64,
    /// Resolution of the last digit of its times, in nanoseconds.
    pub(super) grain: u64,
}

/// Notes of a clock, one sentence each.
pub(super) const RELATIVE: &str = "times are read as relative to the previous line (`strace -r`) and added up; clock=absolute reads them as timestamps";
const EARLY: &str = "times are read as timestamps, though before 2001: `strace -ttt` writes seconds since 1970; clock=relative adds them up";
const COARSE: &str = "times are whole seconds or milliseconds, and so are the pauses between calls; `strace -ttt` writes microseconds";

impl Clock {
    pub(super) fn new(choice: Choice) -> Clock {
        Clock { choice, kind: None, last: 0, days: 0, grain: 1 }
    }

    /// Returns the time at which a line was written, in nanoseconds from a common origin, and a note the first time.
    ///
    /// # Errors
    /// If a time has a different kind than earlier ones, goes back, or is too coarse to add up.
    pub(super) fn at(&mut self, stamp: Stamp) -> Result<(u64, Option<&'static str>), Fault> {
        let (kind, note) = match self.kind {
            Some(kind) => (kind, None),
            None => self.first(stamp)?,
        };
        let of_kind = match kind {
            Kind::Moment => !stamp.of_day,
            Kind::OfDay => stamp.of_day,
            Kind::Relative(beside) => !stamp.of_day || beside,
        };
        if !of_kind {
            let help = "all lines of a log must have times of one kind, best those of `strace -ttt`; times=none replays without them";
            return Err(fault("the time is of a different kind than earlier ones", help));
        }
        let at = match kind {
            Kind::Relative(beside) => {
                let span = if beside { stamp.since } else { Some(stamp.time) };
                span.and_then(|span| self.last.checked_add(span.ns))
            }
            Kind::Moment => Some(stamp.time.ns),
            Kind::OfDay => {
                let mut at = self.days.checked_add(stamp.time.ns);
                if at.is_some_and(|at| at + DAY / 2 < self.last) {
                    self.days += DAY;
                    at = at.and_then(|at| at.checked_add(DAY));
                }
                at
            }
        };
        let at =
            at.ok_or_else(|| fault("the time is too large", "`strace -ttt` writes seconds since 1970"))?;
        if at < self.last {
            let help = match kind {
                Kind::Moment if self.choice == Choice::Auto && self.last < SINCE_1970 => {
                    "if times are relative to the previous line (`strace -r`), set clock=relative; times=none replays without times"
                }
                _ => {
                    "lines of a log must be in order of time: `strace-log-merge` merges those of `strace -ff`; times=none replays without times"
                }
            };
            let back = (self.last - at) as f64 / SECOND as f64;
            return Err(fault(format!("the time goes back by {back} s"), help));
        }
        self.last = at;
        Ok((at, note))
    }

    /// Returns the kind of all times given by the first one.
    fn first(&mut self, stamp: Stamp) -> Result<(Kind, Option<&'static str>), Fault> {
        let Stamp { time, of_day, padded, since } = stamp;
        let looks_relative = !of_day && time.ns < SINCE_1970 && (padded || time.ns == 0);
        let (kind, grain) = match (self.choice, since) {
            (Choice::Absolute, _) => (None, time.grain),
            (Choice::Relative, Some(since)) => (Some(Kind::Relative(true)), since.grain),
            (Choice::Relative, None) if of_day => {
                let help = "times of day are timestamps: leave out clock=relative";
                return Err(fault("the time is a time of day, not relative to the previous line", help));
            }
            (Choice::Relative, None) => (Some(Kind::Relative(false)), time.grain),
            // With both, the timestamp is used unless the other is finer.
            (Choice::Auto, Some(since)) if time.grain > since.grain => {
                (Some(Kind::Relative(true)), since.grain)
            }
            (Choice::Auto, None) if looks_relative => (Some(Kind::Relative(false)), time.grain),
            (Choice::Auto, _) => (None, time.grain),
        };
        if kind.is_some() && grain > 1_000 {
            let help = "each is truncated after its last digit: `strace -r` or `-ttt` writes microseconds; times=none replays without times";
            return Err(fault("times relative to the previous line are too coarse to add up", help));
        }
        let kind = kind.unwrap_or(if of_day { Kind::OfDay } else { Kind::Moment });
        let note = match kind {
            Kind::Relative(_) => Some(RELATIVE),
            _ if grain > 1_000 => Some(COARSE),
            Kind::Moment if time.ns < SINCE_1970 && self.choice == Choice::Auto => Some(EARLY),
            _ => None,
        };
        (self.kind, self.grain) = (Some(kind), grain);
        Ok((kind, note))
    }
}

fn fault(what: impl Into<String>, help: &'static str) -> Fault {
    Fault { what: what.into(), at: 0, help, word: None }
}
