//! Filling memory that holds pages of the data, a DRAM cache or what the operating system pages into, before the run: jobs
//! executed on their data without time.
//!
//! Memory of gigabytes takes seconds of a server's time to fill, of which a run simulates milliseconds. So jobs are executed
//! before it, one after another, and every page that they touch goes into memory as it would in the run. They end
//! once as many pages were missing as it has room for: then every page in it was chosen by the replacement policy
//! among those that jobs ask for, and what is missing from then on is what is missing in a long run. If the program's
//! pages are too few for that, they end when the latter half of them has brought less than a hundredth of the pages, or when
//! there have been as many as `cpu.fill_jobs` says.
//!
//! The jobs have numbers that the run never reaches, so that they ask for other objects of the same popularity. What they
//! change in the program's data stays changed.
//!
//! What that leaves of memory and of the program's data is a state, which runs that agree in what it depends on can share.

use config::Diagnostic;
use host::swap::Swap;
use kernel::Snapshot as _;
use mem::dram_cache::DramCache;
use mem::mmu::MmuSpec;
use mem::mmu::table::Table;
use proto::cpu::{OpKind, Service};
use proto::memory::PAGE;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Fewer jobs say nothing about how many pages are still missing.
const LEAST: u64 = 4096;

/// The first number of a job that warms: jobs of a run are numbered from zero.
const FIRST: u64 = 1 << 40;

/// Memory that holds pages of the data. Pages are counted from zero.
pub(super) trait Holds {
    /// Pages that it has room for.
    fn room(&self) -> u64;
    /// Whether a page is in it.
    fn holds(&self, page: u64) -> bool;
    /// An access without time: the page is in it afterwards.
    fn touch(&mut self, page: u64, write: bool);
    /// Appends what accesses have left.
    fn save(&self, out: &mut Vec<u8>);
    /// Takes that off the front of `input`; `None` if it is malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

/// Physical addresses are virtual ones: the service is alone.
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
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.load_warm(input)
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
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.load_warm(input)
    }
}

/// Page tables that lie in the cache as well, walked without time.
pub(super) struct Tables {
    /// One set for all cores, or one of each.
    sets: Vec<Box<dyn Table>>,
}

impl Tables {
    /// So many sets of page tables of a service with so many bytes, where memory management units lay them out.
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

    /// Reads the entries of a walk for a page, on behalf of one of so many slots.
    fn walk(&mut self, page: u64, (slot, slots): (u32, u32), mut read: impl FnMut(u64)) {
        let set = u64::from(slot) * self.sets.len() as u64 / u64::from(slots);
        let (table, mut level) = (&mut self.sets[set as usize], 0);
        while let Some(address) = table.step(0, page, &mut level).read {
            read(address);
        }
    }
}

/// What memory is filled by.
pub(super) struct Filling {
    /// Page tables, if they lie in the cache.
    pub(super) tables: Option<Tables>,
    /// Where the program's text lies.
    pub(super) text: Range<u64>,
    /// Slots that jobs take in turn.
    pub(super) slots: u32,
    /// Jobs at most.
    pub(super) most: u64,
}

/// Where what filling leaves may come from, as bytes.
pub(crate) trait Source {
    /// The bytes, if they are there.
    ///
    /// # Errors
    /// What is kept cannot be used.
    fn find(&mut self) -> Result<Option<Arc<Vec<u8>>>, Diagnostic>;
    /// Whether somebody wants the bytes that were not there.
    fn is_awaited(&self) -> bool;
    /// Takes them.
    fn keep(&mut self, bytes: Vec<u8>);
    /// What is said of bytes that are malformed.
    fn damaged(&self) -> Diagnostic;
    /// Set to end filling early.
    fn stop(&self) -> &AtomicBool;
}

/// Fills memory, or takes what that leaves from where it is kept; how many jobs it took.
///
/// # Errors
/// What is kept cannot be used.
pub(super) fn fill(
    service: &mut dyn Service,
    memory: &mut impl Holds,
    by: Filling,
    from: &mut dyn Source,
) -> Result<u64, Diagnostic> {
    if let Some(bytes) = from.find()? {
        return load(&bytes, service, memory).ok_or_else(|| from.damaged());
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

/// Brings memory and the program's data to what was saved; how many jobs had filled them.
fn load(mut input: &[u8], service: &mut dyn Service, memory: &mut impl Holds) -> Option<u64> {
    let input = &mut input;
    let jobs = u64::load(input)?;
    service.load(input)?;
    memory.load(input)?;
    input.is_empty().then_some(jobs)
}

/// Fills memory, as far as it comes before `stop` is set; how many jobs it took.
fn warm(service: &mut dyn Service, memory: &mut impl Holds, mut by: Filling, stop: &AtomicBool) -> u64 {
    let room = memory.room();
    let (mut tape, mut absent) = (Vec::new(), 0);
    let mut touch = |page: u64, write: bool| {
        absent += u64::from(!memory.holds(page));
        memory.touch(page, write);
        absent
    };
    // What was missing so far, and when there had been half as many jobs.
    let (mut jobs, mut missing, mut half) = (0, 0, 0);
    while jobs < by.most && missing < room && !stop.load(Ordering::Relaxed) {
        let slot = (jobs % u64::from(by.slots)) as u32;
        service.start(slot, FIRST + jobs);
        jobs += 1;
        tape.clear();
        while service.step(slot, &mut tape) {}
        // Operations of one page in a row are one touch, as the caches above would have it.
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
        if jobs.is_power_of_two() && jobs >= LEAST {
            if missing - half < missing.div_ceil(100) {
                break;
            }
            half = missing;
        }
    }
    // Every job has fetched from it.
    for page in by.text.start / PAGE..by.text.end.div_ceil(PAGE) {
        touch(page, false);
    }
    jobs
}
