//! The course of a run: how its measured window begins, whether work advances while time does, what drives look
//! like over time, and how it ends.
//!
//! A drive is read when a completion of the host's begins another window of its series: nothing is scheduled for
//! it, and a drive that nobody asks for anything is not looked at.

use super::Machine;
use engine::{Mutant, Time, planted};
use nand::dies::op::Class;
use spec::warmup::Cut;
use ssd::Device;
use stats::Samples;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// All work was done.
    Done,
    /// Somebody asked it to stop.
    Interrupted,
    /// Nothing is pending, but work is left.
    Deadlock,
    /// Time does not move any more.
    Stall,
    /// Time moves, and work that is under way has not advanced for an hour of it.
    Standstill,
    /// A source failed.
    Failed,
    /// Simulated time has come to the end of the clock.
    Horizon,
    /// The time is over that the run was given.
    Until,
}

/// Simulated time after which work that has not advanced is stuck.
pub(crate) const PATIENCE: Time = Time::from_s(3_600);

/// When the work of a machine was last seen to advance.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Advance {
    done: u64,
    since: Time,
}

impl Advance {
    /// Whether something has been under way for longer than [`PATIENCE`], with as much done as before.
    pub(crate) fn is_stuck(&mut self, done: u64, is_under_way: bool, now: Time) -> bool {
        if done != self.done || !is_under_way {
            *self = Advance { done, since: now };
        }
        now.since(self.since) > PATIENCE
    }

    /// Since when nothing has been done.
    pub(crate) fn since(&self) -> Time {
        self.since
    }
}

/// A measured window that neither a count of requests nor a time begins.
pub(super) const NEVER: (u64, Time) = (u64::MAX, Time::MAX);

impl Machine {
    /// The measured window begins with the event in which the last job of the warm-up ends, or jobs become steady.
    pub(super) fn consider_warmup(&mut self) {
        let (completed, now) = (self.completed(), self.now());
        let server = self.server().map(|(_, ooo)| &ooo.cores);
        if let Some(cut) = self.warmup.and_then(|warmup| warmup.over(completed, now, server)) {
            self.begin_window(cut, now);
        }
    }

    /// The measured window begins, because of a count of requests or a time.
    #[cold]
    pub(super) fn begin_at(&mut self, at: Time) {
        if let Some(by) = self.warmup {
            self.begin_window(Cut { by, jobs: self.completed(), steady: None }, at);
        }
    }

    /// What was measured before `now`, the present or a time since the last event, is forgotten.
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

/// Readings of a drive that are kept.
const READINGS: usize = 512;

/// What a drive shows at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    /// Bytes in the buffer that are not on flash.
    pub(crate) buffered: u64,
    /// Free reclaim units.
    pub(crate) free: u64,
    /// Bytes written by the host in the measured window.
    pub(crate) written: u64,
    /// Bytes programmed in it.
    pub(crate) programmed: u64,
    /// Time that channels have been busy since the beginning, all of them together, picoseconds.
    pub(crate) channels: u128,
    /// Time that dies have been busy since the beginning, all of them together, picoseconds.
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

/// Readings of every drive.
#[derive(Debug, Default)]
pub(crate) struct Gauges {
    drives: Vec<Samples<Reading>>,
    /// The windows that the host's series had begun when they were read last.
    turns: u64,
}

impl Gauges {
    /// Whether it is time to read.
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

    /// Forgets what was read: the end of warm-up.
    pub(crate) fn reset(&mut self) {
        self.drives.iter_mut().for_each(Samples::clear);
    }

    /// The readings of a drive.
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
