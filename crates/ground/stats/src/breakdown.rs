//! Where the latency went: the life of a task, tiled by milestones.

use engine::{Snapshot, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt;

/// One task's life so far: for each of `N` milestones, the time it waited for it.
///
/// A milestone says what the task has just stopped waiting for, so each instant of the life belongs to the
/// milestone that ends the wait, and the parts sum to the latency if a milestone is reached at the very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestones<const N: usize> {
    start: Time,
    last: Time,
    parts: [u64; N],
}

impl<const N: usize> Milestones<N> {
    /// A task that arrives at `now`.
    pub const fn new(now: Time) -> Milestones<N> {
        Milestones { start: now, last: now, parts: [0; N] }
    }

    /// The task stops waiting for `milestone`, an index below `N`; it may do so many times in its life.
    #[inline]
    pub fn reach(&mut self, milestone: usize, now: Time) {
        debug_assert!(now >= self.last, "milestone at {now}, after {}", self.last);
        self.parts[milestone] += now.since(self.last).ps();
        self.last = now;
    }

    /// When the task arrived.
    pub const fn start(&self) -> Time {
        self.start
    }

    /// When the latest milestone was reached.
    pub const fn last(&self) -> Time {
        self.last
    }

    /// The time so far waited for `milestone`.
    pub const fn part(&self, milestone: usize) -> Time {
        Time::from_ps(self.parts[milestone])
    }
}

/// Sums over finished tasks of the time spent before each of `N` named milestones.
///
/// Serialises as a map from milestone name to mean nanoseconds, in the order of the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakdown<const N: usize> {
    names: [&'static str; N],
    /// Wide sums, without the latest tasks.
    sums: [u128; N],
    total: u128,
    /// Sums over the latest tasks, narrow because they are added to once a task.
    recent: [u64; N],
    recent_total: u64,
    tasks: u64,
    untiled: Option<Untiled>,
}

/// Recent sums are taken over into the wide ones at this size, far from overflow.
const RECENT_LIMIT: u64 = 1 << 60;

/// A task whose milestones do not sum to its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untiled {
    /// When the first such task arrived.
    pub start: Time,
    /// Its latency.
    pub total: Time,
    /// What its milestones sum to.
    pub parts: Time,
    /// How many such tasks there were.
    pub tasks: u64,
}

engine::snapshot!(Untiled { start, total, parts, tasks });

impl fmt::Display for Untiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the milestones of {} tasks do not tile their life; the first arrived at {}, took {} and accounts for {}",
            self.tasks, self.start, self.total, self.parts
        )
    }
}

impl std::error::Error for Untiled {}

impl<const N: usize> Breakdown<N> {
    /// An empty breakdown over the named milestones.
    pub const fn new(names: [&'static str; N]) -> Breakdown<N> {
        Breakdown { names, sums: [0; N], total: 0, recent: [0; N], recent_total: 0, tasks: 0, untiled: None }
    }

    /// A task finishes at `now`.
    pub fn record(&mut self, task: &Milestones<N>, now: Time) {
        let total = now.since(task.start);
        let mut parts = 0;
        for (sum, part) in self.recent.iter_mut().zip(task.parts) {
            *sum += part;
            parts += part;
        }
        self.recent_total += total.ps();
        self.tasks += 1;
        if parts != total.ps() {
            self.note_untiled(task.start, total, Time::from_ps(parts));
        }
        if self.recent_total.max(parts) >= RECENT_LIMIT {
            self.take_over();
        }
    }

    /// Moves the recent sums into the wide ones.
    #[cold]
    fn take_over(&mut self) {
        for (sum, recent) in self.sums.iter_mut().zip(&mut self.recent) {
            *sum += u128::from(std::mem::take(recent));
        }
        self.total += u128::from(std::mem::take(&mut self.recent_total));
    }

    #[cold]
    fn note_untiled(&mut self, start: Time, total: Time, parts: Time) {
        self.untiled.get_or_insert(Untiled { start, total, parts, tasks: 0 }).tasks += 1;
    }

    /// Adds everything that `other` has recorded.
    ///
    /// # Panics
    /// If the milestones differ in name.
    pub fn merge(&mut self, other: &Breakdown<N>) {
        assert_eq!(self.names, other.names, "breakdowns over different milestones do not merge");
        self.take_over();
        for (milestone, sum) in self.sums.iter_mut().enumerate() {
            *sum += other.sum_ps(milestone);
        }
        self.total += other.total_ps();
        self.tasks += other.tasks;
        self.untiled = match (self.untiled, other.untiled) {
            (Some(a), Some(b)) => Some(Untiled { tasks: a.tasks + b.tasks, ..a }),
            (a, b) => a.or(b),
        };
    }

    /// Forgets every task: the end of warm-up.
    pub fn clear(&mut self) {
        *self = Breakdown::new(self.names);
    }

    /// Appends what was recorded; the names are not part of it.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Breakdown { names: _, sums, total, recent, recent_total, tasks, untiled } = self;
        sums.save(out);
        total.save(out);
        recent.save(out);
        recent_total.save(out);
        tasks.save(out);
        untiled.save(out);
    }

    /// Replaces what was recorded by what a breakdown over the same milestones saved; `None` if that is cut short or
    /// malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        *self = Breakdown {
            names: self.names,
            sums: Snapshot::load(input)?,
            total: Snapshot::load(input)?,
            recent: Snapshot::load(input)?,
            recent_total: Snapshot::load(input)?,
            tasks: Snapshot::load(input)?,
            untiled: Snapshot::load(input)?,
        };
        Some(())
    }

    /// Finished tasks.
    pub const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Sum of the latencies of all finished tasks, picoseconds.
    pub const fn total_ps(&self) -> u128 {
        self.total + self.recent_total as u128
    }

    /// Time before one milestone summed over all finished tasks, picoseconds.
    pub const fn sum_ps(&self, milestone: usize) -> u128 {
        self.sums[milestone] + self.recent[milestone] as u128
    }

    /// Name and mean in nanoseconds of every milestone; zeros if no task has finished.
    pub fn means_ns(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let tasks = self.tasks.max(1) as f64;
        self.names.iter().enumerate().map(move |(m, &name)| (name, self.sum_ps(m) as f64 / tasks / 1e3))
    }

    /// Whether the milestones of every task summed to its latency.
    ///
    /// # Errors
    /// The first task of which they did not, and how many there were.
    pub fn check(&self) -> Result<(), Untiled> {
        self.untiled.map_or(Ok(()), Err)
    }
}

impl<const N: usize> Serialize for Breakdown<N> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(N))?;
        for (name, mean) in self.means_ns() {
            map.serialize_entry(name, &mean)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{Breakdown, Milestones};
    use engine::Time;

    const NAMES: [&str; 3] = ["queue", "die", "channel"];

    fn ps(t: u64) -> Time {
        Time::from_ps(t)
    }

    #[test]
    fn parts_sum_to_the_latency() {
        let mut b = Breakdown::new(NAMES);
        let mut a = Milestones::new(ps(100));
        a.reach(0, ps(150));
        a.reach(1, ps(190));
        a.reach(0, ps(200));
        a.reach(2, ps(260));
        assert_eq!((a.part(0), a.part(1), a.part(2)), (ps(60), ps(40), ps(60)));
        b.record(&a, ps(260));
        let mut c = Milestones::new(ps(300));
        c.reach(1, ps(400));
        b.record(&c, ps(400));
        assert_eq!(b.check(), Ok(()));
        assert_eq!((b.tasks(), b.total_ps(), b.sum_ps(1)), (2, 260, 140));
        let means: Vec<_> = b.means_ns().collect();
        assert_eq!(means, [("queue", 0.03), ("die", 0.07), ("channel", 0.03)]);
    }

    #[test]
    fn time_without_a_milestone_is_found() {
        let mut b = Breakdown::new(NAMES);
        let mut a = Milestones::new(ps(10));
        a.reach(0, ps(20));
        b.record(&a, ps(25));
        b.record(&a, ps(26));
        let mut sum = Breakdown::new(NAMES);
        sum.merge(&b);
        let e = sum.check().unwrap_err();
        assert_eq!((e.start, e.total, e.parts, e.tasks), (ps(10), ps(15), ps(10), 2));
        sum.clear();
        assert_eq!(sum.check(), Ok(()));
    }
}
