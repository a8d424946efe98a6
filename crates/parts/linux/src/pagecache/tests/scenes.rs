//! Work on files that do not fit, and what stays.

use super::*;

const FILE: Inode = Inode(0);
const STREAM: Inode = Inode(1);

/// 900 pages were used once. A task wants 32: of 900 >> 12, 11 and 10 there are none; then 900 >> 9 = 1, 899 >> 8 = 3, 896 >> 7 = 7, 889 >> 6 = 13, 876 >> 5 =
/// 27 are scanned, after which it has 51.
#[test]
fn a_task_scans_more_of_the_list_round_by_round() {
    let mut cache = cache(ReclaimPolicy::default(), 1 << 10);
    (0..900).for_each(|page| assert!(!used(&mut cache, FILE, page)));
    let (rounds, next) = reclaim_all(&mut cache, ScanControl::direct());
    let freed: Vec<u64> = rounds.iter().map(|round| round.freed).collect();
    assert_eq!((freed, next), (vec![0, 0, 0, 1, 3, 7, 13, 27], Next::Done));
    // The oldest went.
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
    // 80 are free after 944 pages, 64 after 960.
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
    // 20,000 and 100 came; 1024 less what is kept free are there.
    assert_eq!(stats.evicted, 20_100 - cache.nr_file_pages());
    cache.check().expect("the accounts agree");
}

/// A loop over 900 pages beside 400 active ones that nobody uses any more: 944 fit. The loop's pages return soon enough to be activated, which
/// deactivates the others; with shadow entries it comes to fit, without them it never does.
#[test]
fn refaults_let_a_new_working_set_in() {
    let misses = |workingset| {
        let spec = PageCacheSpec { workingset, ..PageCacheSpec::default() };
        let mut cache = PageCache::new(&spec, 1 << 10).expect("it is built");
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

/// Dirty pages get out of the way and are marked; the flushers are woken, since a batch held nothing else. Once written, they go first.
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

/// When nothing but dirty pages is found, and found again, `kswapd` writes some itself (`PGDAT_DIRTY`).
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

/// All is under write-back: found once it is marked, found twice it is congested, and `kswapd` sleeps.
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

/// Mapped pages have a second chance at their first look, since the fault itself used them.
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

/// Generations: a page of a read comes to the second oldest, a fault's to the youngest; a page used five times is protected, and one used once leaves.
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
    // Used again between rounds as a working set is; the stream is used once.
    for page in 0..20_000u64 {
        used(&mut cache, STREAM, page);
        used(&mut cache, FILE, page % 100);
    }
    assert_eq!(cache.file_pages(FILE), 101);
    assert!(cache.stats().activated > 0);
    cache.check().expect("the accounts agree");
}

/// Whatever the policy: locked, dirty and written pages stay, and reclaim ends.
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
