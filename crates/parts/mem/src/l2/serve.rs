//! Service of an access: hits, misses, merges.

use super::bank::{Line, State};
use super::layout::{Target, bits};
use super::prefetch::{Reading, chunk_around};
use super::{Event, L2, Out, WritePolicy, note};
use engine::{Cx, Mutant, Time, planted, planted_nth};
use proto::memory::{Absent, Access, AccessKind, MemCommand, PAGE, Stage};

impl L2 {
    /// Occupies an idle bank for the first waiting access.
    pub(super) fn start(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let bank = &self.banks[usize::from(number)];
        let service = bank.queue.front().map(|access| self.service(number, access));
        let bank = self.bank(number);
        let Some(service) = service else {
            bank.state = State::Idle;
            return;
        };
        bank.state = State::Serving;
        let end = bank.port.grant(now, service);
        cx.after(end - now, Event::Served(number));
    }

    /// Time for which an access occupies its bank.
    fn service(&self, number: u16, access: &Access) -> Time {
        let bank = &self.banks[usize::from(number)];
        let stays = matches!(access.kind, AccessKind::Write | AccessKind::Atomic)
            && (self.keeps_writes() || bank.parked.find(access.address & !(PAGE - 1)).is_some());
        match access.kind {
            AccessKind::Write if stays => self.write_latency,
            AccessKind::Atomic if stays => self.read_latency + self.write_latency,
            _ => self.read_latency,
        }
    }

    /// Places the first waiting access after its time at the bank, or lets it block the rest.
    pub(super) fn attend(&mut self, number: u16, cx: &mut impl Cx<Event, Out>) {
        let access = *self.bank(number).queue.front().expect("an access waits at a bank that serves");
        let placed = self.serve(number, access, cx);
        let now = cx.now();
        let state = self.bank(number).state;
        match (placed, state) {
            (false, State::Stalled(_)) => {}
            (false, _) => {
                self.stats.stalls += 1;
                self.bank(number).state = State::Stalled(now);
            }
            (true, _) => {
                if let State::Stalled(since) = state {
                    self.stats.stalled += now.since(since);
                }
                let bank = self.bank(number);
                bank.queue.pop_front();
                bank.told = false;
                self.start(number, cx);
            }
        }
    }

    /// Places an access; returns false, and changes nothing, if it must wait.
    fn serve(&mut self, number: u16, access: Access, cx: &mut impl Cx<Event, Out>) -> bool {
        let target = Target::new(&self.layout, number, access.address);
        let placed = match (access.kind, self.writes) {
            (AccessKind::Read | AccessKind::Own, _) => self.read(target, access, cx),
            (AccessKind::Write, WritePolicy::write_back) => self.write_here(target, access, cx),
            (AccessKind::Write, WritePolicy::read_only) => self.write_away(target, access, cx),
            (AccessKind::Atomic, _) => self.atomic(target, access, cx),
        };
        if placed {
            self.ledger.writes += u64::from(access.kind == AccessKind::Write);
            *match access.kind {
                AccessKind::Read | AccessKind::Own => &mut self.stats.reads,
                AccessKind::Write => &mut self.stats.writes,
                AccessKind::Atomic => &mut self.stats.atomics,
            } += 1;
        }
        placed
    }

    /// Answers an access whose time was spent here.
    pub(super) fn answer(&mut self, mut access: Access, stage: Stage, cx: &mut impl Cx<Event, Out>) {
        if access.absent == Absent::Signalled
            && let Some(shadow) = &mut self.shadow
        {
            shadow.gives_up(&access);
        }
        self.tally.access(stage, &mut access, cx.now());
        cx.emit(Out::Answer(access));
    }

    fn read(&mut self, target: Target, access: Access, cx: &mut impl Cx<Event, Out>) -> bool {
        let reading = Reading {
            pc: access.pc,
            app: access.app,
            warp: access.warp,
            page: target.page / PAGE,
            line: target.line,
        };
        // A page walk does not belong to an instruction.
        if access.pc != 0 && !std::mem::replace(&mut self.bank(target.bank).told, true) {
            self.prefetch.read(&reading, &mut self.stats.prefetch);
        }
        if self.touch(target) {
            self.stats.hits += 1;
            note!(self, FromLine(target, access));
            self.answer(access, Stage::L2, cx);
            return true;
        }
        self.miss(target, access, (access.pc != 0).then_some(reading), cx)
    }

    fn atomic(&mut self, target: Target, access: Access, cx: &mut impl Cx<Event, Out>) -> bool {
        let keeps_writes = self.keeps_writes();
        let bank = self.bank(target.bank);
        let place = bank.tags.find(target.key).filter(|p| bank.tags.meta(*p).valid);
        let Some(place) = place else {
            return self.miss(target, access, None, cx);
        };
        let stays = keeps_writes || bank.tags.meta(place).pinned;
        if !stays && bank.slots.free() == 0 {
            return false;
        }
        self.touch(target);
        self.stats.hits += 1;
        note!(self, FromLine(target, access));
        if stays {
            self.store(target, access);
            self.answer(access, Stage::L2, cx);
        } else {
            self.write_through(target, access, Stage::L2, None, cx);
        }
        true
    }

    /// Uses a line; returns false unless all of it is here.
    fn touch(&mut self, target: Target) -> bool {
        let tags = &mut self.bank(target.bank).tags;
        let Some(place) = tags.find(target.key).filter(|p| tags.meta(*p).valid) else {
            return false;
        };
        tags.touch(place);
        let line = tags.meta_mut(place);
        let first = !std::mem::replace(&mut line.accessed, true);
        if first && line.prefetched {
            self.stats.used_prefetched_lines += 1;
        }
        true
    }

    /// Makes an access to an incomplete line wait for a fetch: one under way, or a new one.
    fn miss(
        &mut self,
        target: Target,
        mut access: Access,
        reading: Option<Reading>,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        let registers = &self.bank(target.bank).registers;
        let under_way = registers.find(target);
        let room = match under_way {
            Some(register) => registers.has_room(register),
            None => !registers.full(),
        };
        let atomic = access.kind == AccessKind::Atomic;
        if !room || atomic && !self.may_finish(target, access.app, cx) {
            return false;
        }
        self.tally.access(Stage::L2, &mut access, cx.now());
        let register = match under_way {
            Some(register) => {
                self.stats.merges += 1;
                register
            }
            None => {
                self.stats.misses += 1;
                // A requester that accepts an answer without data does not bring further lines.
                let reading = reading.filter(|_| access.absent == Absent::Wait);
                let lines = self.fetch_with(target, reading.as_ref());
                self.fetch(target, lines, &access, cx)
            }
        };
        let bank = self.bank(target.bank);
        let place = bank.tags.find(target.key);
        if let Some(place) = place {
            bank.tags.meta_mut(place).filling = true;
        }
        let slot = atomic && place.is_none();
        if slot {
            bank.slots.keep();
        }
        bank.registers.wait(register, access, if atomic { target.bit() } else { 0 }, slot);
        true
    }

    /// Ensures that an atomic can do its write once its line has come: if writes stay here, the line gets its place
    /// now; otherwise a write slot is reserved for it.
    fn may_finish(&mut self, target: Target, app: u8, cx: &mut impl Cx<Event, Out>) -> bool {
        let keeps_writes = self.keeps_writes();
        let bank = self.bank(target.bank);
        if bank.tags.find(target.key).is_some() {
            return true;
        }
        if keeps_writes {
            self.enter(target, Line { filling: true, accessed: true, app, ..Line::default() }, cx)
        } else {
            bank.slots.free() > 0
        }
    }

    /// Lines fetched with a missed one: those of the chunk around it that are neither here nor in flight.
    fn fetch_with(&mut self, target: Target, reading: Option<&Reading>) -> u64 {
        let Some(reading) = reading else {
            return target.bit();
        };
        let chunk = self.prefetch.chunk(reading, &mut self.stats.prefetch);
        if chunk == 1 {
            return target.bit();
        }
        let around = chunk_around(target.line, chunk, self.layout.lines());
        let bank = self.bank(target.bank);
        let absent = around & !bank.registers.in_flight(target.page);
        let others = bits(absent & !target.bit());
        let others = others.filter(|line| bank.tags.find(target.sibling(*line).key).is_none());
        others.fold(target.bit(), |lines, line| lines | 1 << line)
    }

    /// Starts a fetch for an access.
    fn fetch(&mut self, target: Target, lines: u64, access: &Access, cx: &mut impl Cx<Event, Out>) -> u32 {
        let register = self.bank(target.bank).registers.begin(target, lines, access.app);
        self.stats.prefetched_lines += u64::from(lines.count_ones() - 1);
        self.send_fetch(register, target, lines, access, cx);
        register
    }

    /// Sends the command of a register's fetch, on behalf of an access.
    pub(super) fn send_fetch(
        &mut self,
        register: u32,
        target: Target,
        lines: u64,
        access: &Access,
        cx: &mut impl Cx<Event, Out>,
    ) {
        self.stats.fetches += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.fetches(target.bank, register, target.page, lines);
        }
        self.stats.fetched_lines += u64::from(lines.count_ones());
        cx.emit(Out::Command(MemCommand {
            from: proto::Port::default(),
            tag: register,
            page: target.page,
            lines,
            write: false,
            demand: !access.is_walk(),
            app: access.app,
            port: target.bank,
            pc: access.pc,
            absent: access.absent,
            since: access.since,
        }));
    }

    /// Handles a write that stays in the cache.
    fn write_here(&mut self, target: Target, access: Access, cx: &mut impl Cx<Event, Out>) -> bool {
        let bank = self.bank(target.bank);
        if bank.tags.find(target.key).is_some() {
            self.stats.write_hits += 1;
        } else {
            let pinned = bank.parked.find(target.page).is_some() && bank.may_pin(target.key);
            let filling = bank.registers.find(target).is_some();
            let line = Line { pinned, filling, app: access.app, ..Line::default() };
            if !self.enter(target, line, cx) {
                return false;
            }
        }
        self.store(target, access);
        self.answer(access, Stage::L2, cx);
        true
    }

    /// Handles a write that goes through, unless its page is parked.
    fn write_away(&mut self, target: Target, access: Access, cx: &mut impl Cx<Event, Out>) -> bool {
        let bank = self.bank(target.bank);
        let place = bank.tags.find(target.key);
        let found = place.is_some();
        if self.pin_for_write(target, access.app, cx) {
            self.store(target, access);
            self.answer(access, Stage::L2, cx);
        } else {
            let bank = self.bank(target.bank);
            // The atomic must not lose this write: it reads the line before, and writes after it.
            if bank.registers.locked(target) || bank.slots.free() == 0 {
                return false;
            }
            self.write_through(target, access, Stage::L2, None, cx);
        }
        self.stats.write_hits += u64::from(found);
        true
    }

    /// Changes a line in the cache by a write or an atomic.
    pub(super) fn store(&mut self, target: Target, access: Access) {
        note!(self, Store(target, access));
        let whole = access.kind == AccessKind::Write && u64::from(access.bytes) == self.layout.line();
        let bank = self.bank(target.bank);
        let place = bank.tags.find(target.key).expect("the line is here");
        bank.tags.touch(place);
        let line = bank.tags.meta_mut(place);
        let dirtied = u64::from(!line.dirty);
        line.dirty |= line.pinned || !planted_nth(Mutant::LostStore, 16);
        line.valid |= whole || planted(Mutant::PartialLine);
        let pinned = line.pinned;
        self.ledger.dirtied += dirtied;
        let bank = self.bank(target.bank);
        if pinned {
            let name = bank.parked.find(target.page).expect("pinned lines belong to parked pages");
            bank.parked.written(name, target.bit());
            self.stats.absorbed += 1;
        }
    }
}
