//! Units that a command covers in part: their old data is read first, and goes with the new.
//!
//! Between that read and the program's end another command may change the unit. Then the old data is out of date, and
//! committing it would undo an acknowledged write. So the map changes by compare-and-swap on the copy that was read,
//! and a merge that loses the race begins again.

use super::read::Run;
use super::{Device, Event, Out, milestone};
use engine::{Cx, Mutant, Time, planted};
use ftl::page_map::Source;
use nand::dies::op::{Class, Op};
use proto::{Command, IoOp, Lpn, Slot};

/// No unit.
const NONE: u64 = u64::MAX;

/// The units that a command covers in part: its first, its last, or both.
#[derive(Clone, Debug)]
pub(super) struct Merge {
    units: [u64; 2],
    /// The old data that goes with each.
    sources: [Source; 2],
    /// Whether that is being read.
    reading: [bool; 2],
    /// Units that wait to be placed alone.
    pub(super) alone: Vec<u64>,
}

impl Merge {
    /// Whether old data is on its way.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.contains(&true)
    }
}

impl Device {
    /// The units that a command covers in part, if there are any.
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

    /// Begins the merges of a command's edges.
    #[cold]
    pub(super) fn begin_merges(&mut self, id: u32, now: Time) {
        for edge in 0..2 {
            if self.active[id].merge.as_ref().is_some_and(|m| m.units[edge] != NONE) {
                self.begin_merge(id, edge, now);
            }
        }
    }

    /// Queues the read of an edge's old data; false if there is none.
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

    /// The old data of a unit that is written in part is here.
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

    /// A unit of host data is durable: the map names it, unless it came with old data that is out of date by now.
    /// Gives the edge that has to be merged again.
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

    /// Merges an edge with what the unit holds now.
    #[cold]
    pub(super) fn merge_again(&mut self, id: u32, edge: usize, cx: &mut impl Cx<Event, Out>) {
        if self.begin_merge(id, edge, cx.now()) {
            return;
        }
        let active = &mut self.active[id];
        // Zeroes need not be written over nothing.
        if active.command.op == IoOp::Write
            && let Some(merge) = &mut active.merge
        {
            merge.alone.push(merge.units[edge]);
            self.place(id, cx);
        }
    }

    /// Writes zeroes into the units that a command covers in part. False if none of them holds data.
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
