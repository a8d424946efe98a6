//! Host reads.

use super::{Device, Event, Out, milestone};
use engine::{Cx, Time};
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
use proto::{Lpn, Slot};

impl Device {
    /// Starts a read, unless it waits for a line of the buffer.
    pub(super) fn start_read(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if !self.waits_for_line(id, cx) {
            self.read_now(id, cx);
        }
    }

    /// Turns a read into operations: units that lie in one page are one operation.
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

    /// A unit whose translation had to be waited for is read by itself.
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

    /// One operation of a read, or of a read-modify-write, is done.
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

    /// The data of a read is in the controller, or the zeroes that stand for it.
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
    /// Adds a unit to the run; if it lies in another page, begins a run of its own and returns the one before.
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
