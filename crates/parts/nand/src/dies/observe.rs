//! Observation of the back end: which operation occupied which die and channel at what time, and which operations
//! blocked it.

use super::Backend;
use super::op::{Class, NO_OP, Op, OpKind};
use engine::Time;
use proto::{ByHolder, Holder};

/// Command that has ended. It held its channel from `started` to `sent` and from `moved` to `ended`, and its die from
/// `started` to `ended`. The array worked from `sent` to `worked`, including suspensions and, for a retried read, all
/// steps but the last transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenure {
    /// Kind of operation.
    pub kind: OpKind,
    /// Class: on whose behalf.
    pub class: Class,
    /// Die.
    pub die: u32,
    /// Channel of the die.
    pub channel: u32,
    /// Number of planes that worked.
    pub planes: u32,
    /// Number of map units.
    pub units: u32,
    /// Number of suspends.
    pub suspends: u8,
    /// Time when the command began to enter the die.
    pub started: Time,
    /// Time when the command, and the data of a program, had entered the die.
    pub sent: Time,
    /// Time when the array had finished.
    pub worked: Time,
    /// Time when the data of a read began to leave; `ended` without such data.
    pub moved: Time,
    /// Time when everything was done.
    pub ended: Time,
}

/// Observer of every command that ends.
///
/// An observer cannot schedule anything: results are bit-identical with and without it.
pub trait Observer {
    /// Observes a command that has ended.
    fn ended(&mut self, tenure: &Tenure);
}

impl Backend {
    /// Notifies the observer of a command that ends now; `first` is the first of its operations.
    #[cold]
    pub(super) fn show(&mut self, first: u32, now: Time) {
        let Op { kind, class, die, suspends, started, sensed, moved, .. } = self.ops[first];
        let (mut sent, mut planes, mut units) = (started, 0, 0);
        let mut at = first;
        while at != NO_OP {
            let op = &self.ops[at];
            if !op.has_joined {
                sent += self.timing.command(op);
                planes += self.alike.planes;
            }
            units += u32::from(op.units) * self.alike.planes;
            at = self.after(at);
        }
        let hands_out = kind == OpKind::Read && self.hands_out(first);
        let (worked, moved) = if hands_out { (sensed, moved) } else { (now, now) };
        let channel = self.dies[die as usize].channel;
        let tenure = Tenure {
            kind,
            class,
            die,
            channel,
            planes,
            units,
            suspends,
            started,
            sent,
            worked,
            moved,
            ended: now,
        };
        if let Some(observer) = &mut self.observer {
            observer.ended(&tenure);
        }
    }
}

// Blocking: a log of the holders of each die, each independently reading plane, and each channel, with their times.
//
// A log goes back to the oldest command still in flight, so that the holders during any wait are known to the
// picosecond. A run keeps only the logs, at most one entry per command, and fewer if one holder follows another of its
// kind; blocking is computed only for the operations that are queried.

/// Returns the holder as which an operation of a class appears to waiters behind it.
fn holder(class: Class) -> Holder {
    match class {
        Class::UrgentRead | Class::HighRead | Class::HostRead | Class::LowRead => Holder::HostRead,
        Class::AheadRead => Holder::LookAhead,
        Class::HostProgram => Holder::HostProgram,
        Class::MapRead | Class::MapProgram => Holder::Mapping,
        Class::GcRead => Holder::CollectionRead,
        Class::GcProgram => Holder::CollectionProgram,
        Class::Erase => Holder::Erase,
    }
}

/// Time span during which one kind of holder held a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    from: Time,
    to: Time,
    by: Holder,
}

/// Holders of one resource, in order of time.
#[derive(Clone, Debug, Default)]
struct Log {
    spans: Vec<Span>,
    /// Number of spans at which the log is trimmed.
    limit: usize,
}

/// Number of spans below which a log is not trimmed.
const SHORT: usize = 64;

impl Log {
    fn new() -> Log {
        Log { spans: Vec::new(), limit: SHORT }
    }

    /// Adds a past or future span; spans must not overlap. Returns whether the log has become long.
    #[inline]
    fn add(&mut self, by: Holder, from: Time, to: Time) -> bool {
        match self.spans.last_mut() {
            Some(last) if last.by == by && last.to == from => {
                last.to = to;
                false
            }
            _ => {
                self.spans.push(Span { from, to, by });
                self.spans.len() == self.limit
            }
        }
    }

    /// Drops spans that ended before a time.
    fn forget(&mut self, before: Time) {
        let over = self.spans.partition_point(|span| span.to <= before);
        self.spans.drain(..over);
        self.limit = SHORT.max(2 * self.spans.len());
    }

    /// Iterates over the spans between two times, the latest first.
    fn between(&self, from: Time, to: Time) -> impl Iterator<Item = Span> + '_ {
        let latest = self.spans.iter().rev().copied().skip_while(move |span| span.from >= to);
        latest.take_while(move |span| span.to > from)
    }
}

/// Logs of a back end.
#[derive(Debug)]
pub struct Holders {
    /// Logs by unit: the dies, followed by the planes that read independently.
    units: Vec<Log>,
    channels: Vec<Log>,
    /// True if a log has become long.
    is_long: bool,
}

/// Operation whose wait is queried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited {
    /// Die; its plane follows.
    die: u32,
    plane: u8,
    /// True if an independently reading plane serves the operation.
    by_plane: bool,
    queued: Time,
    started: Time,
    sensed: Time,
    moved: Time,
}

impl Waited {
    /// Returns the die.
    pub const fn die(&self) -> u32 {
        self.die
    }

    /// Returns the time when the command began to enter the die.
    pub const fn started(&self) -> Time {
        self.started
    }
}

impl Backend {
    /// Enables the log of holders. It costs time and memory, and changes no result.
    pub fn keep_holders(&mut self) {
        self.holders = Some(Box::new(Holders {
            units: vec![Log::new(); self.dies.len()],
            channels: vec![Log::new(); self.channels.len()],
            is_long: false,
        }));
    }

    /// Logs a command that held a unit since `from` and no longer does. It is logged only if something waits: later
    /// arrivals have not waited for it.
    #[inline]
    pub(super) fn was_held(&mut self, unit: u32, class: Class, from: Time, now: Time) {
        if let Some(holders) = &mut self.holders
            && (self.reading_planes > 0 || self.queues.waiting(unit) != 0)
        {
            holders.is_long |= holders.units[unit as usize].add(holder(class), from, now);
        }
    }

    /// Logs the rest of a channel's tenure before a new request, unless an earlier request has logged it.
    #[inline]
    pub(super) fn asks_for_channel(&mut self, channel: u32, now: Time) {
        let c = &self.channels[channel as usize];
        if now < c.busy_until && !c.is_wanted() {
            self.is_held_while_wanted(channel, now);
        }
    }

    /// Logs a channel that is held from now until it becomes free, while something waits.
    pub(super) fn is_held_while_wanted(&mut self, channel: u32, now: Time) {
        let c = &self.channels[channel as usize];
        if let Some(holders) = &mut self.holders {
            holders.is_long |= holders.channels[channel as usize].add(holder(c.tenant), now, c.busy_until);
        }
    }

    /// Returns whether a log has become long and should be trimmed.
    #[inline]
    pub fn remembers_much(&self) -> bool {
        self.holders.as_ref().is_some_and(|holders| holders.is_long)
    }

    /// Drops everything before a time: nothing earlier will be queried.
    pub fn forget(&mut self, before: Time) {
        if let Some(holders) = &mut self.holders {
            holders.is_long = false;
            holders.units.iter_mut().chain(&mut holders.channels).for_each(|log| log.forget(before));
        }
    }

    /// Returns the waits of an operation, for a later call of [`Backend::in_the_way`].
    pub fn waited(&self, op: &Op) -> Waited {
        Waited {
            die: op.die,
            plane: op.plane,
            by_plane: self.reading_planes > 0 && op.class.is_plane_read(),
            queued: op.queued,
            started: op.started,
            sensed: op.sensed,
            moved: op.moved,
        }
    }

    /// Returns the holders that blocked an operation: its command at its die, and its data at the channel. Each sums to
    /// the wait, provided that nothing needed was dropped; `None` if no log is kept.
    pub fn in_the_way(&self, op: &Waited) -> Option<(ByHolder, ByHolder)> {
        let holders = self.holders.as_deref()?;
        let channel = self.dies[op.die as usize].channel;
        let planes = self.reading_planes;
        let first = self.die_count + op.die * planes;
        let at_channel =
            shares(holders.channels[channel as usize].between(op.sensed, op.moved), op.sensed, op.moved);
        let (own, others) = match (planes, op.by_plane) {
            (0, _) => {
                let log = &holders.units[op.die as usize];
                return Some((shares(log.between(op.queued, op.started), op.queued, op.started), at_channel));
            }
            (_, true) => (first + u32::from(op.plane), op.die..op.die + 1),
            (_, false) => (op.die, first..first + planes),
        };
        let logs = std::iter::once(own).chain(others).map(|unit| &holders.units[unit as usize]);
        let mut spans: Vec<Span> = logs.flat_map(|log| log.between(op.queued, op.started)).collect();
        // The latest first, as in a log.
        spans.sort_by_key(|span| std::cmp::Reverse(span.to));
        Some((shares(spans.into_iter(), op.queued, op.started), at_channel))
    }
}

/// Returns the holders between two times, from spans in descending order of their ends. Doubly held time counts for the
/// longer holder, and the rest for no holder.
fn shares(spans: impl Iterator<Item = Span>, from: Time, to: Time) -> ByHolder {
    let mut by = [0; Holder::COUNT];
    if to <= from {
        return by;
    }
    // Everything from here on has been counted.
    let mut counted = to;
    for span in spans {
        let start = span.from.max(from);
        by[span.by as usize] += span.to.min(counted).since(start).ps();
        counted = counted.min(start);
    }
    let held: u64 = by.iter().sum();
    by[Holder::Nobody as usize] = (to - from).ps() - held;
    by
}

#[cfg(test)]
mod tests {
    use super::{Log, SHORT, Span, shares};
    use engine::Time;
    use proto::Holder;

    const NS: fn(u64) -> Time = Time::from_ns;

    #[test]
    fn neighbours_of_a_kind_are_one_span_and_gaps_are_nobodys() {
        let mut log = Log::new();
        log.add(Holder::HostRead, NS(0), NS(10));
        log.add(Holder::HostRead, NS(10), NS(20));
        log.add(Holder::Erase, NS(25), NS(40));
        assert_eq!(log.spans.len(), 2);
        let by = shares(log.between(NS(15), NS(30)), NS(15), NS(30));
        assert_eq!(by[Holder::HostRead as usize], 5000);
        assert_eq!(by[Holder::Erase as usize], 5000);
        assert_eq!(by[Holder::Nobody as usize], 5000);
        assert_eq!(shares(log.between(NS(30), NS(30)), NS(30), NS(30)), [0; Holder::COUNT]);
    }

    #[test]
    fn what_is_held_twice_counts_once() {
        let span = |by, from, to| Span { from: NS(from), to: NS(to), by };
        let spans = [span(Holder::Mapping, 5, 15), span(Holder::Erase, 6, 12), span(Holder::HostRead, 0, 10)];
        let by = shares(spans.into_iter(), NS(0), NS(20));
        assert_eq!((by[Holder::HostRead as usize], by[Holder::Mapping as usize]), (5000, 10_000));
        assert_eq!((by[Holder::Erase as usize], by.iter().sum::<u64>()), (0, 20_000));
    }

    #[test]
    fn a_log_grows_only_as_far_as_somebody_may_ask() {
        let mut log = Log::new();
        let kinds = [Holder::HostRead, Holder::HostProgram];
        for n in 0..100_000u64 {
            if log.add(kinds[n as usize % 2], NS(n), NS(n + 1)) {
                log.forget(NS(n.saturating_sub(100)));
            }
        }
        assert!(log.spans.len() <= 2 * (101 + SHORT), "{}", log.spans.len());
        let by = shares(log.between(NS(99_950), NS(100_000)), NS(99_950), NS(100_000));
        assert_eq!((by[0], by[1]), (25_000, 25_000));
    }
}
