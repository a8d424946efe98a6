//! Host writes that are acknowledged from flash.

use super::{Device, Event, Out, milestone};
use crate::backend::op::{Class, Op, OpKind};
use crate::ftl::space::Stream;
use kernel::Cx;
use proto::{Lpn, Slot};

impl Device {
    /// The data of a write has arrived. Units that it covers in part must be read first.
    pub(super) fn data_in(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::HOST_TRANSFER, cx.now());
        if self.buffered.is_some() {
            self.accept(id, cx);
            return;
        }
        let (first, end) = (active.next, active.end);
        let missing = (first..end).filter(|unit| !self.translates(id, *unit, cx)).count() as u32;
        self.active[id].pending = missing;
        if missing == 0 {
            self.merge_edges(id, cx);
        }
    }

    /// One of the entries that a write needs is here.
    pub(super) fn write_translated(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        self.active[id].pending -= 1;
        if self.active[id].pending == 0 {
            self.merge_edges(id, cx);
        }
    }

    /// Reads the old data of units that a write covers in part.
    fn merge_edges(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &self.active[id];
        let command = active.command;
        let (first, end) = (active.next, active.end);
        let mut pending = 0;
        let edges = [first, end - 1];
        for unit in &edges[..if first == end - 1 { 1 } else { 2 }] {
            let covered = u64::from(self.bytes_of_unit(&command, *unit));
            if covered == self.unit_bytes {
                continue;
            }
            if let Some(slot) = self.ftl.lookup(Lpn(*unit)) {
                self.stats.merge_reads += 1;
                self.ftl.pin(slot);
                let at = self.ftl.geo.address(slot);
                let class = Class::host_read(command.priority);
                let op = Op::new(OpKind::Read, class, at, slot, 1, self.unit_bytes as u32, id);
                self.backend.enqueue(cx.now(), op);
                pending += 1;
            }
        }
        self.active[id].pending = pending;
        if pending == 0 {
            self.place(id, cx);
        }
    }

    /// The old data of a unit that is written in part is here.
    pub(super) fn merge_read_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[op.owner];
        active.pending -= 1;
        if active.pending == 0 {
            active.life.reach(milestone::MERGE, cx.now());
            self.place(op.owner, cx);
        }
    }

    /// Gives program units to the rest of a write, as far as there is space.
    pub(super) fn place(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &self.active[id];
        let stream = Stream::Host(active.command.placement.min(self.placements - 1));
        let (mut unit, end) = (active.next, active.end);
        let per_program = u64::from(self.ftl.geo.units_per_program);
        let mut pending = active.pending;
        while unit < end {
            let stripe = self.ftl.geo.stripe_of_unit(unit);
            let group = self.allocator.place(stripe, stream, &self.ftl, &self.backend);
            let closed = self.is_closed_to_host(group);
            let Some(slot) = (if closed { None } else { self.ftl.reserve(group, stream) }) else {
                self.waiting[group as usize].push_back(id);
                self.reclaim(group, cx);
                break;
            };
            // Neighbours of one stripe share the program unit.
            let until = end.min((stripe + 1) * per_program);
            let units = (until - unit) as u16;
            for n in 0..per_program {
                let lpn = (n < u64::from(units)).then(|| Lpn(unit + n));
                self.ftl.fill(Slot(slot.0 + n), lpn);
            }
            let at = self.ftl.geo.address(slot);
            let bytes = u32::from(units) * self.unit_bytes as u32;
            let mut op = Op::new(OpKind::Program, Class::HostProgram, at, slot, units, bytes, id);
            op.erases = self.erases_of(slot);
            self.backend.enqueue(cx.now(), op);
            pending += 1;
            unit = until;
            self.reclaim(group, cx);
        }
        let active = &mut self.active[id];
        active.next = unit;
        active.pending = pending;
        if cx.now() > active.life.last() {
            active.life.reach(milestone::SPACE, cx.now());
        }
    }

    /// A program unit of host data is durable.
    pub(super) fn host_program_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ftl.program(op.slot);
        for n in 0..u64::from(op.units) {
            let slot = Slot(op.slot.0 + n);
            if let Some(lpn) = self.ftl.lpn_at(slot) {
                self.ftl.commit(lpn, slot);
                self.map_changed(lpn, cx);
            }
        }
        self.ftl.programmed(op.slot);
        let now = cx.now();
        let active = &mut self.active[op.owner];
        active.pending -= 1;
        if active.pending == 0 && active.next == active.end {
            // Operations of one command may have been queued at different times, if it waited for space.
            if op.queued == active.life.last() {
                active.reach(milestone::DIE_WAIT, op.started);
                active.reach(milestone::CHANNEL, op.sensed);
            }
            active.reach(milestone::ARRAY, now);
            self.complete(op.owner, cx);
        }
    }

    /// Space has appeared in a group: commands that waited for it go on, oldest first.
    pub(super) fn wake(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        self.wake_assemblies(group, cx);
        self.wake_write_backs(cx);
        let mut left = self.waiting[group as usize].len();
        while left > 0 {
            left -= 1;
            if let Some(id) = self.waiting[group as usize].pop_front() {
                self.place(id, cx);
            }
        }
    }
}
