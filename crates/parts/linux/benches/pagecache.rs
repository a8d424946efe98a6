//! What the page cache costs, in nanoseconds of CPU time a page operation: 1 GiB of memory, one file of 64 GiB.
//!
//! A page operation is a look-up that finds its page, an insertion with the look-up that did not, a page made dirty, one whose write-back ends, or one
//! that reclaim evicts; the time of a read or write is divided by how many of these each of its pages takes. Beside it the same pages in a plain hash map
//! with one list, first in, first out: what the misses of this processor's caches cost at least.
//!
//! `cargo bench -p nandscape-linux --bench pagecache`; words behind `--` choose rows by their names.

use cpu_time::ThreadTime;
use engine::Rng;
use linux::Inode;
use linux::pagecache::reclaim::ReclaimPolicy;
use linux::pagecache::{Cause, Next, PageCache, PageCacheSpec, Pressure, Run, ScanControl, Tag};
use rustc_hash::FxHashMap;
use std::hint::black_box;

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
    work("read, missing, in order", 2, FILE, false, false),
    work("read, missing, at random", 2, FILE, true, false),
    work("write, in memory, in order", 3, CACHED, false, true),
    work("write, in memory, at random", 3, CACHED, true, true),
    work("write, missing, in order", 4, FILE, false, true),
    work("write, missing, at random", 4, FILE, true, true),
];

/// Work that goes on.
struct Going<'a, P> {
    work: &'a Work,
    pages: P,
    rng: Rng,
    /// The next page in order.
    next: u64,
    best_ns: f64,
}

impl<'a, P: Pages> Going<'a, P> {
    /// Twice the memory is behind it, and more.
    fn new(work: &'a Work, pages: P) -> Self {
        let mut going = Going { work, pages, rng: Rng::stream(1, "pages"), next: 0, best_ns: f64::INFINITY };
        going.run(8 * MEMORY);
        going
    }

    /// So many pages, in nanoseconds of this thread; data are written whenever an eighth of memory may be dirty.
    fn run(&mut self, count: u64) -> f64 {
        let start = ThreadTime::now();
        for n in 1..=count {
            let page = if self.work.random { self.rng.below(self.work.pages) } else { self.next };
            self.next = if self.next + 1 == self.work.pages { 0 } else { self.next + 1 };
            if self.work.write {
                self.pages.write(black_box(page));
                if n % (MEMORY / 8) == 0 {
                    self.pages.write_back();
                }
            } else {
                self.pages.read(black_box(page));
            }
        }
        start.elapsed().as_nanos() as f64
    }

    /// Once more; the best so far is kept.
    fn again(&mut self) {
        let count = 4 * MEMORY;
        let ns = self.run(count) / (count * self.work.operations) as f64;
        self.best_ns = self.best_ns.min(ns);
    }
}

fn main() {
    println!("{:<28} {:>10} {:>10} {:>10}", "ns a page operation", "two_lists", "mglru", "hash map");
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for work in WORKS.iter().filter(|work| only.iter().all(|word| work.name.contains(word))) {
        let mut lists = Going::new(work, Cache::new(ReclaimPolicy::two_lists));
        let mut generations = Going::new(work, Cache::new(ReclaimPolicy::mglru));
        let mut map = Going::new(work, Map::new());
        // In turn: what else the machine does meets all of them.
        for _ in 0..ROUNDS {
            lists.again();
            generations.again();
            map.again();
        }
        let (lists, generations, map) = (lists.best_ns, generations.best_ns, map.best_ns);
        println!("{:<28} {lists:>10.1} {generations:>10.1} {map:>10.1}", work.name);
    }
}
