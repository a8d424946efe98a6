//! Tests of the whole cache.

use super::readahead::ReadAheadPolicy;
use super::reclaim::ReclaimPolicy;
use super::*;

#[test]
fn the_families_keep_their_contract() {
    config::policy::check_family::<ReclaimPolicy>().expect("the list is whole");
    config::policy::check_family::<ReadAheadPolicy>().expect("the list is whole");
}

/// What `/proc/zoneinfo` follows from: 3 GiB are 3,145,728 kbytes; `int_sqrt(3145728 * 16)` = 7094, of which 7094 / 4 = 1773 pages; apart by the larger of
/// 1773 / 4 = 443 and 786,432 * 10 / 10,000 = 786 pages.
#[test]
fn watermarks_of_three_gib() {
    let cache = PageCache::new(&PageCacheSpec::default(), 3 << 18).expect("it is built");
    assert_eq!(cache.watermarks(), Watermarks { min: 1773, low: 1773 + 786, high: 1773 + 2 * 786 });
    let spec = PageCacheSpec { watermark_scale_factor: 1, ..PageCacheSpec::default() };
    assert_eq!(Watermarks::new(&spec, 3 << 18), Watermarks { min: 1773, low: 2216, high: 2659 });
}

#[test]
fn a_page_comes_and_goes() {
    let (inode, mut cache) =
        (Inode(3), PageCache::new(&PageCacheSpec::default(), 1 << 16).expect("it is built"));
    assert_eq!(cache.lookup(inode, 7), None);
    let folio = cache.insert(inode, 7, Cause::Read);
    assert_eq!((cache.find(inode, 7), cache.owner(folio), cache.free()), (Some(folio), (inode, 7), 65_535));
    assert!(cache.is_locked(folio) && !cache.is_uptodate(folio));
    cache.set_uptodate(folio);
    cache.unlock(folio);
    assert_eq!(cache.lookup(inode, 7), Some(folio));
    cache.remove(folio);
    assert_eq!((cache.find(inode, 7), cache.free(), cache.file_pages(inode)), (None, 65_536, 0));
    assert_eq!((cache.stats().hits, cache.stats().misses), (1, 1));
    cache.check().expect("the accounts agree");
}
