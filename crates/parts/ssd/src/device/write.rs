//! Host writes that are acknowledged from flash.

use super::{Active, Device, Event, Out, milestone};
use engine::{Cx, Mutant, planted};
use ftl::buffer::destage::Pace;
use ftl::page_map::space::Stream;
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
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
        if let Some(merge) = self.edges(&command) {
            self.active[id].merge = Some(merge);
            self.begin_merges(id, cx.now());
        }
        if self.active[id].pending == 0 {
            self.place(id, cx);
        }
    }

    /// The units of a command that its next program writes, first and one past the last.
    fn next_piece(&self, active: &Active) -> Option<(u64, u64)> {
        if let Some(unit) = active.merge.as_ref().and_then(|m| m.alone.last()) {
            return Some((*unit, unit + 1));
        }
        // Neighbours of one stripe share the program unit.
        let stripe_end =
            || (self.ftl.geo.stripe_of_unit(active.next) + 1) * u64::from(self.ftl.geo.units_per_program);
        (active.next < active.end).then(|| (active.next, active.end.min(stripe_end())))
    }

    /// Gives program units to the rest of a write, as far as there is space.
    pub(super) fn place(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if self.active[id].waits {
            return;
        }
        let stream = Stream::Host(self.active[id].command.placement.min(self.placements - 1));
        while let Some((unit, until)) = self.next_piece(&self.active[id]) {
            let stripe = self.ftl.geo.stripe_of_unit(unit);
            let group = self.allocator.place(stripe, stream, &self.ftl, &self.backend);
            let closed = self.is_closed_to_host(group);
            let Some(slot) =
                (if closed { None } else { self.ftl.reserve_for_host(group, stream, Pace::Even) })
            else {
                self.counts_cached(group, None, 0);
                self.wait(id, group, cx);
                break;
            };
            let units = (until - unit) as u16;
            self.counts_cached(group, Some(slot), units.into());
            for n in 0..u64::from(self.ftl.geo.units_per_program) {
                let lpn = (n < u64::from(units)).then(|| Lpn(unit + n));
                self.ftl.fill(Slot(slot.0 + n), lpn);
                if let Some(lpn) = lpn {
                    self.ftl.prefetch_overwritten(lpn);
                }
            }
            let at = self.ftl.geo.address(slot);
            let bytes = u32::from(units) * self.unit_bytes as u32;
            let mut op = Op::new(OpKind::Program, Class::HostProgram, at, slot, units, bytes, id);
            op.erases = self.erases_of(slot);
            op.is_slc = self.ftl.is_slc(slot);
            let name = self.program(Purpose::Host, op, cx.now());
            if let Some(shadow) = &mut self.shadow {
                shadow.writes(name, id, unit, units);
            }
            let active = &mut self.active[id];
            active.pending += 1;
            if active.merge.as_mut().and_then(|m| m.alone.pop()).is_none() {
                active.next = until;
            }
            self.reclaim(group, cx);
        }
        let active = &mut self.active[id];
        if cx.now() > active.life.last() {
            active.life.reach(milestone::SPACE, cx.now());
        }
        self.acknowledge_early(id, cx);
    }

    /// A program unit of host data is durable.
    pub(super) fn host_program_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let id = op.owner;
        self.ftl.program(op.slot);
        let mut again = [None; 2];
        for n in 0..u64::from(op.units) {
            let slot = Slot(op.slot.0 + n);
            let Some(lpn) = self.ftl.lpn_at(slot) else { continue };
            match self.commit_host(id, lpn, slot) {
                Some(edge) => again[edge] = Some(edge),
                None => self.map_changed(lpn, cx),
            }
        }
        self.ftl.programmed(op.slot);
        self.mutate_program(op);
        if planted(Mutant::EarlyAcknowledge) {
            return;
        }
        self.active[id].pending -= 1;
        for edge in again.into_iter().flatten() {
            self.merge_again(id, edge, cx);
        }
        let now = cx.now();
        let active = &mut self.active[id];
        if active.pending == 0 && active.is_placed() {
            // Operations of one command may have been queued at different times, if it waited for space.
            if op.queued == active.life.last() {
                active.reach(milestone::DIE_WAIT, op.started);
                active.reach(milestone::CHANNEL, op.sensed);
            }
            active.reach(milestone::ARRAY, now);
            self.note_waits(op);
            self.complete(id, cx);
        }
    }
}

impl Active {
    /// Whether nothing of it waits to be placed.
    pub(super) fn is_placed(&self) -> bool {
        self.next == self.end && self.merge.as_ref().is_none_or(|m| m.alone.is_empty() && !m.is_reading())
    }
}
