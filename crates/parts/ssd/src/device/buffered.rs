//! Data buffer in time: writes into it, reads from it. `destage` holds its write-back.

use super::evict::Evictions;
use super::gather::{RegisterParts, Registers};
use super::write::Rewrites;
use super::{Device, Event, Out, milestone};
use engine::resource::Serial;
use engine::{Cx, Mutant, Slab, Snapshot, Time, planted};
use ftl::buffer::ahead::LookAhead;
use ftl::buffer::destage::{Destage, Pace};
use ftl::buffer::{Flushed, Sectors, Sets, Write};
use ftl::page_map::space::Stream;
use nand::dies::op::Op;
use nand::geometry::Geometry;
use net::Rate;
use proto::{Command, IoOp, Lpn, Slot};
use std::collections::VecDeque;
use std::ops::Range;

/// Parts of a buffer in time.
pub struct BufferParts {
    /// State machine of the buffer.
    pub buffer: Sets,
    /// Write-back policy.
    pub destage: Box<dyn Destage>,
    /// Maximum number of map units in flight to flash.
    pub in_flight: u32,
    /// Throttle: host writes wait while at least this many sectors wait for a flush or are being flushed.
    pub throttle: u64,
    /// Time that a rewritten unit stays.
    pub keep: Option<Time>,
    /// True if programs of units without data on flash move only the written sectors.
    pub moves_sectors: bool,
    /// True if a read that misses waits while all lines are dirty.
    pub reads_wait: bool,
    /// True if a write is acknowledged from the buffer.
    pub acknowledges_early: bool,
    /// True if the buffer survives a power cut.
    pub protected: bool,
    /// Location of the lines.
    pub memory: BufferMemory,
    /// Read-ahead policy.
    pub look_ahead: Option<Box<dyn LookAhead>>,
}

/// Location of the lines of a buffer.
pub enum BufferMemory {
    /// In DRAM.
    Dram {
        /// Rate of the DRAM.
        rate: Rate,
        /// Latency of an access, up to its first byte.
        latency: Time,
    },
    /// In registers of the planes.
    Registers(RegisterParts),
}

/// Location of the lines, in time.
pub(super) enum Place {
    Dram { dram: Serial, rate: Rate, latency: Time },
    Registers(Box<Registers>),
}

/// Buffer, and data in flight between host, buffer and flash.
pub struct Buffered {
    /// State machine of the buffer.
    pub buffer: Sets,
    pub(super) parts: Limits,
    pub(super) place: Place,
    /// Writes that wait for room in each set, oldest first.
    pub(super) waiting: Vec<VecDeque<u32>>,
    pub(super) waiters: usize,
    pub(super) rewrites: Option<Rewrites>,
    /// Commands that wait until everything up to a write sequence number is durable.
    pub(super) barriers: VecDeque<(u64, u32)>,
    /// Reads that wait for a line, each until the write of this sequence number is durable.
    pub(super) reads: VecDeque<(u64, u32)>,
    /// Policy that decides on write-back, unless the buffer's own rule does.
    pub(super) evictions: Option<Box<Evictions>>,
    /// Units waiting for their program unit to fill up: one list for each placement in each set of groups that the
    /// allocator keeps apart; with an eviction policy, one such set of lists per pace.
    pub(super) assemblies: Vec<Vec<Lpn>>,
    /// Placements of the host: number of consecutive assemblies of a set of groups.
    pub(super) placements: u8,
    /// Full assemblies, and the group that had no space for each.
    pub(super) stalled: Vec<(usize, u32)>,
    /// Units whose missing sectors are being read.
    pub(super) merging: Slab<Lpn>,
    pub(super) programs: u32,
    /// Units that wait for their entry of the map.
    pub(super) translating: u32,
}

pub(super) struct Limits {
    pub(super) in_flight: u32,
    pub(super) throttle: u64,
    pub(super) moves_sectors: bool,
    pub(super) reads_wait: bool,
    pub(super) acknowledges_early: bool,
    pub(super) protected: bool,
}

impl Buffered {
    /// Creates the buffer; `lines` is the number of sets of groups that the allocator keeps apart.
    pub(super) fn new(parts: BufferParts, lines: usize, geo: &Geometry, placements: u8) -> Buffered {
        let evictions = Evictions::new(parts.destage, geo);
        let paces = if evictions.is_some() { Pace::COUNT } else { 1 };
        Buffered {
            evictions,
            waiting: vec![VecDeque::new(); parts.buffer.count()],
            waiters: 0,
            buffer: parts.buffer,
            parts: Limits {
                in_flight: parts.in_flight,
                throttle: parts.throttle,
                moves_sectors: parts.moves_sectors,
                reads_wait: parts.reads_wait,
                acknowledges_early: parts.acknowledges_early,
                protected: parts.protected,
            },
            place: match parts.memory {
                BufferMemory::Dram { rate, latency } => {
                    Place::Dram { dram: Serial::default(), rate, latency }
                }
                BufferMemory::Registers(parts) => {
                    Place::Registers(Box::new(Registers::new(&parts, geo.plane_count)))
                }
            },
            rewrites: parts.keep.map(Rewrites::new),
            barriers: VecDeque::new(),
            reads: VecDeque::new(),
            assemblies: vec![Vec::new(); lines * usize::from(placements) * paces],
            placements,
            stalled: Vec::new(),
            merging: Slab::default(),
            programs: 0,
            translating: 0,
        }
    }

    /// Returns true if the completion of a command promises that data is on flash.
    pub(super) fn promises_flash(&self, command: &Command) -> bool {
        match command.op {
            IoOp::Write | IoOp::WriteZeroes => {
                !self.parts.acknowledges_early || (command.fua && !self.parts.protected)
            }
            IoOp::Flush => !self.parts.protected,
            IoOp::Read | IoOp::Trim => false,
        }
    }

    /// Number of assemblies per pace.
    fn assemblies_a_pace(&self) -> usize {
        self.assemblies.len() / if self.evictions.is_some() { Pace::COUNT } else { 1 }
    }

    /// Assemblies of one pace.
    pub(super) fn assemblies_of(&self, pace: Pace) -> Range<usize> {
        let each = self.assemblies_a_pace();
        pace as usize * each..(pace as usize + 1) * each
    }

    /// Stream of the units in an assembly.
    pub(super) fn stream_of(&self, assembly: usize) -> Stream {
        Stream::Host((assembly % usize::from(self.placements)) as u8)
    }

    /// Urgency of the units in an assembly.
    pub(super) fn pace_of(&self, assembly: usize) -> Pace {
        if self.evictions.is_none() { Pace::Even } else { Pace::nth(assembly / self.assemblies_a_pace()) }
    }

    /// Registers a unit whose missing sectors are going to be read.
    pub(super) fn begin_merge(&mut self, lpn: Lpn) -> u32 {
        self.merging.insert(lpn)
    }

    /// Returns true if too much data is in flight to flash to take a write.
    pub(super) fn is_throttled(&self) -> bool {
        self.buffer.unflushed() >= self.parts.throttle
    }

    /// Returns true if the lines survive a power cut.
    pub(super) fn is_protected(&self) -> bool {
        self.parts.protected
    }

    /// Returns true if nothing waits for the buffer and none of its units is being programmed.
    pub(super) fn is_idle(&self) -> bool {
        let arrived = match &self.place {
            Place::Dram { .. } => true,
            Place::Registers(registers) => registers.is_idle(),
        };
        let evictions = self.evictions.as_ref().is_none_or(|e| e.is_idle());
        self.waiters == 0
            && self.barriers.is_empty()
            && self.reads.is_empty()
            && self.programs + self.translating == 0
            && arrived
            && evictions
    }

    /// Restores a unit that a protected buffer kept through a power cut; `home` is the unit's plane.
    pub(super) fn restore(&mut self, lpn: Lpn, sectors: Sectors, placement: u8, home: u32) {
        let outcome = self.buffer.write(lpn, sectors);
        self.buffer.place(lpn, placement);
        if let (Place::Registers(registers), Write::New) = (&mut self.place, outcome) {
            registers.take(lpn, home);
        }
    }

    /// Completes the flush of a unit.
    pub(super) fn flushed(&mut self, lpn: Lpn) -> Flushed {
        let flushed = self.buffer.flushed(lpn);
        self.vacate(lpn);
        flushed
    }

    /// Frees the register of a unit that no longer has a line.
    fn vacate(&mut self, lpn: Lpn) {
        let Place::Registers(registers) = &mut self.place else { return };
        registers.is_in_register(lpn);
        if !self.buffer.has_line(lpn) {
            registers.put(lpn);
        }
    }

    /// Appends the state of an idle buffer, including units that wait for their program unit to fill up.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Buffered {
            buffer,
            parts: _,
            place,
            waiting: _,
            waiters: _,
            rewrites,
            barriers: _,
            reads: _,
            evictions,
            assemblies,
            placements: _,
            stalled,
            merging: _,
            programs: _,
            translating: _,
        } = self;
        buffer.save(out);
        match place {
            Place::Dram { dram, rate: _, latency: _ } => dram.save(out),
            Place::Registers(registers) => registers.save(out),
        }
        rewrites.iter().for_each(|r| r.save(out));
        evictions.iter().for_each(|e| e.save(out));
        assemblies.save(out);
        stalled.save(out);
    }

    /// Replaces the state with one saved by a buffer of the same parameters; `None` if it is truncated or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.buffer.load(input)?;
        match &mut self.place {
            Place::Dram { dram, .. } => *dram = Serial::load(input)?,
            Place::Registers(registers) => registers.load(input)?,
        }
        if let Some(rewrites) = &mut self.rewrites {
            rewrites.load(input)?;
        }
        if let Some(evictions) = &mut self.evictions {
            evictions.load(input)?;
        }
        self.assemblies = Vec::load(input).filter(|a: &Vec<Vec<Lpn>>| a.len() == self.assemblies.len())?;
        self.stalled = Vec::load(input)?;
        Some(())
    }

    /// Books one access of the DRAM and returns its end. Data on its way to a register is in the controller, and costs
    /// nothing.
    fn access(&mut self, now: Time, bytes: u64) -> Time {
        match &mut self.place {
            Place::Dram { dram, rate, latency } => dram.grant(now, *latency + rate.time(bytes)),
            Place::Registers(_) => now,
        }
    }
}

impl Device {
    /// Sectors of a unit that an extent touches.
    pub(super) fn sectors(&self, command: &Command, unit: u64) -> Sectors {
        let start = (unit * self.unit_bytes).max(command.offset) - unit * self.unit_bytes;
        let end = ((unit + 1) * self.unit_bytes).min(command.offset + command.bytes) - unit * self.unit_bytes;
        let (first, last) = (start / 512, end.div_ceil(512));
        (Sectors::MAX >> (128 - (last - first))) << first
    }

    /// Returns true if the completion of a command promises that data is on flash, and not only in the buffer.
    pub(super) fn promises_flash(&self, command: &Command) -> bool {
        let writes = matches!(command.op, IoOp::Write | IoOp::WriteZeroes);
        self.buffered.as_ref().map_or(writes, |b| b.promises_flash(command))
    }

    /// Puts the units of a write into the buffer, as far as there is room.
    pub(super) fn accept(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        self.accept_into(&mut buffered, id, None, cx);
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
    }

    /// Puts the units of a write into the buffer; `from` is the set whose room the command has waited for longest.
    pub(super) fn accept_into(
        &mut self,
        buffered: &mut Buffered,
        id: u32,
        from: Option<usize>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let command = self.active[id].command;
        let (mut unit, end) = (self.active[id].next, self.active[id].end);
        let mut set = None;
        while unit < end {
            let lpn = Lpn(unit);
            // First come, first served.
            let its = buffered.buffer.set_of(lpn);
            set = Some(its);
            if buffered.waiting[its].front().is_some_and(|first| *first != id) {
                break;
            }
            // A unit that waits for its first flush takes the new data along.
            let goes_along = buffered.rewrites.is_some() && buffered.buffer.wants_out(lpn);
            if buffered.is_throttled() {
                break;
            }
            let sectors = self.sectors(&command, unit);
            let outcome = buffered.buffer.write(lpn, sectors);
            if outcome == Write::Full {
                break;
            }
            if let Some(evictions) = &mut buffered.evictions {
                evictions.came(sectors.count_ones());
            }
            buffered.buffer.place(lpn, command.placement.min(self.placements - 1));
            if let Some(rewrites) = &mut buffered.rewrites {
                let again = rewrites.is_again(lpn);
                buffered.buffer.keep(lpn, again && !goes_along);
            }
            if let Some(shadow) = &mut self.shadow {
                shadow.line_takes(id, lpn);
            }
            self.mutate_line(&mut buffered.buffer, lpn);
            self.store(buffered, (id, lpn, outcome == Write::New), cx);
            unit += 1;
        }
        self.active[id].next = unit;
        if let Some(rewrites) = &mut buffered.rewrites {
            rewrites.wrote(cx.now());
        }
        let waits = set.filter(|_| unit < end);
        if from != waits {
            from.into_iter().for_each(|set| _ = buffered.waiting[set].pop_front());
            waits.into_iter().for_each(|set| buffered.waiting[set].push_back(id));
            buffered.waiters = buffered.waiters + usize::from(waits.is_some()) - usize::from(from.is_some());
        }
        if waits.is_none() {
            self.accepted(buffered, id, cx);
        }
    }

    /// Completes a write that is entirely in the buffer.
    fn accepted(&mut self, buffered: &mut Buffered, id: u32, cx: &mut impl Cx<Event, Out>) {
        let command = self.active[id].command;
        if buffered.promises_flash(&command) && !planted(Mutant::FuaIgnored) {
            self.active[id].life.reach(milestone::BUFFER, cx.now());
            buffered.barriers.push_back((buffered.buffer.barrier(), id));
        } else if let Place::Dram { .. } = buffered.place {
            let done = buffered.access(cx.now(), command.bytes);
            cx.after(done - cx.now(), Event::Buffered(id));
        }
    }

    /// Continues a command after its DRAM access.
    pub(super) fn buffer_accessed(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        if active.command.op == IoOp::Read {
            let (bytes, queue) = (active.buffered_bytes, active.command.queue);
            active.pending -= 1;
            if active.pending == 0 {
                active.life.reach(milestone::BUFFER, cx.now());
            }
            self.host.data_out(queue, cx.now(), bytes);
        } else {
            active.life.reach(milestone::BUFFER, cx.now());
        }
        if self.active[id].pending == 0 {
            self.complete(id, cx);
        }
    }

    /// Starts a flush command, which waits for all earlier writes.
    pub(super) fn start_flush(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        self.write_journal();
        match self.buffered.take() {
            Some(mut buffered) if !buffered.parts.protected && !planted(Mutant::EarlyFlush) => {
                buffered.barriers.push_back((buffered.buffer.barrier(), id));
                self.flush(&mut buffered, cx);
                self.release_barriers(&mut buffered, cx);
                self.buffered = Some(buffered);
            }
            other => {
                self.buffered = other;
                self.complete(id, cx);
            }
        }
    }

    /// Returns true if the buffer has everything that a command reads of a unit.
    #[inline]
    pub(super) fn is_buffered(&mut self, id: u32, command: &Command, unit: u64) -> bool {
        if self.buffered.is_none() || planted(Mutant::BufferPassed) {
            return false;
        }
        let want = self.sectors(command, unit);
        let here = self.buffered.as_mut().map_or(0, |b| b.buffer.read(Lpn(unit), want));
        if here != 0
            && let Some(shadow) = &mut self.shadow
        {
            shadow.line_gives(id, Lpn(unit), here);
        }
        here == want
    }

    /// Starts the DRAM access for the buffered part of a read.
    pub(super) fn start_buffered_read(&mut self, id: u32, bytes: u64, cx: &mut impl Cx<Event, Out>) {
        let Some(buffered) = &mut self.buffered else { return };
        let done = buffered.access(cx.now(), bytes);
        self.active[id].buffered_bytes = bytes;
        cx.after(done - cx.now(), Event::Buffered(id));
    }

    /// Offers data read from flash to the buffer, unit by unit, as long as the map still names its source.
    pub(super) fn fill_from(&mut self, op: &Op) {
        let Some(mut buffered) = self.buffered.take() else { return };
        let command = self.active[op.owner].command;
        let (first, end) = self.units(&command);
        let page = self.ftl.geo.page_name(op.slot);
        // Units of a page are neighbours on flash, not in the logical space: use the contents of the page.
        let units = u64::from(self.ftl.geo.units_per_page());
        for slot in (page * units..(page + 1) * units).map(Slot) {
            let Some(lpn) = self.ftl.lpn_at(slot) else { continue };
            if (first..end).contains(&lpn.0) && self.ftl.lookup(lpn) == Some(slot) {
                let entered = buffered.buffer.fill(lpn, self.sectors(&command, lpn.0));
                if entered != 0
                    && let Some(shadow) = &mut self.shadow
                {
                    shadow.line_fills(lpn, slot, entered, &self.ftl);
                }
            }
        }
        self.buffered = Some(buffered);
    }

    /// Drops the buffered data of a deallocated unit.
    pub(super) fn discard_buffered(&mut self, lpn: Lpn) {
        let lost = self.buffered.as_mut().is_some_and(|b| {
            let lost = b.buffer.discard(lpn);
            b.vacate(lpn);
            lost
        });
        if lost && self.journal.is_some() {
            self.note_lost(lpn);
        }
    }

    /// Admits waiting writes after a deallocation: room may have appeared.
    pub(super) fn after_discard(&mut self, cx: &mut impl Cx<Event, Out>) {
        let Some(mut buffered) = self.buffered.take() else { return };
        self.release_barriers(&mut buffered, cx);
        for set in 0..buffered.waiting.len() {
            self.admit_waiting(&mut buffered, set, cx);
        }
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
        self.resume_reads(cx);
    }
}
