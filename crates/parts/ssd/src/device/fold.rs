//! Folding in time: jobs like those of garbage collection move the contents of the SLC cache to ordinary units.
//!
//! While the host is idle, groups fold down to what the policy keeps; a fold under way when the next command arrives is
//! completed. In the foreground, a group folds when its cache has little room left. A group short of ordinary units
//! first folds those that its cache has taken. It collects garbage before it folds units kept for the cache, which gain
//! no ordinary unit.

use super::{Device, Event, Out};
use engine::{Cx, Time};
use proto::Slot;

/// Policy for folding the SLC cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoldPolicy {
    /// Idle time, without a host command, after which background folding begins; `None`: never.
    pub idle: Option<Time>,
    /// Units of a group that background folding leaves in the cache.
    pub keep: u32,
    /// Foreground folding begins when a group may open only this many more units, or fewer; `None`: never.
    pub foreground: Option<u32>,
}

/// Fold policy and its timer.
pub(super) struct Folding {
    policy: FoldPolicy,
    /// End of the last command before the idle period.
    since: Time,
    /// True if an event of the timer is scheduled.
    waits: bool,
}

/// Traffic of the cache in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcCounters {
    /// Host map units assigned to the cache.
    pub hits: u64,
    /// Host map units assigned to ordinary units.
    pub misses: u64,
    /// Folds begun: reclaim units of the cache.
    pub folds: u64,
    /// Map units programmed elsewhere by folds.
    pub folded: u64,
    /// Host programs that found the cache full and waited for a fold.
    pub stalls: u64,
}
engine::snapshot!(SlcCounters { hits, misses, folds, folded, stalls });

impl Folding {
    pub(super) fn new(policy: FoldPolicy) -> Folding {
        Folding { policy, since: Time::ZERO, waits: false }
    }

    /// Returns true if no event of the timer is scheduled.
    pub(super) fn is_idle(&self) -> bool {
        !self.waits
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        engine::Snapshot::save(&self.since, out);
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.since = engine::Snapshot::load(input)?;
        Some(())
    }
}

impl Device {
    /// Begins an idle period: the last command inside has ended.
    #[cold]
    pub(super) fn begins_rest(&mut self, cx: &mut impl Cx<Event, Out>) {
        let Some(folding) = &mut self.folding else { return };
        folding.since = cx.now();
        if let Some(idle) = folding.policy.idle
            && !folding.waits
        {
            folding.waits = true;
            cx.after(idle, Event::Rested(0));
        }
    }

    /// Begins background folding if the host has been idle long enough.
    pub(super) fn rested(&mut self, cx: &mut impl Cx<Event, Out>) {
        let Some(folding) = &mut self.folding else { return };
        folding.waits = false;
        let Some(idle) = folding.policy.idle else { return };
        if !self.active.is_empty() {
            // The end of the last of them begins a new idle period.
            return;
        }
        let passed = cx.now() - folding.since;
        if passed < idle {
            folding.waits = true;
            cx.after(idle - passed, Event::Rested(0));
            return;
        }
        for group in 0..self.ftl.geo.groups {
            self.fold(group, cx);
        }
    }

    fn wants_fold(&self, group: u32, now: Time) -> bool {
        let Some(Folding { policy, since, .. }) = self.folding.as_deref() else { return false };
        let (_, closed) = self.ftl.slc_units(group);
        // Moved data opens at most one unit; garbage collection itself needs one.
        let has_space = self.ftl.slc_is_over(group) || self.ftl.free(group) > self.ftl.thresholds.hard;
        let rests = || self.active.is_empty() && policy.idle.is_some_and(|idle| now - *since >= idle);
        let is_short = || policy.foreground.is_some_and(|left| self.ftl.slc_left(group) <= left);
        closed > 0 && has_space && (is_short() || (closed > policy.keep && rests()))
    }

    /// Starts to fold a unit of a group, if wanted and if the group is not being reclaimed.
    #[cold]
    pub(super) fn fold(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        if self.jobs[group as usize].is_none() && self.wants_fold(group, cx.now()) {
            self.start_fold(group, cx);
        }
    }

    /// Starts to fold the oldest unit of a group. Returns true if there was one.
    pub(super) fn start_fold(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let Some(ru) = self.ftl.pick_fold(group) else { return false };
        self.stats.slc.folds += 1;
        self.run_job(group, ru, false, cx);
        true
    }

    /// Counts a program unit of host data given out in a group, or refused.
    #[inline]
    pub(super) fn counts_cached(&mut self, group: u32, at: Option<Slot>, units: u32) {
        if self.folding.is_some() {
            self.count_cached(group, at, units);
        }
    }

    #[cold]
    fn count_cached(&mut self, group: u32, at: Option<Slot>, units: u32) {
        match at {
            Some(slot) if self.ftl.is_slc(slot) => self.stats.slc.hits += u64::from(units),
            Some(_) => self.stats.slc.misses += u64::from(units),
            None => self.stats.slc.stalls += u64::from(self.ftl.waits_for_fold(group)),
        }
    }

    /// Traffic of the cache in the window, and its reclaim units in use; `None` without an SLC cache.
    pub fn slc(&self) -> Option<(SlcCounters, u64)> {
        self.folding.as_ref()?;
        let units = (0..self.ftl.geo.groups).map(|group| u64::from(self.ftl.slc_units(group).0)).sum();
        Some((self.stats.slc, units))
    }
}
