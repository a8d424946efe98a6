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
    /// When the window began.
    pub since: Time,
    /// Read commands that have arrived.
    pub reads: u64,
    /// Write commands that have arrived.
    pub writes: u64,
    /// Commands that have waited because a merge blocks their application.
    pub blocked: u64,
    /// Reads that have waited for a write of what they read to be in its register.
    pub held_reads: u64,
    /// Reads that registers alone have served.
    pub register_reads: u64,
    /// Reads that registers have served in part: the array gave the rest.
    pub partial_reads: u64,
    /// Reads that share a fetch that another read had begun.
    pub merged_reads: u64,
    /// Pages read from the arrays for reads.
    pub array_reads: u64,
    /// Of these, pages found in a log block.
    pub log_reads: u64,
    /// Old pages read because an evicted one was written in part.
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
    /// Pages that had to leave their register.
    pub evictions: u64,
    /// Pages moved from a register of one plane to the data register of another.
    pub moves: u64,
    /// Evicted pages offered to the shared cache.
    pub parked: u64,
    /// Of these, refused by it and programmed after all.
    pub refused: u64,
    /// Merges of a log block that have ended.
    pub gc_runs: u64,
    /// How long they took, summed.
    pub gc_time: Time,
    /// When the first merge of the window began.
    pub gc_begun: Option<Time>,
    /// When the latest one ended.
    pub gc_ended: Option<Time>,
    /// Bytes from packages to controllers, commands apart.
    pub bytes_out: u64,
    /// Bytes from controllers to packages, commands apart.
    pub bytes_in: u64,
    /// Different pages read from the arrays for reads.
    pub pages_read: u64,
    /// Different pages programmed because a register was needed.
    pub pages_programmed: u64,
    /// Different pages that write commands were for.
    pub pages_written: u64,
    /// Write commands for each plane, channel first.
    pub plane_writes: Vec<u32>,
}

impl DirectStats {
    /// Pages read from the arrays, whatever for: as often the page tables of log blocks have been searched.
    pub fn senses(&self) -> u64 {
        self.array_reads + self.fill_reads + self.gc_reads
    }

    /// Bytes read from the arrays, whole pages.
    pub fn bytes_sensed(&self) -> u64 {
        self.senses() * PAGE
    }

    /// Pages programmed, whatever for.
    pub fn programs(&self) -> u64 {
        self.eviction_programs + self.gc_programs
    }

    /// How often a page that reads fetch from the arrays is fetched.
    pub fn reaccess(&self) -> f64 {
        ratio(self.array_reads, self.pages_read)
    }

    /// How often a page that evictions program is programmed.
    pub fn write_redundancy(&self) -> f64 {
        ratio(self.eviction_programs, self.pages_programmed)
    }

    /// Read commands that an array serves to a page that is read at all: [`DirectStats::reaccess`], had none been merged.
    pub fn reads_per_page(&self) -> f64 {
        ratio(self.reads - self.register_reads, self.pages_read)
    }

    /// Write commands to a page that is written at all.
    pub fn writes_per_page(&self) -> f64 {
        ratio(self.writes, self.pages_written)
    }
}

/// What flash as memory has done, as its planes and its counters know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCounts {
    /// Planes.
    pub planes: u64,
    /// Of these, arrays that are at work: what they do may not be counted yet.
    pub at_work: u64,
    /// How long arrays have worked, or will have, picoseconds.
    pub busy_ps: u128,
}

fn ratio(count: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

/// How long resources have been busy since the window began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectBusy {
    /// Arrays of the planes.
    pub planes: Spread,
    /// I/O ports of the packages; with buses, the buses.
    pub ports: Spread,
    /// Links of the mesh; none with buses.
    pub links: Spread,
}

/// What registers hold that flash does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Registers.
    pub registers: u64,
    /// Lines written in them.
    pub lines: u64,
}

/// Which pages have been met: a bitmap that grows where it is used.
#[derive(Clone, Debug, Default)]
pub(super) struct PageSet {
    chunks: Vec<Option<Box<[u64; CHUNK]>>>,
    used: Vec<u32>,
}

/// Words of a piece of the bitmap: 4 KiB.
const CHUNK: usize = 512;

impl PageSet {
    pub(super) fn new(pages: u64) -> PageSet {
        let chunks = pages.div_ceil(64 * CHUNK as u64) as usize;
        PageSet { chunks: std::iter::repeat_with(|| None).take(chunks).collect(), used: Vec::new() }
    }

    /// Adds a page; whether it is new.
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

// What flash as memory spends.

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

/// What flash as memory spends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectEnergySpec {
    /// Energy of a page that is read from its array.
    pub read: Energy,
    /// Energy of a page that is programmed.
    pub program: Energy,
    /// Energy of a block that is erased.
    pub erase: Energy,
    /// Energy of a byte of lines on the network between controllers and packages, either way, all hops together.
    pub transfer: Energy,
    /// Power of a plane; that of its array at work, if operations do not have it already.
    pub plane: StatePower,
    /// Power of all controllers together.
    pub controllers_on: Power,
}

impl DirectEnergySpec {
    pub(super) fn check(&self) -> Result<(), SpecError> {
        let StatePower { idle, busy } = self.plane;
        if busy < idle {
            let what = format!("{busy} at work are less than {idle} without");
            return Err(SpecError::new("energy.plane.busy", what));
        }
        Ok(())
    }
}

/// What an array does in one go: pages read, pages programmed, blocks erased.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spending(pub(super) u64, pub(super) u64, pub(super) u64);

/// What flash as memory has spent: all planes take the idle power all the time, those at work more.
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

    /// An array works; it counts when it begins.
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

    /// So many bytes go over the network.
    pub(super) fn transfer(&mut self, bytes: u64, now: Time) {
        let byte = Attojoules::from(self.costs.transfer.attojoules());
        self.meter.spend(TRANSFER, now, byte * Attojoules::from(bytes));
    }

    pub(super) fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

impl Direct {
    /// Energy since the window began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.meter.report(now))
    }
}

// Checks that hold between any two events. Each side of an equation is counted in another part.

/// What has happened since the first command.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Commands.
    pub(super) arrived: u64,
    pub(super) done: u64,
    /// Reads of the array queued, and done.
    pub(super) fetches: u64,
    pub(super) sensed: u64,
    /// Pages queued to be programmed from registers, and programmed.
    pub(super) leaving: u64,
    pub(super) left: u64,
    /// Pages offered to the shared cache, taken and refused by it.
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

    /// Whether what was counted in one place agrees with what was counted in another.
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

    /// Every block of a set of planes is data, log, free or part of the set's merge.
    fn blocks_are_kept(&self) -> Check {
        let merge = |set| self.merge_of(set);
        let all = (self.blocks.blocks as usize, self.blocks.blocks as usize);
        let lost = self.blocks.census(merge).filter(|census| *census != all).count();
        let detail = format!("{lost} sets of planes with blocks that are lost or in two places");
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
