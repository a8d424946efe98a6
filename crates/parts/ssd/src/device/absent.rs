//! Reads of units that were never written, where these cost as much as others.
//!
//! Nothing is written for them: the page that is read is the one where the unit would lie. What else that page holds,
//! or will, does not matter, and the answer is zeroes.

use super::{Device, Event, Out};
use crate::device::buffered::Buffered;
use crate::device::read::Run;
use engine::{Cx, Snapshot, Time};
use ftl::buffer::{Flush, Sectors};
use ftl::page_map::Ftl;
use ftl::purpose::Purpose;
use nand::dies::op::{Class, Op, OpKind};
use proto::{Lpn, Slot};
use rustc_hash::FxHashMap;

/// What reading a unit costs that was never written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unwritten {
    /// Nothing.
    Free,
    /// A read of the page where writing the device in order would have put it.
    AsWritten,
    /// A read of a page that its first read gives it, with the sectors that were read.
    Created,
}

/// Units that reads have created.
pub(super) struct Absent {
    pub(super) rule: Unwritten,
    /// Where each would lie, and the sectors that it would hold.
    created: FxHashMap<Lpn, (Slot, Sectors)>,
    /// By group, how many were created there.
    taken: Vec<u64>,
}

impl Absent {
    pub(super) fn new(rule: Unwritten, groups: usize) -> Absent {
        let taken = if rule == Unwritten::Created { vec![0; groups] } else { Vec::new() };
        Absent { rule, created: FxHashMap::default(), taken }
    }

    /// Appends the state; the rule is not part of it.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Absent { rule: _, created, taken } = self;
        let mut created: Vec<(Lpn, (Slot, Sectors))> = created.iter().map(|(lpn, at)| (*lpn, *at)).collect();
        created.sort_unstable_by_key(|(lpn, _)| *lpn);
        created.save(out);
        taken.save(out);
    }

    /// Replaces the state by one that a device of the same rule saved; `None` if it is cut short or malformed.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.created = Vec::load(input)?.into_iter().collect();
        self.taken = Vec::load(input).filter(|t: &Vec<u64>| t.len() == self.taken.len())?;
        Some(())
    }

    /// Where a unit without data would lie, some of whose sectors are read. `None` if it costs nothing to know that it
    /// has none.
    fn place(&mut self, lpn: Lpn, sectors: Sectors, ftl: &Ftl) -> Option<Slot> {
        if self.rule == Unwritten::Free {
            return None;
        }
        let in_order = ftl.place_if_written(lpn)?;
        if self.rule == Unwritten::AsWritten {
            return Some(in_order);
        }
        if let Some((slot, _)) = self.created.get(&lpn) {
            return Some(*slot);
        }
        let geo = &ftl.geo;
        let (group, _, unit) = geo.sequential_place(lpn.0);
        // Behind what the host has written in the open block.
        let nth = self.taken[group as usize] + ftl.programs_of_host(group);
        self.taken[group as usize] += 1;
        let (blocks, programs) = (u64::from(geo.shape.blocks), u64::from(geo.programs_per_ru));
        let ru = u64::from(group) * blocks + nth / programs % blocks;
        let slot = Slot(geo.slot_of_program(ru, (nth % programs) as u32).0 + u64::from(unit));
        self.created.insert(lpn, (slot, sectors));
        Some(slot)
    }

    /// A unit is about to be written for the first time: what its creation has left beside the new sectors, and where.
    fn replaced(&mut self, lpn: Lpn, by: Sectors) -> Option<(Slot, Sectors)> {
        let (slot, sectors) = self.created.remove(&lpn)?;
        Some((slot, sectors & !by)).filter(|(_, left)| *left != 0)
    }
}

impl Device {
    /// Whether a read of a unit that was never written costs what it would if it had been.
    pub fn reads_unwritten(&self) -> bool {
        self.absent.rule != Unwritten::Free
    }

    /// A unit holds no data, so that zeroes are read. If that takes as long as reading data, where it would lie.
    #[cold]
    pub(super) fn finds_nothing(&mut self, id: u32, unit: u64, bytes: u32, now: Time) -> Option<Slot> {
        self.stats.unwritten_reads += 1;
        if let Some(shadow) = &mut self.shadow {
            shadow.finds_nothing(id, Lpn(unit));
        }
        let command = self.active[id].command;
        let sectors = self.sectors(&command, unit);
        let slot = self.absent.place(Lpn(unit), sectors, &self.ftl);
        if slot.is_none() {
            self.host.data_out(command.queue, now, u64::from(bytes));
        }
        slot
    }

    /// Queues the read of a page for units that hold no data.
    #[cold]
    pub(super) fn queue_absent(&mut self, id: u32, class: Class, run: &Run, now: Time) {
        self.enqueue_absent(class, Purpose::Absent, run, id, now);
    }

    fn enqueue_absent(&mut self, class: Class, purpose: Purpose, run: &Run, owner: u32, now: Time) {
        let at = self.ftl.geo.address(run.slot);
        let mut op = Op::new(OpKind::Read, class, at, run.slot, run.units, run.bytes, owner);
        op.erases = self.erases_of_read(run.slot);
        self.backend.enqueue(now, purpose.tags(op));
        self.ledger.read_ops += 1;
        self.ledger.absent_reads += 1;
    }

    /// Zeroes for a read have taken their time.
    pub(super) fn absent_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ledger.absent_reads -= 1;
        self.data_read(op, cx);
    }

    /// A unit without data leaves the buffer. Whether it is merged first with what a read has created.
    pub(super) fn merges_absent(&mut self, buffered: &mut Buffered, flush: &Flush, now: Time) -> bool {
        let Some((slot, left)) = self.absent.replaced(flush.lpn, flush.present) else { return false };
        self.stats.merge_reads += 1;
        let owner = buffered.begin_merge(flush.lpn);
        let run = Run { page: 0, slot, units: 1, bytes: left.count_ones() * 512 };
        self.enqueue_absent(Class::HostRead, Purpose::AbsentMerge, &run, owner, now);
        true
    }

    /// What a read has created of a unit has been read: it goes on its way.
    pub(super) fn absent_merge_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        self.ledger.absent_reads -= 1;
        self.merged(op.owner, cx);
    }
}
