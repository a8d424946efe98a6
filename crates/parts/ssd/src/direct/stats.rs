//! Statistics of flash as memory, its energy, and checks of its counts.

use super::{Direct, array::Kind};
use crate::check::Check;
use config::{
    SpecError, StatePower,
    units::{Energy, Power},
};
use engine::{Mutant, Time, planted_nth};
use nand::planes::Spread;
use proto::memory::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, Attojoules, EnergyReport, Meter};

/// Counters since the window began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectStats {
    /// Start of the window.
    pub since: Time,
    /// Read commands that have arrived.
    pub reads: u64,
    /// Write commands that have arrived.
    pub writes: u64,
    /// Commands that waited because a merge blocked their application.
    pub blocked: u64,
    /// Reads that waited until a write of their lines was in its register.
    pub held_reads: u64,
    /// Reads served entirely by registers.
    pub register_reads: u64,
    /// Reads served partly by registers and partly by the array.
    pub partial_reads: u64,
    /// Reads that joined a fetch begun by another read.
    pub merged_reads: u64,
    /// Pages read from the arrays for reads.
    pub array_reads: u64,
    /// Array reads, among these, of pages in a log block.
    pub log_reads: u64,
    /// Old pages read because an evicted page was written in part.
    pub fill_reads: u64,
    /// Pages read by merges of log blocks.
    pub gc_reads: u64,
    /// Pages programmed because a register was needed.
    pub eviction_programs: u64,
    /// Pages programmed by merges of log blocks.
    pub gc_programs: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Writes to a page that a register held.
    pub register_hits: u64,
    /// Writes to a page that no register held.
    pub register_misses: u64,
    /// Pages evicted from their register.
    pub evictions: u64,
    /// Pages moved from a register of one plane to the data register of another.
    pub moves: u64,
    /// Evicted pages offered to the shared cache.
    pub parked: u64,
    /// Offered pages that the shared cache refused: they were programmed after all.
    pub refused: u64,
    /// Completed merges of a log block.
    pub gc_runs: u64,
    /// Total duration of these merges.
    pub gc_time: Time,
    /// Begin of the first merge of the window.
    pub gc_begun: Option<Time>,
    /// End of the last merge.
    pub gc_ended: Option<Time>,
    /// Bytes from packages to controllers, without commands.
    pub bytes_out: u64,
    /// Bytes from controllers to packages, without commands.
    pub bytes_in: u64,
    /// Distinct pages read from the arrays for reads.
    pub pages_read: u64,
    /// Distinct pages programmed because a register was needed.
    pub pages_programmed: u64,
    /// Distinct pages addressed by write commands.
    pub pages_written: u64,
    /// Write commands for each plane, channel first.
    pub plane_writes: Vec<u32>,
}

impl DirectStats {
    /// Pages read from the arrays for any purpose; also the number of searches in page tables of log blocks.
    pub fn senses(&self) -> u64 {
        self.array_reads + self.fill_reads + self.gc_reads
    }

    /// Bytes read from the arrays, whole pages.
    pub fn bytes_sensed(&self) -> u64 {
        self.senses() * PAGE
    }

    /// Pages programmed for any purpose.
    pub fn programs(&self) -> u64 {
        self.eviction_programs + self.gc_programs
    }

    /// Average number of array fetches of a page that reads fetch.
    pub fn reaccess(&self) -> f64 {
        ratio(self.array_reads, self.pages_read)
    }

    /// Average number of programs of a page that evictions program.
    pub fn write_redundancy(&self) -> f64 {
        ratio(self.eviction_programs, self.pages_programmed)
    }

    /// Average number of read commands, served by the array, to a page read at all: [`DirectStats::reaccess`] without
    /// joined reads.
    pub fn reads_per_page(&self) -> f64 {
        ratio(self.reads - self.register_reads, self.pages_read)
    }

    /// Average number of write commands to a page written at all.
    pub fn writes_per_page(&self) -> f64 {
        ratio(self.writes, self.pages_written)
    }
}

/// Activity of flash as memory, from its planes and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCounts {
    /// Number of planes.
    pub planes: u64,
    /// Arrays at work among these: their operations may not be counted yet.
    pub at_work: u64,
    /// Busy time of the arrays in picoseconds, past or scheduled.
    pub busy_ps: u128,
}

fn ratio(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

/// Busy times of resources since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectBusy {
    /// Arrays of the planes.
    pub planes: Spread,
    /// I/O ports of the packages; with buses, the buses.
    pub ports: Spread,
    /// Links of the mesh; none with buses.
    pub links: Spread,
}

/// Register contents that are not on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Number of registers.
    pub registers: u64,
    /// Number of lines written in them.
    pub lines: u64,
}

/// Set of pages: a bitmap that grows where it is used.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    chunks: Vec<Option<Box<[u64; CHUNK]>>>,
    used: Vec<u32>,
}

/// Words per piece of the bitmap: 4 KiB.
const CHUNK: usize = 512;

impl PageSet {
    pub(super) fn new(pages: u64) -> PageSet {
        let chunks = pages.div_ceil(64 * CHUNK as u64) as usize;
        PageSet { chunks: std::iter::repeat_with(|| None).take(chunks).collect(), used: Vec::new() }
    }

    /// Adds a page; returns true if it is new.
    #[inline]
    pub(super) fn add(&mut self, page: u64) -> bool {
        let (word, bit) = ((page / 64) as usize, 1u64 << (page % 64));
        let place = word / CHUNK;
        let chunk = self.chunks[place].get_or_insert_with(|| {
            self.used.push(place as u32);
            Box::new([0; CHUNK])
        });
        let word = &mut chunk[word % CHUNK];
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(super) fn clear(&mut self) {
        for place in &self.used {
            if let Some(chunk) = &mut self.chunks[*place as usize] {
                chunk.fill(0);
            }
        }
    }
}

// Energy of flash as memory.

const READ: usize = 0;
const PROGRAM: usize = 1;
const ERASE: usize = 2;
const TRANSFER: usize = 3;
const PLANES_ON: usize = 4;
const PLANES_WORK: usize = 5;
const CONTROLLERS_ON: usize = 6;
const ACTIVITIES: [Activity; 7] = [
    Activity::operation("read"),
    Activity::operation("program"),
    Activity::operation("erase"),
    Activity::operation("flash network transfer"),
    Activity::state("planes on"),
    Activity::state("planes at work"),
    Activity::state("controllers on"),
];

/// Energies of flash as memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectEnergySpec {
    /// Energy of reading a page from its array.
    pub read: Energy,
    /// Energy of programming a page.
    pub program: Energy,
    /// Energy of erasing a block.
    pub erase: Energy,
    /// Energy per byte of lines on the network between controllers and packages, in either direction, over all hops.
    pub transfer: Energy,
    /// Power of a plane, idle and with its array at work; the second only if the operations' energy does not include
    /// it.
    pub plane: StatePower,
    /// Power of all controllers together.
    pub controllers_on: Power,
}

impl DirectEnergySpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.plane;
        if busy < idle {
            let what = format!("a busy power of {busy} is below the idle power of {idle}");
            return Err(SpecError::new("energy.plane.busy", what));
        }
        Ok(())
    }
}

/// Energy-consuming array work in one step: pages read, pages programmed, blocks erased.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending(pub(super) u64, pub(super) u64, pub(super) u64);

/// Energy meter of flash as memory: every plane draws idle power all the time, planes at work draw more.
pub(super) struct DirectMeter {
    costs: DirectEnergySpec,
    meter: Meter,
}

impl DirectMeter {
    pub(super) fn new(costs: DirectEnergySpec, planes: u32) -> DirectMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        meter.set_power(PLANES_ON, Time::ZERO, costs.plane.idle.microwatts() * u64::from(planes));
        meter.set_power(CONTROLLERS_ON, Time::ZERO, costs.controllers_on.microwatts());
        DirectMeter { costs, meter }
    }

    /// Counts the work of an array when it begins.
    pub(super) fn work(&mut self, does: Spending, from: Time, to: Time) {
        let Spending(reads, programs, erases) = does;
        let costs = [
            (READ, reads, self.costs.read),
            (PROGRAM, programs, self.costs.program),
            (ERASE, erases, self.costs.erase),
        ];
        for (activity, count, energy) in costs {
            let is_free = count > 0 && planted_nth(Mutant::UnpaidPageOfMemory, 16);
            let count = if is_free { 0 } else { count };
            let energy = Attojoules::from(energy.attojoules()) * Attojoules::from(count);
            self.meter.spread(activity, from, to, energy);
        }
        let StatePower { idle, busy } = self.costs.plane;
        self.meter.spend_over(PLANES_WORK, from, to, busy.microwatts().saturating_sub(idle.microwatts()));
    }

    /// Counts `bytes` sent over the network.
    pub(super) fn transfer(&mut self, bytes: u64, now: Time) {
        let byte = Attojoules::from(self.costs.transfer.attojoules());
        self.meter.spend(TRANSFER, now, byte * Attojoules::from(bytes));
    }

    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

impl Direct {
    /// Energy since the window began; `None` without energies in the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.meter.report(now))
    }
}

// Checks that hold between any two events. The two sides of an equation are counted in different components.

/// Counts since the first command.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Commands arrived.
    pub(super) arrived: u64,
    pub(super) done: u64,
    /// Array reads queued, and completed.
    pub(super) fetches: u64,
    pub(super) sensed: u64,
    /// Pages queued for a program from registers, and programmed.
    pub(super) leaving: u64,
    pub(super) left: u64,
    /// Pages offered to the shared cache, taken by it, and refused by it.
    pub(super) offered: u64,
    pub(super) taken: u64,
    pub(super) refused: u64,
    /// Lines of the pages taken.
    pub(super) given_up: u64,
    /// Pages moved and blocks erased by merges.
    pub(super) copied: u64,
    pub(super) erased: u64,
}

fn equal(name: &'static str, left: (&str, u64), right: (&str, u64)) -> Check {
    let detail = format!("{} {}, {} {}", left.0, left.1, right.0, right.1);
    Check { name, ok: left.1 == right.1, detail }
}

impl Direct {
    /// Lines of pages that the shared cache has taken from registers since the beginning.
    pub fn lines_given_up(&self) -> u64 {
        self.ledger.given_up
    }

    /// Checks that counts from different places agree.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let (mut reads, mut programs) = (0, 0);
        for op in self.planes.live() {
            match op.kind {
                Kind::Read => reads += u64::from(op.held == Time::MAX),
                Kind::Program { .. } => programs += 1,
            }
        }
        let (used, _) = self.registers.used();
        let mut checks = vec![
            equal(
                "every command is answered once",
                ("arrived", ledger.arrived),
                ("done and inside", ledger.done + self.active.len() as u64),
            ),
            equal(
                "every fetch senses a page once",
                ("fetches", ledger.fetches),
                ("sensed and waiting", ledger.sensed + reads),
            ),
            equal(
                "every page that leaves for flash is programmed once",
                ("queued", ledger.leaving),
                ("programmed and waiting", ledger.left + programs),
            ),
            equal(
                "every page in a register is programmed or parked",
                ("taken in", self.registers.filled),
                ("programmed, parked and held", ledger.left + ledger.taken + used),
            ),
            equal(
                "every offered page is taken or refused",
                ("offered", ledger.offered),
                ("taken, refused and open", ledger.taken + ledger.refused + self.registers.open()),
            ),
            equal(
                "pages are programmed by evictions and merges",
                ("in blocks", self.blocks.programmed),
                ("by evictions and merges", ledger.left + ledger.copied),
            ),
            equal(
                "blocks are erased by merges",
                ("in blocks", self.blocks.erased),
                ("by merges", ledger.erased),
            ),
            self.blocks_are_kept(),
        ];
        if let Some(shadow) = &self.shadow {
            let detail = format!("{} of {} lines read were wrong", shadow.wrong, shadow.checked);
            checks.push(Check { name: "reads bring what was written", ok: shadow.wrong == 0, detail });
        }
        checks
    }

    /// Checks that every block of a set of planes is data, log, free or part of the set's merge.
    fn blocks_are_kept(&self) -> Check {
        let merge = |set| self.merge_of(set);
        let all = (self.blocks.blocks as usize, self.blocks.blocks as usize);
        let lost = self.blocks.census(merge).filter(|census| *census != all).count();
        let detail = format!("{lost} sets of planes have blocks that are lost or in two places");
        Check { name: "no block is lost", ok: lost == 0, detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_new_once() {
        let mut set = PageSet::new(1 << 20);
        let pages = [0u64, 63, 64, 1 << 15, (1 << 20) - 1];
        assert!(pages.iter().all(|p| set.add(*p)) && !pages.iter().any(|p| set.add(*p)));
        set.clear();
        assert!(pages.iter().all(|p| set.add(*p)));
    }
}
