//! Movement of lines: fetches, evictions, writes to memory, and parked pages.

use super::bank::{Bank, Line};
use super::layout::Target;
use super::registers::{Register, Waiter};
use super::{Event, L2, Out, note};
use engine::{Cx, Mutant, planted, planted_nth};
use proto::memory::{Absent, Access, AccessKind, MemCommand, Stage};

impl L2 {
    /// Handles fetched lines: they are kept, and their waiters answered.
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
            // Milestones of the first access are those of the fetch; the others waited for it as a whole.
            if stage == Stage::L2 {
                waiter.access.since = command.since;
            }
            self.fulfil(command.port, (command.tag, &register), waiter, stage, cx);
            stage = Stage::L2Merge;
        }
        // Only now, because new lines may evict old ones, and the lines of waiting atomics are guaranteed to be here.
        filled += self.keep(command.tag, first, &register, wanted, cx);
        let time = self.write_latency.times(filled.into());
        self.bank(command.port).port.grant(now, time);
    }

    /// Completes the lines already here: partly written ones, or places held for an atomic. Returns their number.
    fn complete(&mut self, fetch: u32, first: Target, lines: u64) -> u32 {
        let mut filled = 0;
        for target in first.siblings(lines) {
            let tags = &mut self.bank(target.bank).tags;
            let Some(place) = tags.find(target.key) else {
                continue;
            };
            let line = tags.meta_mut(place);
            debug_assert!(line.filling, "a line put in during its fetch must be marked");
            line.filling = false;
            line.valid = true;
            filled += 1;
            note!(self, Fill(fetch, target));
        }
        filled
    }

    /// Keeps the other fetched lines. Returns the number written into the cells.
    fn keep(
        &mut self,
        fetch: u32,
        first: Target,
        register: &Register,
        wanted: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> u32 {
        // The write of an atomic that goes through has outdated its line.
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
        // Data written to the line meanwhile is part of it, unless the fetch was marked as outdated.
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

// Evictions, and writes to memory.

impl L2 {
    /// Puts an absent line into its set; returns false if no line there can be evicted.
    pub(super) fn enter(&mut self, target: Target, line: Line, cx: &mut impl Cx<Event, Out>) -> bool {
        let slot = self.bank(target.bank).slots.free() > 0;
        self.enter_over(target, line, |other| other.may_go() && (!other.dirty || slot), cx)
    }

    /// As [`L2::enter`], into an empty way or over a line that satisfies `may`.
    pub(super) fn enter_over(
        &mut self,
        target: Target,
        line: Line,
        may: impl Fn(&Line) -> bool,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let Some((_, gone)) = self.bank(target.bank).tags.insert(target.key, line, may) else {
            return false;
        };
        if let Some((key, gone)) = gone {
            self.evicted(Target::of(&self.layout, target.bank, key), gone, cx);
        }
        true
    }

    /// Handles an evicted line.
    fn evicted(&mut self, target: Target, line: Line, cx: &mut impl Cx<Event, Out>) {
        self.stats.evictions += 1;
        let wasted = line.prefetched && !line.accessed;
        self.stats.unused_evictions += u64::from(wasted);
        self.prefetch.evicted(wasted, &mut self.stats.prefetch);
        if line.dirty && !planted_nth(Mutant::DroppedLine, 16) {
            self.write_back(target, target.bit(), line.app, cx);
        }
        note!(self, Drop(target));
    }

    /// Writes lines of the target's page back to memory; no access waits for it. A slot must be free.
    pub(super) fn write_back(&mut self, target: Target, lines: u64, app: u8, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let reads = self.read_latency.times(lines.count_ones().into());
        let bank = self.bank(target.bank);
        let tag = bank.slots.take(target.page, None);
        bank.port.grant(now, reads);
        self.stats.write_backs += 1;
        self.stats.written_lines += u64::from(lines.count_ones());
        if self.shadow.is_some() || cfg!(test) {
            for line in target.siblings(lines) {
                note!(self, Unload(tag, line));
            }
        }
        if let Some(shadow) = &mut self.shadow {
            shadow.writes(target.bank, tag);
        }
        cx.emit(Out::Command(MemCommand {
            from: proto::Port::default(),
            tag,
            page: target.page,
            lines,
            write: true,
            demand: false,
            app,
            port: target.bank,
            pc: 0,
            absent: Absent::Wait,
            since: now,
        }));
    }

    /// Sends a write, or the write of an atomic, to memory; its access is answered when memory has taken it. A copy
    /// here or in flight is outdated then. A slot must be free. `stage` is what the access has waited for; the source
    /// of an atomic's line matters only to the shadow.
    pub(super) fn write_through(
        &mut self,
        target: Target,
        mut access: Access,
        stage: Stage,
        fetch: Option<u32>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        self.tally.access(stage, &mut access, cx.now());
        let bank = self.bank(target.bank);
        let tag = bank.slots.take(target.page, Some(access));
        if !planted(Mutant::StaleFetch) {
            bank.registers.forget(target);
        }
        if let Some(place) = bank.tags.find(target.key).filter(|_| !planted(Mutant::StaleLine)) {
            debug_assert!(!bank.tags.meta(place).filling, "only a parked line is fetched while it is here");
            bank.tags.remove(place);
            self.stats.invalidations += 1;
            note!(self, Drop(target));
        }
        note!(self, Through(tag, fetch, target, access));
        self.ledger.through += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.writes(target.bank, tag);
        }
        self.stats.write_throughs += 1;
        self.stats.written_lines += 1;
        cx.emit(Out::Command(MemCommand {
            from: proto::Port::default(),
            tag,
            page: target.page,
            lines: target.bit(),
            write: true,
            demand: true,
            app: access.app,
            port: target.bank,
            pc: access.pc,
            absent: Absent::Wait,
            since: access.since,
        }));
    }

    /// Handles a write taken by memory.
    pub(super) fn written(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        if let Some(mut access) = self.bank(command.port).slots.end(command.tag) {
            access.since = command.since;
            self.answer(access, Stage::L2, cx);
        }
    }
}

// Parking: dirty pages handed back by overcrowded flash registers stay here, pinned (ZnG, section IV-C).

impl L2 {
    /// Takes a dirty page handed back by overcrowded flash registers: its lines are complete, and memory has no newer
    /// version. They are pinned, and take the page's writes until the page goes to memory to make room for another; the
    /// least recently written page goes first. `page` is the first byte of the page.
    ///
    /// Returns false, and takes nothing, in these cases: parking is off; a set has no evictable line; no write slot is
    /// free for a page that must go; or a write to the page is on its way to memory, which would then be newer than
    /// this copy.
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
                // A clean line is evicted if there is one: slots have been counted that way.
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

    /// Ensures that a write to a parked page finds its line pinned; returns false if the page is not parked, or no more
    /// lines of the set can be pinned.
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

    /// Writes back the least recently written parked page without a fetch under way. Its lines stay, clean and no
    /// longer pinned. Returns false without such a page, or without a write slot.
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

/// Lines of a page without the first of them; all if there is only one.
fn without_first(lines: u64) -> u64 {
    if lines.is_power_of_two() { lines } else { lines & (lines - 1) }
}

/// Room for a line to be pinned.
enum Room {
    /// An empty way, a clean line, or the line is already here.
    Clean,
    /// A line that must be written back first.
    Dirty,
    /// No room.
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
