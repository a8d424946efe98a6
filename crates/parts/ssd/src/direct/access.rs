//! Writes and reads. Registers gather the lines of a written page and make room for other pages; a read is served by
//! them or by the array.

use super::{Active, Direct, Event, Out};
use super::{
    array::{Cargo, Kind, Op},
    spec::Transfer,
};
use engine::{Cx, Mutant, Time, planted_nth};
use nand::numbers::NONE;
use nand::registers::State;
use proto::memory::{PAGE, Stage};
use std::collections::hash_map::Entry;

/// Page that waits for a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    page: u64,
    plane: u32,
    lines: u64,
    app: u8,
    /// First of the page's write commands.
    first: u32,
    last: u32,
    /// Next waiting page.
    after: u32,
}

/// Thrashing checker of a package: detects that too many of its writes evict a page from the registers (ZnG, section
/// III-C).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checker {
    writes: u32,
    evictions: u32,
    thrashing: bool,
}

impl Checker {
    fn write(&mut self, (window, threshold): (u32, u32)) {
        self.writes += 1;
        if self.writes == window {
            *self = Checker { thrashing: self.evictions > threshold, ..Checker::default() };
        }
    }
}

impl Direct {
    /// Handles a write that leaves its controller.
    pub(super) fn write_dispatched(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        self.tally.command(Stage::Controller, &mut active.command, cx.now());
        let (plane, lines) = (active.place.plane, active.command.lines);
        self.stats.bytes_in += self.lines.bytes_of(lines);
        self.send(Cargo::Write(id), plane, lines, cx);
    }

    /// Handles the lines of a write at their package.
    pub(super) fn write_arrived(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        self.tally.command(Stage::FlashNetwork, &mut active.command, cx.now());
        let (plane, command) = (active.place.plane, active.command);
        let page = command.page / PAGE;
        if let Some(register) = self.registers.dirty(page) {
            self.stats.register_hits += 1;
            self.registers.merge(register, command.lines, command.app);
            self.store(id, register, cx);
        } else if let Some(waiter) = self.waiting.get(&page).copied() {
            self.stats.register_hits += 1;
            let waiter = &mut self.waiters[waiter];
            waiter.lines |= command.lines;
            waiter.app = command.app;
            let last = std::mem::replace(&mut waiter.last, id);
            self.active[last].after = id;
        } else if let Some(register) = self.registers.take_free(&self.packages, plane) {
            self.stats.register_misses += 1;
            self.registers.fill(register, page, command.lines, command.app);
            self.store(id, register, cx);
            let (set, _) = self.registers.set_of(&self.packages, plane);
            self.make_room(set, command.demand, cx);
        } else {
            self.stats.register_misses += 1;
            self.wait(id, cx);
        }
        if let Some(checkers) = &mut self.checkers {
            checkers[self.packages.package(plane).0 as usize].write(self.threshold);
        }
    }

    /// Stores the lines of a write in a register, which completes the write.
    fn store(&mut self, id: u32, register: u32, cx: &mut impl Cx<Event, Out>) {
        if let Some(shadow) = &mut self.shadow {
            shadow.stored(id, register, &self.active[id].command);
        }
        let Active { command, readers, .. } = self.active[id];
        if let Entry::Occupied(coming) = self.coming.entry(command.page / PAGE)
            && coming.get().last == id
        {
            coming.remove();
        }
        self.complete(id, Stage::Register, cx);
        let mut reader = readers;
        while reader != NONE {
            let active = &mut self.active[reader];
            self.tally.command(Stage::Register, &mut active.command, cx.now());
            let after = std::mem::replace(&mut active.after, NONE);
            self.go_on(reader, cx);
            reader = after;
        }
    }

    /// Queues a write for a register of its set, behind the pages already waiting.
    fn wait(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let (plane, command) = (self.active[id].place.plane, self.active[id].command);
        let page = command.page / PAGE;
        let (lines, app) = (command.lines, command.app);
        let waiter =
            self.waiters.insert(Waiter { page, plane, lines, app, first: id, last: id, after: NONE });
        self.waiting.insert(page, waiter);
        let (name, _) = self.registers.set_of(&self.packages, plane);
        let set = &mut self.registers.sets[name as usize];
        set.waiting += 1;
        match std::mem::replace(&mut set.last, waiter) {
            NONE => set.first = waiter,
            last => self.waiters[last].after = waiter,
        }
        self.make_room(name, command.demand, cx);
    }

    /// Evicts as many pages from a set as wait for it, plus enough to free its reserve. The pages may be offered to the
    /// shared cache if a core waits for the room.
    pub(super) fn make_room(&mut self, name: u32, offered: bool, cx: &mut impl Cx<Event, Out>) {
        loop {
            let set = &self.registers.sets[name as usize];
            if set.leaving + set.free >= set.waiting + self.reserve {
                return;
            }
            let Some(register) = self.registers.oldest(name) else { return };
            self.evict(register, offered, cx);
        }
    }

    /// Evicts further pages where some wait for a merge.
    pub(super) fn settle(&mut self, cx: &mut impl Cx<Event, Out>) {
        while let Some(set) = self.short.pop() {
            self.make_room(set, false, cx);
        }
    }

    /// Evicts the page in a register: to the shared cache if the registers of its package thrash, else to flash.
    /// Evictions that make room for write-backs of the cache do not go back to it: pages would circulate between the
    /// two for ever.
    fn evict(&mut self, register: u32, offered: bool, cx: &mut impl Cx<Event, Out>) {
        self.stats.evictions += 1;
        let record = *self.registers.get(register);
        let checker =
            self.checkers.as_mut().map(|all| &mut all[self.packages.package(record.plane).0 as usize]);
        let thrashing = checker.is_some_and(|checker| {
            checker.evictions += 1;
            checker.thrashing
        });
        if !(thrashing && offered) {
            self.registers.leave(register, State::Leaving);
            if planted_nth(Mutant::DroppedRegister, 4) {
                self.registers.release(register);
                return;
            }
            self.queue_program(register, cx);
            return;
        }
        self.registers.leave(register, State::Offered);
        self.stats.parked += 1;
        self.ledger.offered += 1;
        cx.emit(Out::Park { page: record.page * PAGE, lines: record.lines, app: record.app });
        // The answer comes before time advances: at this event, the page is parked or has been refused.
        cx.after(Time::ZERO, Event::Taken(register));
    }

    /// Programs a page after all, because the shared cache has no room for it.
    ///
    /// # Panics
    /// Panics if the page has not been offered, or time has advanced since.
    pub fn refused(&mut self, page: u64, lines: u64, app: u8, cx: &mut impl Cx<Event, Out>) {
        let register = self.registers.offered(page / PAGE);
        let register = register.expect("a page is refused before time advances");
        let record = self.registers.get(register);
        assert!((record.lines, record.app) == (lines, app), "the page at {page:#x} was offered otherwise");
        self.registers.keep(register);
        self.stats.refused += 1;
        self.ledger.refused += 1;
        self.queue_program(register, cx);
        self.settle(cx);
    }

    /// Frees the register of a page that the shared cache has taken, unless it has refused the page.
    pub(super) fn taken(&mut self, register: u32, cx: &mut impl Cx<Event, Out>) {
        let record = *self.registers.get(register);
        if record.state != State::Offered {
            return;
        }
        self.ledger.taken += 1;
        self.ledger.given_up += u64::from(record.lines.count_ones());
        if let Some(shadow) = &mut self.shadow {
            shadow.parked(record.page, record.lines);
        }
        self.stats.bytes_out += self.lines.bytes_of(record.lines);
        self.send(Cargo::Parked, record.plane, record.lines, cx);
        self.release(register, cx);
    }

    /// Releases a register to the page that has waited longest.
    pub(super) fn release(&mut self, register: u32, cx: &mut impl Cx<Event, Out>) {
        self.registers.release(register);
        let record = *self.registers.get(register);
        let set = &mut self.registers.sets[record.set as usize];
        if set.first == NONE {
            self.registers.put_free(register, self.packages.package(record.plane).1);
            return;
        }
        let name = set.first;
        let waiter = self.waiters[name];
        self.waiters.remove(name);
        self.waiting.remove(&waiter.page);
        set.waiting -= 1;
        set.first = waiter.after;
        if set.first == NONE {
            set.last = NONE;
        }
        debug_assert_eq!(self.registers.set_of(&self.packages, waiter.plane).0, record.set);
        self.registers.fill(register, waiter.page, waiter.lines, waiter.app);
        let mut id = waiter.first;
        while id != NONE {
            let after = self.active[id].after;
            self.store(id, register, cx);
            id = after;
        }
        self.make_room(record.set, false, cx);
    }
}

// Reads from registers, or from the array of the plane.

impl Direct {
    /// Handles a read that has reached its package.
    pub(super) fn read_arrived(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let active = &mut self.active[id];
        let (left, place) = (active.left, active.place);
        self.tally.command(Stage::Controller, &mut active.command, left);
        self.tally.command(Stage::FlashNetwork, &mut active.command, now);
        let (page, lines) = (active.command.page / PAGE, active.command.lines);
        let held = self.registers.lines(page) & lines;
        if held != 0
            && let Some(register) = self.registers.dirty(page)
        {
            self.registers.touch(register);
        }
        if held == lines {
            self.stats.register_reads += 1;
            if let Some(shadow) = &mut self.shadow {
                shadow.held(id, page, &self.registers);
            }
            self.stats.bytes_out += self.lines.bytes_of(lines);
            self.send(Cargo::Held(id), place.plane, lines, cx);
            return;
        }
        self.stats.partial_reads += u64::from(held != 0);
        if self.share_fetch(id, page, lines, now) {
            return;
        }
        let op = self.join(Op::new(Kind::Read, place, page, lines, id), now);
        if let Some(fetches) = &mut self.fetches {
            fetches.insert(page, op);
        }
        self.ledger.fetches += 1;
        self.advance(place.plane, cx);
    }

    /// Joins a fetch of the page that still waits or is being sensed. A fetch on its way out is joined too, if the
    /// whole page is sent and the data register still holds it: later data in registers is merged in as the page
    /// leaves.
    fn share_fetch(&mut self, id: u32, page: u64, lines: u64, now: Time) -> bool {
        let Some(op) = self.fetches.as_ref().and_then(|f| f.get(&page).copied()) else { return false };
        let fetch = self.planes.op_mut(op);
        let sensed = fetch.held != Time::MAX;
        if sensed && (self.transfer == Transfer::lines || fetch.held <= now) {
            return false;
        }
        fetch.lines |= lines;
        // The first command stays first: the others follow in arbitrary order.
        self.active[id].after = std::mem::replace(&mut self.active[fetch.first].after, id);
        self.stats.merged_reads += 1;
        if sensed && let Some(shadow) = &mut self.shadow {
            shadow.joined(id, op, page, &self.registers);
        }
        true
    }

    /// Sends out a page that the array has sensed.
    pub(super) fn sensed(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let op = *self.planes.op(name);
        let mut id = op.first;
        while id != NONE {
            let active = &mut self.active[id];
            self.tally.command(Stage::Array, &mut active.command, now);
            if let Some(shadow) = &mut self.shadow {
                shadow.sensed(id, name, &op, &self.blocks, &self.registers);
            }
            id = active.after;
        }
        let (_, in_log) = self.blocks.locate(op.place);
        self.stats.array_reads += 1;
        self.stats.log_reads += u64::from(in_log);
        self.stats.pages_read += u64::from(self.read.add(op.page));
        self.ledger.sensed += 1;
        let lines = match self.transfer {
            Transfer::page => self.lines.all(),
            Transfer::lines => op.lines,
        };
        self.stats.bytes_out += self.lines.bytes_of(lines);
        let held = self.send(Cargo::Fetched(name), op.place.plane, lines, cx);
        self.planes.op_mut(name).held = held;
        self.planes.get(op.place.plane).held = held;
    }

    /// Completes every command of a fetch whose page has arrived at its controller.
    pub(super) fn fetched(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let op = *self.planes.op(name);
        self.planes.remove(name);
        if let Some(fetches) = &mut self.fetches
            && fetches.get(&op.page) == Some(&name)
        {
            fetches.remove(&op.page);
        }
        let mut id = op.first;
        while id != NONE {
            let after = self.active[id].after;
            self.complete(id, Stage::FlashNetwork, cx);
            id = after;
        }
    }
}
