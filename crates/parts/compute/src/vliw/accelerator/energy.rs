//! What an accelerator spends, on its firmware as well.

use super::super::{Act, CHIP_ON, CORES, ChipMeter, MEMORY_ON, MEMORY_TRANSFER, State};
use super::Accelerator;
use crate::vliw::spec::AcceleratorEnergySpec;
use config::StatePower;
use engine::Time;
use stats::{Activity, EnergyReport};

const FIRMWARE_IDLE: usize = 3;
const FIRMWARE_WORK: usize = 4;
const MEMORY: usize = 5;
const ACTIVITIES: [Activity; 8] = [
    CORES[0],
    CORES[1],
    CORES[2],
    Activity::state("firmware idle"),
    Activity::state("firmware works"),
    MEMORY_TRANSFER,
    MEMORY_ON,
    CHIP_ON,
];

/// Cores that run firmware: Flashvisor's and Storengine's.
const FIRMWARE: u64 = 2;

/// What an accelerator has spent.
pub(super) struct AcceleratorMeter {
    firmware: StatePower,
    chip: ChipMeter,
}

impl AcceleratorMeter {
    /// So many idle workers.
    pub(super) fn new(costs: &AcceleratorEnergySpec, workers: u16) -> AcceleratorMeter {
        let firmware = costs.firmware;
        let on = [
            (FIRMWARE_IDLE, FIRMWARE * firmware.idle.microwatts()),
            (MEMORY + 1, costs.memory_on.microwatts()),
            (MEMORY + 2, costs.chip_on.microwatts()),
        ];
        let carries = [(MEMORY, costs.memory_transfer)];
        AcceleratorMeter { firmware, chip: ChipMeter::new(&ACTIVITIES, (costs.worker, workers), on, carries) }
    }
}

impl Accelerator {
    /// Energy since the measured window began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.chip.report(now))
    }

    /// Time for which the cores of the firmware are booked, and bytes that have crossed memory, since the beginning.
    pub fn counts(&self) -> (Time, u64) {
        (self.visor.busy(Time::MAX) + self.storengine.busy(Time::MAX), self.moved)
    }

    /// Forgets what was spent; other figures are of whole kernels.
    pub fn reset_energy(&mut self, now: Time) {
        if let Some(meter) = &mut self.meter {
            meter.chip.reset(now);
        }
    }

    /// A worker goes from one state to another.
    pub(super) fn turn(&mut self, now: Time, from: State, to: State) {
        if let Some(meter) = &mut self.meter {
            meter.chip.turn(now, 1, (from, to));
        }
    }

    /// Bytes are carried between memory and flash, in front of what cores want.
    pub(super) fn carry(&mut self, now: Time, bytes: u64) {
        self.sharing.carry(bytes);
        let service = Time::transfer(bytes, self.spec.memory.bandwidth.bytes_per_s());
        self.cross(bytes, now, now + service);
    }

    /// Bytes have crossed memory in a time.
    pub(super) fn cross(&mut self, bytes: u64, from: Time, to: Time) {
        self.moved += bytes;
        if let Some(meter) = &mut self.meter {
            meter.chip.carry(MEMORY, from, to, bytes);
        }
    }

    /// A core of the firmware will have worked until `end`, for so long.
    pub(super) fn firmware(&mut self, act: Act<'_>, end: Time, service: Time) {
        self.show(act, None, end - service, end);
        if let Some(meter) = &mut self.meter {
            let more = meter.firmware.busy.microwatts() - meter.firmware.idle.microwatts();
            meter.chip.spend_over(FIRMWARE_WORK, end - service, end, more);
        }
    }
}
