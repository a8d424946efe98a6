//! Counters and energy of an accelerator, including its firmware.

use super::super::{Act, CHIP_ON, CORES, ChipMeter, Instance, MEMORY_ON, MEMORY_TRANSFER, State};
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

/// Energy meter of an accelerator.
pub(super) struct AcceleratorMeter {
    firmware: StatePower,
    chip: ChipMeter,
}

impl AcceleratorMeter {
    /// Creates a meter for `workers` idle workers.
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
    /// Energy since the measured window began; `None` without energy constants in the spec.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.chip.report(now))
    }

    /// Booked time of the firmware's cores, and bytes that have crossed memory, since the beginning.
    pub fn counts(&self) -> (Time, u64) {
        (self.visor.busy(Time::MAX) + self.storengine.busy(Time::MAX), self.moved)
    }

    /// Resets the energy meter; other metrics are of whole kernels.
    pub fn reset_energy(&mut self, now: Time) {
        if let Some(meter) = &mut self.meter {
            meter.chip.reset(now);
        }
    }

    /// Meters a worker's change of state.
    pub(super) fn turn(&mut self, now: Time, from: State, to: State) {
        if let Some(meter) = &mut self.meter {
            meter.chip.turn(now, 1, (from, to));
        }
    }

    /// Carries bytes between memory and flash, with priority over the cores.
    pub(super) fn carry(&mut self, now: Time, bytes: u64) {
        self.sharing.carry(bytes);
        let service = Time::transfer(bytes, self.spec.memory.bandwidth.bytes_per_s());
        self.cross(bytes, now, now + service);
    }

    /// Meters bytes that cross memory in a time.
    pub(super) fn cross(&mut self, bytes: u64, from: Time, to: Time) {
        self.moved += bytes;
        if let Some(meter) = &mut self.meter {
            meter.chip.carry(MEMORY, from, to, bytes);
        }
    }

    /// Meters firmware work of `service` that ends at `end`.
    pub(super) fn firmware(&mut self, act: Act<'_>, end: Time, service: Time) {
        self.show(act, None, end - service, end);
        if let Some(meter) = &mut self.meter {
            let more = meter.firmware.busy.microwatts() - meter.firmware.idle.microwatts();
            meter.chip.spend_over(FIRMWARE_WORK, end - service, end, more);
        }
    }
}

/// Times of a kernel: offload, begin, end. A screen's time is from Flashvisor's decision until it knows of the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTimes {
    /// Number of the kernel.
    pub instance: Instance,
    /// Time of the offload.
    pub offloaded: Time,
    /// Time from which Flashvisor could schedule it: it was notified, and all arrays were locked.
    pub released: Time,
    /// Time at which the first screen began.
    pub begun: Time,
    /// Time at which the last screen had ended.
    pub computed: Time,
    /// Time at which all results were on flash.
    pub over: Time,
    /// Critical path: the sum over microblocks of the longest screen's time.
    pub path: Time,
}

/// Counters of an accelerator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorStats {
    /// Time in which each worker computed, stalls included.
    pub busy: Vec<Time>,
    /// Time in which each worker computed but waited for its caches or for memory; part of `busy`.
    pub stalled: Vec<Time>,
    /// Time in which each worker had a screen.
    pub held: Vec<Time>,
    /// Time in which each worker had a screen and computed nothing, from one event to the next; part of `held`.
    pub waited: Vec<Time>,
    /// Total time of all ended screens, from Flashvisor's decision until it knows of the end.
    pub work: Time,
    /// Number of screens.
    pub screens: u64,
    /// Number of sections.
    pub sections: u64,
    /// Page groups that sections found in memory.
    pub found: u64,
    /// Page groups that sections found under way.
    pub coming: u64,
    /// Page groups that sections fetched.
    pub fetched: u64,
    /// Page groups that had never been written.
    pub fresh: u64,
    /// Page groups programmed.
    pub written: u64,
    /// Number of times a section waited for a frame.
    pub hungry: u64,
    /// Page groups that flash could not read or program.
    pub failed: u64,
    /// Times of the kernels that are over.
    pub kernels: Vec<KernelTimes>,
}

impl AcceleratorStats {
    pub(super) fn new(workers: u16) -> AcceleratorStats {
        let none = vec![Time::ZERO; workers.into()];
        AcceleratorStats {
            busy: none.clone(),
            stalled: none.clone(),
            held: none.clone(),
            waited: none,
            ..Default::default()
        }
    }
}
