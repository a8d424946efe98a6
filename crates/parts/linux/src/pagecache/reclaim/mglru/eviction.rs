//! What leaves the oldest generation, and where to.

use super::{MIN_LRU_BATCH, MIN_NR_GENS, Mglru, REFS_MOST, gen_of, refs_of, tier_of};
use crate::pagecache::folio::flag;
use crate::pagecache::reclaim::{Core, DEF_PRIORITY, Fate, ScanControl, Tally, shrink_folio};

/// Folios that are looked at in one go at most.
const MAX_LRU_BATCH: u32 = 64 * 64;

impl Mglru {
    /// Whether a folio of the oldest generation goes elsewhere instead of leaving (`sort_folio`).
    fn sort(&mut self, core: &mut Core, at: u32, tier_idx: usize) -> bool {
        let refs = refs_of(core, at);
        let tier = tier_of(refs);
        if tier > tier_idx || refs == REFS_MOST {
            self.inc_gen(core, at, false, true);
            self.control.protected(tier);
            core.stats.activated += 1;
            return true;
        }
        if core.folios.has(at, flag::LOCKED | flag::WRITEBACK | flag::DIRTY) {
            self.inc_gen(core, at, true, false);
            return true;
        }
        false
    }

    /// Takes folios that may leave off the oldest generation (`scan_folios`, `isolate_folio`): how many, and how many were looked at, none if
    /// nothing can be done.
    fn isolate(
        &mut self,
        core: &mut Core,
        batch: &mut [u32; MIN_LRU_BATCH],
        tally: &mut Tally,
    ) -> (usize, u64) {
        if self.nr_gens() == MIN_NR_GENS {
            return (0, 0);
        }
        let tier_idx = self.control.tier_idx();
        let place = gen_of(self.min_seq);
        let (mut isolated, mut scanned, mut remaining) = (0, 0, MAX_LRU_BATCH);
        while isolated < MIN_LRU_BATCH
            && remaining > 0
            && let Some(at) = self.generations[place].tail()
        {
            (scanned, remaining) = (scanned + 1, remaining - 1);
            if self.sort(core, at, tier_idx) {
                tally.refilled += 1;
                continue;
            }
            if !core.folios.has(at, flag::REFERENCED) {
                core.folios.clear(at, flag::REFS_MASK | flag::WORKINGSET);
            }
            core.folios.clear(at, flag::RECLAIM | flag::REFERENCED);
            self.del_folio(core, at);
            batch[isolated] = at;
            isolated += 1;
        }
        (isolated, if isolated > 0 || remaining == 0 { scanned } else { 0 })
    }

    /// `evict_folios`; how much was looked at, none if the reclaim cannot go on.
    pub(super) fn evict_folios(
        &mut self,
        core: &mut Core,
        control: &mut ScanControl,
        tally: &mut Tally,
    ) -> u64 {
        let mut batch = [0; MIN_LRU_BATCH];
        let (isolated, mut scanned) = self.isolate(core, &mut batch, tally);
        scanned += u64::from(self.try_to_inc_min_seq());
        if self.nr_gens() == MIN_NR_GENS {
            scanned = 0;
        }
        tally.taken += isolated as u64;
        core.prefetch(&batch[..isolated]);
        let mut kept = 0;
        for n in 0..isolated {
            let at = batch[n];
            match shrink_folio(core, at, control, tally) {
                Fate::Free => {
                    let shadow = self.evict(core, at);
                    core.reclaim(at, shadow);
                    tally.freed += 1;
                }
                fate => {
                    tally.activated += u64::from(fate == Fate::Activate);
                    batch[kept] = at;
                    kept += 1;
                }
            }
        }
        // What was refused is mapped and in use: it does not come back to the oldest generation.
        for &at in &batch[..kept] {
            core.folios.clear(at, flag::REFS_MASK | flag::REFERENCED | flag::WORKINGSET);
            core.folios.set(at, flag::ACTIVE);
            self.add_folio(core, at, false);
        }
        scanned
    }

    /// How much is to be scanned, and whether a new generation is due (`get_nr_to_scan`).
    pub(super) fn nr_to_scan(&mut self, control: &ScanControl) -> (u64, bool) {
        let (nr_to_scan, due) = self.should_run_aging(control.priority);
        if !due {
            return (nr_to_scan, false);
        }
        if control.priority != DEF_PRIORITY {
            if control.kswapd {
                return (0, true);
            }
            self.inc_max_seq();
            return (nr_to_scan, true);
        }
        let enough = self.min_seq + MIN_NR_GENS <= self.max_seq;
        (if enough { nr_to_scan } else { 0 }, true)
    }

    /// `should_abort_scan`; `seq` was the youngest generation when the scan began.
    pub(super) fn should_abort(&self, core: &Core, control: &mut ScanControl, seq: u64, freed: u64) -> bool {
        if !control.kswapd {
            if self.max_seq - seq > 1 {
                return true;
            }
        } else if control.nr_reclaimed + freed - control.last_reclaimed < control.nr_to_reclaim {
            return false;
        }
        if control.priority > DEF_PRIORITY - 2 {
            return false;
        }
        let mark = if control.kswapd { core.watermarks.high } else { core.watermarks.low };
        if mark > core.free() {
            return false;
        }
        control.nr_reclaimed += MIN_LRU_BATCH as u64;
        true
    }
}
