//! A fetch that comes back without data, because its page is in flash.

use super::layout::Target;
use super::{Event, L2, Out, note};
use engine::Cx;
use proto::memory::{Absent, MemCommand, Stage};

impl L2 {
    /// A fetch has brought nothing. Those who asked to be told are, and what was held for them is free; for those who
    /// wait the line is fetched again, and now memory waits as well.
    pub(super) fn signalled(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        let (number, register) = (command.port, command.tag);
        let mut before = self.bank(number).registers.reopen(register);
        debug_assert_eq!(before.page, command.page, "an answer to another fetch");
        let first = self.layout.line() * u64::from(before.line) + before.page;
        let target = Target::new(&self.layout, number, first);
        let (mut stage, mut fetch) = (Stage::L2, None);
        while let Some(mut waiter) = self.bank(number).registers.take(&mut before) {
            // As when data come: the first one's milestones are those of the fetch.
            if stage == Stage::L2 {
                waiter.access.since = command.since;
            }
            if waiter.access.absent == Absent::Wait {
                if fetch.is_none() {
                    self.tally.access(stage, &mut waiter.access, cx.now());
                    fetch = Some(waiter.access);
                }
                let bank = self.bank(number);
                bank.registers.wait(register, waiter.access, 0, waiter.slot);
            } else {
                if waiter.slot {
                    self.bank(number).slots.unkeep();
                }
                waiter.access.absent = Absent::Signalled;
                self.stats.signalled += 1;
                self.answer(waiter.access, stage, cx);
            }
            stage = Stage::L2Merge;
        }
        match fetch {
            Some(access) => self.send_fetch(register, target, target.bit(), &access, cx),
            None => {
                self.bank(number).registers.end(register);
                self.give_up(target, before.open);
            }
        }
    }

    /// Nothing comes for lines of a page: what has been written to them stays, a place without anything in it does not.
    fn give_up(&mut self, first: Target, lines: u64) {
        for target in first.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let Some(place) = tags.find(target.key) else {
                continue;
            };
            let line = tags.meta_mut(place);
            line.filling = false;
            if !line.valid && !line.dirty {
                tags.remove(place);
                note!(self, Drop(target));
            }
        }
    }
}
