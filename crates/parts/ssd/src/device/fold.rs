//! Folding in time: what a cache of one bit a cell holds is moved to ordinary units, by jobs like those of collection.
//!
//! While the host rests, groups fold down to what the policy keeps; a fold that has begun when the next command comes is finished.
//! In the foreground a group folds when its cache has little room left. A group that is short of ordinary units folds first what
//! its cache has taken of them; it collects before it folds what is kept for the cache, for that gains no ordinary unit.

use super::{Device, Event, Out};
use engine::{Cx, Time};
use proto::Slot;

/// When caches are folded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoldPolicy {
    /// Time without a command of the host after which folding begins in the background; `None`: never.
    pub idle: Option<Time>,
    /// Units of a group that it leaves in the cache then.
    pub keep: u32,
    /// Folding begins in the foreground when a group may open so many more units, or fewer; `None`: never.
    pub foreground: Option<u32>,
}

/// A policy, and what it waits for.
pub(super) struct Folding {
    policy: FoldPolicy,
    /// When the last command ended after which there was none.
    since: Time,
    /// An event of its own is on its way.
    waits: bool,
}

/// What went through the cache in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlcCounters {
    /// Map units of the host that were given to the cache.
    pub hits: u64,
    /// Map units of the host that were given to ordinary units.
    pub misses: u64,
    /// Folds that have begun: reclaim units of the cache.
    pub folds: u64,
    /// Map units that they have programmed elsewhere.
    pub folded: u64,
    /// Programs of the host that found the cache full and had to wait for a fold.
    pub stalls: u64,
}
engine::snapshot!(SlcCounters { hits, misses, folds, folded, stalls });

impl Folding {
    pub(super) fn new(policy: FoldPolicy) -> Folding {
        Folding { policy, since: Time::ZERO, waits: false }
    }

    /// Whether nothing of it will happen by itself.
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
    /// The last command inside has ended.
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

    /// The host may have rested for long enough.
    pub(super) fn rested(&mut self, cx: &mut impl Cx<Event, Out>) {
        let Some(folding) = &mut self.folding else { return };
        folding.waits = false;
        let Some(idle) = folding.policy.idle else { return };
        if !self.active.is_empty() {
            // The end of the last of them begins another rest.
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
        // What is moved opens one unit at most: collection needs one itself.
        let has_space = self.ftl.slc_is_over(group) || self.ftl.free(group) > self.ftl.thresholds.hard;
        let rests = || self.active.is_empty() && policy.idle.is_some_and(|idle| now - *since >= idle);
        let is_short = || policy.foreground.is_some_and(|left| self.ftl.slc_left(group) <= left);
        closed > 0 && has_space && (is_short() || (closed > policy.keep && rests()))
    }

    /// Starts to fold a unit of a group, if that is wanted and nothing is being reclaimed there.
    #[cold]
    pub(super) fn fold(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        if self.jobs[group as usize].is_none() && self.wants_fold(group, cx.now()) {
            self.start_fold(group, cx);
        }
    }

    /// Starts to fold the oldest unit of a group; whether there was one.
    pub(super) fn start_fold(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let Some(ru) = self.ftl.pick_fold(group) else { return false };
        self.stats.slc.folds += 1;
        self.run_job(group, ru, false, cx);
        true
    }

    /// Host data has been given a program unit in a group, or has found none.
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

    /// What went through the cache in the window, and the reclaim units that it has in use; `None` if there is none.
    pub fn slc(&self) -> Option<(SlcCounters, u64)> {
        self.folding.as_ref()?;
        let units = (0..self.ftl.geo.groups).map(|group| u64::from(self.ftl.slc_units(group).0)).sum();
        Some((self.stats.slc, units))
    }
}
