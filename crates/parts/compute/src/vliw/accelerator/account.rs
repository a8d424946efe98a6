//! Counts and energy of an accelerator, with the energy of its firmware.

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

/// When a kernel was offloaded, when its first screen began, and when it was over. A screen's time is from Flashvisor's decision to its knowledge of the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTimes {
    /// The kernel.
    pub instance: Instance,
    /// Offloaded.
    pub offloaded: Time,
    /// Flashvisor could schedule it: it was told, and all arrays were locked.
    pub released: Time,
    /// Its first screen began.
    pub begun: Time,
    /// Its last screen had ended.
    pub computed: Time,
    /// All that it leaves was on flash.
    pub over: Time,
    /// Its critical path: of each microblock, the time of the longest screen.
    pub path: Time,
}

/// What an accelerator has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorStats {
    /// Of each worker: time in which it computed, and of that the part for which it waited for its caches or for memory.
    pub busy: Vec<Time>,
    /// The latter.
    pub stalled: Vec<Time>,
    /// Of each worker: time in which it had a screen.
    pub held: Vec<Time>,
    /// Of each worker: of the latter, the part in which it computed nothing, from one event to the next.
    pub waited: Vec<Time>,
    /// Times of all screens that have ended, from Flashvisor's decision to its knowledge of the end.
    pub work: Time,
    /// Screens, and sections of them.
    pub screens: u64,
    /// The latter.
    pub sections: u64,
    /// Page groups that sections found in memory, that were on their way, that were fetched, and that were new.
    pub found: u64,
    /// On their way.
    pub coming: u64,
    /// Fetched.
    pub fetched: u64,
    /// New.
    pub fresh: u64,
    /// Page groups that were programmed.
    pub written: u64,
    /// Times that a section waited for a frame.
    pub hungry: u64,
    /// Page groups that flash could not read or program.
    pub failed: u64,
    /// Kernels that are over.
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
