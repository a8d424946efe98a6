//! What the page cache costs, in nanoseconds a page operation: 1 GiB of memory, one file of 64 GiB.
//!
//! A page operation is a look-up, an insertion, a page made dirty, one whose write-back ends, or one that reclaim evicts; reads and writes are
//! divided by how many each of their pages takes. Beside it the same pages in a plain hash map with one list, first in, first out: what the
//! misses of this processor's caches cost at least.
//!
//! `cargo bench -p nandscape-host --bench pagecache`

use host::Inode;
use host::pagecache::reclaim::ReclaimPolicy;
use host::pagecache::{Cause, Next, PageCache, PageCacheSpec, Pressure, Run, ScanControl, Tag};
use kernel::Rng;
use rustc_hash::FxHashMap;
use std::hint::black_box;
use std::time::Instant;

const MEMORY: u64 = 1 << 18;
const FILE: u64 = 1 << 24;
/// What fits beside the pages that are kept free.
const CACHED: u64 = MEMORY / 16 * 15;
const INODE: Inode = Inode(7);
const ROUNDS: usize = 5;

/// What can be read and written.
trait Pages {
    /// A page is read, and brought if it is missing; who is brought is evicted sooner or later.
    fn read(&mut self, page: u64);
    /// A page is overwritten as a whole, and brought if it is missing.
    fn write(&mut self, page: u64);
    /// All that is dirty is written.
    fn write_back(&mut self);
}

struct Cache {
    cache: PageCache,
    runs: Vec<Run>,
}

impl Cache {
    fn new(reclaim: ReclaimPolicy) -> Cache {
        let spec = PageCacheSpec { reclaim, ..PageCacheSpec::default() };
        Cache { cache: PageCache::new(&spec, MEMORY).expect("a good spec"), runs: Vec::new() }
    }

    fn make_room(&mut self) {
        while self.cache.pressure() != Pressure::None {
            let mut control = ScanControl::kswapd();
            while self.cache.reclaim(&mut control).next == Next::Again {}
        }
    }
}

impl Pages for Cache {
    #[inline]
    fn read(&mut self, page: u64) {
        let folio = self.cache.lookup(INODE, page).unwrap_or_else(|| {
            self.make_room();
            let folio = self.cache.insert(INODE, page, Cause::Read);
            self.cache.set_uptodate(folio);
            self.cache.unlock(folio);
            folio
        });
        self.cache.mark_accessed(folio);
    }

    #[inline]
    fn write(&mut self, page: u64) {
        let folio = self.cache.lookup(INODE, page).unwrap_or_else(|| {
            self.make_room();
            let folio = self.cache.insert(INODE, page, Cause::Write);
            self.cache.set_uptodate(folio);
            self.cache.unlock(folio);
            folio
        });
        self.cache.set_dirty(folio);
        self.cache.mark_accessed(folio);
    }

    fn write_back(&mut self) {
        let cache = &mut self.cache;
        cache.tag_towrite(INODE, 0, FILE);
        let mut from = 0;
        loop {
            self.runs.clear();
            cache.tagged_runs(INODE, from, FILE, Tag::ToWrite, 1024, &mut self.runs);
            let Some(last) = self.runs.last() else { return };
            from = last.end();
            for start in [true, false] {
                for page in self.runs.iter().flat_map(|run| run.first..run.end()) {
                    let folio = cache.find(INODE, page).expect("it has a tag");
                    if start {
                        cache.clear_dirty_for_io(folio);
                        cache.start_writeback(folio);
                    } else {
                        cache.end_writeback(folio);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Entry {
    page: u64,
    newer: u32,
    marks: u32,
}

/// A hash map from pages to entries, which are in a list in the order in which they came.
struct Map {
    places: FxHashMap<u64, u32>,
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
    dirty: Vec<u32>,
}

impl Map {
    fn new() -> Map {
        Map {
            places: FxHashMap::with_capacity_and_hasher(MEMORY as usize, Default::default()),
            entries: Vec::with_capacity(MEMORY as usize),
            newest: 0,
            oldest: 0,
            dirty: Vec::new(),
        }
    }

    #[inline]
    fn place(&mut self, page: u64) -> u32 {
        if let Some(&at) = self.places.get(&page) {
            return at;
        }
        let entry = Entry { page, newer: 0, marks: 0 };
        let at = if self.entries.len() < CACHED as usize {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let at = self.oldest;
            let gone = std::mem::replace(&mut self.entries[at as usize], entry);
            self.places.remove(&gone.page);
            self.oldest = gone.newer;
            at
        };
        self.entries[self.newest as usize].newer = at;
        self.newest = at;
        self.places.insert(page, at);
        at
    }
}

impl Pages for Map {
    #[inline]
    fn read(&mut self, page: u64) {
        let at = self.place(page);
        self.entries[at as usize].marks |= 1;
    }

    #[inline]
    fn write(&mut self, page: u64) {
        let at = self.place(page);
        if self.entries[at as usize].marks & 2 == 0 {
            self.entries[at as usize].marks |= 3;
            self.dirty.push(at);
        }
    }

    fn write_back(&mut self) {
        for at in self.dirty.drain(..) {
            self.entries[at as usize].marks &= !2;
        }
    }
}

/// Pages that are read or written, from so many of the file's.
struct Work {
    name: &'static str,
    /// Operations for each of them.
    operations: u64,
    pages: u64,
    random: bool,
    write: bool,
}

const fn work(name: &'static str, operations: u64, pages: u64, random: bool, write: bool) -> Work {
    Work { name, operations, pages, random, write }
}

const WORKS: [Work; 8] = [
    work("read, in memory, in order", 1, CACHED, false, false),
    work("read, in memory, at random", 1, CACHED, true, false),
    work("read, missing, in order", 3, FILE, false, false),
    work("read, missing, at random", 3, FILE, true, false),
    work("write, in memory, in order", 3, CACHED, false, true),
    work("write, in memory, at random", 3, CACHED, true, true),
    work("write, missing, in order", 5, FILE, false, true),
    work("write, missing, at random", 5, FILE, true, true),
];

/// Nanoseconds a page operation: the best of some runs, each of four times the memory; data are written whenever an eighth of it is dirty.
fn cost(work: &Work, mut pages: impl Pages) -> f64 {
    let mut rng = Rng::stream(1, "pages");
    let mut at = 0;
    let mut run = |count: u64| {
        let start = Instant::now();
        for n in 1..=count {
            let page = if work.random { rng.below(work.pages) } else { at };
            at = if at + 1 == work.pages { 0 } else { at + 1 };
            if work.write {
                pages.write(black_box(page));
                if n % (MEMORY / 8) == 0 {
                    pages.write_back();
                }
            } else {
                pages.read(black_box(page));
            }
        }
        start.elapsed().as_nanos() as f64 / (count * work.operations) as f64
    };
    run(8 * MEMORY);
    (0..ROUNDS).map(|_| run(4 * MEMORY)).fold(f64::INFINITY, f64::min)
}

fn main() {
    println!("{:<28} {:>10} {:>10} {:>10}", "ns a page operation", "two_lists", "mglru", "hash map");
    for work in &WORKS {
        let lists = cost(work, Cache::new(ReclaimPolicy::two_lists));
        let generations = cost(work, Cache::new(ReclaimPolicy::mglru));
        let map = cost(work, Map::new());
        println!("{:<28} {lists:>10.1} {generations:>10.1} {map:>10.1}", work.name);
    }
}
