//! Lines that make room, and writes to memory.

use super::bank::Line;
use super::layout::Target;
use super::{Event, L2, Out, note};
use engine::{Cx, Mutant, planted, planted_nth};
use proto::memory::{Absent, Access, MemCommand, Stage};

impl L2 {
    /// Puts a line that is not here into its set; false if no line there can make room.
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

    /// A line has made room.
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

    /// Sends lines of the target's page to memory; nobody waits for it. A slot must be free.
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

    /// Sends a write, or the write of an atomic, to memory; its access is answered when memory has taken it. A copy here
    /// or on its way is old then. A slot must be free. `stage` is what the access has waited for; what brought an
    /// atomic's line is of interest to the shadow only.
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

    /// Memory has taken a write.
    pub(super) fn written(&mut self, command: &MemCommand, cx: &mut impl Cx<Event, Out>) {
        if let Some(mut access) = self.bank(command.port).slots.end(command.tag) {
            access.since = command.since;
            self.answer(access, Stage::L2, cx);
        }
    }
}
