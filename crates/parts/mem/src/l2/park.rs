//! Parking: dirty pages that overcrowded flash registers hand back stay here, pinned (ZnG, section IV-C).

use super::bank::{Bank, Line};
use super::layout::Target;
use super::{Event, L2, Out, note};
use engine::mutant::planted;
use engine::{Cx, Mutant};

impl L2 {
    /// Takes a dirty page that overcrowded flash registers hand back: its lines are whole, and memory has nothing newer.
    /// They are pinned, and take the page's writes until the page goes to memory, which makes room for another: the one
    /// that was written least recently goes first. `page` is the first byte of the page.
    ///
    /// False, and nothing taken, if there is no room: parking is off, or a set has no line that can make room, or no
    /// write slot is free for a page that must go; or if a write to the page is on its way to memory, for it would be
    /// newer there than here.
    pub fn park(&mut self, page: u64, lines: u64, app: u8, cx: &mut impl Cx<Event, Out>) -> bool {
        let bank = self.bank_of(page);
        let target = Target::new(&self.layout, bank, page);
        let parked = self.may_park(target, lines, cx);
        if parked {
            self.take_in(target, lines, app, cx);
            self.stats.parked_pages += 1;
        } else {
            self.stats.refused_pages += 1;
        }
        parked
    }

    fn may_park(&mut self, target: Target, lines: u64, cx: &mut impl Cx<Event, Out>) -> bool {
        let bank = self.bank(target.bank);
        if bank.parked.is_off() || lines == 0 || bank.slots.writes_to(target.page) {
            return false;
        }
        let there = bank.parked.find(target.page).is_some();
        if !there && !bank.parked.has_room() && !self.unpark_oldest(target.bank, cx) {
            return false;
        }
        let bank = self.bank(target.bank);
        let mut dirty = 0;
        for line in target.siblings(lines) {
            match room(bank, line) {
                Room::None => return false,
                Room::Dirty => dirty += 1,
                Room::Clean => {}
            }
        }
        dirty <= bank.slots.free()
    }

    /// Pins the lines of a page for which there is room.
    fn take_in(&mut self, target: Target, lines: u64, app: u8, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let lines = if planted(Mutant::UnparkedLine) { without_first(lines) } else { lines };
        for line in target.siblings(lines) {
            let bank = self.bank(target.bank);
            if bank.tags.find(line.key).is_none() {
                let filling = bank.registers.find(line).is_some();
                let new = Line { filling, app, ..Line::default() };
                let clean = |other: &Line| other.may_go() && !other.dirty;
                // A clean line makes room if there is one: slots have been counted so.
                let entered = if bank.tags.set(line.key).any(|p| clean(bank.tags.meta(p))) {
                    self.enter_over(line, new, clean, cx)
                } else {
                    self.enter(line, new, cx)
                };
                debug_assert!(entered, "room has been found");
            }
            note!(self, Park(line));
            let bank = self.bank(target.bank);
            let place = bank.tags.find(line.key).expect("it has just entered");
            bank.tags.touch(place);
            let held = bank.tags.meta_mut(place);
            let dirtied = u64::from(!held.dirty);
            (held.valid, held.dirty, held.pinned, held.accessed, held.app) = (true, true, true, true, app);
            self.ledger.dirtied += dirtied;
            self.ledger.parked += 1;
        }
        let time = self.write_latency.times(lines.count_ones().into());
        let bank = self.bank(target.bank);
        bank.port.grant(now, time);
        match bank.parked.find(target.page) {
            Some(name) => bank.parked.written(name, lines),
            None => bank.parked.add(target.page, lines, app),
        }
    }

    /// Makes sure that a write to a parked page finds its line pinned; false if the page is not parked, or no more lines
    /// of the set can be pinned.
    pub(super) fn pin_for_write(&mut self, target: Target, app: u8, cx: &mut impl Cx<Event, Out>) -> bool {
        let bank = self.bank(target.bank);
        if bank.parked.find(target.page).is_none() {
            return false;
        }
        debug_assert!(!self.keeps_writes(), "only where writes would go away");
        let bank = self.bank(target.bank);
        let place = bank.tags.find(target.key);
        if place.is_some_and(|p| bank.tags.meta(p).pinned) {
            return true;
        }
        if !bank.may_pin(target.key) {
            return false;
        }
        match place {
            Some(place) => {
                bank.tags.meta_mut(place).pinned = true;
                true
            }
            None => {
                let filling = bank.registers.find(target).is_some();
                self.enter(target, Line { pinned: true, filling, app, ..Line::default() }, cx)
            }
        }
    }

    /// Writes the parked page to memory that was written least recently, of those of which nothing is being fetched. Its
    /// lines stay, clean and no longer pinned. False if there is none, or no write slot.
    fn unpark_oldest(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) -> bool {
        let layout = self.layout;
        let bank = &self.banks[usize::from(number)];
        let idle = |page: u64, lines: u64| {
            let mut lines = Target::new(&layout, number, page).siblings(lines);
            !lines.any(|line| bank.tags.find(line.key).is_some_and(|p| bank.tags.meta(p).filling))
        };
        let oldest = bank.parked.by_age().find(|(_, page)| idle(page.page, page.lines));
        let Some((name, _)) = oldest.filter(|_| bank.slots.free() > 0) else {
            return false;
        };
        let page = self.bank(number).parked.remove(name);
        let target = Target::new(&layout, number, page.page);
        self.stats.unparked_pages += 1;
        let lines = if planted(Mutant::LostParked) { without_first(page.lines) } else { page.lines };
        self.write_back(target, lines, page.app, cx);
        for line in target.siblings(page.lines) {
            let tags = &mut self.bank(number).tags;
            let place = tags.find(line.key).expect("pinned lines are here");
            let held = tags.meta_mut(place);
            (held.pinned, held.dirty) = (false, false);
            if !held.valid {
                tags.remove(place);
                note!(self, Drop(line));
            }
        }
        true
    }
}

/// Lines of a page without the first of them; all if there is one only.
fn without_first(lines: u64) -> u64 {
    if lines.is_power_of_two() { lines } else { lines & (lines - 1) }
}

/// What can make room for a line to be pinned.
enum Room {
    /// An empty way, a clean line, or the line is here already.
    Clean,
    /// A line that must be written first.
    Dirty,
    /// Nothing.
    None,
}

fn room(bank: &Bank, target: Target) -> Room {
    let tags = &bank.tags;
    let held = tags.find(target.key).map(|p| tags.meta(p).pinned);
    if held == Some(true) {
        return Room::Clean;
    }
    if !bank.may_pin(target.key) {
        return Room::None;
    }
    let ways = || tags.set(target.key).filter(|p| tags.line(*p).is_some()).map(|p| *tags.meta(p));
    if held.is_some() || ways().count() < tags.set(target.key).len() || ways().any(|l| l.may_go() && !l.dirty)
    {
        Room::Clean
    } else if ways().any(|l| l.may_go()) {
        Room::Dirty
    } else {
        Room::None
    }
}
