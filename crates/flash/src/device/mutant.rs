//! Faults planted on purpose, to prove that the checks find them. Outside of this crate's own tests every function here
//! is the plain one.

use super::{Device, Event, Out};
use crate::backend::op::Op;
use crate::buffer::Buffer;
use kernel::Cx;
use proto::{Lpn, Slot};

#[cfg(test)]
pub(crate) use planted::{Mutant, State};

impl Device {
    /// Whether reads of a reclaim unit forbid its erase.
    #[inline]
    pub(super) fn is_pinned(&self, ru: u64) -> bool {
        #[cfg(test)]
        if self.mutant.is(Mutant::PinIgnored) {
            return false;
        }
        self.ftl.is_pinned(ru)
    }

    /// A moved copy has become durable.
    #[inline]
    pub(super) fn commit_move(&mut self, lpn: Lpn, from: Slot, to: Slot) -> bool {
        #[cfg(test)]
        if self.mutant.is(Mutant::StaleCopy) && self.ftl.lookup(lpn) != Some(from) {
            self.ftl.commit(lpn, to);
            return true;
        }
        #[cfg(test)]
        if self.mutant.is(Mutant::StalePageCopy) && lpn.0 >= self.ftl.logical() {
            let lost = self.ftl.lookup(lpn) != Some(from);
            // Counted as any other move: only the entries give it away.
            self.ftl.counters.map_commits -= u64::from(lost);
            self.ftl.counters.moves += u64::from(lost);
            if lost {
                self.ftl.commit_map(lpn, to);
                return true;
            }
        }
        self.ftl.commit_move(lpn, from, to)
    }

    /// Whether the array forgets what this operation has written.
    #[inline]
    pub(super) fn loses(&mut self, _op: &Op) -> bool {
        #[cfg(test)]
        return self.mutant.loses(_op);
        #[cfg(not(test))]
        false
    }

    /// An operation is about to leave its data in the array.
    #[inline]
    pub(super) fn mutate_data(&mut self, _name: u32, _op: &Op) {
        #[cfg(test)]
        if self.mutant.tears(_op) {
            self.shadow.iter_mut().for_each(|s| s.tears(_name));
        }
    }

    /// An erase has been queued.
    #[inline]
    pub(super) fn mutate_erase(&mut self, _slot: Slot) {
        #[cfg(test)]
        if self.mutant.is(Mutant::EagerErase) || self.mutant.is(Mutant::PinIgnored) {
            self.shadow.iter_mut().for_each(|s| s.erased(_slot, &self.ftl));
        }
    }

    /// Whether old data goes with new data although it may be out of date.
    #[inline]
    pub(super) fn merges_blindly(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::BlindMerge);
        #[cfg(not(test))]
        false
    }

    /// Whether writes are acknowledged before they are durable.
    #[inline]
    pub(super) fn acknowledges_early(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::EarlyAcknowledge);
        #[cfg(not(test))]
        false
    }

    /// Acknowledges a write whose programs have been queued.
    #[inline]
    pub(super) fn acknowledge_early(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if self.acknowledges_early() && self.active[id].is_placed() {
            self.active[id].pending = 0;
            self.complete(id, cx);
        }
    }

    /// The buffer has taken a unit.
    #[inline]
    pub(super) fn mutate_line(&mut self, _buffer: &mut Buffer, _lpn: Lpn) {
        #[cfg(test)]
        if self.mutant.is(Mutant::LostLine) && _lpn.0.is_multiple_of(16) {
            _buffer.discard(_lpn);
        }
    }

    /// Whether a read passes over what the buffer has.
    #[inline]
    pub(super) fn passes_buffer(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::BufferPassed);
        #[cfg(not(test))]
        false
    }

    /// Whether a write that must be on flash is answered from the buffer.
    #[inline]
    pub(super) fn ignores_fua(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::FuaIgnored);
        #[cfg(not(test))]
        false
    }

    /// Whether data that was deallocated on its way from the buffer to flash is mapped there.
    #[inline]
    pub(super) fn maps_discarded(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::DiscardIgnored);
        #[cfg(not(test))]
        false
    }

    /// Whether changes that leave the map's cache do not reach their translation page.
    #[inline]
    pub(super) fn loses_write_back(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::LostWriteBack);
        #[cfg(not(test))]
        false
    }

    /// Whether a translation page that has changed while it was being programmed is left as it is.
    #[inline]
    pub(super) fn leaves_page_stale(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::StalePage);
        #[cfg(not(test))]
        false
    }

    /// Whether a flush is answered before what it waits for is on flash.
    #[inline]
    pub(super) fn answers_flush_early(&self) -> bool {
        #[cfg(test)]
        return self.mutant.is(Mutant::EarlyFlush);
        #[cfg(not(test))]
        false
    }

    /// A unit is about to be deallocated.
    #[inline]
    pub(super) fn mutate_trim(&mut self, _lpn: Lpn) {
        #[cfg(test)]
        self.undo_trim(_lpn);
    }

    /// The units of a program have been committed.
    #[inline]
    pub(super) fn mutate_program(&mut self, _op: &Op) {
        #[cfg(test)]
        self.swap_entries(_op);
    }
}

#[cfg(test)]
mod planted {
    use super::Device;
    use crate::backend::op::{Class, Op};
    use crate::ftl::space::RuState;
    use proto::{Lpn, Slot};

    /// A fault.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Mutant {
        /// Two units of one program unit change places in the map.
        SwappedEntries,
        /// A moved copy is committed although the host has overwritten its source.
        StaleCopy,
        /// The array forgets a program.
        LostProgram,
        /// A write is acknowledged before it is durable: a read can pass it.
        EarlyAcknowledge,
        /// A deallocated unit comes back.
        TrimUndone,
        /// No fault: a die erases before it does anything else. Pins keep reads out of its way.
        EagerErase,
        /// The same, and a block is erased although reads of it wait.
        PinIgnored,
        /// Old data that is out of date goes with a unit written in part.
        BlindMerge,
        /// The buffer drops a line that is dirty.
        LostLine,
        /// A flush is answered before anything is on flash.
        EarlyFlush,
        /// A write that must be on flash is answered before it is.
        FuaIgnored,
        /// A read does not look into the buffer: it passes the writes there.
        BufferPassed,
        /// A unit that was deallocated on its way from the buffer to flash comes back.
        DiscardIgnored,
        /// Of a program of several units only the first is in the array.
        TornProgram,
        /// What leaves the map's cache is not written to its translation page.
        LostWriteBack,
        /// A translation page that has changed while it was being programmed stays as it was.
        StalePage,
        /// A moved copy of a translation page is committed although the page has been written back.
        StalePageCopy,
    }

    /// The fault, and what it needs to remember.
    #[derive(Default)]
    pub(crate) struct State {
        mutant: Option<Mutant>,
        programs: u64,
        trimmed: Option<(Lpn, Slot)>,
    }

    impl State {
        pub(crate) fn is(&self, mutant: Mutant) -> bool {
            self.mutant == Some(mutant)
        }

        /// Every sixteenth program of host data.
        fn is_due(&mut self, op: &Op) -> bool {
            self.programs += u64::from(op.class == Class::HostProgram);
            op.class == Class::HostProgram && self.programs.is_multiple_of(16)
        }

        pub(crate) fn loses(&mut self, op: &Op) -> bool {
            self.is(Mutant::LostProgram) && self.is_due(op)
        }

        pub(crate) fn tears(&mut self, op: &Op) -> bool {
            self.is(Mutant::TornProgram) && self.is_due(op) && op.units > 1
        }
    }

    impl Device {
        /// Plants a fault.
        pub(crate) fn set_mutant(&mut self, mutant: Option<Mutant>) {
            self.mutant = State { mutant, ..State::default() };
        }

        pub(super) fn swap_entries(&mut self, op: &Op) {
            if !self.mutant.is(Mutant::SwappedEntries) || !self.mutant.is_due(op) {
                return;
            }
            let (a, b) = (op.slot, Slot(op.slot.0 + 1));
            if let (Some(x), Some(y)) = (self.ftl.lpn_at(a), self.ftl.lpn_at(b))
                && op.units > 1
            {
                self.ftl.commit(x, b);
                self.ftl.commit(y, a);
            }
        }

        /// Maps the unit that was deallocated last again.
        pub(super) fn undo_trim(&mut self, lpn: Lpn) {
            if !self.mutant.is(Mutant::TrimUndone) {
                return;
            }
            let Some(slot) = self.ftl.lookup(lpn) else { return };
            let Some((lpn, slot)) = self.mutant.trimmed.replace((lpn, slot)) else { return };
            let (group, number) = self.ftl.split(self.ftl.geo.ru_of_slot(slot));
            let closed = self.ftl.groups[group].rus[number as usize].state == RuState::Closed;
            let there = self.ftl.lpn_at(slot) == Some(lpn) && !self.ftl.is_valid(slot);
            if self.ftl.lookup(lpn).is_none() && closed && there {
                self.ftl.commit(lpn, slot);
            }
        }
    }
}
