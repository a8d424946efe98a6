//! Shadow: a second account of every map unit's data, kept beside the device, which never consults it.
//!
//! Each write command has a version, and the version travels with the data: from the command into the operation that
//! programs it, into the page, from there into the register when the array is sensed, through the controller's memory
//! into the next page. None of this is looked up in the map, so the map is not checked against itself. Data returned to
//! the host is compared with what NVMe allows (`oracle`).
//!
//! The device reports its actions: a command enters and leaves; an operation is queued, with its source or its data;
//! the array is sensed; an operation is finished. The shadow schedules and answers nothing, so results with and without
//! it are the same. Its hooks are marked cold, so that a device without one keeps its fast path short.
//!
//! A buffer in the controller's memory is a further place for data (`lines`), and so is a demand-cached map (`map`). A
//! power cut clears that memory and the command table, and leaves the pages.
//!
//! Atomicity is checked per 512 B sector. Sectors of one unit written by two commands are checked one by one; they need
//! not come from one command.

mod audit;
mod data;
mod floor;
mod lines;
mod map;
mod oracle;

pub(crate) use audit::Audit;
use data::{Content, Registers, SECTOR, Sectors, Stamps, Truth, Version};
use floor::Floor;
pub use floor::Survivors;
use ftl::page_map::Ftl;
use ftl::page_map::map_cache::MapCache;
use map::MapMemory;
use nand::dies::op::{Op, OpKind};
use oracle::Oracle;
use proto::{Command, IoOp, Lpn, Slot, Status};
use rustc_hash::FxHashMap;
use std::{collections::BTreeSet, sync::Arc};

/// Number of violations that are described; further ones are only counted.
const DESCRIBED: usize = 8;

/// Command inside the device.
#[derive(Clone, Debug)]
struct Inside {
    command: Command,
    version: Version,
    /// Data that a read has received so far; or, for a write that covers units in part, the data under it.
    got: Vec<(Lpn, Stamps)>,
    /// True if the completion promises that data is on flash.
    durable: bool,
    /// Units promised by a flush.
    promised: Vec<Lpn>,
    /// Buffered data found by a read: it overrides the data on flash.
    over: Vec<(Lpn, Sectors, Stamps)>,
}

/// Second account of the data. Memory grows with the units and blocks that are touched.
pub struct Shadow {
    unit_bytes: u64,
    truth: Truth,
    oracle: Oracle,
    /// Commands by name.
    commands: Vec<Option<Inside>>,
    /// Data carried by each operation, by operation name.
    errands: Vec<Errand>,
    /// Units that have been looked up for a read operation that is not queued yet.
    looked_up: Vec<(Lpn, Slot)>,
    /// Register contents of the read that has just finished.
    landed: Vec<(Slot, Content)>,
    /// Contents of the planes' registers.
    registers: Registers,
    /// Units in the controller's memory that garbage collection moves, by where they come from.
    moving: FxHashMap<Slot, Content>,
    /// Units that are, or were, in the buffer.
    lines: FxHashMap<Lpn, Stamps>,
    /// Units on their way from the buffer to flash: which sectors, and their data.
    leaving: FxHashMap<Lpn, (Sectors, Stamps)>,
    /// Units that have been in the buffer since they were last found correct on flash.
    unsettled: BTreeSet<Lpn>,
    /// Contents of memory for a demand-cached map.
    map: MapMemory,
    /// Lower bound for a power cut, if one is to come.
    floor: Option<Floor>,
    writes: u64,
    /// Units whose data the host has received, each compared.
    pub units_checked: u64,
    /// Failed comparisons.
    pub violations: u64,
    /// Descriptions of the first violations.
    pub described: Vec<String>,
}

impl Shadow {
    /// Creates a shadow of a device in its present state, which is assumed to be correct; `cache` if its map is
    /// demand-cached.
    pub(crate) fn new(ftl: &Ftl, cache: Option<&MapCache>) -> Shadow {
        Shadow {
            unit_bytes: u64::from(ftl.geo.shape.unit_bytes),
            truth: Truth::new(ftl),
            oracle: Oracle::default(),
            commands: Vec::new(),
            errands: Vec::new(),
            looked_up: Vec::new(),
            landed: Vec::new(),
            registers: Registers::default(),
            moving: FxHashMap::default(),
            lines: FxHashMap::default(),
            leaving: FxHashMap::default(),
            unsettled: BTreeSet::new(),
            map: MapMemory::new(cache),
            floor: None,
            writes: 0,
            units_checked: 0,
            violations: 0,
            described: Vec::new(),
        }
    }

    #[cold]
    pub(crate) fn violation(&mut self, what: String) {
        self.violations += 1;
        if self.described.len() < DESCRIBED {
            self.described.push(what);
        }
    }

    fn inside(&mut self, id: u32) -> Option<&mut Inside> {
        self.commands.get_mut(id as usize)?.as_mut()
    }

    fn errand(&mut self, name: u32) -> &mut Errand {
        if self.errands.len() <= name as usize {
            self.errands.resize_with(name as usize + 1, Errand::default);
        }
        &mut self.errands[name as usize]
    }

    /// Map units that a command touches.
    fn units(&self, command: &Command) -> std::ops::Range<u64> {
        command.offset / self.unit_bytes..(command.offset + command.bytes).div_ceil(self.unit_bytes)
    }

    /// Sectors of a unit that a command covers: only whole ones if it deallocates data, all that it touches otherwise.
    fn sectors(&self, command: &Command, unit: u64) -> Sectors {
        let (start, end) = (command.offset, command.offset + command.bytes);
        let (first, end) = match command.op {
            IoOp::Trim | IoOp::WriteZeroes => (start.div_ceil(SECTOR), end / SECTOR),
            _ => (start / SECTOR, end.div_ceil(SECTOR)),
        };
        let per_unit = self.unit_bytes / SECTOR;
        let origin = unit * per_unit;
        let first = first.saturating_sub(origin).min(per_unit);
        let end = end.saturating_sub(origin).min(per_unit);
        if first >= end { 0 } else { (Sectors::MAX >> (128 - (end - first))) << first }
    }

    /// Notes an entering command. With `durable`, its completion will promise that data is on flash.
    #[cold]
    pub(crate) fn enters(&mut self, id: u32, command: &Command, durable: bool, ftl: &Ftl) {
        let version = match command.op {
            IoOp::Write => Version::of_write(self.writes).placed(command.placement.min(ftl.placements() - 1)),
            _ => Version::ZERO,
        };
        self.writes += u64::from(command.op == IoOp::Write);
        self.oracle.tick();
        for unit in self.units(command) {
            let (lpn, sectors) = (Lpn(unit), self.sectors(command, unit));
            self.oracle.touch(lpn, || self.truth.initially(lpn, ftl));
            match command.op {
                _ if sectors == 0 => {}
                IoOp::Read => self.oracle.begin_read(lpn, id, sectors),
                IoOp::Flush => {}
                IoOp::Write | IoOp::WriteZeroes => {
                    self.oracle.begin_write(lpn, id, version, sectors, false);
                }
                IoOp::Trim => {
                    // Only in a partial unit may the old data stay.
                    let may_keep = sectors != self.all_sectors();
                    self.oracle.begin_write(lpn, id, version, sectors, may_keep);
                }
            }
        }
        self.floor_rises(id, command, version, durable, ftl);
        if durable && command.op != IoOp::Flush {
            for unit in self.units(command) {
                self.oracle.begin_durable(Lpn(unit), id, self.sectors(command, unit));
            }
        }
        if self.commands.len() <= id as usize {
            self.commands.resize(id as usize + 1, None);
        }
        let promised = if durable && command.op == IoOp::Flush { self.promises(id) } else { Vec::new() };
        let inside =
            Inside { command: *command, version, got: Vec::new(), durable, promised, over: Vec::new() };
        self.commands[id as usize] = Some(inside);
    }

    /// Compares the answer of a leaving command.
    #[cold]
    pub(crate) fn leaves(&mut self, id: u32, status: Status, ftl: &Ftl) {
        let Some(inside) = self.commands.get_mut(id as usize).and_then(Option::take) else { return };
        self.oracle.tick();
        if let Some(floor) = &mut self.floor {
            floor.leaves(id, status);
        }
        let answered = status == Status::Success;
        for unit in self.units(&inside.command) {
            let lpn = Lpn(unit);
            if inside.command.op == IoOp::Read {
                let found = inside.got.iter().find(|(l, _)| *l == lpn).map(|(_, stamps)| stamps);
                let wrong = self.oracle.end_read(lpn, id, found.filter(|_| answered));
                self.compared(lpn, &inside.command, answered && found.is_none(), wrong);
            } else if !answered {
                self.oracle.cancel_write(lpn, id);
            } else {
                self.oracle.end_write(lpn, id);
                if inside.durable {
                    self.keeps_promise(lpn, id, ftl);
                }
            }
        }
        for lpn in inside.promised {
            self.keeps_promise(lpn, id, ftl);
        }
    }

    fn compared(&mut self, lpn: Lpn, command: &Command, missing: bool, wrong: Option<(Version, Sectors)>) {
        self.units_checked += 1;
        let Command { tag, offset, bytes, .. } = *command;
        if missing {
            self.violation(format!("read {tag} of {bytes} B at {offset}: no data for unit {}", lpn.0));
        } else if let Some((version, sectors)) = wrong {
            let sector = sectors.trailing_zeros();
            let what = format!(
                "read {tag} of {bytes} B at {offset}: sector {sector} of unit {} is {version}",
                lpn.0
            );
            self.violation(what);
        }
    }

    /// Notes the look-up of a unit for the read operation that is queued next.
    #[cold]
    pub(crate) fn looks_up(&mut self, lpn: Lpn, slot: Slot) {
        self.looked_up.push((lpn, slot));
    }

    /// Notes that a unit read by a command has no data: it reads as zeroes.
    #[cold]
    pub(crate) fn finds_nothing(&mut self, id: u32, lpn: Lpn) {
        self.gets(id, lpn, Stamps::Whole(Version::ZERO));
    }

    fn gets(&mut self, id: u32, lpn: Lpn, stamps: Stamps) {
        if let Some(inside) = self.inside(id) {
            let over = inside.over.iter().find(|(l, _, _)| *l == lpn);
            let stamps = over.map_or(stamps.clone(), |(_, sectors, line)| stamps.under(line, *sectors));
            inside.got.retain(|(l, _)| *l != lpn);
            inside.got.push((lpn, stamps));
        }
    }

    /// Notes a queued read operation of a command for the first `units` of those looked up.
    #[cold]
    pub(crate) fn reads(&mut self, name: u32, id: u32, units: u16) {
        let looked_up = std::mem::take(&mut self.looked_up);
        let (mine, others) = looked_up.split_at(usize::from(units).min(looked_up.len()));
        self.errand(name).fetch(id, mine);
        self.looked_up.extend_from_slice(others);
    }

    /// Notes a queued read of garbage collection: it takes the rest of the page from its first slot on.
    #[cold]
    pub(crate) fn collects(&mut self, name: u32, slot: Slot, ftl: &Ftl) {
        let page = ftl.geo.page_name(slot);
        let rest = (slot.0..ftl.geo.slots).take_while(|s| ftl.geo.page_name(Slot(*s)) == page);
        self.errand(name).collect(rest.map(Slot));
    }

    /// Notes a queued copy-back.
    #[cold]
    pub(crate) fn copies(&mut self, name: u32, sources: &[(Lpn, Slot)]) {
        self.errand(name).collect(sources.iter().map(|(_, slot)| *slot));
    }

    /// Notes a queued program of the command's data.
    #[cold]
    pub(crate) fn writes(&mut self, name: u32, id: u32, first: u64, units: u16) {
        let Some(inside) = self.commands.get(id as usize).and_then(Option::as_ref) else { return };
        let all = Sectors::MAX >> (128 - self.unit_bytes / SECTOR);
        let data: Vec<Content> = (first..first + u64::from(units))
            .map(|unit| {
                let sectors = self.sectors(&inside.command, unit);
                let stamps = if sectors == all {
                    Stamps::Whole(inside.version)
                } else {
                    let under = inside.got.iter().find(|(l, _)| l.0 == unit).map(|(_, stamps)| stamps);
                    under.unwrap_or(&Stamps::Whole(Version::ZERO)).with(inside.version, sectors)
                };
                Content::new(Lpn(unit), stamps)
            })
            .collect();
        self.carries(name, data);
    }

    /// Keeps the data just read in the controller's memory, to be moved.
    #[cold]
    pub(crate) fn keeps(&mut self) {
        self.moving.extend(self.landed.iter().cloned());
    }

    /// Forgets a unit that need not move after all.
    #[cold]
    pub(crate) fn forgets(&mut self, slot: Slot) {
        self.moving.remove(&slot);
    }

    /// Tears a program: only its first unit reaches the array.
    #[cold]
    pub(crate) fn tears(&mut self, name: u32) {
        self.errand(name).data.truncate(1);
    }

    /// Notes a queued program of moved units.
    #[cold]
    pub(crate) fn moves(&mut self, name: u32, sources: &[(Lpn, Slot)]) {
        let mut data = Vec::with_capacity(sources.len());
        for (lpn, slot) in sources {
            match self.moving.remove(slot) {
                Some(content) => data.push(content),
                None => self.violation(format!("unit {} is moved, but has not been read", lpn.0)),
            }
        }
        self.carries(name, data);
    }

    /// Notes a queued program of adjacent units.
    fn carries(&mut self, name: u32, data: Vec<Content>) {
        self.errand(name).data = data;
    }

    /// Notes a finished operation, before the device acts on it.
    #[cold]
    pub(crate) fn finished(&mut self, name: u32, op: &Op, ftl: &Ftl) {
        self.landed.clear();
        let Errand { command, lpns, slots, data } = std::mem::take(self.errand(name));
        if op.kind != OpKind::Read {
            self.destroys_registers(op, ftl);
        }
        match op.kind {
            OpKind::Erase => self.erased(op.slot, ftl),
            OpKind::Program | OpKind::CopyBack => {
                for (n, content) in data.into_iter().enumerate() {
                    self.programmed(Slot(op.slot.0 + n as u64), content, ftl);
                }
            }
            OpKind::Read => {
                if let Some(id) = command {
                    for (lpn, content) in lpns.iter().zip(&data) {
                        self.gets(id, *lpn, content.clone().seen_as(*lpn));
                    }
                }
                self.landed.extend(slots.into_iter().zip(data));
            }
        }
    }

    /// Notes an erased block.
    pub(crate) fn erased(&mut self, first: Slot, ftl: &Ftl) {
        self.truth.erase(first, ftl);
    }

    fn programmed(&mut self, slot: Slot, content: Content, ftl: &Ftl) {
        let lpn = content.lpn;
        if ftl.lpn_at(slot) != Some(lpn) {
            let oob = ftl.lpn_at(slot);
            self.violation(format!(
                "slot {} holds unit {}, but its out-of-band area names {oob:?}",
                slot.0, lpn.0
            ));
        }
        if !self.truth.program(slot, content, ftl) {
            self.violation(format!("slot {} was programmed before it was erased", slot.0));
        }
    }

    /// Checks that every logical unit is among data of a placement that some of its sectors were written for, if
    /// garbage collection keeps placements apart. Skips units with sectors of unknown placement. O(units that commands
    /// have touched). The error holds the number of misplaced units, and the first of them.
    pub(crate) fn audit_placements(&self, ftl: &Ftl) -> Result<u64, (u64, u64)> {
        let (mut known, mut wrong, mut first) = (0, 0, 0);
        let all = Sectors::MAX >> (128 - self.unit_bytes / SECTOR);
        for lpn in self.oracle.known().filter(|lpn| lpn.0 < ftl.logical()) {
            let Some(slot) = ftl.lookup(lpn) else { continue };
            let lies = ftl.array.placement(ftl.geo.block_of_slot(slot).0);
            let (mut belongs, mut unknown) = (false, false);
            self.on_flash(lpn, ftl).each(|version, sectors| match version.placement() {
                Some(placement) => belongs |= sectors & all != 0 && placement == lies,
                None => unknown |= sectors & all != 0,
            });
            known += u64::from(!unknown);
            if !unknown && !belongs {
                first = if wrong == 0 { lpn.0 } else { first.min(lpn.0) };
                wrong += 1;
            }
        }
        if wrong == 0 { Ok(known) } else { Err((wrong, first)) }
    }
}

// Map entries, as kept by the shadow.

/// Map entry: 0 for a unit without data, slot plus one otherwise.
type Word = u64;

/// Value of an entry that has never been written or read.
const UNKNOWN: Word = u64::MAX;

fn word(slot: Option<Slot>) -> Word {
    slot.map_or(0, |slot| slot.0 + 1)
}

/// Entries of a translation page.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum Entries {
    /// Contents of a page that is not a translation page, or unreliable contents.
    #[default]
    Unknown,
    /// Unchanged since the shadow began.
    Initial,
    /// One by one.
    Known(Arc<[Word]>),
}

// Data carried by one back-end operation.

/// Source of an operation's data, and the data once available.
#[derive(Clone, Debug, Default)]
struct Errand {
    /// Command that receives the data read; `None` if the data stays in the controller.
    command: Option<u32>,
    /// Logical units of a host read, one per slot.
    lpns: Vec<Lpn>,
    /// Slots that are sensed.
    slots: Vec<Slot>,
    /// Data in the register: for a program from the start, for a read once the array is sensed.
    data: Vec<Content>,
}

impl Errand {
    /// Creates a read of units for a command.
    fn fetch(&mut self, command: u32, units: &[(Lpn, Slot)]) {
        self.command = Some(command);
        self.lpns = units.iter().map(|(lpn, _)| *lpn).collect();
        self.take_from(units.iter().map(|(_, slot)| *slot));
    }

    /// Creates a read of slots for no command.
    fn collect(&mut self, slots: impl Iterator<Item = Slot>) {
        self.command = None;
        self.take_from(slots);
    }

    fn take_from(&mut self, slots: impl Iterator<Item = Slot>) {
        self.slots = slots.collect();
    }
}
