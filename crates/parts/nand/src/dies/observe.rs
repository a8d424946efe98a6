//! Looking on at the back end: which operation occupied which die and which channel, when, and which stood in its way.

use super::Backend;
use super::op::{Class, NO_OP, Op, OpKind};
use engine::Time;
use proto::{ByHolder, Holder};

/// A command that has ended. It held its channel from `started` to `sent` and from `moved` to `ended`, and its die from
/// `started` to `ended`; the array worked from `sent` to `worked`, suspensions
/// included, and of a read that was retried all steps but the last transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tenure {
    /// What the die did.
    pub kind: OpKind,
    /// On whose behalf.
    pub class: Class,
    /// Die.
    pub die: u32,
    /// Its channel.
    pub channel: u32,
    /// Planes that worked.
    pub planes: u32,
    /// Map units.
    pub units: u32,
    /// How often it was suspended.
    pub suspends: u8,
    /// The command began to enter the die.
    pub started: Time,
    /// The command, and the data of a program, had entered the die.
    pub sent: Time,
    /// The array had finished.
    pub worked: Time,
    /// The data of a read began to leave; `ended` if there is none.
    pub moved: Time,
    /// Everything was done.
    pub ended: Time,
}

/// Looks on at every command that ends.
///
/// An observer cannot schedule anything: a result is the same bit for bit with it and without.
pub trait Observer {
    /// A command has ended.
    fn ended(&mut self, tenure: &Tenure);
}

impl Backend {
    /// Tells the observer of a command that ends now; `first` is the first of its operations.
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

// Who was in the way of an operation: a log of who held each die, each plane that reads by itself, and each channel, from when to when.
//
// A log goes back to the oldest command that is still under way, so that of any wait it is known to the picosecond who held what was
// waited for. While a run goes on only the logs are kept, an entry a command at most, and less where one holder follows another of its
// kind; who was in the way is worked out of those that somebody asks about.

/// Who an operation of a class is to those that wait behind it.
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

/// A time during which something was held by one kind of holder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    from: Time,
    to: Time,
    by: Holder,
}

/// Who held one thing, in order of time.
#[derive(Clone, Debug, Default)]
struct Log {
    spans: Vec<Span>,
    /// It is looked through for what nobody needs when it has so many spans.
    limit: usize,
}

/// Spans of a log that are not looked through.
const SHORT: usize = 64;

impl Log {
    fn new() -> Log {
        Log { spans: Vec::new(), limit: SHORT }
    }

    /// Something was held, or will be; never while it is held by another. Whether the log has become long.
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

    /// Forgets what ended before.
    fn forget(&mut self, before: Time) {
        let over = self.spans.partition_point(|span| span.to <= before);
        self.spans.drain(..over);
        self.limit = SHORT.max(2 * self.spans.len());
    }

    /// What lies between two times, the latest first.
    fn between(&self, from: Time, to: Time) -> impl Iterator<Item = Span> + '_ {
        let latest = self.spans.iter().rev().copied().skip_while(move |span| span.from >= to);
        latest.take_while(move |span| span.to > from)
    }
}

/// The logs of a back end.
#[derive(Debug)]
pub struct Holders {
    /// By unit: the dies, and behind them the planes that read independently.
    units: Vec<Log>,
    channels: Vec<Log>,
    /// A log has become long.
    is_long: bool,
}

/// Whose wait it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waited {
    /// The die, and the plane of it.
    die: u32,
    plane: u8,
    /// Whether a plane serves it that reads by itself.
    by_plane: bool,
    queued: Time,
    started: Time,
    sensed: Time,
    moved: Time,
}

impl Waited {
    /// The die.
    pub const fn die(&self) -> u32 {
        self.die
    }

    /// When its command began to enter the die.
    pub const fn started(&self) -> Time {
        self.started
    }
}

impl Backend {
    /// Keeps account of who is in the way of whom. It costs time and memory, and changes no result.
    pub fn keep_holders(&mut self) {
        self.holders = Some(Box::new(Holders {
            units: vec![Log::new(); self.dies.len()],
            channels: vec![Log::new(); self.channels.len()],
            is_long: false,
        }));
    }

    /// A unit has been held by a command since `from`, and is no longer. It is logged if somebody waits: who comes later has not waited for it.
    #[inline]
    pub(super) fn was_held(&mut self, unit: u32, class: Class, from: Time, now: Time) {
        if let Some(holders) = &mut self.holders
            && (self.reading_planes > 0 || self.queues.waiting(unit) != 0)
        {
            holders.is_long |= holders.units[unit as usize].add(holder(class), from, now);
        }
    }

    /// Somebody is about to ask for a channel. What is left of its tenure is logged, unless it was when somebody asked before.
    #[inline]
    pub(super) fn asks_for_channel(&mut self, channel: u32, now: Time) {
        let c = &self.channels[channel as usize];
        if now < c.busy_until && !c.is_wanted() {
            self.is_held_while_wanted(channel, now);
        }
    }

    /// Somebody waits for a channel that is held from now until it becomes free.
    pub(super) fn is_held_while_wanted(&mut self, channel: u32, now: Time) {
        let c = &self.channels[channel as usize];
        if let Some(holders) = &mut self.holders {
            holders.is_long |= holders.channels[channel as usize].add(holder(c.tenant), now, c.busy_until);
        }
    }

    /// Whether a log has become long: it is to be told what may be forgotten.
    #[inline]
    pub fn remembers_much(&self) -> bool {
        self.holders.as_ref().is_some_and(|holders| holders.is_long)
    }

    /// Nobody will ask about anything before a time.
    pub fn forget(&mut self, before: Time) {
        if let Some(holders) = &mut self.holders {
            holders.is_long = false;
            holders.units.iter_mut().chain(&mut holders.channels).for_each(|log| log.forget(before));
        }
    }

    /// The waits of an operation, for [`Backend::in_the_way`] later.
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

    /// Who was in the way of an operation: of its command at its die, and of its data at the channel. Each sums to the wait, if nothing that
    /// it takes was forgotten; nothing if nothing is kept.
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
        // The latest first, as a log has them.
        spans.sort_by_key(|span| std::cmp::Reverse(span.to));
        Some((shares(spans.into_iter(), op.queued, op.started), at_channel))
    }
}

/// Who held what between two times, from spans of which the one that ends last comes first. What is held twice counts for who held it longer, and
/// the rest for nobody.
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
