//! Tests of the whole cache: work on files that do not fit, and a model to compare with.

mod model;

use super::readahead::ReadAheadPolicy;
use super::reclaim::ReclaimPolicy;
use super::*;

/// Creates an empty cache of `pages` pages.
pub(super) fn cache(reclaim: ReclaimPolicy, pages: u64) -> PageCache {
    let spec = PageCacheSpec { reclaim, ..PageCacheSpec::default() };
    PageCache::new(&spec, pages).expect("the spec is valid")
}

/// Inserts a page that was read but not used yet.
pub(super) fn read(cache: &mut PageCache, inode: Inode, page: u64) -> Folio {
    let folio = cache.insert(inode, page, Cause::Read);
    cache.set_uptodate(folio);
    cache.unlock(folio);
    folio
}

/// Reclaims to the end; returns the rounds, and the outcome.
pub(super) fn reclaim_all(cache: &mut PageCache, mut control: ScanControl) -> (Vec<Reclaimed>, Next) {
    let mut rounds = Vec::new();
    loop {
        let round = cache.reclaim(&mut control);
        rounds.push(round);
        assert!(rounds.len() < 100, "a reclaim ends");
        if round.next != Next::Again {
            return (rounds, round.next);
        }
    }
}

/// Runs `kswapd` if it is woken now.
pub(super) fn make_room(cache: &mut PageCache) {
    while cache.pressure() != Pressure::None {
        let (_, next) = reclaim_all(cache, ScanControl::kswapd());
        assert!(next == Next::Done || !cache.is_hopeless());
    }
}

/// Uses a page by a read, inserting it if missing; returns whether it was present.
pub(super) fn used(cache: &mut PageCache, inode: Inode, page: u64) -> bool {
    let found = cache.lookup(inode, page);
    let folio = found.unwrap_or_else(|| {
        make_room(cache);
        read(cache, inode, page)
    });
    cache.mark_accessed(folio);
    found.is_some()
}

#[test]
fn the_families_keep_their_contract() {
    config::policy::check_family::<ReclaimPolicy>().expect("the list is complete");
    config::policy::check_family::<ReadAheadPolicy>().expect("the list is complete");
}

/// Basis of `/proc/zoneinfo`: 3 GiB are 3,145,728 kbytes; `int_sqrt(3145728 * 16)` = 7094, of which 7094 / 4 = 1773
/// pages; distance: the larger of 1773 / 4 = 443 and 786,432 * 10 / 10,000 = 786 pages.
#[test]
fn watermarks_of_three_gib() {
    let cache = cache(ReclaimPolicy::default(), 3 << 18);
    assert_eq!(cache.watermarks(), Watermarks { min: 1773, low: 1773 + 786, high: 1773 + 2 * 786 });
    let spec = PageCacheSpec { watermark_scale_factor: 1, ..PageCacheSpec::default() };
    assert_eq!(Watermarks::new(&spec, 3 << 18), Watermarks { min: 1773, low: 2216, high: 2659 });
    // A tebibyte: `int_sqrt(2^34)` = 2^17 kbytes. Sixteen: 2^19 are clamped to 2^18.
    assert_eq!([1 << 28, 1 << 32].map(|pages| Watermarks::new(&spec, pages).min), [1 << 15, 1 << 16]);
    let spec = PageCacheSpec { min_free_kbytes: Some(config::units::Bytes::from_kib(67_584)), ..spec };
    assert_eq!(Watermarks::new(&spec, 3 << 18), Watermarks { min: 16_896, low: 21_120, high: 25_344 });
}

#[test]
fn specs_that_cannot_be_built() {
    let fault = |spec: &PageCacheSpec, pages| PageCache::new(spec, pages).err().map(|error| error.key);
    let good = PageCacheSpec::default();
    assert_eq!(fault(&good, 1 << 16), None);
    assert_eq!(fault(&good, 20).as_deref(), Some("watermark_scale_factor"));
    assert_eq!(fault(&good, 1 << 31).as_deref(), Some("memory"));
    let odd = PageCacheSpec { read_ahead_kb: config::units::Bytes::new(5000), ..good.clone() };
    assert_eq!(fault(&odd, 1 << 16).as_deref(), Some("read_ahead_kb"));
    let much = PageCacheSpec { min_free_kbytes: Some(config::units::Bytes::from_kib(1 << 18)), ..good };
    assert_eq!(fault(&much, 1 << 16).as_deref(), Some("min_free_kbytes"));
}

/// Flags and tags of a page from a write to the end of its write-back, with a store in between
/// (`folio_clear_dirty_for_io`, `__folio_start_writeback`).
#[test]
fn tags_follow_a_write_back() {
    let (inode, mut cache) = (Inode(3), cache(ReclaimPolicy::default(), 1 << 16));
    let folio = cache.insert(inode, 7, Cause::Write);
    cache.unlock(folio);
    assert!(cache.set_dirty(folio) && !cache.set_dirty(folio));
    cache.tag_towrite(inode, 0, 100);
    let tagged = |cache: &PageCache, tag| cache.next_tagged(inode, 0, tag) == Some((7, folio));
    let tags = |cache: &PageCache| [Tag::Dirty, Tag::ToWrite, Tag::Writeback].map(|tag| tagged(cache, tag));
    let counts = |cache: &PageCache| {
        (cache.nr_dirty(), cache.nr_writeback(), cache.dirty_pages(inode), cache.writeback_pages(inode))
    };
    assert_eq!((tags(&cache), counts(&cache)), ([true, true, false], (1, 0, 1, 0)));
    assert!(cache.clear_dirty_for_io(folio) && !cache.clear_dirty_for_io(folio));
    assert_eq!((tags(&cache), counts(&cache)), ([true, true, false], (0, 0, 0, 0)));
    cache.start_writeback(folio);
    assert_eq!((tags(&cache), counts(&cache)), ([false, false, true], (0, 1, 0, 1)));
    assert!(cache.set_dirty(folio));
    assert_eq!((tags(&cache), counts(&cache)), ([true, false, true], (1, 1, 1, 1)));
    cache.end_writeback(folio);
    assert_eq!((tags(&cache), counts(&cache)), ([true, false, false], (1, 0, 1, 0)));
    assert_eq!((cache.stats().dirtied, cache.stats().written), (2, 1));
    cache.check().expect("the accounts agree");
}

#[test]
fn truncation_waits_for_what_is_written_and_invalidation_leaves_what_is_dirty() {
    let (inode, mut cache) = (Inode(3), cache(ReclaimPolicy::default(), 1 << 16));
    let folios: Vec<Folio> = (0..10).map(|page| read(&mut cache, inode, page)).collect();
    cache.set_dirty(folios[2]);
    cache.lock(folios[3]);
    cache.start_writeback(folios[4]);
    cache.map(folios[5]);
    assert_eq!(cache.invalidate(inode, 1, 7), 3, "pages 1, 6 and 7");
    assert!(cache.is_readahead(folios[2]), "it goes when it is written");
    let mut gone = Vec::new();
    let stays = cache.truncate(inode, 2, |cache, page, folio| gone.push((page, cache.is_dirty(folio))));
    assert_eq!((stays, gone), (Some(folios[3]), vec![(2, true), (5, false), (8, false), (9, false)]));
    cache.unlock(folios[3]);
    assert_eq!(cache.truncate(inode, 2, |_, _, _| {}), Some(folios[4]));
    cache.end_writeback(folios[4]);
    assert_eq!(cache.truncate(inode, 2, |_, _, _| {}), None);
    assert_eq!((cache.file_pages(inode), cache.nr_dirty(), cache.stats().removed), (1, 0, 9));
    cache.check().expect("the accounts agree");
}

#[test]
fn what_is_read_ahead_is_used_or_wasted() {
    let (inode, mut cache) = (Inode(3), cache(ReclaimPolicy::default(), 1 << 16));
    let folios: Vec<Folio> = (0..4).map(|page| cache.insert(inode, page, Cause::ReadAhead)).collect();
    for &folio in &folios {
        cache.unlock(folio);
    }
    cache.mark_accessed(folios[0]);
    cache.mark_accessed(folios[0]);
    cache.set_dirty(folios[1]);
    cache.map(folios[2]);
    cache.truncate(inode, 0, |_, _, _| {});
    let stats = cache.stats();
    assert_eq!((stats.read_ahead, stats.read_ahead_used, stats.read_ahead_wasted), (4, 3, 1));
    cache.reset_stats();
    assert_eq!(*cache.stats(), PageCacheStats::default());
}

// Work on files that do not fit, and the pages that stay.

const FILE: Inode = Inode(0);

const STREAM: Inode = Inode(1);

/// 900 pages were used once. A task wants 32: 900 >> 12, 11 and 10 are zero; then 900 >> 9 = 1, 899 >> 8 = 3, 896 >> 7
/// = 7, 889 >> 6 = 13, 876 >> 5 = 27 are scanned, after which it has 51.
#[test]
fn a_task_scans_more_of_the_list_round_by_round() {
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    (0..900).for_each(|page| assert!(!used(&mut cache, FILE, page)));
    let (rounds, next) = reclaim_all(&mut cache, ScanControl::direct());
    let freed: Vec<u64> = rounds.iter().map(|round| round.freed).collect();
    assert_eq!((freed, next), (vec![0, 0, 0, 1, 3, 7, 13, 27], Next::Done));
    // The oldest pages were evicted.
    assert_eq!((cache.next_present(FILE, 0), cache.nr_inactive()), (Some(51), 849));
    assert_eq!((cache.stats().scanned_direct, cache.stats().evicted_direct), (51, 51));
}

#[test]
fn pressure_follows_the_watermarks() {
    // 4096 kbytes: `int_sqrt(65536)` = 256 kbytes are 64 pages, and a quarter of it apart.
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    assert_eq!(cache.watermarks(), Watermarks { min: 64, low: 80, high: 96 });
    let mut seen = Vec::new();
    for page in 0..1000 {
        seen.push(cache.pressure());
        read(&mut cache, FILE, page);
    }
    let first = |pressure| seen.iter().position(|one| *one == pressure).expect("it came to that") as u64;
    // 80 pages are free after 944 insertions, 64 after 960.
    assert_eq!((first(Pressure::Kswapd), first(Pressure::Direct)), (944, 960));
    assert!(!cache.allows_direct_reclaim(), "24 of 64 are left");
    let (_, next) = reclaim_all(&mut cache, ScanControl::kswapd());
    assert_eq!((next, cache.pressure()), (Next::Done, Pressure::None));
    assert!(cache.free() > 96);
}

/// Pages used twice are active; those used once pass by, however many.
#[test]
fn a_scan_does_not_evict_the_working_set() {
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    for _ in 0..2 {
        for page in 0..100 {
            used(&mut cache, FILE, page);
        }
    }
    assert_eq!((cache.nr_active(), cache.nr_inactive()), (100, 0));
    for page in 0..20_000 {
        used(&mut cache, STREAM, page);
    }
    assert_eq!(cache.file_pages(FILE), 100);
    assert!((0..100).all(|page| used(&mut cache, FILE, page)));
    let stats = cache.stats();
    assert_eq!((stats.deactivated, stats.refaults), (0, 0));
    // 20,000 and 100 were inserted; 1024 less the free reserve are present.
    assert_eq!(stats.evicted, 20_100 - cache.nr_file_pages());
    cache.check().expect("the accounts agree");
}

/// A loop over 900 pages next to 400 unused active ones: 944 fit. The loop's pages return soon enough to be activated,
/// which deactivates the others. With shadow entries the loop comes to fit, without them it never does.
#[test]
fn refaults_let_a_new_working_set_in() {
    let misses = |workingset| {
        let spec = PageCacheSpec { workingset, ..PageCacheSpec::default() };
        let mut cache = PageCache::new(&spec, 1 << 10).expect("the spec is valid");
        for _ in 0..2 {
            for page in 0..400 {
                used(&mut cache, FILE, page);
            }
        }
        let mut missed = Vec::new();
        for _ in 0..12 {
            missed.push((0..800).filter(|page| !used(&mut cache, STREAM, *page)).count());
        }
        cache.check().expect("the accounts agree");
        (missed, *cache.stats())
    };
    let (with, stats) = misses(true);
    assert_eq!((with[0], with[11]), (800, 0), "{with:?}");
    assert!(stats.refaults_activated > 0 && stats.deactivated > 0);
    let (without, stats) = misses(false);
    assert!(without.iter().all(|missed| *missed == 800), "{without:?}");
    assert_eq!(stats.refaults, 0);
}

/// Dirty pages are moved out of the way and marked; the flushers are woken, since a batch held only those. Once
/// written, they are evicted first.
#[test]
fn dirty_pages_wait_for_the_flushers() {
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    let folios: Vec<Folio> = (0..940).map(|page| read(&mut cache, FILE, page)).collect();
    folios.iter().for_each(|folio| assert!(cache.set_dirty(*folio)));
    let (rounds, next) = reclaim_all(&mut cache, ScanControl::direct());
    assert_eq!(next, Next::Failed);
    assert!(rounds.iter().any(|round| round.wakes_flushers && round.unqueued_dirty == round.scanned));
    assert!(rounds.iter().all(|round| round.freed == 0));
    assert_eq!(
        (cache.nr_active(), cache.stats().marked_for_reclaim > 0),
        (cache.nr_file_pages() - cache.nr_inactive(), true)
    );
    let marked = folios.iter().copied().find(|folio| cache.is_readahead(*folio)).expect("one is marked");
    cache.clear_dirty_for_io(marked);
    cache.start_writeback(marked);
    cache.end_writeback(marked);
    assert!(!cache.is_active(marked) && !cache.is_readahead(marked));
    let (rounds, _) = reclaim_all(&mut cache, ScanControl::direct());
    assert_eq!(rounds.iter().map(|round| round.freed).sum::<u64>(), 1);
    assert_eq!(cache.find(FILE, cache.owner(folios[0]).1), Some(folios[0]).filter(|folio| *folio != marked));
    cache.check().expect("the accounts agree");
}

/// When only dirty pages are found twice, `kswapd` writes some itself (`PGDAT_DIRTY`).
#[test]
fn kswapd_writes_what_it_meets_twice() {
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    let folios: Vec<Folio> = (0..1000).map(|page| read(&mut cache, FILE, page)).collect();
    folios.iter().for_each(|folio| assert!(cache.set_dirty(*folio)));
    let mut out = Vec::new();
    for _ in 0..4 {
        let (_, next) = reclaim_all(&mut cache, ScanControl::kswapd());
        assert_eq!(next, Next::Failed);
        cache.pageouts(&mut out);
    }
    assert!(!out.is_empty() && out.iter().all(|folio| cache.is_dirty(*folio)));
    assert_eq!(cache.stats().pageouts, out.len() as u64);
    for _ in 0..16 {
        reclaim_all(&mut cache, ScanControl::kswapd());
    }
    assert!(cache.is_hopeless() && cache.allows_direct_reclaim());
}

/// All pages are under write-back: found once they are marked, found twice reclaim is congested, and `kswapd` sleeps.
#[test]
fn write_back_that_reclaim_meets_twice_throttles() {
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    let folios: Vec<Folio> = (0..1000).map(|page| read(&mut cache, FILE, page)).collect();
    folios.iter().for_each(|folio| cache.start_writeback(*folio));
    let mut throttles = Vec::new();
    for _ in 0..6 {
        throttles.extend(
            reclaim_all(&mut cache, ScanControl::kswapd()).0.into_iter().filter_map(|round| round.throttle),
        );
    }
    assert!(throttles.contains(&Throttle::Writeback) && !throttles.contains(&Throttle::NoProgress));
    let (rounds, next) = reclaim_all(&mut cache, ScanControl::direct());
    assert_eq!(next, Next::Failed);
    assert!(rounds.iter().any(|round| round.throttle == Some(Throttle::Congested)), "{rounds:?}");
}

/// Mapped pages survive their first scan, since the fault itself used them.
#[test]
fn mapped_pages_are_looked_at_twice() {
    for reclaim in ReclaimPolicy::all_defaults() {
        let mut cache = cache(reclaim.clone(), 1 << 10);
        let folios: Vec<Folio> = (0..940).map(|page| read(&mut cache, FILE, page)).collect();
        folios[..20].iter().for_each(|folio| cache.map(*folio));
        for page in 0..1000 {
            make_room(&mut cache);
            read(&mut cache, STREAM, page);
        }
        assert!((20..60).all(|page| cache.find(FILE, page).is_none()), "{}", reclaim.name());
        cache.check().expect("the accounts agree");
    }
}

/// Generations: a read page enters the second oldest, a faulted one the youngest; a page used five times is protected,
/// and one used once is evicted.
#[test]
fn generations_protect_what_is_used_often() {
    let mut cache = cache(ReclaimPolicy::mglru, 1 << 10);
    let faulted = cache.insert(FILE, 1 << 20, Cause::Fault);
    assert!(cache.is_active(faulted));
    for _ in 0..5 {
        for page in 0..100 {
            used(&mut cache, FILE, page);
        }
    }
    let folio = cache.find(FILE, 5).expect("it is there");
    assert!(!cache.is_active(folio) && cache.is_workingset(folio));
    // Used again between rounds like a working set; the stream is used once.
    for page in 0..20_000u64 {
        used(&mut cache, STREAM, page);
        used(&mut cache, FILE, page % 100);
    }
    assert_eq!(cache.file_pages(FILE), 101);
    assert!(cache.stats().activated > 0);
    cache.check().expect("the accounts agree");
}

/// For every policy: locked, dirty and written pages stay, and reclaim ends.
#[test]
fn every_policy_spares_what_cannot_go() {
    for reclaim in ReclaimPolicy::all_defaults() {
        let mut cache = cache(reclaim.clone(), 1 << 10);
        let folios: Vec<Folio> = (0..900).map(|page| read(&mut cache, FILE, page)).collect();
        for (n, &folio) in folios.iter().enumerate() {
            match n % 9 {
                0 => cache.lock(folio),
                1 => assert!(cache.set_dirty(folio)),
                2 => cache.start_writeback(folio),
                _ => {}
            }
        }
        for page in 0..2000 {
            make_room(&mut cache);
            read(&mut cache, STREAM, page);
        }
        let stay = (0..900).filter(|page| cache.find(FILE, *page).is_some()).count();
        assert_eq!(stay, 300, "{}", reclaim.name());
        cache.check().expect("the accounts agree");
    }
}
