//! Multi-generational LRU (`CONFIG_LRU_GEN`, swappiness 0, file pages only).
//!
//! Folios are in two to four generations, numbered from the oldest (`min_seq`) to the youngest (`max_seq`). The oldest
//! is evicted from its tail; when it is empty, the next one becomes the oldest. Ageing begins a new youngest generation
//! when the folios are spread unevenly (`should_run_aging`). A page that was read enters the second oldest generation
//! if there are more than two; a faulted page enters the youngest.
//!
//! Accesses through descriptors are only counted, in the folio: N of them are tier log2 N, rounded up. Refaults show
//! the value of the tiers above the first (`eviction.rs`). A folio of a protected tier moves to the next generation
//! instead of being evicted (`sort_folio`).
//!
//! Left out, since page table entries are only two flags here: the page table walk of the ageing (`walk_mm`) with its
//! promotions, and the neighbours of an accessed entry (`lru_gen_look_around`). An accessed entry is seen when its
//! folio is about to be evicted, which then moves to the youngest generation. Also left out: the minimum lifetime of a
//! generation (`min_ttl_ms`, zero by default), anonymous memory, control groups.

mod eviction;

use super::{Core, Reclaim, ScanControl, Tally};
use crate::pagecache::folio::flag;
use crate::pagecache::index::Shadow;
use crate::pagecache::list::LruList;
use eviction::Control;

const MIN_NR_GENS: u64 = 2;
const MAX_NR_GENS: u64 = 4;
/// Folios evicted at once.
const MIN_LRU_BATCH: usize = 64;
/// Bits of a shadow entry for the generation number; two more are for accesses, one for the working set.
const SEQ_MASK: u64 = (1 << 28) - 1;
/// Maximum count of accesses beyond the first: those in two bits, and the working-set flag.
const REFS_MOST: u32 = 4;

/// Multi-generational policy.
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

/// Index of a generation.
fn gen_of(seq: u64) -> usize {
    (seq % MAX_NR_GENS) as usize
}

/// Accesses of a folio beyond the first (`folio_lru_refs`).
fn refs_of(core: &Core, at: u32) -> u32 {
    let flags = core.folios.flags(at);
    ((flags & flag::REFS_MASK) >> flag::REFS_SHIFT) + u32::from(flags & flag::WORKINGSET != 0)
}

/// Tier of an access count: the logarithm of one more, rounded up (`lru_tier_from_refs`).
fn tier_of(refs: u32) -> usize {
    (refs + 1).next_power_of_two().trailing_zeros() as usize
}

impl Mglru {
    /// Index of a folio's generation (`folio_lru_gen`).
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

    /// Adds a folio (`lru_gen_add_folio`); `reclaiming`: it should be evicted first.
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

    /// Moves a folio of the oldest generation to the next one (`folio_inc_gen`), at its tail or head.
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

    /// Begins a new youngest generation (`inc_max_seq`); at most three exist when one is due.
    fn inc_max_seq(&mut self) {
        debug_assert!(self.nr_gens() < MAX_NR_GENS);
        self.max_seq += 1;
    }

    /// Moves the oldest generation on to one that has folios, or to the second youngest (`try_to_inc_min_seq`); returns
    /// whether it changed.
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

#[cfg(test)]
mod tests {
    // Worked examples of `mm/vmscan.c` and `include/linux/mm_inline.h`.
    use super::*;
    use crate::Inode;
    use crate::pagecache::reclaim::ReclaimPolicy;
    use crate::pagecache::tests::{cache, read};
    use crate::pagecache::{Cause, Folio, PageCache};

    const FILE: Inode = Inode(0);

    /// Core with its own policy.
    struct Bench {
        cache: PageCache,
        lru: Mglru,
    }

    impl Bench {
        fn new() -> Bench {
            Bench { cache: cache(ReclaimPolicy::mglru, 1 << 16), lru: Mglru::default() }
        }

        fn add(&mut self, page: u64, flags: u32) -> u32 {
            let core = &mut self.cache.core;
            let (at, shadow) = core.take_folio(FILE, page, flags);
            self.lru.add(core, at, shadow, false);
            at
        }

        /// Number of folios by generation, oldest first.
        fn sizes(&self) -> Vec<u64> {
            (self.lru.min_seq..=self.lru.max_seq).map(|seq| self.lru.generations[gen_of(seq)].len()).collect()
        }

        fn evict(&mut self) -> Tally {
            let mut tally = Tally::default();
            self.lru.evict_folios(&mut self.cache.core, &mut ScanControl::direct(), &mut tally);
            tally
        }
    }

    /// `include/linux/mmzone.h`: "A page accessed N times through file descriptors is in tier order_base_2(N)", up to
    /// the fourth tier.
    #[test]
    fn accesses_are_tiers() {
        let mut cache = cache(ReclaimPolicy::mglru, 1 << 16);
        let folio = read(&mut cache, FILE, 0);
        let tiers = [0; 8].map(|_: i32| {
            cache.mark_accessed(folio);
            tier_of(refs_of(&cache.core, folio.0))
        });
        assert_eq!(tiers, [0, 1, 2, 2, 3, 3, 3, 3]);
    }

    /// `lru_gen_add_folio`: four generations at the beginning.
    #[test]
    fn where_a_folio_begins() {
        let mut bench = Bench::new();
        bench.add(0, 0);
        bench.add(1, flag::ACTIVE);
        bench.add(2, flag::RECLAIM | flag::DIRTY);
        bench.add(3, flag::RECLAIM);
        assert_eq!(bench.sizes(), [0, 2, 1, 1]);
        assert_eq!((bench.lru.active(), bench.lru.nr_gens()), (2, 4));
        // Three generations are left without the oldest: reads enter the oldest of them.
        assert!(bench.lru.try_to_inc_min_seq());
        bench.add(4, 0);
        assert_eq!(bench.sizes(), [3, 1, 1]);
    }

    /// `should_run_aging`: three generations of 40, 30, 30 are even; more than half young, or less than a quarter old,
    /// is uneven.
    #[test]
    fn a_new_generation_is_due_when_they_are_uneven() {
        for (sizes, due) in
            [([40, 30, 30], false), ([25, 25, 50], false), ([25, 24, 51], true), ([24, 38, 38], true)]
        {
            let mut bench = Bench::new();
            bench.lru.min_seq = 1;
            for (seq, size) in (1..).zip(sizes) {
                for page in 0..size {
                    let at = bench.cache.core.folios.take(FILE, page, 0);
                    bench.lru.put(&mut bench.cache.core, at, gen_of(seq), false);
                }
            }
            assert_eq!(bench.lru.should_run_aging(2), (25, due), "{sizes:?}");
        }
        let mut bench = Bench::new();
        assert!(!bench.lru.should_run_aging(0).1, "four generations are enough");
        bench.lru.min_seq = 2;
        assert!(bench.lru.should_run_aging(0).1, "two generations are too few");
    }

    /// Oldest generation of five folios: one used five times is protected, one is dirty, one is locked, two are
    /// evicted. A folio that returns while the same generation is the oldest is a refault of its tier.
    #[test]
    fn the_oldest_generation_is_sorted_and_evicted() {
        let mut bench = Bench::new();
        bench.lru.min_seq = 1;
        let flags = [
            flag::REFERENCED | flag::WORKINGSET | flag::REFS_MASK,
            flag::DIRTY,
            flag::LOCKED,
            0,
            flag::REFERENCED | flag::WORKINGSET,
        ];
        let folios = (0..).zip(flags).map(|(page, flags)| bench.add(page, flags)).collect::<Vec<u32>>();
        assert_eq!(bench.sizes(), [5, 0, 0]);
        bench.cache.core.keeps_shadows = true;
        let tally = bench.evict();
        assert_eq!((tally.taken, tally.refilled, tally.freed), (2, 3, 2));
        // The protected folio is at the tail of the next generation, the others at its head.
        let list: Vec<u32> = bench.lru.generations[gen_of(2)].iter(&bench.cache.core.folios).collect();
        assert_eq!(list, [folios[2], folios[1], folios[0]]);
        let core = &bench.cache.core;
        assert!(core.folios.has(folios[1], flag::RECLAIM) && !core.folios.has(folios[0], flag::RECLAIM));
        assert_eq!(refs_of(core, folios[0]), 0, "uses are forgotten with the generation");
        // The oldest is empty, so the next one became the oldest before the two were evicted; their return is a refault
        // of it.
        assert_eq!((bench.sizes(), bench.lru.min_seq), (vec![3, 0], 2));
        bench.add(3, 0);
        assert_eq!(bench.cache.core.stats.refaults, 1);
    }

    /// A page that a fault brings back, or that was used four times or more, is protected from the start.
    #[test]
    fn a_hot_page_that_returns_is_protected() {
        let mut cache = cache(ReclaimPolicy::mglru, 1 << 16);
        for (page, refs, cause, hot) in [
            (1, 3, Cause::Read, true),
            (2, 2, Cause::Read, false),
            (3, 0, Cause::Fault, true),
            (4, 3, Cause::Write, false),
        ] {
            let folio = read(&mut cache, FILE, page);
            cache.reclaim.remove(&mut cache.core, folio.0);
            // Generation number 0; accesses beyond the second, and whether there was a second.
            let token = u32::max(refs, 1) - 1;
            cache.core.reclaim(folio.0, Shadow(token << 1 | u32::from(refs > 0)));
            let Folio(at) = cache.insert(FILE, page, cause);
            assert_eq!(refs_of(&cache.core, at) == REFS_MOST, hot, "page {page}");
        }
        assert_eq!((cache.stats().refaults, cache.stats().refaults_restored), (3, 2));
    }
}
