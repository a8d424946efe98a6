//! What a fetch has brought.

use super::bank::Line;
use super::layout::Target;
use super::registers::{Register, Waiter};
use super::{Event, L2, Out, note};
use engine::Cx;
use proto::memory::{AccessKind, MemCommand, Stage};

impl L2 {
    /// Lines have come: they are kept, and those who waited are answered.
    pub(super) fn fetched(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let layout = self.layout;
        let registers = &mut self.bank(command.port).registers;
        let mut register = registers.end(command.tag);
        debug_assert_eq!(register.page, command.page, "an answer to another fetch");
        let wanted = registers.wanted(&register, &layout);
        let first =
            Target::new(&layout, command.port, command.page + u64::from(register.line) * layout.line());
        let mut filled = self.complete(command.tag, first, register.open);
        let mut stage = Stage::L2;
        while let Some(mut waiter) = self.bank(command.port).registers.take(&mut register) {
            // The first one's milestones are those of the fetch, the others waited for it as a whole.
            if stage == Stage::L2 {
                waiter.access.since = command.since;
            }
            self.fulfil(command.port, (command.tag, &register), waiter, stage, cx);
            stage = Stage::L2Merge;
        }
        // Only now, because new lines may push out old ones, and atomics have been promised that theirs is here.
        filled += self.keep(command.tag, first, &register, wanted, cx);
        let time = self.write_latency.times(filled.into());
        self.bank(command.port).port.grant(now, time);
    }

    /// Completes the lines that are here already: written in part, or a place held for an atomic. How many.
    fn complete(&mut self, fetch: u32, first: Target, lines: u64) -> u32 {
        let mut filled = 0;
        for target in first.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let Some(place) = tags.find(target.key) else {
                continue;
            };
            let line = tags.meta_mut(place);
            debug_assert!(line.filling, "who puts a line in while it is fetched says so");
            line.filling = false;
            line.valid = true;
            filled += 1;
            note!(self, Fill(fetch, target));
        }
        filled
    }

    /// Keeps the other lines that have come. How many were written into the cells.
    fn keep(
        &mut self,
        fetch: u32,
        first: Target,
        register: &Register,
        wanted: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> u32 {
        // The write of an atomic that goes through has made its line old.
        let old = if self.keeps_writes() { 0 } else { register.locked };
        let mut filled = 0;
        for target in first.siblings(register.open & !old) {
            if self.bank(target.bank).tags.find(target.key).is_some() {
                continue;
            }
            let prefetched = target.line != register.line;
            let accessed = wanted & target.bit() != 0;
            self.stats.used_prefetched_lines += u64::from(prefetched && accessed);
            let line = Line { valid: true, prefetched, accessed, app: register.app, ..Line::default() };
            if self.enter(target, line, cx) {
                filled += 1;
                note!(self, Fill(fetch, target));
            } else {
                self.stats.unkept_lines += 1;
            }
        }
        filled
    }

    /// Answers an access that waited for a fetch, or sends its write on.
    fn fulfil(
        &mut self,
        number: u16,
        (fetch, register): (u32, &Register),
        waiter: Waiter,
        stage: Stage,
        cx: &mut impl Cx<Event, Out>,
    ) {
        let Waiter { access, slot } = waiter;
        let target = Target::new(&self.layout, number, access.address);
        let keeps_writes = self.keeps_writes();
        let bank = self.bank(number);
        if slot {
            bank.slots.unkeep();
        }
        let place = bank.tags.find(target.key);
        let stays = keeps_writes || place.is_some_and(|p| bank.tags.meta(p).pinned);
        // What has been written to the line meanwhile is part of it, unless the fetch was told that it would be old.
        if place.is_some() && register.open & target.bit() != 0 {
            note!(self, FromLine(target, access));
        } else {
            note!(self, FromFetch(fetch, target, access));
        }
        match access.kind {
            AccessKind::Atomic if stays => {
                self.store(target, access);
                self.answer(access, stage, cx);
            }
            AccessKind::Atomic => self.write_through(target, access, stage, Some(fetch), cx),
            _ => self.answer(access, stage, cx),
        }
    }
}
