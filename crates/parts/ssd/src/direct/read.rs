//! Reads: from registers, or from the array of the plane.

use super::op::Cargo;
use super::op::{Kind, Op};
use super::spec::Transfer;
use super::{Direct, Event, Out};
use engine::{Cx, Time};
use nand::names::NONE;
use proto::memory::{PAGE, Stage};

impl Direct {
    /// A read has reached its package.
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

    /// Joins a fetch of the page that still waits or is being sensed; one that is on its way out, too, if the whole page
    /// goes and the data register still holds it: what registers gain meanwhile is merged in as it leaves.
    fn share_fetch(&mut self, id: u32, page: u64, lines: u64, now: Time) -> bool {
        let Some(op) = self.fetches.as_ref().and_then(|f| f.get(&page).copied()) else { return false };
        let fetch = self.planes.op_mut(op);
        let sensed = fetch.held != Time::MAX;
        if sensed && (self.transfer == Transfer::lines || fetch.held <= now) {
            return false;
        }
        fetch.lines |= lines;
        // The first command stays the first: the others follow it in no particular order.
        self.active[id].after = std::mem::replace(&mut self.active[fetch.first].after, id);
        self.stats.merged_reads += 1;
        if sensed && let Some(shadow) = &mut self.shadow {
            shadow.joined(id, op, page, &self.registers);
        }
        true
    }

    /// The array has sensed a page: it goes out.
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

    /// A page has arrived at its controller: every command of the fetch is done.
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
