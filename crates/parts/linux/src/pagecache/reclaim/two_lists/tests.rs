//! Worked examples of `mm/vmscan.c`, `mm/swap.c` and `mm/workingset.c`.

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

/// inactive,unreferenced -> inactive,referenced -> active,unreferenced -> active,referenced: the comment above `folio_mark_accessed`.
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

/// A core with a policy of its own, and pages of a file in it.
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

/// Ten pages are active. Page 0 is evicted; then nine others are, and the distance is 10: it is activated. With ten others it is 11: it is not.
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

/// A page that was active comes back as one of the working set.
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

/// What stays of a batch keeps its order, behind what was not looked at.
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
        "what is locked is not scanned"
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
    // 3 * 1 < 2 is not so; with three active of five, 2 * 1 < 3 is.
    assert!(!bench.lists.inactive_is_low());
    let folio = bench.cache.find(FILE, 2).expect("it is there");
    bench.lists.accessed(&mut bench.cache.core, folio.0);
    bench.lists.accessed(&mut bench.cache.core, folio.0);
    assert!(bench.lists.inactive_is_low());
}
