//! Course of a run: start of the measured window, progress of the work, drives over time, and the end.
//!
//! A drive is read when a completion of the host begins a new window of its series. Nothing is scheduled for it, and an
//! idle drive is not read.

use super::Machine;
use engine::{Mutant, Time, planted};
use nand::dies::op::Class;
use spec::warmup::Cut;
use ssd::Device;
use stats::Samples;

/// Reason for the end of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All work was done.
    Done,
    /// The run was interrupted.
    Interrupted,
    /// No event is pending, but work is left.
    Deadlock,
    /// Simulated time no longer advances.
    Stall,
    /// Simulated time advances, but work under way has not for an hour of it.
    Standstill,
    /// A source failed.
    Failed,
    /// Simulated time reached the end of the clock.
    Horizon,
    /// The time limit of the run was reached.
    Until,
}

/// Simulated time after which work without progress is stuck.
pub(crate) const PATIENCE: Time = Time::from_s(3_600);

/// Last observed progress of a machine's work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advance {
    done: u64,
    since: Time,
}

impl Advance {
    /// Returns whether work has been under way for longer than [`PATIENCE`] without progress.
    pub(crate) fn is_stuck(&mut self, done: u64, is_under_way: bool, now: Time) -> bool {
        if done != self.done || !is_under_way {
            *self = Advance { done, since: now };
        }
        now.since(self.since) > PATIENCE
    }

    /// Time of the last progress.
    pub(crate) fn since(&self) -> Time {
        self.since
    }
}

/// Start of a measured window that neither a count of requests nor a time decides.
pub(super) const NEVER: (u64, Time) = (u64::MAX, Time::MAX);

impl Machine {
    /// Begins the measured window with the event in which the last warm-up job ends, or jobs become steady.
    pub(super) fn consider_warmup(&mut self) {
        let (completed, now) = (self.completed(), self.now());
        let server = self.server().map(|(_, ooo)| &ooo.cores);
        if let Some(cut) = self.warmup.and_then(|warmup| warmup.over(completed, now, server)) {
            self.begin_window(cut, now);
        }
    }

    /// Begins the measured window because of a count of requests or a time.
    #[cold]
    pub(super) fn begin_at(&mut self, at: Time) {
        if let Some(by) = self.warmup {
            self.begin_window(Cut { by, jobs: self.completed(), steady: None }, at);
        }
    }

    /// Discards measurements before `now`, which is the present or a time since the last event.
    fn begin_window(&mut self, cut: Cut, now: Time) {
        self.warmup = None;
        self.window = NEVER;
        self.counts_jobs = false;
        self.cut = Some(cut);
        self.measured_from = now;
        for drive in self.parts.drives.iter_mut().filter(|_| !planted(Mutant::OldWindow)) {
            drive.device.reset_stats(now);
        }
        self.parts.reset_stats(now);
        self.injector.reset(now);
        self.gauges.reset();
        self.read_gauges(now);
    }
}

/// Most readings of a drive to keep.
const READINGS: usize = 512;

/// State of a drive at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Bytes in the buffer that are not on flash.
    pub(crate) buffered: u64,
    /// Free reclaim units.
    pub(crate) free: u64,
    /// Bytes written by the host in the measured window.
    pub(crate) written: u64,
    /// Bytes programmed in the measured window.
    pub(crate) programmed: u64,
    /// Busy time of all channels since the beginning, picoseconds.
    pub(crate) channels: u128,
    /// Busy time of all dies since the beginning, picoseconds.
    pub(crate) dies: u128,
}

impl Reading {
    pub(crate) fn of(device: &Device, now: Time) -> Reading {
        let (backend, _) = device.window_counters();
        let units = |class: Class| backend.units[class as usize];
        let programs = [Class::HostProgram, Class::GcProgram, Class::MapProgram].map(units);
        let (channels, dies) = device.backend.total_busy_ps(now);
        Reading {
            buffered: device.left_in_buffer().bytes,
            free: (0..device.ftl.geo.groups).map(|group| u64::from(device.ftl.free(group))).sum(),
            written: device.stats.written_bytes,
            programmed: (programs.iter().sum::<u64>() + device.units_of_parity())
                * u64::from(device.ftl.geo.shape.unit_bytes),
            channels,
            dies,
        }
    }
}

/// Readings of all drives.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    drives: Vec<Samples<Reading>>,
    /// Number of windows of the host's series at the last reading.
    turns: u64,
}

impl Gauges {
    /// Returns whether a reading is due.
    #[inline]
    pub(crate) fn are_due(&self, turns: u64) -> bool {
        self.turns != turns
    }

    pub(crate) fn read<'a>(&mut self, turns: u64, now: Time, drives: impl Iterator<Item = &'a Device>) {
        self.turns = turns;
        for (number, device) in drives.enumerate() {
            if number == self.drives.len() {
                self.drives.push(Samples::new(READINGS));
            }
            self.drives[number].record(now, Reading::of(device, now));
        }
    }

    /// Discards readings at the end of warm-up.
    pub(crate) fn reset(&mut self) {
        self.drives.iter_mut().for_each(Samples::clear);
    }

    /// Readings of a drive.
    pub(crate) fn of(&self, drive: usize) -> &[(Time, Reading)] {
        self.drives.get(drive).map_or(&[], Samples::kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_without_anything_done_is_stuck() {
        let (mut advance, s) = (Advance::default(), Time::from_s);
        assert!(!advance.is_stuck(1, true, s(10)));
        assert!(!advance.is_stuck(1, true, s(3_610)), "an hour, and not more");
        assert!(!advance.is_stuck(2, true, s(9_000)), "something was done");
        assert!(!advance.is_stuck(2, false, s(90_000)), "nothing is under way");
        assert!(!advance.is_stuck(2, true, s(93_600)));
        assert!(advance.is_stuck(2, true, s(93_601)));
        assert_eq!(advance.since(), s(90_000));
    }
}
