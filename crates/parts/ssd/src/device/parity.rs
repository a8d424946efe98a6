//! Superblock parity in time: programmed along with data. Pages that cannot be corrected are rebuilt from the other
//! dies of their set (`media/geometry/parity.rs`).
//!
//! Parity needs no look-up and holds no data of its own: its program takes a die and a channel, and its block is not
//! erased before that is done. No request waits for it. The exclusive or itself takes no time.

use super::{Device, Event, Out};
use engine::{Cx, Slab, Time};
use ftl::purpose::Purpose;
use nand::dies::op::{Op, OpKind};
use nand::geometry::Address;

/// Page that is being rebuilt.
#[derive(Clone, Copy, Debug)]
struct Rebuild {
    /// Read that could not be corrected.
    read: u32,
    /// Reads of other dies that have not ended.
    left: u32,
    /// True while every completed read of another die was correctable.
    succeeds: bool,
}

/// State of parity.
#[derive(Debug, Default)]
pub(super) struct Parity {
    /// Programs under way.
    pub(super) programs: u64,
    rebuilds: Slab<Rebuild>,
}

/// Counters of parity in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ParityCounters {
    /// Program units of parity programmed.
    pub programs: u64,
    /// Reads whose page was rebuilt from other dies.
    pub rebuilt: u64,
    /// Reads whose page could not be rebuilt, because a page of another die could not be corrected either.
    pub lost: u64,
}
engine::snapshot!(ParityCounters { programs, rebuilt, lost });

impl Device {
    /// Queues a program of data, together with the parity due with it; returns its name.
    pub(super) fn program(&mut self, purpose: Purpose, op: Op, now: Time) -> u32 {
        self.ledger.program_ops += 1;
        let due = self.ftl.geo.parity_due(op.slot);
        // Pages of a block are programmed in order.
        if let Some(at) = due.filter(|at| at.page < op.page) {
            self.program_parity(&op, at, now);
        }
        let name = self.backend.enqueue(now, purpose.tags(op));
        if let Some(at) = due.filter(|at| at.page > op.page) {
            self.program_parity(&op, at, now);
        }
        name
    }

    #[cold]
    fn program_parity(&mut self, data: &Op, at: Address, now: Time) {
        let bytes = self.ftl.geo.units_per_program * self.unit_bytes as u32;
        // Parity covers no map unit.
        let mut op = Op::new(OpKind::Program, data.class, at, data.slot, 0, bytes, 0);
        (op.erases, op.is_slc) = (data.erases, data.is_slc);
        self.ftl.pin(data.slot);
        self.parity.programs += 1;
        self.ledger.parity_ops += 1;
        self.backend.enqueue(now, Purpose::Parity.tags(op));
    }

    /// Handles the end of a parity operation, or of a read whose page has to be rebuilt first. Returns true if it was
    /// one of these.
    #[cold]
    pub(super) fn ends_for_parity(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) -> bool {
        let op = self.backend.ops[name];
        match Purpose::of(&op) {
            Purpose::Parity => {
                self.backend.ops.remove(name);
                self.parity.programs -= 1;
                self.stats.parity.programs += 1;
                if self.ftl.unpin(op.slot) {
                    self.reclaim_unpinned(op.slot, cx);
                }
                true
            }
            Purpose::Rebuild => {
                self.backend.ops.remove(name);
                self.rebuild_read_done(&op, cx);
                true
            }
            _ => op.is_lost && self.rebuild(name, &op, cx.now()),
        }
    }

    /// Reads the pages that a page can be rebuilt from; returns false without parity.
    fn rebuild(&mut self, name: u32, read: &Op, now: Time) -> bool {
        let at = self.ftl.geo.address(read.slot);
        let from: Vec<_> = self.ftl.geo.rebuilt_from(at).collect();
        if from.is_empty() {
            return false;
        }
        let left = from.len() as u32;
        let id = self.parity.rebuilds.insert(Rebuild { read: name, left, succeeds: true });
        for (at, slot) in from {
            let mut op = Op::new(OpKind::Read, read.class, at, slot.unwrap_or(read.slot), 0, read.bytes, id);
            if self.backend.has_errors() {
                op.erases = self.ftl.array.erases(self.ftl.geo.block_at(at));
            }
            op.is_slc = read.is_slc;
            self.backend.enqueue(now, Purpose::Rebuild.tags(op));
            if read.class.is_plane_read() {
                self.ledger.read_ops += 1;
                self.ledger.absent_reads += 1;
            }
        }
        true
    }

    /// Handles a read of another page of the set: after the last one, the read that could not be corrected goes on.
    fn rebuild_read_done(&mut self, op: &Op, cx: &mut impl Cx<Event, Out>) {
        if op.class.is_plane_read() {
            self.ledger.absent_reads -= 1;
        }
        let rebuild = &mut self.parity.rebuilds[op.owner];
        rebuild.left -= 1;
        rebuild.succeeds &= !op.is_lost;
        let Rebuild { read, left, succeeds } = *rebuild;
        if left > 0 {
            return;
        }
        self.parity.rebuilds.remove(op.owner);
        self.stats.parity.rebuilt += u64::from(succeeds);
        self.stats.parity.lost += u64::from(!succeeds);
        // Like retry steps, the rebuild counts as time of the array.
        let op = &mut self.backend.ops[read];
        (op.is_lost, op.sensed, op.moved) = (false, cx.now(), cx.now());
        self.finished(read, cx);
    }

    /// Number of finished reads that wait for their page to be rebuilt, without those of garbage collection.
    pub(super) fn reads_in_rebuild(&self) -> u64 {
        let reads = self.parity.rebuilds.live().map(|(_, rebuild)| self.backend.ops[rebuild.read].class);
        reads.filter(|class| class.is_plane_read()).count() as u64
    }

    /// Counters of parity in the window; `None` without parity.
    pub fn parity(&self) -> Option<ParityCounters> {
        self.ftl.geo.shape.parity.map(|_| self.stats.parity)
    }

    /// Parity programmed in the window, in map units.
    pub fn units_of_parity(&self) -> u64 {
        self.stats.parity.programs * u64::from(self.ftl.geo.units_per_program)
    }
}
