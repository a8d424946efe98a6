//! Registers that gather writes, in time: units go into a register of their package, out of it when they are read, and
//! from it into the array when their set needs the room.
//!
//! Registers are the buffer's lines: which units they hold, and which leave, is the buffer's word ([`Sets`]: one for each
//! package, or each plane if registers are private). Here is which register holds a unit, and what is on its way. A unit is
//! programmed into its home plane, which its address names.
//!
//! Decisions, made before any result was seen:
//!
//! * A unit's data is in the controller until it is in its register: a read meanwhile is answered there; its flush waits.
//! * A unit that was written in part is completed by a read of the old page into the data register of its plane: a command
//!   and a sensing, no data on the channel (ZnG reads and programs in one; here other operations may come between).
//!   If the old page lies in another plane, it goes out to the controller, and so does the rest from its register.
//! * A register is free when its page has been programmed, as in ZnG.
//!
//! [`Sets`]: ftl::buffer::Sets

#[cfg(test)]
mod tests;

use super::buffered::{Buffered, Place};
use super::gather::{Exit, Moving, RegisterCounters, home};
use super::{Device, Event, Out, milestone};
use engine::{Cx, Inside};
use ftl::buffer::Flush;
use nand::dies::op::NO_OP;
use nand::dies::transfer::{Transfer, Way};
use proto::{Lpn, Slot};

/// What a transfer is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Errand {
    /// A part of a unit goes into its register, for a command.
    Store,
    /// A command reads a unit.
    Read,
    /// A unit goes out to the controller, to be programmed from there.
    TakeOut,
}

impl Errand {
    const ALL: [Errand; 3] = [Errand::Store, Errand::Read, Errand::TakeOut];
}

impl Device {
    /// What registers that gather writes have done since the window began, if there are some.
    pub fn register_counters(&self) -> Option<RegisterCounters> {
        match &self.buffered.as_ref()?.place {
            Place::Dram { .. } => None,
            Place::Registers(registers) => Some(registers.since()),
        }
    }

    /// A part of a unit goes into its register, for a command. Nothing to do where the buffer is in DRAM.
    pub(super) fn store(
        &mut self,
        buffered: &mut Buffered,
        (id, lpn, is_new): (u32, Lpn, bool),
        cx: &mut impl Cx<Event, Out>,
    ) {
        let Place::Registers(registers) = &mut buffered.place else { return };
        if is_new {
            registers.take(lpn, home(&self.ftl.geo, lpn));
        }
        registers.counters.merged += u64::from(!is_new);
        registers.coming.entry(lpn).or_default().transfers += 1;
        let bytes = self.sectors(&self.active[id].command, lpn.0).count_ones() * 512;
        let owner = registers.moving.insert(Moving { lpn, command: id, bytes });
        let (die, _) = self.ftl.geo.die_of_plane(registers.held[&lpn]);
        self.active[id].pending += 1;
        let transfer = Transfer { die, bytes, way: Way::Into, tag: Errand::Store as u8, owner };
        self.backend.transfer(transfer, &mut Inside::of(cx));
    }

    /// Starts the read of a unit that the buffer has, if a register holds it.
    pub(super) fn reads_register(
        &mut self,
        id: u32,
        unit: u64,
        bytes: u32,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let Some(Buffered { place: Place::Registers(registers), .. }) = &mut self.buffered else {
            return false;
        };
        let lpn = Lpn(unit);
        if registers.coming.contains_key(&lpn) {
            return false;
        }
        let owner = registers.moving.insert(Moving { lpn, command: id, bytes });
        let (die, _) = self.ftl.geo.die_of_plane(registers.held[&lpn]);
        let transfer = Transfer { die, bytes, way: Way::Out, tag: Errand::Read as u8, owner };
        self.backend.transfer(transfer, &mut Inside::of(cx));
        true
    }

    /// A unit on its way to flash is whole, but in a register: whether it goes out to the controller first.
    pub(super) fn takes_out(
        &mut self,
        buffered: &mut Buffered,
        lpn: Lpn,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let Place::Registers(registers) = &mut buffered.place else { return false };
        let plane = registers.held[&lpn];
        let is_away = plane != home(&self.ftl.geo, lpn);
        registers.counters.moves += u64::from(is_away);
        // What was completed in the controller is there already, but for what the register has.
        let out = registers.out.contains(&lpn) || (is_away && registers.exit == Exit::Controller);
        if out {
            registers.out.insert(lpn);
            let bytes = buffered.buffer.flushing_sectors(lpn) * 512;
            let owner = registers.moving.insert(Moving { lpn, command: NO_OP, bytes });
            let (die, _) = self.ftl.geo.die_of_plane(plane);
            let transfer = Transfer { die, bytes, way: Way::Out, tag: Errand::TakeOut as u8, owner };
            // What was queued before asks for its channel before.
            self.backend.kick(&mut Inside::of(cx));
            self.backend.transfer(transfer, &mut Inside::of(cx));
        }
        out
    }

    /// Bytes that leave when the old page of a partly written unit is read: none if it completes the unit where it is.
    pub(super) fn bytes_of_rest(&self, buffered: &mut Buffered, lpn: Lpn, old: Slot) -> u32 {
        let whole = self.unit_bytes as u32;
        let Place::Registers(registers) = &mut buffered.place else { return whole };
        let geo = &self.ftl.geo;
        if geo.plane_of_block(geo.block_of_slot(old).0) == home(geo, lpn) {
            return 0;
        }
        registers.out.insert(lpn);
        whole
    }

    /// Whether a flush has to wait until its unit is in its register.
    pub(super) fn awaits_register(buffered: &mut Buffered, flush: &Flush) -> bool {
        let Place::Registers(registers) = &mut buffered.place else { return false };
        let Some(coming) = registers.coming.get_mut(&flush.lpn) else { return false };
        coming.flush = Some(*flush);
        true
    }

    /// A transfer between the controller and a register is over.
    pub(super) fn transferred(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let transfer = self.backend.transferred(name, &mut Inside::of(cx));
        let Some(mut buffered) = self.buffered.take() else { return };
        let Place::Registers(registers) = &mut buffered.place else {
            unreachable!("only registers have transfers")
        };
        let Moving { lpn, command, bytes } = registers.moving[transfer.owner];
        registers.moving.remove(transfer.owner);
        match Errand::ALL[usize::from(transfer.tag)] {
            Errand::Store => self.stored(&mut buffered, lpn, command, cx),
            Errand::Read => {
                registers.counters.reads += 1;
                let queue = self.active[command].command.queue;
                self.host.data_out(queue, cx.now(), u64::from(bytes));
                self.end_transfer(command, cx);
            }
            Errand::TakeOut => self.assemble(&mut buffered, lpn, cx),
        }
        self.release_barriers(&mut buffered, cx);
        self.flush(&mut buffered, cx);
        self.buffered = Some(buffered);
    }

    /// A part of a unit is in its register.
    fn stored(&mut self, buffered: &mut Buffered, lpn: Lpn, id: u32, cx: &mut impl Cx<Event, Out>) {
        let Place::Registers(registers) = &mut buffered.place else { return };
        registers.counters.stores += 1;
        let coming = registers.coming.get_mut(&lpn).expect("a unit that comes is known");
        coming.transfers -= 1;
        if coming.transfers == 0 {
            let flush = coming.flush;
            registers.coming.remove(&lpn);
            if let Some(flush) = flush {
                self.destage(buffered, &flush, cx);
            }
        }
        let command = self.active[id].command;
        if self.active[id].next == self.active[id].end && !buffered.promises_flash(&command) {
            self.end_transfer(id, cx);
        } else {
            // It waits for room, or for a barrier.
            self.active[id].pending -= 1;
        }
    }

    /// A transfer of a command is over, which may be done.
    fn end_transfer(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.pending -= 1;
        if active.pending == 0 {
            active.reach(milestone::BUFFER, cx.now());
            self.complete(id, cx);
        }
    }
}
