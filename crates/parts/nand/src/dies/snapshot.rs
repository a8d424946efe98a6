//! Saving and loading an idle back end.

use super::{Backend, BackendCounters, Channel, Die, DieState};
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
