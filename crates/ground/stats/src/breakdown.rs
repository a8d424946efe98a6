//! Latency breakdown: the life of a task, tiled by milestones.

use engine::{Snapshot, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::fmt;

/// Life of a task so far: for each of `N` milestones, the time spent waiting for it.
///
/// A milestone names the wait that has just ended. Each instant of the life belongs to the milestone that ends the
/// wait, so the parts sum to the latency if a milestone is reached at the very end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milestones<const N: usize> {
    start: Time,
    last: Time,
    parts: [u64; N],
}

impl<const N: usize> Milestones<N> {
    /// Creates a task that arrives at `now`.
    pub const fn new(now: Time) -> Milestones<N> {
        Milestones { start: now, last: now, parts: [0; N] }
    }

    /// Ends the wait for `milestone`, an index below `N`; a milestone may be reached many times.
    #[inline]
    pub fn reach(&mut self, milestone: usize, now: Time) {
        debug_assert!(now >= self.last, "milestone at {now}, after {}", self.last);
        self.parts[milestone] += now.since(self.last).ps();
        self.last = now;
    }

    /// Returns the arrival time.
    pub const fn start(&self) -> Time {
        self.start
    }

    /// Returns the time of the latest milestone.
    pub const fn last(&self) -> Time {
        self.last
    }

    /// Returns the time waited for `milestone` so far.
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
    /// Wide sums, without the most recent tasks.
    sums: [u128; N],
    total: u128,
    /// Sums over the most recent tasks, narrow because every task adds to them.
    recent: [u64; N],
    recent_total: u64,
    tasks: u64,
    untiled: Option<Untiled>,
}

/// Size at which recent sums move to the wide ones, far from overflow.
const RECENT_LIMIT: u64 = 1 << 60;

/// Tasks whose milestones do not sum to their latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untiled {
    /// Arrival time of the first such task.
    pub start: Time,
    /// Latency of that task.
    pub total: Time,
    /// Sum of that task's milestones.
    pub parts: Time,
    /// Number of such tasks.
    pub tasks: u64,
}

engine::snapshot!(Untiled { start, total, parts, tasks });

impl fmt::Display for Untiled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "milestones of {} tasks do not sum to the latency; the first task arrived at {}, took {} and sums to {}",
            self.tasks, self.start, self.total, self.parts
        )
    }
}

impl std::error::Error for Untiled {}

impl<const N: usize> Breakdown<N> {
    /// Creates an empty breakdown over the named milestones.
    pub const fn new(names: [&'static str; N]) -> Breakdown<N> {
        Breakdown { names, sums: [0; N], total: 0, recent: [0; N], recent_total: 0, tasks: 0, untiled: None }
    }

    /// Records a task that finishes at `now`.
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
        assert_eq!(self.names, other.names, "cannot merge breakdowns over different milestones");
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

    /// Clears all tasks, at the end of warm-up.
    pub fn clear(&mut self) {
        *self = Breakdown::new(self.names);
    }

    /// Appends the recorded sums, without the names.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Breakdown { names: _, sums, total, recent, recent_total, tasks, untiled } = self;
        sums.save(out);
        total.save(out);
        recent.save(out);
        recent_total.save(out);
        tasks.save(out);
        untiled.save(out);
    }

    /// Restores the sums saved by a breakdown over the same milestones; `None` if they are truncated or malformed.
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

    /// Returns the number of finished tasks.
    pub const fn tasks(&self) -> u64 {
        self.tasks
    }

    /// Returns the sum of the latencies of all finished tasks, in picoseconds.
    pub const fn total_ps(&self) -> u128 {
        self.total + self.recent_total as u128
    }

    /// Returns the time before one milestone, summed over all finished tasks, in picoseconds.
    pub const fn sum_ps(&self, milestone: usize) -> u128 {
        self.sums[milestone] + self.recent[milestone] as u128
    }

    /// Returns the name and the mean in nanoseconds of every milestone; zeros if no task has finished.
    pub fn means_ns(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let tasks = self.tasks.max(1) as f64;
        self.names.iter().enumerate().map(move |(m, &name)| (name, self.sum_ps(m) as f64 / tasks / 1e3))
    }

    /// Checks that the milestones of every task summed to its latency.
    ///
    /// # Errors
    /// The first task for which they did not, and the number of such tasks.
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
