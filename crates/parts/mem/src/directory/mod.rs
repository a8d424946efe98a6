//! Directory of a shared cache: the cores that have copies of each line in their first-level caches, and their states.
//!
//! The directory is distributed over the tiles of the shared cache, in front of the bank of each. Per line it keeps the
//! cores that have a copy, and whether a single copy exists that its core may change without asking (exclusive or
//! modified, of MESI). It is exact: cores report dropped lines. Transactions of one line are served one after the
//! other, in order of arrival:
//!
//! * a **read** gets a shared copy, or an exclusive one if no other core has the line. An owner is probed first, and
//!   keeps a shared copy; its changes go to the requester and into the bank.
//! * an **own** gets the only copy, which counts as changed from then on. All other cores are probed at once. If none
//!   of them can have changed the line, the bank is asked at the same time, or not at all if the requester has a copy.
//! * a **write-back** goes to the bank at once, also while a transaction of its line is under way, and is answered
//!   when the bank has taken it.
//! * a **page walk** bypasses the directory: page tables do not change while programs run.
//!
//! An owner without the line when probed has dropped it, and reported that, or its write-back is under way: the
//! transaction waits for the write-back, and then looks in the bank. So messages of cores may arrive in any order.
//! Requirements on the other components:
//!
//! * Messages from one tile to one core arrive in order: a probe never overtakes an answer.
//! * A bank serves the look-ups of one line in order of arrival.
//! * Probes do not find a line whose write-back is under way.
//! * A core that has asked to own a line of which it has a copy does not drop it until it is answered.
//!
//! Sources: Sorin, Hill and Wood, A Primer on Memory Consistency and Cache Coherence, 2011, chapter 8 (MESI, and the
//! conditions under which a directory blocks); for the states, Papamarcos and Patel, ISCA 1984.

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
    /// Internal events of the directory.
    pub enum Event {
        /// A request has been looked up.
        Found(u32),
    }
}

/// Messages sent by the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// To the bank of a tile, which serves it and gives it to [`Directory::looked`].
    Look {
        /// Number of the tile.
        tile: u16,
        /// Read or write of the line; its tag is the directory's own.
        access: Access,
    },
    /// To a core.
    Probe(Probe),
    /// To the core that is the access's port, or its memory management unit for a page walk. The kind is what the core
    /// has now: [`AccessKind::Own`] the only copy, [`AccessKind::Read`] one of several, [`AccessKind::Write`] nothing.
    /// An answer without a line has zero bytes: the core already had a copy, or the answer has no data.
    Answer {
        /// Tile that it comes from.
        tile: u16,
        /// Access, with the core's tag.
        access: Access,
    },
}

/// Directory at all tiles.
pub struct Directory {
    tiles: u16,
    latency: Time,
    lines: FxHashMap<u64, Line>,
    records: Slab<Record>,
    /// Statistics of the window.
    pub stats: DirectoryStats,
    /// Directory's share of the requests' time.
    pub tally: Tally,
    ledger: Ledger,
}

/// Changed lines received since the beginning, for the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ledger {
    /// Lines written back by cores, or brought by their answers to probes.
    pub came: u64,
    /// Lines among these that went to the next owner.
    pub passed_on: u64,
}

impl Directory {
    /// Creates a directory without copies. Keys of errors are relative to its table.
    ///
    /// # Errors
    /// Returns an invalid value of the spec, or that the cores are more than 64.
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

    /// Accepts an access at the tile that serves its address.
    pub fn access(&mut self, tile: u16, access: Access, cx: &mut impl Cx<Event, Out>) {
        debug_assert!(tile < self.tiles, "tile {tile} does not exist");
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

    /// Runs one internal event.
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

    /// Requests a record's line from its tile's bank, or writes the line there.
    fn look(&mut self, name: u32, kind: AccessKind, cx: &mut impl Cx<Event, Out>) {
        let record = &mut self.records[name];
        self.tally.access(Stage::Coherence, &mut record.access, cx.now());
        cx.emit(Out::Look { tile: record.tile, access: Access { tag: name, kind, ..record.access } });
    }

    /// Handles the bank's answer to an [`Out::Look`].
    pub fn looked(&mut self, tile: u16, answer: Access, cx: &mut impl Cx<Event, Out>) {
        let name = answer.tag;
        let record = &mut self.records[name];
        debug_assert!(record.tile == tile && record.access.address == answer.address, "a different look-up");
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

    /// Notes that a core has dropped an unchanged line. The effect is immediate.
    pub fn dropped(&mut self, core: u16, address: u64) {
        if let Some(line) = self.lines.get_mut(&address) {
            line.forget(core);
            if line.is_unused() {
                self.lines.remove(&address);
            }
        }
    }

    /// Changed lines received since the beginning.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Returns true if a core is known to have a copy of a line; the only one, if `alone`.
    pub fn knows(&self, core: u16, address: u64, alone: bool) -> bool {
        let copy = 1 << core;
        self.lines.get(&address).is_some_and(|line| {
            line.sharers & copy != 0 && (!alone || line.exclusive && line.sharers == copy)
        })
    }

    /// Returns true if a transaction of a line is under way: its state is then between before and after.
    pub fn is_busy(&self, address: u64) -> bool {
        self.lines.get(&address).is_some_and(Line::is_busy)
    }

    /// Number of known copies of lines that are not busy. O(lines).
    pub fn known_copies(&self) -> u64 {
        let quiet = self.lines.values().filter(|line| !line.is_busy());
        quiet.map(|line| u64::from(line.sharers.count_ones())).sum()
    }

    /// Number of requests inside, plus changed lines that the bank has not taken yet.
    pub fn outstanding(&self) -> usize {
        self.records.len()
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self, _now: Time) {
        self.stats = DirectoryStats::default();
        self.tally = Tally::default();
    }
}

// Statistics of a directory.

/// Statistics of a directory in the measured window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryStats {
    /// Transactions begun for a copy that may be shared.
    pub reads: u64,
    /// Transactions begun for the only copy.
    pub owns: u64,
    /// Answers to `owns` without data: the core had a shared copy.
    pub upgrades: u64,
    /// Changed lines written back by cores.
    pub write_backs: u64,
    /// Probes that left a shared copy.
    pub downgrades: u64,
    /// Probes that removed the copy.
    pub invalidations: u64,
    /// Probes that brought the line for the requester.
    pub forwarded: u64,
    /// Accesses of page walks, which bypass the directory.
    pub walks: u64,
    /// Requests that found a different transaction of their line under way.
    pub conflicts: u64,
}

// Spec of a directory.

/// Directory at the tiles of a shared cache: tracks the lines of first-level caches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySpec {
    /// Clock of the directory.
    pub clock: Frequency,
    /// Cycles of a look-up. One can begin in every cycle; zero if it overlaps with reading the tags of the shared
    /// cache.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

impl DirectorySpec {
    /// Checks that the directory can be built for `cores` cores.
    ///
    /// # Errors
    /// A clock of zero; no core, or more cores than the bits of a line's entry. Keys are relative to this table.
    pub fn check(&self, cores: u16) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        if !(1..=64).contains(&cores) {
            let what = format!("{cores} cores; allowed are 1 to 64, one per bit of a directory entry");
            return Err(SpecError::new("cores", what));
        }
        Ok(())
    }

    /// Time of a look-up.
    fn look_up(&self) -> Time {
        Time::period(self.clock.hz()).times(self.latency.into())
    }
}
