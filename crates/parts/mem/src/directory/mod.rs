//! The directory of a shared cache: which cores have which lines in their first-level caches, and in which state.
//!
//! It stands at the tiles of the shared cache, in front of the bank of each. Per line it keeps the cores that have a copy,
//! and whether there is one copy that its core may change without asking (exclusive or modified, of MESI). It is exact:
//! cores say what they drop. Transactions of one line are served one after another, in the order in which they come:
//!
//! * a **read** gets a shared copy, or an exclusive one if nobody else has the line. An owner is probed first, and keeps a
//!   shared copy; what it has changed goes to the requester and into the bank.
//! * an **own** gets the only copy, which counts as changed from then on. All others are probed at once. If none of them
//!   can have changed the line, the bank is asked at the same time, or not at all if the requester has a copy.
//! * a **write-back** goes to the bank at once, also while a transaction of its line is under way, and is answered
//!   when the bank has taken it.
//! * a **page walk** goes past the directory: nobody changes page tables while programs run.
//!
//! An owner that a probe does not find has dropped its line, which it has said, or its write-back is under way: the
//! transaction waits until the write-back has come, and then looks in the bank. So what cores send may come in any
//! order. What the rest must keep:
//!
//! * What one tile sends to one core arrives in order: a probe never overtakes an answer.
//! * A bank serves the looks at one line in the order in which they come.
//! * A line that is on its way back is not found by probes.
//! * A core that has asked to own a line of which it has a copy does not drop it until it is answered.
//!
//! Sources: Sorin, Hill and Wood, A Primer on Memory Consistency and Cache Coherence, 2011, chapter 8 (MESI, with what
//! makes a directory block); the states, Papamarcos and Patel, ISCA 1984.

#[cfg(test)]
mod tests;
mod transaction;

use config::{SpecError, units::Frequency};
use engine::{Cx, Slab, Time};
use proto::Probe;
use proto::memory::{Access, AccessKind, Stage, Tally};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use transaction::{Line, Purpose, Record};

engine::events! {
    /// What happens inside the directory.
    pub enum Event {
        /// A request has been looked up.
        Found(u32),
    }
}

/// What the directory sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// To the bank of a tile, which serves it and gives it to [`Directory::looked`].
    Look {
        /// The tile.
        tile: u16,
        /// A read or a write of the line; its tag is the directory's own.
        access: Access,
    },
    /// To a core.
    Probe(Probe),
    /// To the core that is the access's port, or its memory management unit if it is a page walk's. Its kind says what the
    /// core has now: [`AccessKind::Own`] the only copy, [`AccessKind::Read`] one of several, [`AccessKind::Write`]
    /// nothing. Its bytes are zero if it brings no line: the core has had a copy, or there are no data.
    Answer {
        /// The tile that it comes from.
        tile: u16,
        /// The access, with the core's tag.
        access: Access,
    },
}

/// The directory at all tiles.
pub struct Directory {
    tiles: u16,
    latency: Time,
    lines: FxHashMap<u64, Line>,
    records: Slab<Record>,
    /// What it has counted.
    pub stats: DirectoryStats,
    /// Its share of where requests' time went.
    pub tally: Tally,
    ledger: Ledger,
}

/// Changed lines that came since the beginning, for the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Written back by cores, or brought by their answers to probes.
    pub came: u64,
    /// Of them, those that went to the next owner.
    pub passed_on: u64,
}

impl Directory {
    /// A directory that knows of no copy. Keys of an error are relative to its table.
    ///
    /// # Errors
    /// A value of the spec that does not fit; more than 64 cores.
    pub fn new(spec: &DirectorySpec, tiles: u16, cores: u16) -> Result<Directory, SpecError> {
        spec.check(cores)?;
        Ok(Directory {
            tiles,
            latency: spec.look_up(),
            lines: FxHashMap::default(),
            records: Slab::default(),
            stats: DirectoryStats::default(),
            tally: Tally::default(),
            ledger: Ledger::default(),
        })
    }

    /// An access has come to the tile that serves its address.
    pub fn access(&mut self, tile: u16, access: Access, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(tile < self.tiles, "there is no tile {tile}");
        match access.kind {
            AccessKind::Read if access.is_walk() => {
                self.stats.walks += 1;
                let name = self.records.insert(Record::new(tile, Purpose::Pass, access));
                self.look(name, AccessKind::Read, cx);
                return;
            }
            AccessKind::Read | AccessKind::Own | AccessKind::Write => {}
            AccessKind::Atomic => {
                unreachable!("a core asks to own the line of an atomic, and does it itself")
            }
        }
        let purpose = if access.kind == AccessKind::Write { Purpose::Pass } else { Purpose::Transaction };
        let name = self.records.insert(Record::new(tile, purpose, access));
        if self.latency == Time::ZERO {
            self.found(name, cx);
        } else {
            cx.after(self.latency, Event::Found(name));
        }
    }

    /// One of its events has come.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        match event {
            Event::Found(name) => self.found(name, cx),
        }
    }

    fn found(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        match self.records[name].purpose {
            Purpose::Transaction => self.join(name, cx),
            Purpose::Pass | Purpose::Spill => self.write_back(name, cx),
        }
    }

    /// Asks the bank of a record's tile for its line, or gives it the line.
    fn look(&mut self, name: u32, kind: AccessKind, cx: &mut impl Cx<Event, Out>) {
        let record = &mut self.records[name];
        self.tally.access(Stage::Coherence, &mut record.access, cx.now());
        cx.emit(Out::Look { tile: record.tile, access: Access { tag: name, kind, ..record.access } });
    }

    /// The bank of a tile has answered an [`Out::Look`].
    pub fn looked(&mut self, tile: u16, answer: Access, cx: &mut impl Cx<Event, Out>) {
        let name = answer.tag;
        let record = &mut self.records[name];
        debug_assert!(record.tile == tile && record.access.address == answer.address, "somebody else's look");
        match record.purpose {
            Purpose::Transaction => self.read(name, &answer, cx),
            Purpose::Pass => {
                let access = Access { tag: record.access.tag, ..answer };
                self.records.remove(name);
                cx.emit(Out::Answer { tile, access });
            }
            Purpose::Spill => self.records.remove(name),
        }
    }

    /// A core has dropped a line that it had not changed. What that changes is known at once.
    pub fn dropped(&mut self, core: u16, address: u64) {
        if let Some(line) = self.lines.get_mut(&address) {
            line.forget(core);
            if line.is_unused() {
                self.lines.remove(&address);
            }
        }
    }

    /// What has come since the beginning.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Whether a core is known to have a copy of a line; the only one, if `alone`.
    pub fn knows(&self, core: u16, address: u64, alone: bool) -> bool {
        let copy = 1 << core;
        self.lines.get(&address).is_some_and(|line| {
            line.sharers & copy != 0 && (!alone || line.exclusive && line.sharers == copy)
        })
    }

    /// Whether a transaction is under way of a line: what is known of it then is between before and after.
    pub fn is_busy(&self, address: u64) -> bool {
        self.lines.get(&address).is_some_and(Line::is_busy)
    }

    /// Copies that cores are known to have of lines that are not busy. O(lines).
    pub fn known_copies(&self) -> u64 {
        let quiet = self.lines.values().filter(|line| !line.is_busy());
        quiet.map(|line| u64::from(line.sharers.count_ones())).sum()
    }

    /// Requests inside, and changed lines that the bank has not taken yet.
    pub fn outstanding(&self) -> usize {
        self.records.len()
    }

    /// Begins a measured window.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = DirectoryStats::default();
        self.tally = Tally::default();
    }
}

// What a directory counts.

/// What a directory has counted in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryStats {
    /// Transactions begun for a copy that may be shared.
    pub reads: u64,
    /// Transactions begun for the only copy.
    pub owns: u64,
    /// Answers to the latter without data: the core had a shared copy.
    pub upgrades: u64,
    /// Changed lines that cores have written back.
    pub write_backs: u64,
    /// Probes that leave a shared copy.
    pub downgrades: u64,
    /// Probes that leave nothing.
    pub invalidations: u64,
    /// Probes that have brought the line for the requester.
    pub forwarded: u64,
    /// Accesses of page walks, which go past the directory.
    pub walks: u64,
    /// Requests that found another transaction of their line under way.
    pub conflicts: u64,
}

// A directory as a user writes it.

/// The directory at the tiles of a shared cache: which first-level caches have which lines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySpec {
    /// Clock of the directory.
    pub clock: Frequency,
    /// Cycles of a look-up. One can begin in every cycle; zero if it is done while the tags of the shared cache are read.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl DirectorySpec {
    /// Whether it can be built for so many cores.
    ///
    /// # Errors
    /// A clock of zero; no core, or more cores than the bits of a line's entry. Keys are relative to this table.
    pub fn check(&self, cores: u16) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        if !(1..=64).contains(&cores) {
            let what = format!("{cores} cores; an entry of the directory has a bit for each of 1 to 64");
            return Err(SpecError::new("cores", what));
        }
        Ok(())
    }

    /// The time of a look-up.
    fn look_up(&self) -> Time {
        Time::period(self.clock.hz()).times(self.latency.into())
    }
}
