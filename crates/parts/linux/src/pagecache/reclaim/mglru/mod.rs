//! The multi-generational LRU (`CONFIG_LRU_GEN`, swappiness 0, pages of files alone).
//!
//! Folios are in generations, numbered from the oldest (`min_seq`) to the youngest (`max_seq`): two to four of them. The oldest is evicted from its tail;
//! when it is empty the next one is the oldest. The aging begins a new youngest generation when the folios are spread unevenly
//! (`should_run_aging`). A page that was read comes to the second oldest generation where there are more than two, a page that a fault brought to
//! the youngest.
//!
//! Accesses through descriptors only count, in the folio: N of them are tier log2 N, rounded up. What tiers above the first are worth is learnt from
//! refaults (`control.rs`): a folio of a protected tier moves to the next generation instead of leaving (`sort_folio`).
//!
//! Left out, since page table entries are no more than two marks here: the walk of page tables by the aging (`walk_mm`) and what it would promote,
//! and neighbours of an accessed entry (`lru_gen_look_around`); an entry that was accessed is seen when its folio is about to leave, which then
//! comes to the youngest generation. Left out as well: the time that a generation lives at least (`min_ttl_ms`, zero by default), anonymous
//! memory, control groups.

mod control;
mod eviction;
#[cfg(test)]
mod tests;

use super::{Core, Reclaim, ScanControl, Tally};
use crate::pagecache::folio::flag;
use crate::pagecache::index::Shadow;
use crate::pagecache::list::LruList;
use control::Control;

const MIN_NR_GENS: u64 = 2;
const MAX_NR_GENS: u64 = 4;
/// Folios that are evicted at once.
const MIN_LRU_BATCH: usize = 64;
/// Bits of a shadow entry for a generation's number; two more are for accesses, one for the working set.
const SEQ_MASK: u64 = (1 << 28) - 1;
/// Accesses beyond the first that a folio counts at most: those in two bits, and the mark of the working set.
const REFS_MOST: u32 = 4;

/// The policy.
#[derive(Debug)]
pub struct Mglru {
    min_seq: u64,
    max_seq: u64,
    generations: [LruList; MAX_NR_GENS as usize],
    control: Control,
}

impl Default for Mglru {
    /// `lru_gen_init_lruvec`.
    fn default() -> Self {
        Mglru {
            min_seq: 0,
            max_seq: MIN_NR_GENS + 1,
            generations: [LruList::EMPTY; MAX_NR_GENS as usize],
            control: Control::default(),
        }
    }
}

/// The place of a generation.
fn gen_of(seq: u64) -> usize {
    (seq % MAX_NR_GENS) as usize
}

/// Accesses of a folio beyond the first (`folio_lru_refs`).
fn refs_of(core: &Core, at: u32) -> u32 {
    let flags = core.folios.flags(at);
    ((flags & flag::REFS_MASK) >> flag::REFS_SHIFT) + u32::from(flags & flag::WORKINGSET != 0)
}

/// `lru_tier_from_refs`: the logarithm of one more, rounded up.
fn tier_of(refs: u32) -> usize {
    (refs + 1).next_power_of_two().trailing_zeros() as usize
}

impl Mglru {
    /// The place of a folio's generation (`folio_lru_gen`).
    fn gen_at(core: &Core, at: u32) -> usize {
        ((core.folios.flags(at) & flag::GEN_MASK) >> flag::GEN_SHIFT) as usize - 1
    }

    fn nr_gens(&self) -> u64 {
        self.max_seq - self.min_seq + 1
    }

    fn is_active_gen(&self, place: usize) -> bool {
        place == gen_of(self.max_seq) || place == gen_of(self.max_seq - 1)
    }

    fn put(&mut self, core: &mut Core, at: u32, place: usize, tail: bool) {
        let flags = core.folios.flags_mut(at);
        *flags = *flags & !(flag::GEN_MASK | flag::ACTIVE) | (place as u32 + 1) << flag::GEN_SHIFT;
        let list = &mut self.generations[place];
        if tail {
            list.add_tail(&mut core.folios, at);
        } else {
            list.add(&mut core.folios, at);
        }
    }

    /// `lru_gen_add_folio`; `reclaiming`: it should be evicted first.
    fn add_folio(&mut self, core: &mut Core, at: u32, reclaiming: bool) {
        let flags = core.folios.flags(at);
        let waits = flags & flag::RECLAIM != 0 && flags & (flag::DIRTY | flag::WRITEBACK) != 0;
        let seq = if flags & flag::ACTIVE != 0 {
            self.max_seq
        } else if waits {
            self.max_seq - 1
        } else if reclaiming || self.min_seq + MIN_NR_GENS >= self.max_seq {
            self.min_seq
        } else {
            self.min_seq + 1
        };
        self.put(core, at, gen_of(seq), reclaiming);
    }

    /// `lru_gen_del_folio`.
    fn del_folio(&mut self, core: &mut Core, at: u32) {
        let place = Self::gen_at(core, at);
        self.generations[place].remove(&mut core.folios, at);
        core.folios.clear(at, flag::GEN_MASK);
    }

    /// A folio of the oldest generation goes to the next one (`folio_inc_gen`), at its tail or at its head.
    fn inc_gen(&mut self, core: &mut Core, at: u32, reclaiming: bool, tail: bool) {
        self.del_folio(core, at);
        core.folios.clear(at, flag::REFS_MASK | flag::REFERENCED | flag::WORKINGSET);
        if reclaiming {
            core.folios.set(at, flag::RECLAIM);
        }
        self.put(core, at, gen_of(self.min_seq + 1), tail);
    }

    /// `lru_gen_refault`.
    fn refault(&mut self, core: &mut Core, at: u32, shadow: Shadow, fault: bool) {
        let (token, workingset) = (shadow.0 >> 1, shadow.0 & 1);
        if u64::from(token >> 2) != self.min_seq & SEQ_MASK {
            return;
        }
        let refs = (token & 3) + workingset;
        self.control.refaulted(tier_of(refs));
        core.stats.refaults += 1;
        if fault || refs >= REFS_MOST - 1 {
            core.folios.set(at, flag::REFS_MASK | flag::WORKINGSET);
            core.stats.refaults_restored += 1;
        }
    }

    /// `lru_gen_eviction`.
    fn evict(&mut self, core: &Core, at: u32) -> Shadow {
        let refs = refs_of(core, at);
        self.control.evicted(tier_of(refs));
        let token = ((self.min_seq & SEQ_MASK) as u32) << 2 | refs.saturating_sub(1);
        Shadow(token << 1 | u32::from(refs > 0))
    }

    /// Folios of which 1/2^priority are scanned, and whether a new generation is due (`should_run_aging`).
    fn should_run_aging(&self, priority: i8) -> (u64, bool) {
        let size = |seq: u64| self.generations[gen_of(seq)].len();
        let total: u64 = (self.min_seq..=self.max_seq).map(size).sum();
        let young = size(self.max_seq);
        let ideal = self.min_seq + MIN_NR_GENS == self.max_seq;
        let old = if ideal { size(self.min_seq) } else { 0 };
        let due = if ideal {
            young * MIN_NR_GENS > total || old * (MIN_NR_GENS + 2) < total
        } else {
            self.min_seq + MIN_NR_GENS > self.max_seq
        };
        (total >> priority, due)
    }

    /// A new youngest generation (`inc_max_seq`): there are never more than three when one is due.
    fn inc_max_seq(&mut self) {
        debug_assert!(self.nr_gens() < MAX_NR_GENS);
        self.max_seq += 1;
    }

    /// The oldest generation is one that has folios, or one of the two youngest (`try_to_inc_min_seq`). Whether it was another one before.
    fn try_to_inc_min_seq(&mut self) -> bool {
        let before = self.min_seq;
        while self.min_seq + MIN_NR_GENS <= self.max_seq && self.generations[gen_of(self.min_seq)].is_empty()
        {
            self.min_seq += 1;
        }
        let success = self.min_seq != before;
        if success {
            self.control.carry_over();
        }
        success
    }
}

impl Reclaim for Mglru {
    #[inline]
    fn add(&mut self, core: &mut Core, at: u32, shadow: Option<Shadow>, fault: bool) {
        if let Some(shadow) = shadow {
            self.refault(core, at, shadow, fault);
        }
        if fault {
            core.folios.set(at, flag::ACTIVE);
        }
        self.add_folio(core, at, false);
    }

    /// `folio_inc_refs`.
    #[inline]
    fn accessed(&mut self, core: &mut Core, at: u32) {
        let flags = core.folios.flags_mut(at);
        if *flags & flag::REFERENCED == 0 {
            *flags |= flag::REFERENCED;
        } else if *flags & flag::WORKINGSET == 0 {
            *flags |= flag::WORKINGSET;
        } else if *flags & flag::REFS_MASK != flag::REFS_MASK {
            *flags += 1 << flag::REFS_SHIFT;
        }
    }

    fn remove(&mut self, core: &mut Core, at: u32) {
        self.del_folio(core, at);
    }

    fn rotate(&mut self, core: &mut Core, at: u32) {
        self.del_folio(core, at);
        self.add_folio(core, at, true);
    }

    fn deactivate(&mut self, core: &mut Core, at: u32) {
        let was_active = self.is_active(core, at);
        self.del_folio(core, at);
        core.stats.deactivated += u64::from(was_active);
        core.folios.clear(at, flag::REFERENCED);
        if core.folios.has(at, flag::DIRTY | flag::WRITEBACK) {
            self.add_folio(core, at, false);
            core.folios.set(at, flag::RECLAIM);
        } else {
            self.add_folio(core, at, true);
        }
    }

    /// `lru_gen_age_node`.
    fn age(&mut self, _core: &mut Core, control: &mut ScanControl) {
        if !control.needs_aging {
            control.needs_aging = true;
            return;
        }
        if self.should_run_aging(control.priority).1 {
            self.inc_max_seq();
        }
    }

    /// `lru_gen_shrink_lruvec`.
    fn shrink(&mut self, core: &mut Core, control: &mut ScanControl, tally: &mut Tally) {
        let (seq, before) = (self.max_seq, tally.freed);
        let mut scanned = 0;
        loop {
            let (nr_to_scan, due) = self.nr_to_scan(control);
            if nr_to_scan == 0 {
                return;
            }
            let delta = self.evict_folios(core, control, tally);
            if delta == 0 {
                return;
            }
            scanned += delta;
            let freed = tally.freed - before;
            let aborted = scanned < nr_to_scan && self.should_abort(core, control, seq, freed);
            if scanned >= nr_to_scan || aborted {
                control.needs_aging &= due || !aborted && freed < MIN_LRU_BATCH as u64;
                return;
            }
        }
    }

    fn end(&mut self) {}

    fn active(&self) -> u64 {
        self.generations[gen_of(self.max_seq)].len() + self.generations[gen_of(self.max_seq - 1)].len()
    }

    fn is_active(&self, core: &Core, at: u32) -> bool {
        self.is_active_gen(Self::gen_at(core, at))
    }

    fn lists(&self, core: &Core) -> Vec<Vec<u32>> {
        let seqs = self.min_seq..=self.max_seq;
        seqs.map(|seq| self.generations[gen_of(seq)].iter(&core.folios).collect()).collect()
    }
}
