//! What an accelerator spends: its cores by what they do, its memory by what it carries, the chip by being on.

use super::Accelerator;
use crate::vliw::observe::Act;
use crate::vliw::spec::AcceleratorEnergySpec;
use crate::vliw::workers::{COMPUTES, IDLE, State, WAITS, Workers};
use kernel::Time;
use stats::{Activity, Attojoules, EnergyReport, Meter};

const FIRMWARE_IDLE: usize = 3;
const FIRMWARE_WORK: usize = 4;
const MEMORY_TRANSFER: usize = 5;
const MEMORY_ON: usize = 6;
const CHIP_ON: usize = 7;
const ACTIVITIES: [Activity; 8] = [
    IDLE,
    WAITS,
    COMPUTES,
    Activity::state("firmware idle"),
    Activity::state("firmware works"),
    Activity::operation("memory transfer"),
    Activity::state("memory on"),
    Activity::state("chip on"),
];

/// Cores that run firmware: Flashvisor's and Storengine's.
const FIRMWARE: u64 = 2;

/// What an accelerator has spent.
pub(super) struct AcceleratorMeter {
    costs: AcceleratorEnergySpec,
    meter: Meter,
    workers: Workers,
}

impl AcceleratorMeter {
    /// So many idle workers.
    pub(super) fn new(costs: &AcceleratorEnergySpec, workers: u16) -> AcceleratorMeter {
        let mut meter = Meter::new(&ACTIVITIES);
        let on = [(FIRMWARE_IDLE, FIRMWARE * costs.firmware.idle.microwatts())].into_iter();
        let on = on.chain([(MEMORY_ON, costs.memory_on.microwatts()), (CHIP_ON, costs.chip_on.microwatts())]);
        on.for_each(|(activity, power)| meter.set_power(activity, Time::ZERO, power));
        let workers = Workers::new(costs.worker, workers, &mut meter);
        AcceleratorMeter { costs: costs.clone(), meter, workers }
    }
}

impl Accelerator {
    /// Energy since the measured window began; `None` if the spec does not say what things cost.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.meter.as_ref().map(|meter| meter.meter.report(now))
    }

    /// Forgets what was spent; other figures are of whole kernels.
    pub fn reset_energy(&mut self, now: Time) {
        if let Some(meter) = &mut self.meter {
            meter.meter.reset(now);
        }
    }

    /// A worker goes from one state to another.
    pub(super) fn turn(&mut self, now: Time, from: State, to: State) {
        if let Some(meter) = &mut self.meter {
            meter.workers.turn(now, 1, (from, to), &mut meter.meter);
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
            let byte = Attojoules::from(meter.costs.memory_transfer.attojoules());
            meter.meter.spread(MEMORY_TRANSFER, from, to, byte * Attojoules::from(bytes));
        }
    }

    /// A core of the firmware will have worked until `end`, for so long.
    pub(super) fn firmware(&mut self, act: Act<'_>, end: Time, service: Time) {
        self.show(act, None, end - service, end);
        if let Some(meter) = &mut self.meter {
            let firmware = meter.costs.firmware;
            let more = firmware.busy.microwatts() - firmware.idle.microwatts();
            meter.meter.spend_over(FIRMWARE_WORK, end - service, end, more);
        }
    }
}
