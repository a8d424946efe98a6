//! Eviction from the oldest generation, and its protected tiers.

use super::{MIN_LRU_BATCH, MIN_NR_GENS, Mglru, REFS_MOST, gen_of, refs_of, tier_of};
use crate::pagecache::folio::flag;
use crate::pagecache::reclaim::{Core, DEF_PRIORITY, Fate, ScanControl, Tally, shrink_folio};

/// Maximum folios scanned in one go.
const MAX_LRU_BATCH: u32 = 64 * 64;

impl Mglru {
    /// Moves a folio of the oldest generation elsewhere if it is not to be evicted; returns whether it did
    /// (`sort_folio`).
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

    /// Takes evictable folios off the oldest generation (`scan_folios`, `isolate_folio`); returns their number and that
    /// of the folios scanned, or `None` if nothing can be done.
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

    /// Evicts a batch (`evict_folios`); returns the folios scanned, or `None` if the reclaim cannot go on.
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
        // Kept folios are mapped and in use: they do not return to the oldest generation.
        for &at in &batch[..kept] {
            core.folios.clear(at, flag::REFS_MASK | flag::REFERENCED | flag::WORKINGSET);
            core.folios.set(at, flag::ACTIVE);
            self.add_folio(core, at, false);
        }
        scanned
    }

    /// Number of folios to scan, and whether a new generation is due (`get_nr_to_scan`).
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

    /// Returns whether to stop (`should_abort_scan`); `seq` was the youngest generation when the scan began.
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

// Protection of tiers: feedback from refaults.
//
// For each tier, the control counts folios evicted or protected, and how many of them returned while the same
// generation was the oldest. A tier that returns at more than twice the rate of the first one is protected. Counts of
// past generations fade by halves (`read_ctrl_pos`, `reset_ctrl_pos`, `positive_ctrl_err` of `mm/vmscan.c`).

const MAX_NR_TIERS: usize = 4;

/// Number of refaults below which the rate is ignored (`MIN_LRU_BATCH`).
const SIGNIFICANT: u64 = 64;

/// Counters of a tier.
#[derive(Clone, Copy, Debug, Default)]
struct Position {
    refaulted: u64,
    total: u64,
}

/// Counters of all tiers.
#[derive(Debug, Default)]
pub(super) struct Control {
    refaulted: [u64; MAX_NR_TIERS],
    evicted: [u64; MAX_NR_TIERS],
    /// Protected folios by tier; the first tier is never protected.
    protected: [u64; MAX_NR_TIERS],
    faded: [Position; MAX_NR_TIERS],
}

impl Control {
    pub(super) fn refaulted(&mut self, tier: usize) {
        self.refaulted[tier] += 1;
    }

    pub(super) fn evicted(&mut self, tier: usize) {
        self.evicted[tier] += 1;
    }

    pub(super) fn protected(&mut self, tier: usize) {
        self.protected[tier] += 1;
    }

    fn position(&self, tier: usize) -> Position {
        Position {
            refaulted: self.faded[tier].refaulted + self.refaulted[tier],
            total: self.faded[tier].total + self.evicted[tier] + self.protected[tier],
        }
    }

    /// Fades the counters when the oldest generation changes.
    pub(super) fn carry_over(&mut self) {
        for tier in 0..MAX_NR_TIERS {
            let Position { refaulted, total } = self.position(tier);
            self.faded[tier] = Position { refaulted: refaulted / 2, total: total / 2 };
        }
        (self.refaulted, self.evicted, self.protected) = Default::default();
    }

    /// Last tier that is not protected (`get_tier_idx`).
    pub(super) fn tier_idx(&self) -> usize {
        let first = self.position(0);
        (1..MAX_NR_TIERS).find(|tier| !may_evict(first, self.position(*tier))).unwrap_or(MAX_NR_TIERS) - 1
    }
}

/// Returns whether a tier has few refaults, or at most twice the rate of the first one (`positive_ctrl_err` with gains
/// of 1 and 2).
fn may_evict(first: Position, tier: Position) -> bool {
    tier.refaulted < SIGNIFICANT
        || tier.refaulted * (first.total + SIGNIFICANT) <= (first.refaulted + 1) * tier.total * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `positive_ctrl_err` by hand: the first tier has 100 refaults of 936 evicted; gains are 1 and 2.
    #[test]
    fn a_tier_that_returns_at_twice_the_rate_is_protected() {
        let mut control = Control::default();
        control.refaulted[0] = 100;
        control.evicted[0] = 936;
        // 202 * (936 + 64) = 202,000 <= (100 + 1) * 1000 * 2 = 202,000: not yet.
        (control.refaulted[1], control.evicted[1]) = (202, 1000);
        assert_eq!(control.tier_idx(), 3);
        control.refaulted[1] = 203;
        assert_eq!(control.tier_idx(), 0);
        // Protected folios count as evicted: 203,000 <= 101 * 1005 * 2 = 203,010.
        control.protected[1] = 5;
        assert_eq!(control.tier_idx(), 3);
    }

    #[test]
    fn a_few_refaults_say_nothing_and_old_ones_fade() {
        let mut control = Control::default();
        (control.refaulted[2], control.evicted[2]) = (63, 63);
        assert_eq!(control.tier_idx(), 3);
        control.refaulted[2] = 64;
        // 64 * 64 = 4096 > 1 * 63 * 2.
        assert_eq!(control.tier_idx(), 1);
        control.carry_over();
        // 32 of 31 are left.
        assert_eq!((control.faded[2].refaulted, control.faded[2].total), (32, 31));
        assert_eq!(control.tier_idx(), 3);
        control.refaulted[2] = 32;
        assert_eq!(control.tier_idx(), 1);
    }
}
