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
    /// Whether nothing waits, works or is booked.
    pub fn is_at_rest(&self) -> bool {
        self.ops.is_empty() && self.finished.is_empty() && self.channels.iter().all(|c| !c.looks_again)
    }

    /// Appends the state of an idle back end, that of the policies included; times, switches and observers are not part
    /// of it. Places in the order of arrival begin anew: only their order counts.
    pub fn save(&self, out: &mut Vec<u8>) {
        // Naming every field makes a forgotten one a compile error.
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
            // Nobody waits for power, and none is taken.
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
            // Nothing is at work; what was spent belongs to the run before.
            meter: _,
            queued_bytes: _,
            // Of an idle back end nobody asks who was in the way.
            holders: _,
        } = self;
        dies.iter().for_each(|die| die.save(out));
        channels.iter().for_each(|channel| channel.save(out));
        // Which blocks are slow is a property of the drive.
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

    /// Replaces the state by one that a back end of the same parameters saved; `None` if it is cut short or malformed.
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
    /// Everything else of an idle die is as new, or not looked at before it is written.
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
    /// A channel that nobody waits for: the wake-up at the end of its last tenure is no longer needed.
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
