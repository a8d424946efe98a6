//! Counters of the back end, and how an idle back end is saved and loaded.

use super::{Backend, Channel, Die, DieState, op::Class};
use engine::{Snapshot, Time};
use stats::Little;

engine::snapshot!(BackendCounters {
    done,
    units,
    multi_plane,
    copy_backs,
    suspends,
    power_waits,
    reads_queued,
    senses,
    register_hits,
    joined_reads,
    reads_behind_gc,
    retried_reads,
    retry_steps,
    uncorrectable_reads
});

impl Backend {
    /// Returns whether nothing waits, works or is booked.
    pub fn is_at_rest(&self) -> bool {
        self.ops.is_empty() && self.finished.is_empty() && self.channels.iter().all(|c| !c.looks_again)
    }

    /// Appends the state of an idle back end, including that of the policies, without times, switches and observers.
    /// Positions in the order of arrival start again: only their order counts.
    pub fn save(&self, out: &mut Vec<u8>) {
        // Naming every field turns a forgotten one into a compile error.
        let Backend {
            timing,
            dies,
            die_count: _,
            reading_planes: _,
            channels,
            queues: _,
            reuse,
            ops: _,
            finished: _,
            touched: _,
            went_idle: _,
            tells_idle: _,
            scheduler,
            holds_line: _,
            arbiter,
            sharing: _,
            alike: _,
            suspend: _,
            // No die waits for power, and none is taken.
            budget: _,
            errors,
            fold: _,
            idle: _,
            gather: _,
            counters,
            array_time,
            suspends_most: _,
            queued,
            transfers: _,
            links,
            observer: _,
            // Nothing is active; spent energy belongs to the previous run.
            meter: _,
            queued_bytes: _,
            // Blocking of an idle back end is never queried.
            holders: _,
        } = self;
        dies.iter().for_each(|die| die.save(out));
        channels.iter().for_each(|channel| channel.save(out));
        // Slow blocks are a property of the drive.
        timing.spread.map(|spread| spread.seed).save(out);
        reuse.save(out);
        counters.save(out);
        array_time.save(out);
        queued.save(out);
        scheduler.save(out);
        arbiter.save(out);
        links.iter().for_each(|links| links.save(out));
        errors.iter().for_each(|errors| errors.save(out));
    }

    /// Restores the state that a back end with the same parameters saved; `None` if it is truncated or malformed.
    pub fn restore(&mut self, input: &mut &[u8]) -> Option<()> {
        for die in &mut self.dies {
            die.busy = Time::load(input)?;
        }
        for channel in &mut self.channels {
            (channel.busy_until, channel.busy) = Snapshot::load(input)?;
        }
        let seed = Option::<u64>::load(input)?;
        if let Some((spread, seed)) = self.timing.spread.as_mut().zip(seed) {
            spread.seed = seed;
        }
        self.reuse.load(input)?;
        self.counters = BackendCounters::load(input)?;
        self.array_time = Snapshot::load(input)?;
        self.queued = Little::load(input)?;
        self.scheduler.load(input)?;
        self.arbiter.load(input)?;
        if let Some(links) = &mut self.links {
            links.load(input)?;
        }
        self.errors.as_mut().map_or(Some(()), |errors| errors.load(input))
    }
}

impl Die {
    /// Appends an idle die. All other fields are as new, or are written before they are read.
    fn save(&self, out: &mut Vec<u8>) {
        let Die {
            state,
            channel: _,
            active: _,
            ticket: _,
            array_from: _,
            array_to: _,
            suspended,
            busy_since: _,
            busy,
            held_since: _,
            touched: _,
            reading,
            gathering,
            has_gathered: _,
            step,
            steps: _,
        } = self;
        debug_assert!(*step == 0, "a retry of an idle die");
        let is_free = suspended.is_none() && *reading == 0 && gathering.is_none();
        debug_assert!(*state == DieState::Idle && is_free, "an idle die");
        busy.save(out);
    }
}

impl Channel {
    /// Appends an idle channel, without the wake-up at the end of its last tenure.
    fn save(&self, out: &mut Vec<u8>) {
        let Channel {
            busy_until,
            busy,
            looks_again: _,
            moves_data: _,
            wake: _,
            waiting: _,
            wanted: _,
            asked: _,
            line: _,
            tenant: _,
        } = self;
        (*busy_until, *busy).save(out);
    }
}

/// Counters of the back end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackendCounters {
    /// Operations finished, by class.
    pub done: [u64; Class::COUNT],
    /// Map units read, programmed or copied, by class.
    pub units: [u64; Class::COUNT],
    /// Multi-plane commands.
    pub multi_plane: u64,
    /// Copy-backs.
    pub copy_backs: u64,
    /// Suspends.
    pub suspends: u64,
    /// Number of times that a die had to wait for power.
    pub power_waits: u64,
    /// Reads queued.
    pub reads_queued: u64,
    /// Reads whose page was sensed for them.
    pub senses: u64,
    /// Reads served by a plane's register.
    pub register_hits: u64,
    /// Reads that shared the sensing of another read of their page.
    pub joined_reads: u64,
    /// Reads with a waiter that came to a die busy with garbage collection.
    pub reads_behind_gc: u64,
    /// Reads whose page had more errors than the code corrects at the first sensing.
    pub retried_reads: u64,
    /// Repeated sensings for such errors.
    pub retry_steps: u64,
    /// Reads whose page still had too many errors after the last step.
    pub uncorrectable_reads: u64,
}

impl BackendCounters {
    /// Returns the counters of all identical hardware.
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

    /// Returns the counts since `origin`.
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

// Commands on several planes of a die, and the multiplicity of an operation.

/// Rule for operations of a die's planes that may share one command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MultiPlane {
    /// No sharing.
    Off,
    /// Same page number, any blocks.
    SamePage,
    /// Same block number and same page number.
    SameBlock,
}

/// Sharing of a command by planes of a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Rule for the operations that may share.
    pub rule: MultiPlane,
    /// Number of the oldest reads of each other plane that are tried as partners, at least one. For other operations
    /// only the oldest is tried.
    pub search: u32,
}

/// Amount of identical hardware, including the simulated one: it does the same at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Alike {
    /// Number of back ends, one of which is simulated.
    pub back_ends: u32,
    /// Number of pages, one per plane of a die, that one operation represents.
    pub planes: u32,
}

impl Alike {
    /// Everything is simulated.
    pub(crate) const NONE: Alike = Alike { back_ends: 1, planes: 1 };

    /// Returns the number of pages that an operation represents.
    pub fn pages(self) -> u32 {
        self.back_ends * self.planes
    }
}

impl Backend {
    /// Sets the multiplicity of operations. Call before [`Backend::set_energy`].
    pub fn set_alike(&mut self, alike: Alike) {
        self.alike = alike;
    }
}
