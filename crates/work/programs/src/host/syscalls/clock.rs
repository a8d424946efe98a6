//! The clock of a log: what the times of its lines are.
//!
//! strace writes a moment (`-ttt` seconds since 1970, `-tt` and `-t` the time of day) or the time since the line before (`-r`),
//! or both, then that time in parentheses. It pads times of `-r` to six places before the point, and no others.

use super::Fault;

/// A second, in nanoseconds.
const SECOND: u64 = 1_000_000_000;
/// A day, in nanoseconds.
const DAY: u64 = 24 * 3_600 * SECOND;
/// Times since 1970 are above this: 2001-09-09.
const SINCE_1970: u64 = 1_000_000_000 * SECOND;

/// What the user says of the times of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Choice {
    /// They tell themselves.
    Auto,
    /// Each is the time since the line before.
    Relative,
    /// Each is a moment.
    Absolute,
}

/// A time without its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Span {
    /// In nanoseconds.
    ns: u64,
    /// What the last digit stands for, in nanoseconds.
    grain: u64,
}

/// The time of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stamp {
    time: Span,
    /// Written as hours, minutes and seconds.
    of_day: bool,
    /// Written with more spaces in front than a moment has.
    padded: bool,
    /// The time since the line before, if the line has it as well.
    since: Option<Span>,
}

impl Stamp {
    /// Reads a word that is a time; `padded` if more spaces are in front of it than of a moment.
    pub(super) fn read(word: &[u8], padded: bool) -> Option<Stamp> {
        let stamp = |time, of_day| Stamp { time, of_day, padded, since: None };
        if let Some(time) = span(word) {
            return Some(stamp(time, false));
        }
        let mut parts = word.splitn(3, |b| *b == b':');
        let (hours, minutes) = (two_digits(parts.next()?, 24)?, two_digits(parts.next()?, 60)?);
        let seconds = parts.next()?;
        // A leap second is the sixtieth.
        two_digits(&seconds[..seconds.len().min(2)], 61)?;
        let Span { ns, grain } = span(seconds)?;
        Some(stamp(Span { ns: (hours * 60 + minutes) * 60 * SECOND + ns, grain }, true))
    }

    /// With the time since the line before, as it is in parentheses: `+     0.000012`.
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

/// Seconds, with up to nine digits behind the point.
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
    /// In nanoseconds.
    pub(super) fn ns(self) -> u64 {
        self.ns
    }
}

/// What the times of a log are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Moment,
    OfDay,
    /// True if they are those in parentheses.
    Relative(bool),
}

/// A clock that follows a log line by line.
#[derive(Debug)]
pub(super) struct Clock {
    choice: Choice,
    kind: Option<Kind>,
    /// The time of the line before, in nanoseconds, with the days that have passed.
    last: u64,
    /// Midnights so far, in nanoseconds.
    days: u64,
    /// What the last digit of its times stands for, in nanoseconds.
    pub(super) grain: u64,
}

/// What a clock has found, in a sentence.
pub(super) const RELATIVE: &str =
    "times are read as relative to the previous line (`strace -r`) and added up; clock=absolute reads them as timestamps";
const EARLY: &str = "times are read as timestamps, though before 2001: `strace -ttt` writes seconds since 1970; clock=relative adds them up";
const COARSE: &str = "times are whole seconds or milliseconds: pauses between calls are no more precise; `strace -ttt` writes microseconds";

impl Clock {
    pub(super) fn new(choice: Choice) -> Clock {
        Clock { choice, kind: None, last: 0, days: 0, grain: 1 }
    }

    /// When a line was written, in nanoseconds since the same moment for all lines, and a note the first time.
    ///
    /// # Errors
    /// A time of another kind than the one before, one that goes back, and one that is too coarse to be added up.
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

    /// What the first time of a log says of all.
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
            // Both are there: the moment counts, unless the other is finer.
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
