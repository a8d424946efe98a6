//! Two lists, active and inactive, with refault distances.
//!
//! A new page enters at the head of the inactive list. A second access there activates it (`folio_mark_accessed`). A
//! page that reaches the tail without one is evicted (`shrink_inactive_list`). The tail of the active list is
//! deactivated (`shrink_active_list`) when the inactive list is too short by the ratio of `inactive_is_low`, or when
//! refaults show that the working set changes.
//!
//! A reclaimed page leaves the time of its eviction, counted in evictions and activations. A page that returns within
//! as many of these as there are active pages would have stayed had it been active. It is activated at once
//! (`workingset_refault`).

use super::{Core, DEF_PRIORITY, Fate, Reclaim, SWAP_CLUSTER_MAX, ScanControl, Tally, shrink_folio};
use crate::pagecache::folio::flag;
use crate::pagecache::index::Shadow;
use crate::pagecache::list::LruList;

/// Bits of an eviction's time in a shadow entry, besides the working-set bit.
const EVICTION_MASK: u64 = (1 << 30) - 1;

/// Policy with two lists.
#[derive(Debug)]
pub struct TwoLists {
    inactive: LruList,
    active: LruList,
    /// Evictions and activations (`nonresident_age`).
    age: u64,
    /// Refaults that were activated, and their number at the end of the last reclaim.
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

    /// Handles the refault of a recently reclaimed page (`workingset_refault`).
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

    /// Returns the shadow entry of an evicted folio (`workingset_eviction`).
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

    /// Shrinks the inactive list by at most 32 folios (`shrink_inactive_list`).
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

    /// Shrinks the active list (`shrink_active_list`). Executable pages, which the kernel spares, are not modelled.
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

/// Target ratio of active to inactive folios, for a total of `folios` (`inactive_is_low`).
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

    /// `shrink_lruvec` with `prepare_scan_count` and `get_scan_count`, where only file pages can be scanned.
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

#[cfg(test)]
mod tests {
    // Worked examples of `mm/vmscan.c`, `mm/swap.c` and `mm/workingset.c`.
    use super::*;
    use crate::Inode;
    use crate::pagecache::reclaim::ReclaimPolicy;
    use crate::pagecache::tests::{cache, read};
    use crate::pagecache::{Folio, PageCache};

    const FILE: Inode = Inode(0);

    /// The table above `inactive_is_low`: 1 up to 1 GB, 3, 10, 31, 101, 320.
    #[test]
    fn ratios_of_the_lists() {
        let gb = 1 << 18;
        let ratios = [gb / 100, gb / 10, gb, 10 * gb, 100 * gb, 1024 * gb, 10_240 * gb].map(inactive_ratio);
        assert_eq!(ratios, [1, 1, 3, 10, 31, 101, 320]);
    }

    /// inactive,unreferenced -> inactive,referenced -> active,unreferenced -> active,referenced: the comment above
    /// `folio_mark_accessed`.
    #[test]
    fn the_second_access_activates() {
        let mut cache = cache(ReclaimPolicy::two_lists, 1 << 16);
        let folio = read(&mut cache, FILE, 0);
        let mut states = Vec::new();
        for _ in 0..4 {
            states.push((cache.is_active(folio), cache.is_referenced(folio)));
            cache.mark_accessed(folio);
        }
        assert_eq!(states, [(false, false), (false, true), (true, false), (true, true)]);
        assert_eq!((cache.nr_active(), cache.nr_inactive(), cache.stats().activated), (1, 0, 1));
    }

    /// Core with its own policy, and pages of a file.
    struct Bench {
        cache: PageCache,
        lists: TwoLists,
        control: ScanControl,
    }

    impl Bench {
        fn new() -> Bench {
            let cache = cache(ReclaimPolicy::two_lists, 1 << 16);
            Bench { cache, lists: TwoLists::default(), control: ScanControl::direct() }
        }

        fn add(&mut self, page: u64) -> Folio {
            let core = &mut self.cache.core;
            let (at, shadow) = core.take_folio(FILE, page, 0);
            self.lists.add(core, at, shadow, false);
            Folio(at)
        }

        fn shrink(&mut self, count: u64) -> Tally {
            let mut tally = Tally::default();
            self.lists.shrink_inactive(&mut self.cache.core, count, &mut self.control, &mut tally);
            tally
        }

        fn is_active(&self, folio: Folio) -> bool {
            self.lists.is_active(&self.cache.core, folio.0)
        }
    }

    /// Ten pages are active. Page 0 is evicted, then nine others: the distance is 10, and page 0 is activated. With ten
    /// others it is 11, and page 0 is not.
    #[test]
    fn the_distance_of_a_refault() {
        for (others, activated) in [(9, true), (10, false)] {
            let mut bench = Bench::new();
            for page in 1000..1010 {
                let folio = bench.add(page);
                bench.lists.accessed(&mut bench.cache.core, folio.0);
                bench.lists.accessed(&mut bench.cache.core, folio.0);
            }
            for page in 0..=others {
                bench.add(page);
            }
            assert_eq!(bench.shrink(others + 1).freed, others + 1);
            let folio = bench.add(0);
            assert_eq!(bench.is_active(folio), activated);
            let stats = bench.cache.core.stats;
            assert_eq!(
                (stats.refaults, stats.refaults_activated, stats.refaults_restored),
                (1, u64::from(activated), 0)
            );
        }
    }

    /// A page that was active returns as one of the working set.
    #[test]
    fn a_page_that_was_active_is_restored() {
        let mut bench = Bench::new();
        for page in 0..4 {
            let folio = bench.add(page);
            bench.lists.accessed(&mut bench.cache.core, folio.0);
            bench.lists.accessed(&mut bench.cache.core, folio.0);
        }
        let mut tally = Tally::default();
        bench.lists.shrink_active(&mut bench.cache.core, 2, &mut tally);
        assert_eq!((bench.lists.active.len(), bench.lists.inactive.len(), tally.refilled), (2, 2, 2));
        assert_eq!(bench.shrink(1).freed, 1);
        let folio = bench.add(0);
        assert!(bench.is_active(folio) && bench.cache.is_workingset(folio));
        assert_eq!(bench.cache.core.stats.refaults_restored, 1);
    }

    /// The kept folios of a batch stay in order, behind those that were not scanned.
    #[test]
    fn a_batch_is_put_back_in_order() {
        let mut bench = Bench::new();
        let folios: Vec<Folio> = (0..6).map(|page| bench.add(page)).collect();
        for at in [0, 2] {
            bench.cache.core.folios.set(folios[at].0, flag::LOCKED);
        }
        let tally = bench.shrink(4);
        assert_eq!(
            (tally.taken, tally.freed, bench.control.nr_scanned),
            (4, 2, 2),
            "locked folios are not scanned"
        );
        let order: Vec<u32> = bench.lists.inactive.iter(&bench.cache.core.folios).collect();
        assert_eq!(order, [folios[2].0, folios[0].0, folios[5].0, folios[4].0]);
    }

    #[test]
    fn the_inactive_list_is_low_by_its_ratio() {
        let mut bench = Bench::new();
        for page in 0..5 {
            let folio = bench.add(page);
            if page < 2 {
                bench.lists.accessed(&mut bench.cache.core, folio.0);
                bench.lists.accessed(&mut bench.cache.core, folio.0);
            }
        }
        // 3 * 1 < 2 is false; with three active of five, 2 * 1 < 3 is true.
        assert!(!bench.lists.inactive_is_low());
        let folio = bench.cache.find(FILE, 2).expect("page 2 is in the cache");
        bench.lists.accessed(&mut bench.cache.core, folio.0);
        bench.lists.accessed(&mut bench.cache.core, folio.0);
        assert!(bench.lists.inactive_is_low());
    }
}
