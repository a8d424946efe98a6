//! Purging: garbage collection of an application makes all its lines leave.

use super::bank::Purge;
use super::layout::Target;
use super::{Event, L2, Out, note};
use engine::Cx;

/// How far a purge has come.
#[derive(PartialEq, Eq)]
enum Progress {
    /// Nothing is left.
    Done,
    /// It needs a write slot, or a fetch to come back.
    Waits,
}

impl L2 {
    /// All lines of an application leave: its parked pages and its dirty lines go to memory, as fast as write slots
    /// allow, a page's lines of a bank in one command. What is being fetched for it is passed on to those who wait, and
    /// not kept; a line that is here and being fetched leaves once the fetch has come. New accesses of the
    /// application are served as usual: who wants none must hold them back.
    pub fn purge(&mut self, app: u8, cx: &mut impl Cx<Event, Out>) {
        let layout = self.layout;
        for number in 0..self.banks() {
            let bank = self.bank(number);
            let tags = &bank.tags;
            bank.registers.forget_app(app, |register, line| {
                let first = Target::new(&layout, number, register.page + layout.line() * u64::from(line));
                tags.find(first.key).is_some()
            });
            bank.purges.push_back(Purge { app, next: 0 });
            self.purge_on(number, cx);
        }
    }

    /// Goes on with the purges of a bank.
    pub(super) fn purge_on(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        while let Some(purge) = self.bank(number).purges.front().copied() {
            let done = self.purge_pages(number, purge.app, cx) == Progress::Done
                && self.purge_lines(number, purge, cx) == Progress::Done;
            if !done {
                return;
            }
            self.bank(number).purges.pop_front();
        }
    }

    /// Writes the application's parked pages.
    fn purge_pages(&mut self, number: u16, app: u8, cx: &mut impl Cx<Event, Out>) -> Progress {
        loop {
            let bank = self.bank(number);
            let Some((name, page)) = bank.parked.by_age().find(|(_, page)| page.app == app) else {
                return Progress::Done;
            };
            let (base, lines) = (page.page, page.lines);
            let target = Target::new(&self.layout, number, base);
            let bank = self.bank(number);
            let fetched = |line: Target| {
                let place = bank.tags.find(line.key).expect("pinned lines are here");
                bank.tags.meta(place).filling
            };
            if bank.slots.free() == 0 || target.siblings(lines).any(fetched) {
                return Progress::Waits;
            }
            bank.parked.remove(name);
            self.stats.unparked_pages += 1;
            self.write_back(target, lines, app, cx);
            self.drop_lines(target, lines);
        }
    }

    /// Drops the application's lines, and writes the dirty ones, from where the purge stands.
    fn purge_lines(&mut self, number: u16, purge: Purge, cx: &mut impl Cx<Event, Out>) -> Progress {
        for place in purge.next..self.bank(number).tags.places() {
            let bank = self.bank(number);
            let line = *bank.tags.meta(place);
            let Some(key) = bank.tags.line(place).filter(|_| line.app == purge.app && !line.pinned) else {
                continue;
            };
            if line.filling || line.dirty && bank.slots.free() == 0 {
                bank.purges.front_mut().expect("it is under way").next = place;
                return Progress::Waits;
            }
            let target = Target::of(&self.layout, number, key);
            if line.dirty {
                let lines = self.dirty_lines(target, purge.app);
                self.write_back(target, lines, purge.app, cx);
                self.drop_lines(target, lines);
            } else {
                self.drop_lines(target, target.bit());
            }
        }
        Progress::Done
    }

    /// The dirty lines of a target's page in its bank that can leave.
    fn dirty_lines(&self, target: Target, app: u8) -> u64 {
        let tags = &self.banks[usize::from(target.bank)].tags;
        let count = self.layout.neighbours();
        let first = target.line / count * count;
        let leaves = |line: &u32| {
            tags.find(target.sibling(*line).key).is_some_and(|place| {
                let line = tags.meta(place);
                line.dirty && !line.pinned && !line.filling && line.app == app
            })
        };
        (first..first + count).filter(leaves).fold(0, |lines, line| lines | 1 << line)
    }

    fn drop_lines(&mut self, target: Target, lines: u64) {
        for line in target.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let place = tags.find(line.key).expect("lines that leave are here");
            tags.remove(place);
            self.stats.purged_lines += 1;
            note!(self, Drop(line));
        }
    }
}
