//! Host reads, including units that were never written and reads that wait for a line of the buffer.

use super::{Device, Event, Out, milestone};
use crate::device::buffered::Buffered;
use engine::{Cx, Snapshot, Time};
use ftl::{
    buffer::{Flush, Sectors},
    page_map::Ftl,
    purpose::Purpose,
};
use nand::dies::op::{Class, Op, OpKind};
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;

impl Device {
    /// Starts a read, unless it waits for a line of the buffer.
    pub(super) fn start_read(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if !self.waits_for_line(id, cx) {
            self.read_now(id, cx);
        }
    }

    /// Turns a read into operations: one for the units of each page.
    pub(super) fn read_now(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &self.active[id];
        let command = active.command;
        let (first, end) = (active.next, active.end);
        let class = Class::host_read(command.priority);
        let (mut run, mut absent): (Option<Run>, Option<Run>) = (None, None);
        let mut pending = 0;
        let mut from_buffer = 0;
        for unit in first..end {
            let bytes = self.bytes_of_unit(&command, unit);
            if self.is_buffered(id, &command, unit) {
                if self.reads_register(id, unit, bytes, cx) {
                    pending += 1;
                } else {
                    from_buffer += u64::from(bytes);
                }
                continue;
            }
            self.meets_ahead(&command, unit);
            if !self.translates(id, unit, cx) {
                pending += 1;
                continue;
            }
            let Some(slot) = self.ftl.lookup(Lpn(unit)) else {
                if let Some(slot) = self.finds_nothing(id, unit, bytes, cx.now()) {
                    let page = self.ftl.geo.page_name(slot);
                    if let Some(r) = Run::add(&mut absent, page, slot, bytes) {
                        self.queue_absent(id, class, &r, cx.now());
                        pending += 1;
                    }
                }
                continue;
            };
            let page = self.ftl.geo.page_name(slot);
            if let Some(r) = Run::add(&mut run, page, slot, bytes) {
                self.queue_read(id, class, &r, cx.now());
                pending += 1;
            }
            if let Some(shadow) = &mut self.shadow {
                shadow.looks_up(Lpn(unit), slot);
            }
        }
        if let Some(r) = run {
            self.queue_read(id, class, &r, cx.now());
            pending += 1;
        }
        if let Some(r) = absent {
            self.queue_absent(id, class, &r, cx.now());
            pending += 1;
        }
        if from_buffer > 0 {
            pending += 1;
            self.start_buffered_read(id, from_buffer, cx);
        }
        let active = &mut self.active[id];
        active.next = end;
        active.pending = pending;
        if pending == 0 {
            self.complete(id, cx);
        }
        self.look_ahead(&command, cx.now());
    }

    /// Reads a unit separately because its translation had to wait.
    pub(super) fn read_late_unit(&mut self, id: u32, unit: u64, cx: &mut impl Cx<Event, Out>) {
        let command = self.active[id].command;
        let class = Class::host_read(command.priority);
        let bytes = self.bytes_of_unit(&command, unit);
        if let Some(slot) = self.ftl.lookup(Lpn(unit)) {
            if let Some(shadow) = &mut self.shadow {
                shadow.looks_up(Lpn(unit), slot);
            }
            let run = Run { page: 0, slot, units: 1, bytes };
            self.queue_read(id, class, &run, cx.now());
            return;
        }
        if let Some(slot) = self.finds_nothing(id, unit, bytes, cx.now()) {
            self.queue_absent(id, class, &Run { page: 0, slot, units: 1, bytes }, cx.now());
            return;
        }
        let active = &mut self.active[id];
        active.pending -= 1;
        if active.pending == 0 {
            self.complete(id, cx);
        }
    }

    pub(super) fn queue_read(&mut self, id: u32, class: Class, run: &Run, now: Time) {
        self.ftl.pin(run.slot);
        let at = self.ftl.geo.address(run.slot);
        let mut op = Op::new(OpKind::Read, class, at, run.slot, run.units, run.bytes, id);
        op.erases = self.erases_of_read(run.slot);
        op.is_slc = self.ftl.is_slc(run.slot);
        let name = self.backend.enqueue(now, Purpose::Host.tags(op));
        self.ledger.read_ops += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.reads(name, id, run.units);
        }
    }

    /// Completes one operation of a read, or of a read-modify-write.
    pub(super) fn host_read_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        if self.ftl.unpin(op.slot) {
            self.reclaim_unpinned(op.slot, cx);
        }
        if self.active[op.owner].command.op != proto::IoOp::Read {
            self.merge_read_done(op, cx);
            return;
        }
        if self.buffered.is_some() {
            self.fill_from(op);
        }
        self.data_read(op, cx);
    }

    /// Handles the data of a read in the controller, or the zeroes in its place.
    pub(super) fn data_read(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let (id, now) = (op.owner, cx.now());
        let queue = self.active[id].command.queue;
        self.host.data_out(queue, now, u64::from(op.bytes));
        let active = &mut self.active[id];
        active.pending -= 1;
        if active.pending == 0 {
            // The last operation to end is the one that the command waited for.
            active.reach(milestone::DIE_WAIT, op.started);
            active.reach(milestone::ARRAY, op.sensed);
            active.reach(milestone::CHANNEL_WAIT, op.moved);
            active.reach(milestone::CHANNEL, now);
            self.note_waits(op);
            self.complete(id, cx);
        }
    }
}

/// Units of one page that one operation reads.
pub(super) struct Run {
    pub(super) page: u64,
    pub(super) slot: Slot,
    pub(super) units: u16,
    pub(super) bytes: u32,
}

impl Run {
    /// Adds a unit to the run; a unit of a different page begins a new run and returns the previous one.
    #[inline]
    fn add(run: &mut Option<Run>, page: u64, slot: Slot, bytes: u32) -> Option<Run> {
        match run {
            Some(r) if r.page == page => {
                r.units += 1;
                r.bytes += bytes;
                None
            }
            _ => run.replace(Run { page, slot, units: 1, bytes }),
        }
    }
}

// Reads of units that were never written, where they cost as much as others.
//
// Nothing is written for them: the page that is read is the one where the unit would be. Its other present or future
// contents do not matter, and zeroes are returned.

/// Cost of reading a unit that was never written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwritten {
    /// No cost.
    Free,
    /// A read of the page where writing the device in order would have put it.
    AsWritten,
    /// A read of a page assigned by its first read, with the sectors that were read.
    Created,
}

/// Units created by reads.
pub(super) struct Absent {
    pub(super) rule: Unwritten,
    /// Slot that each unit would have, and the sectors that it would hold.
    created: FxHashMap<Lpn, (Slot, Sectors)>,
    /// Number of units created in each group.
    taken: Vec<u64>,
}

impl Absent {
    pub(super) fn new(rule: Unwritten, groups: usize) -> Absent {
        let taken = if rule == Unwritten::Created { vec![0; groups] } else { Vec::new() };
        Absent { rule, created: FxHashMap::default(), taken }
    }

    /// Appends the state, without the rule.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Absent { rule: _, created, taken } = self;
        let mut created: Vec<(Lpn, (Slot, Sectors))> = created.iter().map(|(lpn, at)| (*lpn, *at)).collect();
        created.sort_unstable_by_key(|(lpn, _)| *lpn);
        created.save(out);
        taken.save(out);
    }

    /// Replaces the state with one saved by a device of the same rule; `None` if it is truncated or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.created = Vec::load(input)?.into_iter().collect();
        self.taken = Vec::load(input).filter(|t: &Vec<u64>| t.len() == self.taken.len())?;
        Some(())
    }

    /// Slot of a unit without data, some of whose sectors are read. `None` if the lookup alone shows that it has none.
    fn place(&mut self, lpn: Lpn, sectors: Sectors, ftl: &Ftl) -> Option<Slot> {
        if self.rule == Unwritten::Free {
            return None;
        }
        let in_order = ftl.place_if_written(lpn)?;
        if self.rule == Unwritten::AsWritten {
            return Some(in_order);
        }
        if let Some((slot, _)) = self.created.get(&lpn) {
            return Some(*slot);
        }
        let geo = &ftl.geo;
        let (group, _, unit) = geo.sequential_place(lpn.0);
        // Behind what the host has written in the open block.
        let nth = self.taken[group as usize] + ftl.programs_of_host(group);
        self.taken[group as usize] += 1;
        let (blocks, programs) = (u64::from(geo.shape.blocks), u64::from(geo.programs_per_ru));
        let ru = u64::from(group) * blocks + nth / programs % blocks;
        let slot = Slot(geo.slot_of_program(ru, (nth % programs) as u32).0 + u64::from(unit));
        self.created.insert(lpn, (slot, sectors));
        Some(slot)
    }

    /// Sectors left by a read-created unit beside those now written for the first time, and their slot.
    fn replaced(&mut self, lpn: Lpn, by: Sectors) -> Option<(Slot, Sectors)> {
        let (slot, sectors) = self.created.remove(&lpn)?;
        Some((slot, sectors & !by)).filter(|(_, left)| *left != 0)
    }
}

impl Device {
    /// Returns true if reading a unit that was never written costs as much as reading a written one.
    pub fn reads_unwritten(&self) -> bool {
        self.absent.rule != Unwritten::Free
    }

    /// Handles a unit without data, which reads as zeroes. Returns its would-be slot if that takes as long as reading
    /// data.
    #[cold]
    pub(super) fn finds_nothing(&mut self, id: u32, unit: u64, bytes: u32, now: Time) -> Option<Slot> {
        self.stats.unwritten_reads += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.finds_nothing(id, Lpn(unit));
        }
        let command = self.active[id].command;
        let sectors = self.sectors(&command, unit);
        let slot = self.absent.place(Lpn(unit), sectors, &self.ftl);
        if slot.is_none() {
            self.host.data_out(command.queue, now, u64::from(bytes));
        }
        slot
    }

    /// Queues the read of a page for units that hold no data.
    #[cold]
    pub(super) fn queue_absent(&mut self, id: u32, class: Class, run: &Run, now: Time) {
        self.enqueue_absent(class, Purpose::Absent, run, id, now);
    }

    fn enqueue_absent(&mut self, class: Class, purpose: Purpose, run: &Run, owner: u32, now: Time) {
        let at = self.ftl.geo.address(run.slot);
        let mut op = Op::new(OpKind::Read, class, at, run.slot, run.units, run.bytes, owner);
        op.erases = self.erases_of_read(run.slot);
        self.backend.enqueue(now, purpose.tags(op));
        self.ledger.read_ops += 1;
        self.ledger.absent_reads += 1;
    }

    /// Completes the timed read of zeroes.
    pub(super) fn absent_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ledger.absent_reads -= 1;
        self.data_read(op, cx);
    }

    /// Handles a unit without data that leaves the buffer. Returns true if it is first merged with what a read has
    /// created.
    pub(super) fn merges_absent(&mut self, buffered: &mut Buffered, flush: &Flush, now: Time) -> bool {
        let Some((slot, left)) = self.absent.replaced(flush.lpn, flush.present) else { return false };
        self.stats.merge_reads += 1;
        let owner = buffered.begin_merge(flush.lpn);
        let run = Run { page: 0, slot, units: 1, bytes: left.count_ones() * 512 };
        self.enqueue_absent(Class::HostRead, Purpose::AbsentMerge, &run, owner, now);
        true
    }

    /// Continues the flush of a unit whose read-created sectors have been read.
    pub(super) fn absent_merge_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ledger.absent_reads -= 1;
        self.merged(op.owner, cx);
    }
}

// Reads that wait for a line of the buffer while every line is dirty (`flash.buffer.full_reads`).

impl Device {
    /// Returns true if a read waits for a line: the policy asks for it, every line is dirty, and some unit of the read
    /// has none.
    ///
    /// The read waits until the data that has been dirty longest, and is not in flight, is on flash: each waiting read
    /// takes its own line.
    pub(super) fn waits_for_line(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        if !self.buffered.as_ref().is_some_and(|b| b.parts.reads_wait) {
            return false;
        }
        let Some(mut buffered) = self.buffered.take() else { return false };
        let (first, end) = (self.active[id].next, self.active[id].end);
        let lacks_line = (first..end).any(|unit| !buffered.buffer.has_line(Lpn(unit)));
        let oldest = if lacks_line { buffered.buffer.next_to_leave() } else { None };
        if let Some(write) = oldest {
            buffered.reads.push_back((write, id));
            self.flush(&mut buffered, cx);
        }
        self.buffered = Some(buffered);
        oldest.is_some()
    }

    /// Starts the reads whose line is clean now, in order of arrival.
    pub(super) fn resume_reads(&mut self, cx: &mut impl Cx<Event, Out>) {
        while let Some(buffered) = &mut self.buffered {
            let Some((write, id)) = buffered.reads.front().copied() else { return };
            if !buffered.buffer.is_durable(write) {
                return;
            }
            buffered.reads.pop_front();
            self.active[id].life.reach(milestone::BUFFER, cx.now());
            self.read_now(id, cx);
        }
    }
}
