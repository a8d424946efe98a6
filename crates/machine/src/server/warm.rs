//! Filling a DRAM cache before the run: jobs executed on their data without time.
//!
//! A cache of gigabytes takes seconds of a server's time to fill, of which a run simulates milliseconds. So jobs are executed
//! before it, one after another, and every page that they touch goes into the cache as it would in the run. They end
//! once as many pages were missing as the cache has room for: then every page in it was chosen by the replacement policy
//! among those that jobs ask for, and what is missing from then on is what is missing in a long run. If the program's
//! pages are too few for that, `cpu.fill_jobs` ends it.
//!
//! The jobs have numbers that the run never reaches, so that they ask for other objects of the same popularity. What they
//! change in the program's data stays changed.

use mem::dram_cache::DramCache;
use mem::mmu::MmuSpec;
use mem::mmu::table::Table;
use proto::cpu::{OpKind, Service};
use proto::memory::PAGE;

/// The first number of a job that warms: jobs of a run are numbered from zero.
const FIRST: u64 = 1 << 40;

/// Page tables that lie in the cache as well, walked without time.
pub(super) struct Tables {
    table: Box<dyn Table>,
}

impl Tables {
    /// The page tables of a service with so many bytes, where a memory management unit lays them out.
    pub(super) fn new(spec: &MmuSpec, bytes: u64) -> Tables {
        let mut table = spec.table.build(&());
        let pages = bytes.div_ceil(table.reach());
        table.lay_out(&[pages], pages * table.reach());
        Tables { table }
    }

    /// Reads the entries of a walk for a page.
    fn walk(&mut self, page: u64, mut read: impl FnMut(u64)) {
        let mut level = 0;
        while let Some(address) = self.table.step(0, page, &mut level).read {
            read(address);
        }
    }
}

/// Fills the cache by at most `most` jobs in `slots` slots; how many there were. Physical addresses are virtual ones: the
/// service is alone.
pub(super) fn warm(
    service: &mut dyn Service,
    cache: &mut DramCache,
    mut tables: Option<Tables>,
    slots: u32,
    most: u64,
) -> u64 {
    let room = cache.capacity() / PAGE;
    let (mut tape, mut missing) = (Vec::new(), 0);
    let mut touch = |page: u64, write: bool| {
        missing += u64::from(!cache.is_cached(page));
        cache.warm(page, write);
        missing
    };
    for job in 0..most {
        let slot = (job % u64::from(slots)) as u32;
        service.start(slot, FIRST + job);
        tape.clear();
        while service.step(slot, &mut tape) {}
        // Operations of one page in a row are one touch, as the caches above would have it.
        let (mut latest, mut missing) = (None, 0);
        for op in tape.iter().filter(|op| op.width > 0) {
            let now = (op.address / PAGE, matches!(op.kind, OpKind::Store | OpKind::Atomic));
            if latest == Some(now) {
                continue;
            }
            latest = Some(now);
            if let Some(tables) = &mut tables {
                tables.walk(now.0, |entry| _ = touch(entry / PAGE * PAGE, false));
            }
            missing = touch(now.0 * PAGE, now.1);
        }
        if missing >= room {
            return job + 1;
        }
    }
    most
}
