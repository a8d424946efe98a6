//! Host writes acknowledged from flash: they wait for space, find places, and are merged with old data of their units.

use super::{Active, Device, Event, Out, milestone, read::Run};
use engine::{Cx, Mutant, Snapshot, Time, planted};
use ftl::buffer::destage::Pace;
use ftl::page_map::{Source, space::Stream};
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
use proto::{Command, IoOp, Lpn, Slot};
use rustc_hash::FxHashSet;

impl Device {
    /// Handles the arrived data of a write. Units that it covers in part must be read first.
    pub(super) fn data_in(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &mut self.active[id];
        active.life.reach(milestone::HOST_TRANSFER, cx.now());
        if self.buffered.is_some() {
            self.accept(id, cx);
            return;
        }
        let (first, end) = (active.next, active.end);
        let missing = (first..end).filter(|unit| !self.translates(id, *unit, cx)).count() as u32;
        self.active[id].pending = missing;
        if missing == 0 {
            self.merge_edges(id, cx);
        }
    }

    /// Handles one available map entry of a write.
    pub(super) fn write_translated(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        self.active[id].pending -= 1;
        if self.active[id].pending == 0 {
            self.merge_edges(id, cx);
        }
    }

    /// Reads the old data of units that a write covers in part.
    fn merge_edges(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let active = &self.active[id];
        let command = active.command;
        if let Some(merge) = self.edges(&command) {
            self.active[id].merge = Some(merge);
            self.begin_merges(id, cx.now());
        }
        if self.active[id].pending == 0 {
            self.place(id, cx);
        }
    }

    /// Units that the next program of a command writes, first and one past the last.
    fn next_piece(&self, active: &Active) -> Option<(u64, u64)> {
        if let Some(unit) = active.merge.as_ref().and_then(|m| m.alone.last()) {
            return Some((*unit, unit + 1));
        }
        // Neighbours of one stripe share the program unit.
        let stripe_end =
            || (self.ftl.geo.stripe_of_unit(active.next) + 1) * u64::from(self.ftl.geo.units_per_program);
        (active.next < active.end).then(|| (active.next, active.end.min(stripe_end())))
    }

    /// Assigns program units to the rest of a write, as far as there is space.
    pub(super) fn place(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        if self.active[id].waits {
            return;
        }
        let stream = Stream::Host(self.active[id].command.placement.min(self.placements - 1));
        while let Some((unit, until)) = self.next_piece(&self.active[id]) {
            let stripe = self.ftl.geo.stripe_of_unit(unit);
            let group = self.allocator.place(stripe, stream, &self.ftl, &self.backend);
            let closed = self.is_closed_to_host(group);
            let Some(slot) =
                (if closed { None } else { self.ftl.reserve_for_host(group, stream, Pace::Even) })
            else {
                self.counts_cached(group, None, 0);
                self.wait(id, group, cx);
                break;
            };
            let units = (until - unit) as u16;
            self.counts_cached(group, Some(slot), units.into());
            for n in 0..u64::from(self.ftl.geo.units_per_program) {
                let lpn = (n < u64::from(units)).then(|| Lpn(unit + n));
                self.ftl.fill(Slot(slot.0 + n), lpn);
                if let Some(lpn) = lpn {
                    self.ftl.prefetch_overwritten(lpn);
                }
            }
            let at = self.ftl.geo.address(slot);
            let bytes = u32::from(units) * self.unit_bytes as u32;
            let mut op = Op::new(OpKind::Program, Class::HostProgram, at, slot, units, bytes, id);
            op.erases = self.erases_of(slot);
            op.is_slc = self.ftl.is_slc(slot);
            let name = self.program(Purpose::Host, op, cx.now());
            if let Some(shadow) = &mut self.shadow {
                shadow.writes(name, id, unit, units);
            }
            let active = &mut self.active[id];
            active.pending += 1;
            if active.merge.as_mut().and_then(|m| m.alone.pop()).is_none() {
                active.next = until;
            }
            self.reclaim(group, cx);
        }
        let active = &mut self.active[id];
        if cx.now() > active.life.last() {
            active.life.reach(milestone::SPACE, cx.now());
        }
        self.acknowledge_early(id, cx);
    }

    /// Completes a durable program unit of host data.
    pub(super) fn host_program_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let id = op.owner;
        self.ftl.program(op.slot);
        let mut again = [None; 2];
        for n in 0..u64::from(op.units) {
            let slot = Slot(op.slot.0 + n);
            let Some(lpn) = self.ftl.lpn_at(slot) else { continue };
            match self.commit_host(id, lpn, slot) {
                Some(edge) => again[edge] = Some(edge),
                None => self.map_changed(lpn, cx),
            }
        }
        self.ftl.programmed(op.slot);
        self.mutate_program(op);
        if planted(Mutant::EarlyAcknowledge) {
            return;
        }
        self.active[id].pending -= 1;
        for edge in again.into_iter().flatten() {
            self.merge_again(id, edge, cx);
        }
        let now = cx.now();
        let active = &mut self.active[id];
        if active.pending == 0 && active.is_placed() {
            // Operations of one command may have been queued at different times if it waited for space.
            if op.queued == active.life.last() {
                active.reach(milestone::DIE_WAIT, op.started);
                active.reach(milestone::CHANNEL, op.sensed);
            }
            active.reach(milestone::ARRAY, now);
            self.note_waits(op);
            self.complete(id, cx);
        }
    }
}

impl Active {
    /// Returns true if nothing of the command waits to be placed.
    pub(super) fn is_placed(&self) -> bool {
        self.next == self.end && self.merge.as_ref().is_none_or(|m| m.alone.is_empty() && !m.is_reading())
    }
}

// Commands that wait for free space in flash.

impl Device {
    /// Index of the list in which commands wait for a group. An allocator that chooses the group may choose a different
    /// one next time: its commands wait together.
    fn line(&self, group: u32) -> usize {
        if self.allocator.is_static() { group as usize } else { 0 }
    }

    /// Queues a command that has found no space in a group.
    pub(super) fn wait(&mut self, id: u32, group: u32, cx: &mut impl Cx<Event, Out>) {
        self.active[id].waits = true;
        let line = self.line(group);
        self.waiting[line].push_back(id);
        self.stalled |= !self.reclaim_for(group, cx);
    }

    /// Reclaims where it helps those that wait for a group; returns false if nothing can be reclaimed now.
    pub(super) fn reclaim_for(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        if self.allocator.is_static() && !self.gc.global {
            self.reclaim(group, cx);
            return self.jobs[group as usize].is_some();
        }
        (0..self.ftl.geo.groups).for_each(|g| self.reclaim(g, cx));
        self.jobs.iter().any(Option::is_some)
    }

    /// Retries a reclaim that was impossible before.
    #[cold]
    pub(super) fn retry(&mut self, cx: &mut impl Cx<Event, Out>) {
        self.stalled = false;
        for group in 0..self.ftl.geo.groups {
            if !self.waiting[self.line(group)].is_empty() {
                self.stalled |= !self.reclaim_for(group, cx);
            }
        }
        for group in self.groups_of_assemblies() {
            self.stalled |= !self.reclaim_for(group, cx);
        }
        for group in self.groups_of_write_backs() {
            self.reclaim(group, cx);
            self.stalled |= self.jobs[group as usize].is_none();
        }
    }

    /// Resumes commands that waited for space in a group, oldest first.
    pub(super) fn wake(&mut self, group: u32, cx: &mut impl Cx<Event, Out>) {
        self.wake_assemblies(group, cx);
        self.wake_write_backs(cx);
        let line = self.line(group);
        for _ in 0..self.waiting[line].len() {
            if let Some(id) = self.waiting[line].pop_front() {
                self.active[id].waits = false;
                self.place(id, cx);
            }
        }
    }
}

/// Units written in the present window. Windows follow each other; each ends with the first write after its time.
#[derive(Clone, Debug)]
pub(super) struct Rewrites {
    window: Time,
    until: Time,
    written: FxHashSet<Lpn>,
}

impl Rewrites {
    pub(super) fn new(window: Time) -> Rewrites {
        Rewrites { window, until: Time::ZERO, written: FxHashSet::default() }
    }

    /// Appends the state, without the length of a window.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Rewrites { window: _, until, written } = self;
        let mut written: Vec<Lpn> = written.iter().copied().collect();
        written.sort_unstable();
        until.save(out);
        written.save(out);
    }

    /// Replaces the state with a saved one; `None` if it is truncated or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.until = Time::load(input)?;
        self.written = Vec::load(input)?.into_iter().collect();
        Some(())
    }

    /// Notes a write of a unit. Returns true if it was written in this window before.
    pub(super) fn is_again(&mut self, lpn: Lpn) -> bool {
        !self.written.insert(lpn)
    }

    /// Notes the end of a write: its time may end the window.
    pub(super) fn wrote(&mut self, now: Time) {
        if now > self.until {
            self.written.clear();
            self.until = now + self.window;
        }
    }
}

// Units that a command covers in part: their old data is read first, and written with the new.
//
// Between that read and the program's end another command may change the unit. Then the old data is out of date, and
// committing it would undo an acknowledged write. So the map changes by compare-and-swap on the copy that was read,
// and a merge that loses the race begins again.

/// Invalid unit number.
const NONE: u64 = u64::MAX;

/// Units that a command covers in part: its first, its last, or both.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    units: [u64; 2],
    /// Old data of each unit.
    sources: [Source; 2],
    /// True while that data is being read.
    reading: [bool; 2],
    /// Units that wait to be placed alone.
    pub(super) alone: Vec<u64>,
}

impl Merge {
    /// Returns true while old data is being read.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.contains(&true)
    }
}

impl Device {
    /// Units that a command covers in part, if any.
    #[inline]
    pub(super) fn edges(&self, command: &Command) -> Option<Box<Merge>> {
        let is_aligned = (command.offset | command.bytes) & (self.unit_bytes - 1) == 0;
        if is_aligned { None } else { self.find_edges(command) }
    }

    #[cold]
    fn find_edges(&self, command: &Command) -> Option<Box<Merge>> {
        let (first, end) = self.units(command);
        let last = if first == end - 1 { NONE } else { end - 1 };
        let in_part = |unit| unit != NONE && u64::from(self.bytes_of_unit(command, unit)) < self.unit_bytes;
        let units = [first, last].map(|unit| if in_part(unit) { unit } else { NONE });
        Some(Box::new(Merge {
            units,
            sources: [Source::default(); 2],
            reading: [false; 2],
            alone: Vec::new(),
        }))
    }

    /// Starts the merges of a command's edges.
    #[cold]
    pub(super) fn begin_merges(&mut self, id: u32, now: Time) {
        for edge in 0..2 {
            if self.active[id].merge.as_ref().is_some_and(|m| m.units[edge] != NONE) {
                self.begin_merge(id, edge, now);
            }
        }
    }

    /// Queues the read of an edge's old data; returns false without old data.
    fn begin_merge(&mut self, id: u32, edge: usize, now: Time) -> bool {
        let active = &mut self.active[id];
        let Some(merge) = &mut active.merge else { return false };
        let lpn = Lpn(merge.units[edge]);
        merge.sources[edge] = self.ftl.source(lpn);
        let Some(slot) = merge.sources[edge].slot else {
            if let Some(shadow) = &mut self.shadow {
                shadow.finds_nothing(id, lpn);
            }
            return false;
        };
        merge.reading[edge] = true;
        self.stats.merge_reads += 1;
        active.pending += 1;
        let class = Class::host_read(active.command.priority);
        if let Some(shadow) = &mut self.shadow {
            shadow.looks_up(lpn, slot);
        }
        let run = Run { page: 0, slot, units: 1, bytes: self.unit_bytes as u32 };
        self.queue_read(id, class, &run, now);
        true
    }

    /// Handles the old data of a unit that is written in part.
    #[cold]
    pub(super) fn merge_read_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        let id = op.owner;
        let active = &mut self.active[id];
        active.pending -= 1;
        let started = active.next > active.command.offset / self.unit_bytes;
        if let Some(merge) = &mut active.merge {
            // While both are being read, both are pinned, and so in different slots.
            let first = merge.reading[0] && merge.sources[0].slot == Some(op.slot);
            let edge = usize::from(!first);
            merge.reading[edge] = false;
            if started {
                merge.alone.push(merge.units[edge]);
            }
        }
        if !started && active.pending > 0 {
            return;
        }
        active.life.reach(milestone::MERGE, cx.now());
        self.place(id, cx);
    }

    /// Commits a durable unit of host data to the map, unless its old data is out of date by now. Returns the edge that
    /// has to be merged again.
    #[inline]
    pub(super) fn commit_host(&mut self, id: u32, lpn: Lpn, slot: Slot) -> Option<usize> {
        if self.active[id].merge.is_none() {
            self.ftl.commit(lpn, slot);
            return None;
        }
        self.commit_with_edges(id, lpn, slot)
    }

    #[cold]
    fn commit_with_edges(&mut self, id: u32, lpn: Lpn, slot: Slot) -> Option<usize> {
        let merge = self.active[id].merge.as_ref();
        let edge = merge.and_then(|m| m.units.iter().position(|unit| *unit == lpn.0));
        let Some((edge, from)) = edge.zip(merge).map(|(edge, m)| (edge, m.sources[edge])) else {
            self.ftl.commit(lpn, slot);
            return None;
        };
        if planted(Mutant::BlindMerge) {
            self.ftl.commit(lpn, slot);
            return None;
        }
        (!self.ftl.commit_merge(lpn, from, slot)).then_some(edge)
    }

    /// Merges an edge with the unit's present data.
    #[cold]
    pub(super) fn merge_again(&mut self, id: u32, edge: usize, cx: &mut impl Cx<Event, Out>) {
        if self.begin_merge(id, edge, cx.now()) {
            return;
        }
        let active = &mut self.active[id];
        // Sectors without data need no zeroes written.
        if active.command.op == IoOp::Write
            && let Some(merge) = &mut active.merge
        {
            merge.alone.push(merge.units[edge]);
            self.place(id, cx);
        }
    }

    /// Writes zeroes into the units that a command covers in part. Returns false if none of them holds data.
    #[cold]
    pub(super) fn zero_edges(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let command = self.active[id].command;
        let merge = self.edges(&command);
        let active = &mut self.active[id];
        active.merge = merge;
        active.next = active.end;
        self.begin_merges(id, cx.now());
        self.active[id].pending > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_the_first_write_after_its_time() {
        let ms = Time::from_ms;
        let mut rewrites = Rewrites::new(ms(10));
        let mut write = |unit, at| {
            let again = rewrites.is_again(Lpn(unit));
            rewrites.wrote(at);
            again
        };
        // The very first write begins a window, and is not in it.
        assert!(!write(7, ms(1)) && !write(7, ms(2)) && write(7, ms(3)));
        assert!(!write(8, ms(11)) && write(8, ms(11)));
        assert!(write(7, ms(12)), "this write ends the window");
        assert!(!write(7, ms(13)) && write(7, ms(14)));
    }
}
