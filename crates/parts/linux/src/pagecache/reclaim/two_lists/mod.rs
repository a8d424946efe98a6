//! Two lists, active and inactive, and the distance of refaults.
//!
//! A page comes to the head of the inactive list. Its second access while it is there activates it (`folio_mark_accessed`); what comes to the tail
//! without one leaves (`shrink_inactive_list`). When the inactive list is short of the active one by the ratio of `inactive_is_low`, or pages
//! that return show that the working set changes, the tail of the active list is deactivated (`shrink_active_list`).
//!
//! A page that is reclaimed leaves the time of its eviction, counted in evictions and activations. If it returns within as many of these as there
//! are active pages, it could have stayed had it been active: it is activated at once (`workingset_refault`).

#[cfg(test)]
mod tests;

use super::{Core, DEF_PRIORITY, Fate, Reclaim, SWAP_CLUSTER_MAX, ScanControl, Tally, shrink_folio};
use crate::pagecache::folio::flag;
use crate::pagecache::index::Shadow;
use crate::pagecache::list::LruList;

/// Bits of an eviction's time that a shadow entry keeps, beside the bit of the working set.
const EVICTION_MASK: u64 = (1 << 30) - 1;

/// The policy.
#[derive(Debug)]
pub struct TwoLists {
    inactive: LruList,
    active: LruList,
    /// Evictions and activations (`nonresident_age`).
    age: u64,
    /// Refaults that were activated, and how many there were at the end of the last reclaim.
    activations: u64,
    activations_seen: u64,
}

impl Default for TwoLists {
    fn default() -> Self {
        TwoLists {
            inactive: LruList::EMPTY,
            active: LruList::EMPTY,
            age: 0,
            activations: 0,
            activations_seen: 0,
        }
    }
}

impl TwoLists {
    #[inline]
    fn list(&mut self, core: &Core, at: u32) -> &mut LruList {
        if core.folios.has(at, flag::ACTIVE) { &mut self.active } else { &mut self.inactive }
    }

    /// The page was reclaimed not long ago (`workingset_refault`).
    fn refault(&mut self, core: &mut Core, at: u32, shadow: Shadow) {
        let (evicted, workingset) = (u64::from(shadow.0 >> 1), shadow.0 & 1 == 1);
        let distance = self.age.wrapping_sub(evicted) & EVICTION_MASK;
        core.stats.refaults += 1;
        if distance > self.active.len() {
            return;
        }
        core.folios.set(at, flag::ACTIVE);
        self.age += 1;
        self.activations += 1;
        core.stats.refaults_activated += 1;
        if workingset {
            core.folios.set(at, flag::WORKINGSET);
            core.stats.refaults_restored += 1;
        }
    }

    /// The shadow entry of a folio that leaves (`workingset_eviction`).
    fn evict(&mut self, core: &Core, at: u32) -> Shadow {
        let evicted = (self.age & EVICTION_MASK) as u32;
        self.age += 1;
        Shadow(evicted << 1 | u32::from(core.folios.has(at, flag::WORKINGSET)))
    }

    /// `inactive_is_low`.
    fn inactive_is_low(&self) -> bool {
        let (inactive, active) = (self.inactive.len(), self.active.len());
        inactive * inactive_ratio(inactive + active) < active
    }

    /// `shrink_inactive_list`: at most 32 folios.
    fn shrink_inactive(&mut self, core: &mut Core, count: u64, control: &mut ScanControl, tally: &mut Tally) {
        let (mut batch, mut kept) =
            ([0; SWAP_CLUSTER_MAX as usize], [(0, Fate::Keep); SWAP_CLUSTER_MAX as usize]);
        let (mut held, before) = (0, *tally);
        let taken = self.inactive.take_tail(&mut core.folios, &mut batch[..count as usize]);
        core.prefetch(&batch[..taken]);
        for &at in &batch[..taken] {
            match shrink_folio(core, at, control, tally) {
                Fate::Free => {
                    let shadow = self.evict(core, at);
                    core.reclaim(at, shadow);
                    tally.freed += 1;
                }
                fate => {
                    kept[held] = (at, fate);
                    held += 1;
                }
            }
        }
        for &(at, fate) in &kept[..held] {
            if fate == Fate::Activate {
                core.folios.set(at, flag::ACTIVE);
                self.active.add(&mut core.folios, at);
                self.age += 1;
                tally.activated += 1;
            } else {
                self.inactive.add(&mut core.folios, at);
            }
        }
        let taken = taken as u64;
        tally.taken += taken;
        tally.wakes_flushers |= taken > 0 && tally.unqueued_dirty - before.unqueued_dirty == taken;
    }

    /// `shrink_active_list`. Pages of running programs, which it spares, are not modelled.
    fn shrink_active(&mut self, core: &mut Core, count: u64, tally: &mut Tally) {
        for _ in 0..count {
            let Some(at) = self.active.tail() else { return };
            self.active.remove(&mut core.folios, at);
            core.folios.clear(at, flag::ACTIVE | flag::YOUNG);
            core.folios.set(at, flag::WORKINGSET);
            self.inactive.add(&mut core.folios, at);
            tally.refilled += 1;
            core.stats.deactivated += 1;
        }
    }
}

/// How many active folios there should be for an inactive one, of so many (`inactive_is_low`).
pub(in crate::pagecache) fn inactive_ratio(folios: u64) -> u64 {
    let gb = folios >> (30 - 12);
    if gb > 0 { (10 * gb).isqrt() } else { 1 }
}

impl Reclaim for TwoLists {
    #[inline]
    fn add(&mut self, core: &mut Core, at: u32, shadow: Option<Shadow>, _fault: bool) {
        if let Some(shadow) = shadow {
            self.refault(core, at, shadow);
        }
        self.list(core, at).add(&mut core.folios, at);
    }

    #[inline]
    fn accessed(&mut self, core: &mut Core, at: u32) {
        let flags = core.folios.flags(at);
        if flags & flag::REFERENCED == 0 {
            core.folios.set(at, flag::REFERENCED);
        } else if flags & flag::ACTIVE == 0 {
            self.inactive.remove(&mut core.folios, at);
            core.folios.clear(at, flag::REFERENCED);
            core.folios.set(at, flag::ACTIVE);
            self.active.add(&mut core.folios, at);
            self.age += 1;
            core.stats.activated += 1;
        }
    }

    fn remove(&mut self, core: &mut Core, at: u32) {
        self.list(core, at).remove(&mut core.folios, at);
    }

    fn rotate(&mut self, core: &mut Core, at: u32) {
        self.list(core, at).remove(&mut core.folios, at);
        core.folios.clear(at, flag::ACTIVE);
        self.inactive.add_tail(&mut core.folios, at);
    }

    fn deactivate(&mut self, core: &mut Core, at: u32) {
        self.list(core, at).remove(&mut core.folios, at);
        core.stats.deactivated += u64::from(core.folios.has(at, flag::ACTIVE));
        core.folios.clear(at, flag::ACTIVE | flag::REFERENCED);
        if core.folios.has(at, flag::DIRTY | flag::WRITEBACK) {
            core.folios.set(at, flag::RECLAIM);
            self.inactive.add(&mut core.folios, at);
        } else {
            self.inactive.add_tail(&mut core.folios, at);
        }
    }

    fn age(&mut self, _core: &mut Core, _control: &mut ScanControl) {}

    /// `shrink_lruvec` with `prepare_scan_count` and `get_scan_count`, where all that can be scanned are files.
    fn shrink(&mut self, core: &mut Core, control: &mut ScanControl, tally: &mut Tally) {
        let may_deactivate =
            control.force_deactivate || self.activations != self.activations_seen || self.inactive_is_low();
        let mut inactive = self.inactive.len() >> control.priority;
        let mut active = self.active.len() >> control.priority;
        // A task that reclaims at the first priority takes the chance to do a batch of work.
        let to_the_end = !control.kswapd && control.priority == DEF_PRIORITY;
        let before = tally.freed;
        while inactive > 0 || active > 0 {
            let (some, others) = (inactive.min(SWAP_CLUSTER_MAX), active.min(SWAP_CLUSTER_MAX));
            (inactive, active) = (inactive - some, active - others);
            self.shrink_inactive(core, some, control, tally);
            if others > 0 && may_deactivate {
                self.shrink_active(core, others, tally);
            }
            control.skipped_deactivate |= others > 0 && !may_deactivate;
            if tally.freed - before >= control.nr_to_reclaim && !to_the_end {
                break;
            }
        }
    }

    fn end(&mut self) {
        self.activations_seen = self.activations;
    }

    fn active(&self) -> u64 {
        self.active.len()
    }

    fn is_active(&self, core: &Core, at: u32) -> bool {
        core.folios.has(at, flag::ACTIVE)
    }

    fn lists(&self, core: &Core) -> Vec<Vec<u32>> {
        [&self.inactive, &self.active].map(|list| list.iter(&core.folios).collect()).into()
    }
}
