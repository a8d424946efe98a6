//! What drives look like over time. A drive is read when a completion of the host's begins another window of its series: nothing is
//! scheduled for it, and a drive that nobody asks for anything is not looked at.

use engine::Time;
use nand::dies::op::Class;
use ssd::Device;
use stats::Samples;

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
