//! Power failures: random work on a file system, on a drive whose cache is lost, until the power fails. The recovered
//! state is then compared with a naive record of the promises.
//!
//! * Data acknowledged by `fsync` is there, unless it was overwritten, truncated or removed since.
//! * The journal's log can be replayed, no block has been lost from it, and none has reached its place before its
//!   transaction was committed.
//! * With ordered or journaled data no file exposes old content of its blocks.

mod act;

use super::media::{Cell, Media};
use super::{CommitCause, Ext4, FsSpec, Handle, JournalMode, Tid};
use crate::{
    Inode, PAGE,
    fs::{Recovered, RecoveredFile},
};
use config::SpecError;
use engine::{Rng, Time};
use std::collections::BTreeMap;

/// Number of files.
const FILES: u32 = 6;
/// Pages of the initial file.
const OLD_PAGES: u64 = 60;

/// Work that a power failure ends.
#[derive(Clone, Debug)]
pub struct Plan {
    /// File system.
    pub spec: FsSpec,
    /// Bytes of its drive.
    pub bytes: u64,
    /// Random seed.
    pub seed: u64,
    /// Number of actions before the power failure.
    pub actions: u32,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Violations, as text.
    pub faults: Vec<String>,
    /// Pages that expose old content of their blocks.
    pub stale: u64,
    /// Acknowledged calls of `fsync`.
    pub acknowledged: u64,
    /// Pages promised when the power failed.
    pub promised: u64,
    /// Transactions replayed.
    pub replayed: u32,
    /// Commits.
    pub commits: u64,
    /// Batches of blocks written home to make room in the log.
    pub checkpoints: u64,
}

/// Page in memory.
#[derive(Clone, Copy, Default, Debug)]
struct Page {
    version: u32,
    dirty: bool,
    writing: bool,
}

/// File, as known to its programs.
#[derive(Clone, Debug, Default)]
struct Known {
    there: bool,
    size: u64,
    pages: BTreeMap<u64, Page>,
    /// Promise of the last acknowledged `fsync`.
    promise: Option<Promise>,
}

/// Data made durable by an `fsync`.
#[derive(Clone, Debug, Default)]
struct Promise {
    size: u64,
    /// Pages with their versions.
    pages: BTreeMap<u64, u32>,
}

/// Purpose of a write in flight to the drive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Then {
    /// Page, and whether its blocks were unwritten.
    Page { file: usize, page: u64, unwritten: bool },
    /// Block written home.
    Home,
    /// Part of the log.
    Log,
    /// Commit block.
    Commit,
    /// Page of a direct write.
    Direct { page: u64 },
}

/// Direct write in progress.
#[derive(Clone, Copy, Debug)]
struct Direct {
    file: usize,
    offset: u64,
    bytes: u64,
    /// True if the file system must be notified of its end.
    has_end: bool,
}

/// Progress of an `fsync`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Pages are being written.
    Data,
    /// Wait for a transaction, then perhaps a flush of the drive.
    Commit { tid: Tid, flush: bool },
    /// Metadata blocks are being written.
    Metadata { flush: bool },
}

#[derive(Clone, Debug)]
struct Sync {
    file: usize,
    data_only: bool,
    promise: Promise,
    phase: Phase,
}

/// Event that the journal's thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Thread {
    Idle,
    Steps,
    Pages { inode: Inode, page: u64, pages: u64 },
    Log,
}

struct World {
    spec: FsSpec,
    fs: Ext4,
    drive: Drive,
    rng: Rng,
    now: Time,
    files: Vec<Known>,
    versions: u32,
    sync: Option<Sync>,
    direct: Option<Direct>,
    thread: Thread,
    /// Handle that stays open for a while.
    held: Option<Handle>,
    /// True if the log is full.
    full: bool,
    /// With data in the journal: pages of the running transaction, and versions in closed ones.
    joined: Vec<(usize, u64)>,
    copies: BTreeMap<(Tid, usize, u64), u32>,
    acknowledged: u64,
}

/// Works until the power fails, and checks the recovered state.
///
/// # Errors
/// If the file system cannot be built.
pub fn run(plan: &Plan) -> Result<Outcome, SpecError> {
    let mut world = World::new(plan)?;
    for _ in 0..plan.actions {
        world.act();
    }
    Ok(world.cut())
}

impl World {
    fn new(plan: &Plan) -> Result<World, SpecError> {
        let mut fs = Ext4::new(&plan.spec, plan.bytes)?;
        fs.remember();
        let mut drive = Drive::default();
        let mut files = vec![Known::default(); FILES as usize];
        fs.exists(Inode(0), OLD_PAGES * crate::PAGE)
            .map_err(|_| SpecError::new("bytes", "no room for the initial file"))?;
        (files[0].there, files[0].size) = (true, OLD_PAGES * crate::PAGE);
        for extent in fs.extents(Inode(0)) {
            for page in extent.page..extent.page + extent.pages {
                let cell = Cell::Page { file: 0, page, version: 0 };
                drive.put(extent.block + (page - extent.page), cell);
            }
        }
        Ok(World {
            spec: plan.spec.clone(),
            fs,
            drive,
            rng: Rng::stream(plan.seed, "host/fs/soak"),
            now: Time::ZERO,
            files,
            versions: 0,
            sync: None,
            direct: None,
            thread: Thread::Idle,
            held: None,
            full: false,
            joined: Vec::new(),
            copies: BTreeMap::new(),
            acknowledged: 0,
        })
    }

    fn journals_data(&self) -> bool {
        self.spec.data == JournalMode::journal
    }

    /// Draws true with a probability of 1 in `of`.
    fn chance(&mut self, of: u64) -> bool {
        self.rng.below(of) == 0
    }

    fn any_file(&mut self) -> usize {
        self.rng.below(u64::from(FILES)) as usize
    }

    /// Runs one action of a program, the drive, or a kernel thread.
    fn act(&mut self) {
        self.now += Time::from_us(self.rng.below(500));
        match self.rng.below(32) {
            0..5 => self.write(),
            5 => self.create(),
            6 => self.shorten(),
            7..9 => self.write_back_some(),
            9..12 => self.begin_sync(),
            12..22 => self.step_thread(),
            22 => self.request(),
            23 => self.write_direct(),
            _ => self.complete_one(),
        }
        if self.chance(100) {
            self.write_home_some();
        }
        self.step_sync();
        self.end_direct();
        self.complete_one();
        if self.full {
            self.make_room();
        }
        if self.held.is_some() && self.chance(4) {
            let handle = self.held.take().expect("it is there");
            self.fs.stop(handle);
        }
    }

    /// Starts a handle, if possible now.
    fn start(&mut self, credits: u32) -> Option<Handle> {
        match self.fs.start(credits, self.now) {
            Ok(handle) => Some(handle),
            Err(super::Wait::Locked) => None,
            Err(super::Wait::Space) => {
                self.full = true;
                None
            }
        }
    }

    /// Ends a handle, now or later.
    fn stop(&mut self, handle: Handle) {
        if self.held.is_none() && self.chance(8) {
            self.held = Some(handle);
        } else {
            self.fs.stop(handle);
        }
    }

    /// Ends the interval of the running transaction.
    fn request(&mut self) {
        if let Some(due) = self.fs.commit_due() {
            self.now = self.now.max(due);
        }
        if let super::Need::Commit { tid, .. } = self.fs.sync_all() {
            self.fs.request_commit(tid, CommitCause::Interval);
        }
    }
}

// Drive with a cache that a power failure empties.

/// Write in flight.
#[derive(Clone, Copy, Debug)]
struct Write {
    block: u64,
    cell: Cell,
    then: Then,
    fua: bool,
}

/// Drive with its cache.
#[derive(Clone, Debug, Default)]
struct Drive {
    media: Media,
    flying: Vec<Write>,
}

impl Drive {
    /// Makes a block durable.
    fn put(&mut self, block: u64, cell: Cell) {
        self.media.put(block, cell);
    }

    fn submit(&mut self, block: u64, cell: Cell, fua: bool, then: Then) {
        self.flying.push(Write { block, cell, then, fua });
    }

    /// Completes one of the writes in flight.
    fn complete(&mut self, rng: &mut Rng) -> Option<Write> {
        if self.flying.is_empty() {
            return None;
        }
        let write = self.flying.swap_remove(rng.below(self.flying.len() as u64) as usize);
        if write.fua {
            self.media.put(write.block, write.cell);
        } else {
            self.media.hold(write.block, write.cell);
        }
        Some(write)
    }

    fn is_flying(&self, holds: impl Fn(&Write) -> bool) -> bool {
        self.flying.iter().any(holds)
    }

    fn flush(&mut self) {
        self.media.flush(self.media.newest());
    }

    /// Models a power failure: each block keeps its durable version or any newer one.
    fn cut(&mut self, rng: &mut Rng) -> BTreeMap<u64, Cell> {
        for write in std::mem::take(&mut self.flying) {
            self.media.hold(write.block, write.cell);
        }
        self.media.cut(rng)
    }
}

// Check of the recovered state against the promises.

/// Content that a page reads as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Zeroes,
    Version(u32),
    /// Old content of its block.
    Stale,
}

impl World {
    /// Cuts the power, and checks the recovered state.
    fn cut(mut self) -> Outcome {
        let cells = self.drive.cut(&mut self.rng);
        let recovered = self.fs.recover(|block| match cells.get(&block) {
            Some(Cell::Meta(content)) => Some(*content),
            _ => None,
        });
        let stats = &self.fs.stats;
        let mut outcome = Outcome {
            acknowledged: self.acknowledged,
            commits: stats.log_commits,
            checkpoints: stats.checkpoints,
            ..Outcome::default()
        };
        match recovered {
            Err(fault) => outcome.faults.push(format!("{fault:?}")),
            Ok(recovered) => {
                outcome.replayed = recovered.replayed;
                self.check_promises(&recovered, &cells, &mut outcome);
                self.check_stale(&recovered, &cells, &mut outcome);
            }
        }
        outcome
    }

    fn check_promises(&self, recovered: &Recovered, cells: &BTreeMap<u64, Cell>, outcome: &mut Outcome) {
        for (file, known) in self.files.iter().enumerate() {
            let Some(promise) = &known.promise else { continue };
            let Some(found) = recovered.files.get(&Inode(file as u32)) else {
                outcome.faults.push(format!("file {file} is missing"));
                continue;
            };
            if found.size < promise.size {
                let (has, promised) = (found.size, promise.size);
                outcome.faults.push(format!("file {file} has {has} bytes, but {promised} were promised"));
            }
            outcome.promised += promise.pages.len() as u64;
            for (page, version) in &promise.pages {
                let seen = self.seen(found, cells, file, *page);
                if !matches!(seen, Seen::Version(seen) if seen >= *version) {
                    outcome.faults.push(format!(
                        "file {file} page {page}: {seen:?}, but version {version} was promised"
                    ));
                }
            }
        }
    }

    fn check_stale(&self, recovered: &Recovered, cells: &BTreeMap<u64, Cell>, outcome: &mut Outcome) {
        for (inode, found) in &recovered.files {
            let file = inode.0 as usize;
            for extent in found.extents().filter(|extent| !extent.unwritten) {
                let end = (extent.page + extent.pages).min(found.size.div_ceil(PAGE));
                let stale =
                    (extent.page..end).filter(|page| self.seen(found, cells, file, *page) == Seen::Stale);
                outcome.stale += stale.count() as u64;
            }
        }
        let may = matches!(self.spec.data, JournalMode::writeback | JournalMode::none);
        if outcome.stale > 0 && !may {
            outcome.faults.push(format!("{} pages show what was in their blocks before", outcome.stale));
        }
    }

    fn seen(&self, found: &RecoveredFile, cells: &BTreeMap<u64, Cell>, file: usize, page: u64) -> Seen {
        if let Some(tid) = found.journaled(page) {
            return self
                .copies
                .get(&(tid, file, page))
                .map_or(Seen::Stale, |version| Seen::Version(*version));
        }
        let extent = found.extents().find(|extent| extent.page <= page && page < extent.page + extent.pages);
        let Some(extent) = extent.filter(|extent| !extent.unwritten) else { return Seen::Zeroes };
        match cells.get(&(extent.block + (page - extent.page))) {
            Some(Cell::Page { file: of, page: at, version }) if *of == file && *at == page => {
                Seen::Version(*version)
            }
            _ => Seen::Stale,
        }
    }
}
