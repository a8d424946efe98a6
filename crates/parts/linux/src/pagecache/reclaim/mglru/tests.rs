//! Worked examples of `mm/vmscan.c` and `include/linux/mm_inline.h`.

use super::*;
use crate::Inode;
use crate::pagecache::reclaim::ReclaimPolicy;
use crate::pagecache::tests::{cache, read};
use crate::pagecache::{Cause, Folio, PageCache};

const FILE: Inode = Inode(0);

/// A core, and a policy of its own.
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

    /// Folios of the generations, the oldest first.
    fn sizes(&self) -> Vec<u64> {
        (self.lru.min_seq..=self.lru.max_seq).map(|seq| self.lru.generations[gen_of(seq)].len()).collect()
    }

    fn evict(&mut self) -> Tally {
        let mut tally = Tally::default();
        self.lru.evict_folios(&mut self.cache.core, &mut ScanControl::direct(), &mut tally);
        tally
    }
}

/// "A page accessed N times through file descriptors is in tier order_base_2(N)", says `include/linux/mmzone.h`, up to the fourth tier.
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
    // Without the oldest there are three: the oldest of them is where reads come to.
    assert!(bench.lru.try_to_inc_min_seq());
    bench.add(4, 0);
    assert_eq!(bench.sizes(), [3, 1, 1]);
}

/// `should_run_aging`: three generations of 40, 30, 30 are even; more than half young, or less than a quarter old, is not.
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
    assert!(!bench.lru.should_run_aging(0).1, "four are enough");
    bench.lru.min_seq = 2;
    assert!(bench.lru.should_run_aging(0).1, "two are too few");
}

/// The oldest generation of five folios: one used five times is protected, one is dirty, one is locked, two leave. One that comes back while the
/// same generation is the oldest is a refault of its tier.
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
    // The protected one is at the tail of the next generation, the others at its head.
    let list: Vec<u32> = bench.lru.generations[gen_of(2)].iter(&bench.cache.core.folios).collect();
    assert_eq!(list, [folios[2], folios[1], folios[0]]);
    let core = &bench.cache.core;
    assert!(core.folios.has(folios[1], flag::RECLAIM) && !core.folios.has(folios[0], flag::RECLAIM));
    assert_eq!(refs_of(core, folios[0]), 0, "uses are forgotten with the generation");
    // It is empty, so that the next one is the oldest: it became so before the two left, whose return is a refault of it.
    assert_eq!((bench.sizes(), bench.lru.min_seq), (vec![3, 0], 2));
    bench.add(3, 0);
    assert_eq!(bench.cache.core.stats.refaults, 1);
}

/// A page that a fault brings back, or that was used four times and more, is protected from the beginning.
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
        // The oldest generation is number 0; accesses beyond the second, and whether there was a second.
        let token = u32::max(refs, 1) - 1;
        cache.core.reclaim(folio.0, Shadow(token << 1 | u32::from(refs > 0)));
        let Folio(at) = cache.insert(FILE, page, cause);
        assert_eq!(refs_of(&cache.core, at) == REFS_MOST, hot, "page {page}");
    }
    assert_eq!((cache.stats().refaults, cache.stats().refaults_restored), (3, 2));
}
