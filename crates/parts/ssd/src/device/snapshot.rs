//! Saving and loading an idle device.
//!
//! A snapshot holds everything that a device remembers between two commands, volatile and durable alike: every
//! component and policy, including counters and random streams. It does not hold what the device is built from: it is
//! loaded into a device built from the same spec, at the time at which it was saved. The copy then answers as the
//! original does, to the picosecond. A device with commands or operations under way is refused: they are names in the
//! event queue, which belongs to the machine. Observers (shadow, timeline) are not part of a device's state.

use super::Device;
use super::checks::Ledger;
use engine::Snapshot;
use std::fmt;

/// Reason why a device was not saved or loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotFault {
    /// Commands or operations are under way.
    Busy,
    /// The snapshot belongs to a device of a different shape.
    OtherDevice,
    /// The snapshot is truncated or malformed; a device that was to be loaded must not be used any more.
    Damaged,
}

impl fmt::Display for SnapshotFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SnapshotFault::Busy => {
                "commands or operations are under way; only an idle device can be saved or loaded"
            }
            SnapshotFault::OtherDevice => "the snapshot belongs to a device of a different shape",
            SnapshotFault::Damaged => "the snapshot is truncated or malformed",
        })
    }
}

impl std::error::Error for SnapshotFault {}

impl Device {
    /// Returns true if no command is inside and no operation under way: nothing happens until the next command.
    pub fn is_idle(&self) -> bool {
        self.active.is_empty()
            && self.placing.is_empty()
            && self.backend.is_at_rest()
            && self.buffered.as_ref().is_none_or(|b| b.is_idle())
            && self.folding.as_ref().is_none_or(|f| f.is_idle())
    }

    /// Shape that two devices must share for one to be loaded from the other.
    fn shape(&self) -> [u64; 6] {
        let parts = u64::from(self.buffered.is_some()) | u64::from(self.translation.is_some()) << 1;
        let parts = parts | u64::from(self.map_memory.is_some()) << 2;
        let [slots, unit, groups, logical, hidden] = self.shape_of_map();
        [slots, unit, groups, logical, hidden, parts]
    }

    /// Shape of the translation layers.
    fn shape_of_map(&self) -> [u64; 5] {
        let geo = &self.ftl.geo;
        [geo.slots, self.unit_bytes, geo.groups.into(), self.ftl.logical(), self.ftl.hidden()]
    }

    /// Appends the preconditioned state of a device that no command has reached: its translation layer and its array.
    /// All else is as built.
    ///
    /// # Errors
    /// Returns [`SnapshotFault::Busy`], and appends nothing, if the device is at work.
    pub fn save_preconditioned(&self, out: &mut Vec<u8>) -> Result<(), SnapshotFault> {
        if !self.is_idle() {
            return Err(SnapshotFault::Busy);
        }
        self.shape_of_map().save(out);
        self.ftl.save(out);
        Ok(())
    }

    /// Loads a state saved by [`Device::save_preconditioned`] into a device as built, and removes it from the front of
    /// `input`. The two devices agree in [`crate::spec::FlashState`] and in the seed.
    ///
    /// # Errors
    /// Returns an error if the device is at work, or the state does not fit, is damaged, or contradicts itself.
    pub fn load_preconditioned(&mut self, input: &mut &[u8]) -> Result<(), SnapshotFault> {
        if !self.is_idle() {
            return Err(SnapshotFault::Busy);
        }
        let shape = <[u64; 5]>::load(input).ok_or(SnapshotFault::Damaged)?;
        if shape != self.shape_of_map() {
            return Err(SnapshotFault::OtherDevice);
        }
        self.ftl.load(input).filter(|()| self.ftl.is_sound()).ok_or(SnapshotFault::Damaged)
    }

    /// Appends the state of an idle device.
    ///
    /// # Errors
    /// Returns [`SnapshotFault::Busy`], and appends nothing, if the device is at work.
    pub fn save(&self, out: &mut Vec<u8>) -> Result<(), SnapshotFault> {
        if !self.is_idle() {
            return Err(SnapshotFault::Busy);
        }
        // Naming every field makes a forgotten one a compile error.
        let Device {
            ftl,
            backend,
            allocator,
            buffered,
            ahead,
            translation,
            map_memory,
            host,
            active: _,
            jobs,
            waiting: _,
            stalled,
            moves: _,
            gc: _,
            gc_turn,
            spare_jobs: _,
            placing: _,
            placements: _,
            unit_bytes: _,
            stats,
            ledger,
            shadow: _,
            journal,
            absent,
            folding,
            // An idle device has no such work under way; counters are saved with the rest.
            parity: _,
            #[cfg(debug_assertions)]
                trimmed: _,
            // An idle device has no command to account for.
            accounts: _,
        } = self;
        self.shape().save(out);
        ftl.save(out);
        backend.save(out);
        allocator.save(out);
        buffered.iter().for_each(|b| b.save(out));
        ahead.iter().for_each(|a| a.save(out));
        translation.iter().for_each(|t| t.save(out));
        map_memory.iter().for_each(|m| m.save(out));
        host.save(out);
        jobs.save(out);
        stalled.save(out);
        gc_turn.save(out);
        stats.save(out);
        ledger.save(out);
        journal.save(out);
        absent.save(out);
        folding.iter().for_each(|f| f.save(out));
        Ok(())
    }

    /// Replaces the state of an idle device with one saved by a device built from the same spec, and removes it from
    /// the front of `input`.
    ///
    /// # Errors
    /// Returns an error if the device is at work, or the snapshot does not fit or is damaged.
    pub fn load(&mut self, input: &mut &[u8]) -> Result<(), SnapshotFault> {
        if !self.is_idle() {
            return Err(SnapshotFault::Busy);
        }
        let shape = <[u64; 6]>::load(input).ok_or(SnapshotFault::Damaged)?;
        if shape != self.shape() {
            return Err(SnapshotFault::OtherDevice);
        }
        self.load_parts(input).ok_or(SnapshotFault::Damaged)
    }

    fn load_parts(&mut self, input: &mut &[u8]) -> Option<()> {
        self.ftl.load(input)?;
        self.backend.restore(input)?;
        self.allocator.load(input)?;
        if let Some(buffered) = &mut self.buffered {
            buffered.load(input)?;
        }
        if let Some(ahead) = &mut self.ahead {
            ahead.load(input)?;
        }
        if let Some(translation) = &mut self.translation {
            translation.load(input)?;
        }
        if let Some(memory) = &mut self.map_memory {
            memory.load(input)?;
        }
        self.host.load(input)?;
        let groups = self.jobs.len();
        self.jobs = Vec::load(input)?;
        if self.jobs.len() != groups {
            return None;
        }
        self.stalled = bool::load(input)?;
        self.gc_turn = u64::load(input)?;
        self.stats.load(input)?;
        self.ledger = Ledger::load(input)?;
        self.journal = Option::load(input)?;
        self.absent.load(input)?;
        match &mut self.folding {
            Some(folding) => folding.load(input),
            None => Some(()),
        }
    }
}
