//! Mutants of the device: the fault injected by each of them. Without one, every function here is the plain one.

use super::{Device, Event, Out};
use engine::{Cx, Mutant, planted, planted_nth};
use ftl::buffer::Sets;
use nand::dies::op::{Class, Op};
use proto::{Lpn, Slot};

/// Returns true for every sixteenth program of host data.
fn is_due(mutant: Mutant, op: &Op) -> bool {
    op.class == Class::HostProgram && planted_nth(mutant, 16)
}

impl Device {
    /// Returns true if reads of a reclaim unit forbid its erase.
    #[inline]
    pub(super) fn is_pinned(&self, ru: u64) -> bool {
        !planted(Mutant::PinIgnored) && self.ftl.is_pinned(ru)
    }

    /// Commits a moved copy that has become durable.
    #[inline]
    pub(super) fn commit_move(&mut self, lpn: Lpn, from: Slot, to: Slot) -> bool {
        if planted(Mutant::StaleCopy) && self.ftl.lookup(lpn) != Some(from) {
            self.ftl.commit(lpn, to);
            return true;
        }
        if planted(Mutant::StalePageCopy) && lpn.0 >= self.ftl.logical() {
            let lost = self.ftl.lookup(lpn) != Some(from);
            // Counted as any other move: only the entries reveal it.
            self.ftl.counters.map_commits -= u64::from(lost);
            self.ftl.counters.moves += u64::from(lost);
            if lost {
                self.ftl.commit_map(lpn, to);
                return true;
            }
        }
        self.ftl.commit_move(lpn, from, to)
    }

    /// Returns true if the array forgets the data of this operation.
    #[inline]
    pub(super) fn loses(&mut self, op: &Op) -> bool {
        planted(Mutant::LostProgram) && is_due(Mutant::LostProgram, op)
    }

    /// Mutates the data that an operation is about to leave in the array.
    #[inline]
    pub(super) fn mutate_data(&mut self, name: u32, op: &Op) {
        if planted(Mutant::TornProgram) && is_due(Mutant::TornProgram, op) && op.units > 1 {
            self.shadow.iter_mut().for_each(|s| s.tears(name));
        }
    }

    /// Mutates a queued erase.
    #[inline]
    pub(super) fn mutate_erase(&mut self, slot: Slot) {
        if planted(Mutant::PinIgnored) || planted(Mutant::EagerErase) {
            self.shadow.iter_mut().for_each(|s| s.erased(slot, &self.ftl));
        }
    }

    /// Acknowledges a write whose programs have been queued.
    #[inline]
    pub(super) fn acknowledge_early(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if planted(Mutant::EarlyAcknowledge) && self.active[id].is_placed() {
            self.active[id].pending = 0;
            self.complete(id, cx);
        }
    }

    /// Mutates the line of a unit that the buffer has taken.
    #[inline]
    pub(super) fn mutate_line(&mut self, buffer: &mut Sets, lpn: Lpn) {
        if planted(Mutant::LostLine) && lpn.0.is_multiple_of(16) {
            buffer.discard(lpn);
        }
    }

    /// Mutates the deallocation of a unit.
    #[inline]
    pub(super) fn mutate_trim(&mut self, lpn: Lpn) {
        #[cfg(debug_assertions)]
        if planted(Mutant::TrimUndone) {
            self.undo_trim(lpn);
        }
        #[cfg(not(debug_assertions))]
        let _ = lpn;
    }

    /// Mutates the committed units of a program.
    #[inline]
    pub(super) fn mutate_program(&mut self, op: &Op) {
        if planted(Mutant::SwappedEntries) && is_due(Mutant::SwappedEntries, op) {
            self.swap_entries(op);
        }
    }

    fn swap_entries(&mut self, op: &Op) {
        let (a, b) = (op.slot, Slot(op.slot.0 + 1));
        if let (Some(x), Some(y)) = (self.ftl.lpn_at(a), self.ftl.lpn_at(b))
            && op.units > 1
        {
            self.ftl.commit(x, b);
            self.ftl.commit(y, a);
        }
    }

    #[cfg(debug_assertions)]
    /// Maps the previously deallocated unit again, as far as its data is still there.
    fn undo_trim(&mut self, lpn: Lpn) {
        let Some(slot) = self.ftl.lookup(lpn) else { return };
        let Some((lpn, slot)) = self.trimmed.replace((lpn, slot)) else { return };
        let (group, number) = self.ftl.split(self.ftl.geo.ru_of_slot(slot));
        let closed =
            self.ftl.groups[group].rus[number as usize].state == ftl::page_map::units::RuState::Closed;
        let there = self.ftl.lpn_at(slot) == Some(lpn) && !self.ftl.is_valid(slot);
        if self.ftl.lookup(lpn).is_none() && closed && there {
            self.ftl.commit(lpn, slot);
        }
    }
}
