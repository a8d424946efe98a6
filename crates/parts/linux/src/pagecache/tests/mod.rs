//! Tests of the whole cache.

mod model;
mod scenes;

use super::readahead::ReadAheadPolicy;
use super::reclaim::ReclaimPolicy;
use super::*;

/// An empty cache of so many pages.
pub(super) fn cache(reclaim: ReclaimPolicy, pages: u64) -> PageCache {
    let spec = PageCacheSpec { reclaim, ..PageCacheSpec::default() };
    PageCache::new(&spec, pages).expect("it is built")
}

/// A page that was read and is not used yet.
pub(super) fn read(cache: &mut PageCache, inode: Inode, page: u64) -> Folio {
    let folio = cache.insert(inode, page, Cause::Read);
    cache.set_uptodate(folio);
    cache.unlock(folio);
    folio
}

/// Reclaims to the end: the rounds, and how it ended.
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

/// `kswapd` does its work if it is woken now.
pub(super) fn make_room(cache: &mut PageCache) {
    while cache.pressure() != Pressure::None {
        let (_, next) = reclaim_all(cache, ScanControl::kswapd());
        assert!(next == Next::Done || !cache.is_hopeless());
    }
}

/// A use of a page by a read, which brings it if it is missing; whether it was there.
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
    config::policy::check_family::<ReclaimPolicy>().expect("the list is whole");
    config::policy::check_family::<ReadAheadPolicy>().expect("the list is whole");
}

/// What `/proc/zoneinfo` follows from: 3 GiB are 3,145,728 kbytes; `int_sqrt(3145728 * 16)` = 7094, of which 7094 / 4 = 1773 pages; apart by the larger of
/// 1773 / 4 = 443 and 786,432 * 10 / 10,000 = 786 pages.
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

/// The marks and the tags of a page from a write to the end of its write-back, with a store in between (`folio_clear_dirty_for_io`,
/// `__folio_start_writeback`).
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
