//! Windows worked out by hand from `mm/readahead.c` and `mm/filemap.c`. Unless noted, `ra_pages` is 32, 128 KiB.

use super::on_demand::{get_init_ra_size, get_next_ra_size};
use super::*;
use crate::pagecache::{Cause, PageCacheSpec};

const FILE: Inode = Inode(1);

struct Reader {
    cache: PageCache,
    ra: FileRa,
    file_pages: u64,
    plans: Vec<(u64, u64, Option<u64>)>,
}

fn plan(first: u64, pages: u64, mark: impl Into<Option<u64>>) -> Option<Plan> {
    Some(Plan { first, pages, mark: mark.into() })
}

impl Reader {
    fn new(file_pages: u64) -> Reader {
        let cache = PageCache::new(&PageCacheSpec::default(), 1 << 16).expect("the spec is valid");
        Reader { cache, ra: FileRa::new(32, 320), file_pages, plans: Vec::new() }
    }

    fn request(&self, index: u64, req_count: u64) -> Request {
        Request { inode: FILE, file_pages: self.file_pages, index, req_count }
    }

    /// Puts pages of the file into memory.
    fn fill(&mut self, pages: std::ops::Range<u64>) {
        for page in pages {
            let folio = self.cache.insert(FILE, page, Cause::Read);
            self.cache.set_uptodate(folio);
            self.cache.unlock(folio);
        }
    }

    fn sync(&mut self, index: u64, req_count: u64) -> Option<Plan> {
        let request = self.request(index, req_count);
        self.cache.sync_ra(&mut self.ra, &request)
    }

    fn marked(&mut self, index: u64, req_count: u64) -> Option<Plan> {
        let (request, folio) =
            (self.request(index, req_count), self.cache.find(FILE, index).expect("it is there"));
        self.cache.set_readahead(folio);
        let plan = self.cache.async_ra(&mut self.ra, &request, folio);
        assert!(!self.cache.is_readahead(folio));
        plan
    }

    fn take(&mut self, plan: Option<Plan>) {
        let Some(Plan { first, pages, mark }) = plan else { return };
        self.plans.push((first, pages, mark));
        let mut runs = Vec::new();
        self.cache.missing_runs(FILE, first, pages, &mut runs);
        for run in runs {
            self.fill(run.first..run.end());
            if let Some(mark) = mark.filter(|mark| (run.first..run.end()).contains(mark)) {
                let folio = self.cache.find(FILE, mark).expect("just read");
                self.cache.set_readahead(folio);
            }
        }
    }

    /// Reads pages as `filemap_read` does.
    fn read(&mut self, first: u64, count: u64) {
        for page in first..first + count {
            if self.cache.lookup(FILE, page).is_none() {
                let plan = self.sync(page, first + count - page);
                self.take(plan);
            }
            let folio = self.cache.find(FILE, page).expect("it was read");
            if self.cache.is_readahead(folio) {
                let request = self.request(page, first + count - page);
                let plan = self.cache.async_ra(&mut self.ra, &request, folio);
                self.take(plan);
            }
            self.cache.mark_accessed(folio);
            self.ra.prev_pos = (page + 1) * PAGE;
        }
    }
}

#[test]
fn sizes_of_windows() {
    // The comment of `get_init_ra_size` reads 1-2 pages 16k, 3-4 32k, 5-8 64k, more 128k; for two pages the code has
    // 16k, since 2 > 32 / 32.
    let sizes = [1, 2, 3, 4, 5, 8, 9, 32].map(|pages| get_init_ra_size(pages, 32));
    assert_eq!(sizes, [4, 4, 8, 8, 16, 16, 32, 32]);
    assert_eq!([1, 4, 5, 16, 17, 32].map(|pages| get_next_ra_size(pages, 32)), [4, 8, 10, 32, 32, 32]);
    // 1 MiB: 256 / 32 = 8 and 256 / 16 = 16.
    assert_eq!([1, 8, 16, 100].map(|pages| get_init_ra_size(pages, 256)), [4, 32, 32, 256]);
    assert_eq!([4, 15, 16, 128, 129].map(|pages| get_next_ra_size(pages, 256)), [16, 60, 32, 256, 256]);
}

/// Four pages, of which three are ahead: the marker is page 1. At the marker the window doubles, and its marker is its
/// first page.
#[test]
fn a_reader_of_single_pages() {
    let mut reader = Reader::new(1 << 20);
    (0..100).for_each(|page| reader.read(page, 1));
    let windows = [
        (0, 4, Some(1)),
        (4, 8, Some(4)),
        (12, 16, Some(12)),
        (28, 32, Some(28)),
        (60, 32, Some(60)),
        (92, 32, Some(92)),
        (124, 32, Some(124)),
    ];
    assert_eq!(reader.plans, windows);
    let stats = reader.cache.stats();
    assert_eq!((stats.misses, stats.hits), (1, 99), "only the first read waits");
}

/// `get_init_ra_size(8, 32)` is 16, of which 8 are ahead.
#[test]
fn a_reader_of_eight_pages() {
    let mut reader = Reader::new(1 << 20);
    (0..12).for_each(|n| reader.read(n * 8, 8));
    assert_eq!(
        reader.plans,
        [(0, 16, Some(8)), (16, 32, Some(16)), (48, 32, Some(48)), (80, 32, Some(80)), (112, 32, Some(112))]
    );
}

/// A window that is entirely ahead would meet its own marker: it is the maximum, with its marker in the middle.
#[test]
fn requests_as_large_as_the_window_and_larger() {
    let mut reader = Reader::new(1 << 20);
    assert_eq!(reader.sync(0, 32), plan(0, 32, 16));
    // Larger than `ra_pages`: up to what the drive takes, 1280 KiB.
    let mut reader = Reader::new(1 << 20);
    assert_eq!(reader.sync(0, 256), plan(0, 256, 128));
    assert_eq!(reader.sync(5000, 1000), plan(5000, 320, 5160));
    // A drive with the same limit.
    reader.ra.io_pages = 32;
    assert_eq!(reader.sync(9000, 1000), plan(9000, 32, 9016));
}

#[test]
fn the_end_of_the_file_cuts_windows_and_loses_markers() {
    let mut reader = Reader::new(10);
    (0..10).for_each(|page| reader.read(page, 1));
    // Six of eight pages are left, and 6 - 8 is not a page.
    assert_eq!(reader.plans, [(0, 4, Some(1)), (4, 6, None)]);
    assert_eq!(reader.sync(10, 1), None);
    let mut reader = Reader::new(3);
    // Three of four: the marker is 3 - 3 = page 0.
    assert_eq!(reader.sync(0, 1), plan(0, 3, 0));
}

#[test]
fn a_read_at_random_is_read_alone() {
    let mut reader = Reader::new(1 << 20);
    let before = reader.ra;
    assert_eq!(reader.sync(1000, 3), plan(1000, 3, None));
    assert_eq!(reader.ra, before, "the window stays");
    // After the last read, or in its last page: sequential.
    for pos in [1004 * PAGE, 1004 * PAGE + 100, 1003 * PAGE + 5] {
        reader.ra = FileRa { prev_pos: pos, ..before };
        assert_eq!(reader.sync(1004, 1), plan(1004, 4, 1005));
    }
    reader.ra.prev_pos = 1003 * PAGE - 1;
    (reader.ra.start, reader.ra.size) = (0, 0);
    assert_eq!(reader.sync(1004, 1), plan(1004, 1, None));
}

#[test]
fn history_in_memory_tells_that_a_file_is_read_in_order() {
    let mut reader = Reader::new(1 << 20);
    reader.fill(90..100);
    // Ten pages: a window of 10 + 1, the last of it ahead.
    assert_eq!(reader.sync(100, 1), plan(100, 11, 110));
    // Pages of history up to the requested number are ignored.
    reader.ra = FileRa::new(32, 320);
    assert_eq!(reader.sync(100, 10), plan(100, 10, None));
    // From the beginning of the file on they count twice.
    let mut reader = Reader::new(1 << 20);
    reader.fill(0..10);
    assert_eq!(reader.sync(10, 1), plan(10, 21, 30));
    // `page_cache_prev_miss` checks 32 pages and stops at the last: 31 of them, and one more is the maximum.
    reader.fill(200..300);
    assert_eq!(reader.sync(300, 1), plan(300, 32, 331));
}

#[test]
fn a_marker_of_another_window() {
    let mut reader = Reader::new(1 << 20);
    reader.fill(200..208);
    // Four pages are left, one is asked for: 2 * 5 from the gap on.
    assert_eq!(reader.marked(204, 1), plan(208, 10, 208));
    // The gap is too far away to be found: the last page checked, 305 + 31, counts as one.
    let mut reader = Reader::new(1 << 20);
    reader.fill(300..400);
    assert_eq!(reader.marked(304, 1), plan(336, 32, 336));
    // Under write-back, the bit does not mean a marker.
    let folio = reader.cache.find(FILE, 310).expect("it is there");
    reader.cache.start_writeback(folio);
    reader.cache.set_readahead(folio);
    let request = reader.request(310, 1);
    assert_eq!(reader.cache.async_ra(&mut reader.ra, &request, folio), None);
}

/// Two readers of one descriptor, a page each in turn, at 0 and at 10,000: each follows its own markers.
#[test]
fn interleaved_readers() {
    let mut reader = Reader::new(1 << 20);
    for page in 0..40 {
        reader.read(page, 1);
        reader.read(10_000 + page, 1);
    }
    let (near, far): (Vec<_>, Vec<_>) = reader.plans.iter().copied().partition(|plan| plan.0 < 10_000);
    // The marker at 1 is met while the window is still its own. At 4 the window is the other reader's: of pages 4 to
    // 11, 8 are present, one is requested, and 2 * 9 follow.
    assert_eq!(near[..3], [(0, 4, Some(1)), (4, 8, Some(4)), (12, 18, Some(12))]);
    // The first two reads there are isolated; the third has two pages of history; at its marker one page is present,
    // one is requested: 2 * 2.
    assert_eq!(
        far[..4],
        [(10_000, 1, None), (10_001, 1, None), (10_002, 3, Some(10_004)), (10_005, 4, Some(10_005))]
    );
    let misses = reader.cache.stats().misses;
    assert_eq!(misses, 4);
}

#[test]
fn advice() {
    let mut reader = Reader::new(1 << 20);
    reader.ra.advise(Advice::Sequential, 32);
    assert_eq!((reader.ra.ra_pages, reader.sync(0, 1)), (64, plan(0, 4, 1)));
    reader.ra.advise(Advice::Random, 32);
    assert_eq!(reader.sync(0, 8), plan(0, 8, None), "the requested pages");
    assert_eq!(reader.sync(0, 1000), plan(0, 320, None), "up to the drive's limit");
    reader.ra.advise(Advice::Normal, 32);
    assert_eq!((reader.ra.ra_pages, reader.ra.random), (32, false));
    let request = reader.request(50, 2000);
    assert_eq!(reader.cache.force_ra(&reader.ra, &request), plan(50, 320, None));
}

#[test]
fn without_read_ahead_pages_come_one_by_one() {
    let mut reader = Reader::new(1 << 20);
    reader.ra = FileRa::new(0, 320);
    assert_eq!(reader.sync(0, 8), plan(0, 1, None));
    reader.ra = FileRa::new(32, 320);
    let spec = PageCacheSpec { readahead: ReadAheadPolicy::none, ..PageCacheSpec::default() };
    reader.cache = PageCache::new(&spec, 1 << 16).expect("the spec is valid");
    (0..8).for_each(|page| reader.read(page, 8));
    assert_eq!((reader.cache.stats().misses, reader.plans.iter().all(|plan| plan.1 == 1)), (15, true));
}

#[test]
fn a_mapping_is_read_around() {
    let mut reader = Reader::new(1 << 20);
    let fault = |reader: &mut Reader, index, mapping| {
        let request = reader.request(index, 1);
        reader.cache.sync_mmap_ra(&mut reader.ra, &request, mapping)
    };
    // 16 pages before the fault; the marker a quarter before the end.
    assert_eq!(fault(&mut reader, 100, Mapping::Normal), plan(84, 32, 108));
    assert_eq!(fault(&mut reader, 5, Mapping::Normal), plan(0, 32, 24));
    assert_eq!(fault(&mut reader, 100, Mapping::Random), None);
    assert_eq!(fault(&mut reader, 0, Mapping::Sequential), plan(0, 32, 16));
    // 98 more make a hundred misses; the next one is too many.
    for page in 0..98 {
        assert!(fault(&mut reader, page * 1000, Mapping::Normal).is_some());
    }
    assert_eq!((fault(&mut reader, 7, Mapping::Normal), reader.ra.mmap_miss), (None, 101));
    // A hit takes one back, and the pages mapped around it more.
    reader.fill(32..40);
    let (request, folio) = (reader.request(35, 1), reader.cache.find(FILE, 35).expect("it is there"));
    assert_eq!(reader.cache.async_mmap_ra(&mut reader.ra, &request, folio, Mapping::Normal), None);
    assert_eq!(reader.ra.mmap_miss, 100);
    let marker = reader.cache.find(FILE, 36).expect("it is there");
    reader.cache.set_readahead(marker);
    assert!(reader.cache.fault_around(&mut reader.ra, &request));
    assert_eq!(
        (reader.ra.mmap_miss, reader.cache.is_mapped(folio), reader.cache.is_mapped(marker)),
        (93, true, false)
    );
    // The marker is not mapped around; its own fault reads on, from the gap at 40: 2 * (4 + 32) is beyond the maximum.
    let request = reader.request(36, 1);
    assert!(!reader.cache.fault_around(&mut reader.ra, &request));
    assert_eq!(
        reader.cache.async_mmap_ra(&mut reader.ra, &request, marker, Mapping::Normal),
        plan(40, 32, 40)
    );
}

#[test]
fn the_same_page_is_accessed_once() {
    let mut ra = FileRa::new(32, 320);
    assert!(!ra.is_same_page(0));
    ra.prev_pos = 5 * PAGE + 100;
    assert_eq!([5 * PAGE + 100, 6 * PAGE].map(|pos| ra.is_same_page(pos)), [true, false]);
    ra.prev_pos = 6 * PAGE;
    assert!(!ra.is_same_page(6 * PAGE));
}
