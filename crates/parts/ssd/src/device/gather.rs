//! Contents of the registers, and data on its way to and from them: a state machine without time.

use engine::{Mutant, Slab, Snapshot, planted_nth};
use ftl::buffer::Flush;
use nand::dies::op::NO_OP;
use nand::geometry::Geometry;
use nand::numbers::Pool;
use proto::Lpn;
use rustc_hash::{FxHashMap, FxHashSet};

/// Path of a page from a register to the data register of another plane of its package.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exit {
    /// Inside the package.
    Inside,
    /// Over the channel, to the controller and back.
    Controller,
}

/// Parts of the registers.
pub struct RegisterParts {
    /// Registers of a plane that gather writes.
    pub each: u32,
    /// Planes per set.
    pub planes: u32,
    /// Path of pages to other planes.
    pub exit: Exit,
}

/// Traffic over channels to and from registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterCounters {
    /// Parts of units stored in a register.
    pub stores: u64,
    /// Writes of a unit that already had a register.
    pub merged: u64,
    /// Reads served by a register.
    pub reads: u64,
    /// Units that left a register of a plane other than their own.
    pub moves: u64,
}
engine::snapshot!(RegisterCounters { stores, merged, reads, moves });

/// Data on its way between the controller and a register.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) lpn: Lpn,
    /// Command of the transfer; none for a unit that leaves.
    pub(super) command: u32,
    pub(super) bytes: u32,
}

/// A unit on its way into its register.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Coming {
    /// Transfers that have not ended.
    pub(super) transfers: u32,
    /// The flush that waits for them.
    pub(super) flush: Option<Flush>,
}

/// Registers, and data on its way to and from them.
pub(super) struct Registers {
    pool: Pool,
    /// Sets, and planes and registers of each.
    pub sets: u32,
    planes: u32,
    registers: u32,
    pub(super) exit: Exit,
    /// Plane of the register that holds each unit.
    pub(super) held: FxHashMap<Lpn, u32>,
    pub(super) coming: FxHashMap<Lpn, Coming>,
    pub(super) moving: Slab<Moving>,
    /// Units whose data is in the controller, to be programmed from there.
    pub(super) out: FxHashSet<Lpn>,
    pub(super) counters: RegisterCounters,
    /// Counters at the start of the window.
    origin: RegisterCounters,
}

/// Plane that a unit is programmed into, where its address decides.
pub(crate) fn home(geo: &Geometry, lpn: Lpn) -> u32 {
    geo.plane_of_lane(geo.group_at(geo.stripe_of_unit(lpn.0)), 0)
}

impl Registers {
    pub(super) fn new(parts: &RegisterParts, planes: u32) -> Registers {
        let sets = planes / parts.planes;
        Registers {
            pool: Pool::new(sets, parts.planes, parts.each),
            sets,
            planes: parts.planes,
            registers: parts.planes * parts.each,
            exit: parts.exit,
            held: FxHashMap::default(),
            coming: FxHashMap::default(),
            moving: Slab::default(),
            out: FxHashSet::default(),
            counters: RegisterCounters::default(),
            origin: RegisterCounters::default(),
        }
    }

    /// Counters since the start of the window.
    pub(super) fn since(&self) -> RegisterCounters {
        let (now, then) = (&self.counters, &self.origin);
        RegisterCounters {
            stores: now.stores - then.stores,
            merged: now.merged - then.merged,
            reads: now.reads - then.reads,
            moves: now.moves - then.moves,
        }
    }

    /// Begins the window.
    pub(super) fn reset(&mut self) {
        self.origin = self.counters;
    }

    /// Assigns a register to a unit without one, in its home plane if possible.
    pub(super) fn take(&mut self, lpn: Lpn, home: u32) {
        let set = home / self.planes;
        let within = self.pool.take(set, home % self.planes);
        let within = within.expect("a set of registers has as many as its buffer has lines");
        self.held.insert(lpn, set * self.planes + within);
    }

    /// Frees the register of a unit that no longer has a line.
    pub(super) fn put(&mut self, lpn: Lpn) {
        let Some(plane) = self.held.get(&lpn).copied() else { return };
        self.pool.put(plane / self.planes, plane % self.planes);
        if !planted_nth(Mutant::HeldTwice, 1009) {
            self.held.remove(&lpn);
        }
    }

    /// Ends the program of a unit: newer data of it is in its register.
    pub(super) fn is_in_register(&mut self, lpn: Lpn) {
        self.out.remove(&lpn);
    }

    /// Source of the data of a unit that is to be programmed: the plane of its register, or none if it comes from the
    /// controller.
    pub(super) fn source(&self, lpn: Lpn) -> u32 {
        if self.out.contains(&lpn) { NO_OP } else { self.held[&lpn] }
    }

    /// Returns true if no transfer is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.moving.is_empty()
    }

    /// Number of units with a register; and registers held or free, beside the total.
    pub(super) fn account(&self) -> (u64, [u64; 2]) {
        let held = self.held.len() as u64;
        let free: u64 = (0..self.sets).map(|set| u64::from(self.pool.free(set))).sum();
        (held, [held + free, u64::from(self.sets) * u64::from(self.registers)])
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let Registers {
            pool: _,
            sets: _,
            planes: _,
            registers: _,
            exit: _,
            held,
            coming: _,
            moving: _,
            out: in_controller,
            counters,
            origin: _,
        } = self;
        debug_assert!(in_controller.is_empty(), "an idle device programs nothing");
        let mut held: Vec<(Lpn, u32)> = held.iter().map(|(lpn, plane)| (*lpn, *plane)).collect();
        held.sort_unstable();
        held.save(out);
        counters.save(out);
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let held: Vec<(Lpn, u32)> = Vec::load(input)?;
        for (lpn, plane) in held {
            let (set, within) = (plane / self.planes, plane % self.planes);
            (set < self.sets && self.pool.take(set, within) == Some(within)).then_some(())?;
            self.held.insert(lpn, plane);
        }
        self.counters = RegisterCounters::load(input)?;
        Some(())
    }
}
