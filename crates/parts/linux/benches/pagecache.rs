//! Cost of the page cache, in nanoseconds of CPU time per page operation: 1 GiB of memory, one file of 64 GiB.
//!
//! A page operation is a look-up that hits, an insertion with the look-up that missed, a page made dirty, a page whose
//! write-back ends, or a page that reclaim evicts. The time of a read or write is divided by the number of these for
//! each of its pages. For comparison, the same pages in a plain hash map with one FIFO list: a lower bound from this
//! processor's cache misses.
//!
//! `cargo bench -p nandscape-linux --bench pagecache`; words after `--` select rows by name.

use cpu_time::ThreadTime;
use engine::Rng;
use linux::Inode;
use linux::pagecache::reclaim::ReclaimPolicy;
use linux::pagecache::{Cause, Next, PageCache, PageCacheSpec, Pressure, Run, ScanControl, Tag};
use rustc_hash::FxHashMap;
use std::hint::black_box;

const MEMORY: u64 = 1 << 18;
const FILE: u64 = 1 << 24;
/// Pages that fit besides the free reserve.
const CACHED: u64 = MEMORY / 16 * 15;
const INODE: Inode = Inode(7);
const ROUNDS: usize = 5;

/// Cache that can be read and written.
trait Pages {
    /// Reads a page, inserting it if missing; inserted pages are evicted sooner or later.
    fn read(&mut self, page: u64);
    /// Overwrites a whole page, inserting it if missing.
    fn write(&mut self, page: u64);
    /// Writes all dirty pages.
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

/// Hash map from pages to entries, which are in a list in order of arrival.
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

/// Reads or writes of pages, and the number of pages that they are drawn from.
struct Work {
    name: &'static str,
    /// Operations for each page.
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

/// Work in progress.
struct Going<'a, P> {
    work: &'a Work,
    pages: P,
    rng: Rng,
    /// Next page in order.
    next: u64,
    best_ns: f64,
}

impl<'a, P: Pages> Going<'a, P> {
    /// Creates the work, and runs it for more than twice the memory.
    fn new(work: &'a Work, pages: P) -> Self {
        let mut going = Going { work, pages, rng: Rng::stream(1, "pages"), next: 0, best_ns: f64::INFINITY };
        going.run(8 * MEMORY);
        going
    }

    /// Runs `count` pages, in nanoseconds of this thread; data are written whenever an eighth of memory may be dirty.
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

    /// Runs once more, and keeps the best time.
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
        // In turn, so that other work of the machine affects all of them.
        for _ in 0..ROUNDS {
            lists.again();
            generations.again();
            map.again();
        }
        let (lists, generations, map) = (lists.best_ns, generations.best_ns, map.best_ns);
        println!("{:<28} {lists:>10.1} {generations:>10.1} {map:>10.1}", work.name);
    }
}
