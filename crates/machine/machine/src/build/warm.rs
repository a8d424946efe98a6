//! Warm-up of memory that holds pages (a DRAM cache, or the operating system's frames): jobs run on their data without
//! time.
//!
//! Memory of gigabytes takes seconds of a server's time to fill, and a run simulates milliseconds. So jobs run before
//! it, one after another, and every page that they touch enters memory as it would in the run. Filling ends once as
//! many pages have missed as memory has room for: then the replacement policy chose every resident page among those
//! that jobs ask for, and misses are those of a long run. Filling also ends when its second half brought less than a
//! hundredth of the pages, or after `cpu.fill_jobs` jobs.
//!
//! If the program's pages fit or nearly fit, a long run brings all of them, but jobs seldom ask for the last ones. So
//! every page is brought after the first jobs, and more jobs then bring back the most popular pages.
//!
//! Warm-up jobs have numbers that the run never reaches, so they ask for different objects of the same popularity.
//! Their changes to the program's data stay.
//!
//! The filled memory and the changed data are a state. Runs that agree in its inputs can share it.

use config::Diagnostic;
use engine::Snapshot as _;
use mem::dram_cache::DramCache;
use mem::mmu::MmuSpec;
use mem::mmu::table::Table;
use mem::swap::Swap;
use proto::cpu::{OpKind, Service};
use proto::memory::PAGE;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Jobs before the number of missing pages is judged: fewer say nothing about it.
const LEAST: u64 = 4096;

/// Pages nearly fit if they exceed the room by at most one part in `NEARLY`. *Chosen*: jobs soon reach four fifths of a
/// program's pages, and the rest ever more slowly.
const NEARLY: u64 = 4;

/// Number of the first warm-up job: jobs of a run are numbered from zero.
const FIRST: u64 = 1 << 40;

/// Memory that holds pages of the data. Pages are counted from zero.
pub(super) trait Holds {
    /// Capacity, pages.
    fn room(&self) -> u64;
    /// Returns whether a page is in it.
    fn holds(&self, page: u64) -> bool;
    /// Accesses a page without time: the page is resident afterwards.
    fn touch(&mut self, page: u64, write: bool);
    /// Appends the state that accesses have left.
    fn save(&self, out: &mut Vec<u8>);
    /// Restores that state from the front of `input`; `None` if it is malformed, contradicts itself, or has pages
    /// beyond the first `pages`.
    fn load(&mut self, input: &mut &[u8], pages: u64) -> Option<()>;
}

/// Physical addresses equal virtual ones: the service is alone.
impl Holds for DramCache {
    fn room(&self) -> u64 {
        self.capacity() / PAGE
    }
    fn holds(&self, page: u64) -> bool {
        self.is_cached(page * PAGE)
    }
    fn touch(&mut self, page: u64, write: bool) {
        self.warm(page * PAGE, write);
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.save_warm(out);
    }
    fn load(&mut self, input: &mut &[u8], pages: u64) -> Option<()> {
        self.load_warm(input, pages)
    }
}

impl Holds for Swap {
    fn room(&self) -> u64 {
        self.frames().saturating_sub(self.kept()).into()
    }
    fn holds(&self, page: u64) -> bool {
        self.is_present(page)
    }
    fn touch(&mut self, page: u64, write: bool) {
        self.warm(page, write);
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.save_warm(out);
    }
    fn load(&mut self, input: &mut &[u8], pages: u64) -> Option<()> {
        self.load_warm(input, pages)
    }
}

/// Page tables that lie in the cache too, walked without time.
pub(super) struct Tables {
    /// Table sets: one for all cores, or one for each core.
    sets: Vec<Box<dyn Table>>,
}

impl Tables {
    /// Returns `sets` sets of page tables for a service of `bytes` bytes, laid out as memory management units lay them
    /// out.
    pub(super) fn new(spec: &MmuSpec, bytes: u64, sets: u16) -> Tables {
        let mut base = None;
        let set = |_| {
            let mut table = spec.table.build(&());
            let pages = bytes.div_ceil(table.reach());
            let at = base.unwrap_or(pages * table.reach());
            base = Some(table.lay_out(&[pages], at).next_multiple_of(PAGE));
            table
        };
        Tables { sets: (0..sets).map(set).collect() }
    }

    /// Reads the entries of a walk for a page, on behalf of one slot.
    fn walk(&mut self, page: u64, (slot, slots): (u32, u32), mut read: impl FnMut(u64)) {
        let set = u64::from(slot) * self.sets.len() as u64 / u64::from(slots);
        let (table, mut level) = (&mut self.sets[set as usize], 0);
        while let Some(address) = table.step(0, page, &mut level).read {
            read(address);
        }
    }
}

/// Settings of a filling.
pub(super) struct Filling {
    /// Page tables, if they lie in the cache.
    pub(super) tables: Option<Tables>,
    /// Address range of the program's text.
    pub(super) text: Range<u64>,
    /// Slots that jobs take in turn.
    pub(super) slots: u32,
    /// Most jobs.
    pub(super) most: u64,
    /// Pages of addresses, page tables included.
    pub(super) pages: u64,
}

/// Store of filled states, as bytes.
pub(crate) trait Source {
    /// Returns the bytes, if present.
    ///
    /// # Errors
    /// The kept state cannot be used.
    fn find(&mut self) -> Result<Option<Arc<Vec<u8>>>, Diagnostic>;
    /// Returns whether the missing bytes are wanted.
    fn is_awaited(&self) -> bool;
    /// Stores the bytes.
    fn keep(&mut self, bytes: Vec<u8>);
    /// Rejects bytes that are malformed or contradict themselves.
    ///
    /// # Errors
    /// The state must not be made again.
    fn refuse(&mut self) -> Result<(), Diagnostic>;
    /// Flag that ends filling early.
    fn stop(&self) -> &AtomicBool;
}

/// Fills memory, or restores a kept state; returns the number of jobs.
///
/// # Errors
/// The kept state cannot be used.
pub(super) fn fill(
    service: &mut dyn Service,
    memory: &mut impl Holds,
    by: Filling,
    from: &mut dyn Source,
) -> Result<u64, Diagnostic> {
    if let Some(bytes) = from.find()? {
        let mut empty = Vec::new();
        service.save(&mut empty);
        memory.save(&mut empty);
        if let Some(jobs) = load(&bytes, service, memory, by.pages) {
            return Ok(jobs);
        }
        from.refuse()?;
        // Discard what was loaded before the fault was found.
        let input = &mut empty.as_slice();
        let is_empty = service.load(input).is_some() && memory.load(input, by.pages).is_some();
        assert!(is_empty, "memory takes back what it has just saved");
    }
    let jobs = warm(service, memory, by, from.stop());
    if from.is_awaited() && !from.stop().load(Ordering::Relaxed) {
        let mut bytes = Vec::new();
        jobs.save(&mut bytes);
        service.save(&mut bytes);
        memory.save(&mut bytes);
        from.keep(bytes);
    }
    Ok(jobs)
}

/// Restores memory of `pages` pages and the program's data; returns the number of jobs that had filled them.
fn load(mut input: &[u8], service: &mut dyn Service, memory: &mut impl Holds, pages: u64) -> Option<u64> {
    let input = &mut input;
    let jobs = u64::load(input)?;
    service.load(input)?;
    memory.load(input, pages)?;
    input.is_empty().then_some(jobs)
}

/// Fills memory until done or until `stop` is set; returns the number of jobs.
fn warm(service: &mut dyn Service, memory: &mut impl Holds, mut by: Filling, stop: &AtomicBool) -> u64 {
    let (room, pages) = (memory.room(), service.footprint().div_ceil(PAGE));
    let fits = pages <= room + room / NEARLY;
    let (mut tape, mut absent, mut enough) = (Vec::new(), 0, room);
    let mut touch = |page: u64, write: bool| {
        absent += u64::from(!memory.holds(page));
        memory.touch(page, write);
        absent
    };
    // Pages missed so far, and when half as many jobs had run.
    let (mut jobs, mut missing, mut half) = (0, 0, 0);
    while jobs < by.most && missing < enough && !stop.load(Ordering::Relaxed) {
        let slot = (jobs % u64::from(by.slots)) as u32;
        service.start(slot, FIRST + jobs);
        jobs += 1;
        tape.clear();
        while service.step(slot, &mut tape) {}
        // Operations on one page in a row are one touch: the caches above would absorb the rest.
        let mut latest = None;
        for op in tape.iter().filter(|op| op.width > 0) {
            let now = (op.address / PAGE, matches!(op.kind, OpKind::Store | OpKind::Atomic));
            if latest == Some(now) {
                continue;
            }
            latest = Some(now);
            if let Some(tables) = &mut by.tables {
                tables.walk(now.0, (slot, by.slots), |entry| _ = touch(entry / PAGE, false));
            }
            missing = touch(now.0, now.1);
        }
        if jobs == LEAST && fits {
            for page in 0..pages {
                missing = touch(page, false);
            }
            // Pages evicted since, and a few more.
            (half, enough) = (missing, missing + pages.saturating_sub(room) + pages.div_ceil(100));
        } else if jobs.is_power_of_two() && jobs >= LEAST {
            if missing - half < missing.div_ceil(100) {
                break;
            }
            half = missing;
        }
    }
    // Every job has fetched from the text.
    for page in by.text.start / PAGE..by.text.end.div_ceil(PAGE) {
        touch(page, false);
    }
    jobs
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rng;
    use proto::cpu::Op;

    /// Each job loads from one page: half of the jobs from one page, a quarter from the next, and so on; one job in 16
    /// from any.
    struct Skewed {
        pages: u64,
        rng: Rng,
    }

    impl Service for Skewed {
        fn footprint(&self) -> u64 {
            self.pages * PAGE
        }
        fn text(&self) -> u32 {
            64
        }
        fn start(&mut self, _: u32, _: u64) {}
        fn step(&mut self, _: u32, tape: &mut Vec<Op>) -> bool {
            let draw = self.rng.next_u64();
            let page = if draw.is_multiple_of(16) {
                self.rng.below(self.pages)
            } else {
                u64::from(draw.leading_zeros())
            };
            tape.push(Op {
                kind: OpKind::Load,
                width: 8,
                count: 1,
                needs: [0, 0],
                pc: 0,
                address: page * PAGE,
            });
            false
        }
        fn save(&self, out: &mut Vec<u8>) {
            self.pages.save(out);
        }
        fn load(&mut self, input: &mut &[u8]) -> Option<()> {
            self.pages = u64::load(input)?;
            Some(())
        }
    }

    /// The pages that were touched last.
    struct Recent {
        room: u64,
        pages: Vec<u64>,
    }

    impl Holds for Recent {
        fn room(&self) -> u64 {
            self.room
        }
        fn holds(&self, page: u64) -> bool {
            self.pages.contains(&page)
        }
        fn touch(&mut self, page: u64, _: bool) {
            self.pages.retain(|held| *held != page);
            self.pages.push(page);
            if self.pages.len() as u64 > self.room {
                self.pages.remove(0);
            }
        }
        fn save(&self, _: &mut Vec<u8>) {}
        fn load(&mut self, _: &mut &[u8], _: u64) -> Option<()> {
            Some(())
        }
    }

    fn filled(pages: u64, room: u64, most: u64) -> (u64, Recent) {
        let mut service = Skewed { pages, rng: Rng::stream(1, "pages") };
        let mut memory = Recent { room, pages: Vec::new() };
        let by = Filling { tables: None, text: 0..0, slots: 1, most, pages };
        let jobs = warm(&mut service, &mut memory, by, &AtomicBool::new(false));
        (jobs, memory)
    }

    /// A job in 16 asks for one of 2,000 pages alike: to see 1,980 of them takes some 150,000 jobs.
    #[test]
    fn data_that_just_fit_are_all_there_soon() {
        for room in [2_000, 2_001, 4_000] {
            let (jobs, memory) = filled(2_000, room, 1 << 40);
            assert_eq!((jobs, memory.pages.len()), (2 * LEAST, 2_000), "{room}");
        }
    }

    #[test]
    fn data_that_nearly_fit_leave_the_hot_ones_there() {
        let (jobs, memory) = filled(2_200, 2_000, 1 << 40);
        assert!(jobs <= 32 * LEAST, "{jobs} jobs");
        assert!((0..8).all(|page| memory.holds(page)) && memory.pages.len() == 2_000);
    }

    /// Each of as many pages as there is room for has been missing once, at least.
    #[test]
    fn data_that_do_not_fit_fill_all_room_by_jobs() {
        let (jobs, memory) = filled(20_000, 500, 1 << 40);
        assert!((16 * 400..16 * 800).contains(&jobs) && memory.pages.len() == 500, "{jobs} jobs");
    }

    #[test]
    fn few_jobs_bring_what_they_ask_for_alone() {
        let (jobs, memory) = filled(2_000, 4_000, 100);
        assert!(jobs == 100 && memory.pages.len() < 100);
    }
}
