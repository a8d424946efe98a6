//! What the back end counts.

use super::{Backend, op::Class};

/// What the back end has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendCounters {
    /// Operations finished, by class.
    pub done: [u64; Class::COUNT],
    /// Map units read, programmed or copied, by class.
    pub units: [u64; Class::COUNT],
    /// Commands that worked on several planes.
    pub multi_plane: u64,
    /// Copy-backs.
    pub copy_backs: u64,
    /// Suspends.
    pub suspends: u64,
    /// Times that a die had to wait for power.
    pub power_waits: u64,
    /// Reads queued.
    pub reads_queued: u64,
    /// Reads whose page was sensed for them.
    pub senses: u64,
    /// Reads of what a plane's register held.
    pub register_hits: u64,
    /// Reads that shared the sensing of another read of their page.
    pub joined_reads: u64,
    /// Reads that somebody waits for and that came to a die at work for garbage collection.
    pub reads_behind_gc: u64,
    /// Reads whose page had more errors than the code corrects when it was first sensed.
    pub retried_reads: u64,
    /// Times that a page was sensed again for that.
    pub retry_steps: u64,
    /// Reads whose page had too many errors after the last step too.
    pub uncorrectable_reads: u64,
}

impl BackendCounters {
    /// Of all that does the same.
    pub fn times(&self, alike: Alike) -> BackendCounters {
        let of = |count: u64| count * u64::from(alike.pages());
        BackendCounters {
            done: self.done.map(of),
            units: self.units.map(of),
            multi_plane: self.multi_plane * u64::from(alike.back_ends),
            copy_backs: of(self.copy_backs),
            suspends: of(self.suspends),
            power_waits: of(self.power_waits),
            reads_queued: of(self.reads_queued),
            senses: of(self.senses),
            register_hits: of(self.register_hits),
            joined_reads: of(self.joined_reads),
            reads_behind_gc: of(self.reads_behind_gc),
            retried_reads: of(self.retried_reads),
            retry_steps: of(self.retry_steps),
            uncorrectable_reads: of(self.uncorrectable_reads),
        }
    }

    /// What was counted since `origin`.
    pub fn since(&self, origin: &BackendCounters) -> BackendCounters {
        BackendCounters {
            done: std::array::from_fn(|n| self.done[n] - origin.done[n]),
            units: std::array::from_fn(|n| self.units[n] - origin.units[n]),
            multi_plane: self.multi_plane - origin.multi_plane,
            copy_backs: self.copy_backs - origin.copy_backs,
            suspends: self.suspends - origin.suspends,
            power_waits: self.power_waits - origin.power_waits,
            reads_queued: self.reads_queued - origin.reads_queued,
            senses: self.senses - origin.senses,
            register_hits: self.register_hits - origin.register_hits,
            joined_reads: self.joined_reads - origin.joined_reads,
            reads_behind_gc: self.reads_behind_gc - origin.reads_behind_gc,
            retried_reads: self.retried_reads - origin.retried_reads,
            retry_steps: self.retry_steps - origin.retry_steps,
            uncorrectable_reads: self.uncorrectable_reads - origin.uncorrectable_reads,
        }
    }
}

// Commands on several planes of a die, and what an operation stands for.

/// Which operations of a die's planes may share one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MultiPlane {
    /// None.
    Off,
    /// Same page number, any blocks.
    SamePage,
    /// Same block number and same page number.
    SameBlock,
}

/// How planes of a die come to share a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Which operations may.
    pub rule: MultiPlane,
    /// How many of the oldest reads of each other plane are looked at for a partner, at least one. Of anything else,
    /// only the oldest is.
    pub search: u32,
}

/// What does the same at the same time as what is simulated, itself counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alike {
    /// Back ends, of which one is simulated.
    pub back_ends: u32,
    /// Pages of planes of a die, which one operation stands for.
    pub planes: u32,
}

impl Alike {
    /// Everything is simulated.
    pub(crate) const NONE: Alike = Alike { back_ends: 1, planes: 1 };

    /// Pages that an operation stands for.
    pub fn pages(self) -> u32 {
        self.back_ends * self.planes
    }
}

impl Backend {
    /// Each operation stands for others that do the same at the same time. Before [`Backend::set_energy`].
    pub fn set_alike(&mut self, alike: Alike) {
        self.alike = alike;
    }
}
