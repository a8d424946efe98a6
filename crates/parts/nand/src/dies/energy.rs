//! Energy of dies, channels and controllers.
//!
//! An operation on the array is counted when the array has finished it, and spread over the time since it last began. A
//! transfer is counted when it begins, over the time that it holds its channel.

use super::Backend;
use super::batch::Batch;
use super::op::{Class, NO_OP, Op, OpKind};
use super::state::Alike;
use super::timing::Timing;
use config::StatePower;
use config::units::Energy;
use engine::{Mutant, Time, planted_nth};
use net::energy::LinkEnergySpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stats::{Activity, Attojoules, EnergyReport, Meter};

/// Energy of flash.
///
/// Energy of an operation is what its array takes beyond the power of a busy die. If only the total energy of an
/// operation is known, for example from a current measured at the supply, set `die.busy` to zero: the operation
/// includes it. Commands, addresses and status reads cost nothing; a suspended operation costs as much as an
/// uninterrupted one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlashEnergySpec {
    /// Energy of a page read in its array, by page type, lowest bit first; one value for all types.
    pub read: Vec<Energy>,
    /// Energy of a page program, by page type, lowest bit first; one value for all. With one-shot and two-pass
    /// programming, one value: a word line, or one pass over it.
    pub program: Vec<Energy>,
    /// Energy of a block erase, in one plane.
    pub erase: Energy,
    /// Energy of a byte of data in transfer between a controller and a die, drivers at both ends.
    pub transfer: Energy,
    /// Power of each die; busy from a command to the end of its data.
    pub die: StatePower,
    /// Power of all controllers together, with their buffer memory and everything else that is on; busy while a command
    /// is inside or a die is busy.
    pub controller: StatePower,
    /// Energy of the link to the user of the flash.
    pub link: LinkEnergySpec,
}

/// Energies of flash of which some pages are SLC (one bit per cell): energies by page type, and those of SLC pages.
#[derive(Clone, Debug)]
pub struct FlashCosts {
    /// Energies of all other pages.
    pub spec: FlashEnergySpec,
    /// Energies of an SLC page: read, programmed. `None` without SLC pages.
    pub slc: Option<[Energy; 2]>,
}

impl From<FlashEnergySpec> for FlashCosts {
    fn from(spec: FlashEnergySpec) -> FlashCosts {
        FlashCosts { spec, slc: None }
    }
}

const READ: usize = 0;
const PROGRAM: usize = 1;
const ERASE: usize = 2;
const TRANSFER: usize = 3;
const DIE_IDLE: usize = 4;
const DIE_BUSY: usize = 5;
const CONTROLLER_IDLE: usize = 6;
const CONTROLLER_BUSY: usize = 7;
const ACTIVITIES: [Activity; 8] = [
    Activity::operation("read"),
    Activity::operation("program"),
    Activity::operation("erase"),
    Activity::operation("channel transfer"),
    Activity::state("die idle"),
    Activity::state("die busy"),
    Activity::state("controller idle"),
    Activity::state("controller busy"),
];

impl FlashCosts {
    /// Returns the energy of an operation: for what it reads, and for what it changes.
    fn of(&self, op: &Op, timing: &Timing) -> [Attojoules; 2] {
        if let Some([read, program]) = self.slc.filter(|_| op.is_slc) {
            let of =
                |energy: Energy, pages: u32| Attojoules::from(energy.attojoules()) * Attojoules::from(pages);
            match op.kind {
                OpKind::Read if op.from_register => return [0, 0],
                OpKind::Read => return [of(read, timing.pages_per_unit), 0],
                OpKind::Program => return [0, of(program, timing.program_pages)],
                // Folded data goes through the controller; an erase costs the same whatever the block held.
                OpKind::CopyBack | OpKind::Erase => {}
            }
        }
        let pages = |by_type: &[Energy], first: u32, count: u32| -> Attojoules {
            let types = &timing.page_type[first as usize..(first + count) as usize];
            types.iter().map(|kind| Attojoules::from(by_type[usize::from(*kind)].attojoules())).sum()
        };
        let read = |first, count| pages(&self.spec.read, first, count);
        let program = || match timing.one_shot {
            true => Attojoules::from(self.spec.program[0].attojoules()) * Attojoules::from(timing.passes),
            false => pages(&self.spec.program, op.page, timing.program_pages),
        };
        match op.kind {
            OpKind::Read if op.from_register => [0, 0],
            OpKind::Read => [read(op.page, timing.pages_per_unit), 0],
            OpKind::Program => [0, program()],
            OpKind::CopyBack => [read(op.source_page, timing.program_pages), program()],
            OpKind::Erase => [0, self.spec.erase.attojoules().into()],
        }
    }
}

/// Energy spent by media.
#[derive(Clone, Debug)]
pub struct MediaMeter {
    /// Energies by page type, as many as a cell has bits; of one-shot programs, one: a pass over a word line.
    costs: FlashCosts,
    meter: Meter,
    /// Identical hardware counted with the simulated one.
    alike: Alike,
    dies: u64,
    /// Number of busy dies, and of commands inside.
    busy: u64,
    commands: u64,
}

impl MediaMeter {
    /// Creates the meter of `dies` idle dies, in each of the back ends that `alike` counts.
    pub fn new(costs: FlashCosts, dies: u32, alike: Alike) -> MediaMeter {
        let dies = u64::from(dies) * u64::from(alike.back_ends);
        let mut meter =
            MediaMeter { costs, meter: Meter::new(&ACTIVITIES), alike, dies, busy: 0, commands: 0 };
        meter.set_dies(Time::ZERO);
        meter.set_controller(Time::ZERO);
        meter
    }

    /// Registers that a die has taken a command.
    pub(super) fn die_begins(&mut self, now: Time) {
        self.busy += u64::from(self.alike.back_ends);
        self.set_dies(now);
    }

    /// Registers that a die is free.
    pub(super) fn die_ends(&mut self, now: Time) {
        self.busy -= u64::from(self.alike.back_ends);
        self.set_dies(now);
    }

    fn set_dies(&mut self, now: Time) {
        let StatePower { idle, busy } = self.costs.spec.die;
        self.meter.set_power(DIE_IDLE, now, (self.dies - self.busy) * idle.microwatts());
        self.meter.set_power(DIE_BUSY, now, self.busy * busy.microwatts());
        if self.commands == 0 {
            self.set_controller(now);
        }
    }

    /// Registers that a command has reached the controllers.
    pub fn command_begins(&mut self, now: Time) {
        self.commands += 1;
        self.set_controller(now);
    }

    /// Registers that a command has left the controllers.
    pub fn command_ends(&mut self, now: Time) {
        self.commands -= 1;
        self.set_controller(now);
    }

    fn set_controller(&mut self, now: Time) {
        let StatePower { idle, busy } = self.costs.spec.controller;
        let works = self.commands > 0 || self.busy > 0;
        self.meter.set_power(CONTROLLER_IDLE, now, if works { 0 } else { idle.microwatts() });
        self.meter.set_power(CONTROLLER_BUSY, now, if works { busy.microwatts() } else { 0 });
    }

    /// Adds bytes that are on a channel.
    pub(super) fn transfer(&mut self, bytes: u64, from: Time, to: Time) {
        let bytes = if bytes > 0 && planted_nth(Mutant::UnpaidTransfer, 16) { 0 } else { bytes };
        let byte =
            Attojoules::from(self.costs.spec.transfer.attojoules()) * Attojoules::from(self.alike.back_ends);
        self.meter.spread(TRANSFER, from, to, Attojoules::from(bytes) * byte);
    }

    /// Adds an operation that an array has finished.
    fn worked(&mut self, op: &Op, timing: &Timing, from: Time, to: Time) {
        let [read, change] = self.costs.of(op, timing).map(|one| one * Attojoules::from(self.alike.pages()));
        let read = if read > 0 && planted_nth(Mutant::UnpaidRead, 16) { 0 } else { read };
        self.meter.spread(READ, from, to, read);
        let is_free = match op.kind {
            OpKind::Erase => planted_nth(Mutant::UnpaidErase, 4),
            _ => change > 0 && planted_nth(Mutant::UnpaidProgram, 16),
        };
        let change = if is_free { 0 } else { change };
        self.meter.spread(if op.kind == OpKind::Erase { ERASE } else { PROGRAM }, from, to, change);
    }

    /// Adds a finished batch of reads, with `planes` operations per command and `bytes` over the channel in total.
    pub fn batch(&mut self, batch: &Batch, planes: u64, bytes: u64) {
        let alike = Attojoules::from(self.alike.back_ends);
        let by_type = batch.kinds().iter().zip(&self.costs.spec.read);
        let read: Attojoules = by_type
            .map(|(count, energy)| Attojoules::from(count * planes) * Attojoules::from(energy.attojoules()))
            .sum();
        let byte = Attojoules::from(self.costs.spec.transfer.attojoules());
        let (from, to) = batch.span();
        self.meter.spend(READ, from, read * Attojoules::from(self.alike.pages()));
        self.meter.spend(TRANSFER, from, Attojoules::from(bytes) * byte * alike);
        let busy = Attojoules::from(batch.busy().ps()) * alike;
        let all = Attojoules::from((to - from).ps()) * Attojoules::from(self.dies);
        let StatePower { idle, busy: at_work } = self.costs.spec.die;
        self.meter.passed(DIE_IDLE, from, to, (all - busy) * Attojoules::from(idle.microwatts()));
        self.meter.passed(DIE_BUSY, from, to, busy * Attojoules::from(at_work.microwatts()));
    }

    /// Returns whether a time span lies in one window of the power series.
    pub fn is_one_window(&self, from: Time, to: Time) -> bool {
        self.meter.is_one_window(from, to)
    }

    /// Returns the energy of dies that were busy for a time, summed over them.
    pub fn die_busy(&self, time: Time) -> Attojoules {
        Attojoules::from(self.costs.spec.die.busy.microwatts()) * Attojoules::from(time.ps())
    }

    /// Returns the energy of `count` block erases.
    pub fn erases(&self, count: u64) -> Attojoules {
        Attojoules::from(self.costs.spec.erase.attojoules()) * Attojoules::from(count)
    }

    /// Returns whether both accounts of the energy agree.
    pub fn conserves(&self) -> bool {
        self.meter.conserves()
    }

    /// Returns the energy since the measured window began.
    pub fn report(&self, now: Time) -> EnergyReport {
        self.meter.report(now)
    }

    /// Starts the measured window.
    pub fn reset(&mut self, now: Time) {
        self.meter.reset(now);
    }
}

impl Backend {
    /// Returns the energies of the reads and programs counted since the beginning; `None` if pages differ in cost, or
    /// if something is in flight.
    pub fn due_for_pages(&self) -> Option<[Attojoules; 2]> {
        let FlashCosts { spec, slc: None } = &self.meter.as_ref()?.costs else { return None };
        let alike = |of: &[Energy]| {
            let first = *of.first()?;
            of.iter().all(|one| *one == first).then(|| Attojoules::from(first.attojoules()))
        };
        let (read, program) = (alike(&spec.read)?, alike(&spec.program)?);
        let (counters, timing) = (&self.counters, &self.timing);
        let sensed = (counters.senses + counters.retry_steps) * u64::from(timing.pages_per_unit);
        let copied = counters.copy_backs * u64::from(timing.program_pages);
        let each = if timing.one_shot { timing.passes } else { timing.program_pages };
        let programs = [Class::HostProgram, Class::MapProgram, Class::GcProgram];
        let programs: u64 = programs.iter().map(|class| counters.done[*class as usize]).sum();
        let pages = [sensed + copied, programs * u64::from(each)];
        self.is_at_rest().then(|| [read * Attojoules::from(pages[0]), program * Attojoules::from(pages[1])])
    }

    /// Counts the channel bytes of an operation that has been queued.
    #[cold]
    pub(super) fn note_bytes(&mut self, op: &Op) {
        let times = match op.kind {
            OpKind::Read => 1,
            OpKind::Program if op.is_slc => 1,
            OpKind::Program => self.timing.passes,
            OpKind::CopyBack | OpKind::Erase => 0,
        };
        self.queued_bytes += u64::from(op.bytes) * u64::from(times);
    }

    /// Returns the bytes that channels have carried since the beginning, as counted when operations were queued; `None`
    /// if reads share data or are repeated, if registers gather writes, or if something is in flight.
    pub fn channel_bytes(&self) -> Option<u64> {
        let is_exact = self.errors.is_none() && !self.shares_sensings() && self.links.is_none();
        (is_exact && self.is_at_rest()).then_some(self.queued_bytes)
    }

    /// Enables energy metering from here on.
    pub fn set_energy(&mut self, costs: impl Into<FlashCosts>) {
        self.meter = Some(Box::new(MediaMeter::new(costs.into(), self.die_count, self.alike)));
    }

    /// Adds the energy of a command, or a further step of it, that a unit's array has finished; it last began or
    /// resumed at `from`.
    #[cold]
    pub(super) fn spend(&mut self, first: u32, step: u8, from: Time, to: Time) {
        let Some(meter) = &mut self.meter else { return };
        let mut at = first;
        while at != NO_OP {
            let op = &self.ops[at];
            if op.steps >= step {
                meter.worked(op, &self.timing, from, to);
            }
            at = op.mate;
        }
    }

    /// Adds the energy of a command that goes out with the data of its programs.
    #[cold]
    pub(super) fn spend_command(&mut self, first: u32, from: Time, to: Time) {
        let Some(meter) = &mut self.meter else { return };
        let (mut bytes, mut at) = (0, first);
        while at != NO_OP {
            let op = &self.ops[at];
            if op.kind == OpKind::Program && op.register == NO_OP {
                let passes = if op.is_slc { 1 } else { self.timing.passes };
                bytes += u64::from(op.bytes) * u64::from(passes);
            }
            at = op.mate;
        }
        meter.transfer(bytes, from, to);
    }

    /// Adds the energy of read data that leave, in the first step or a further one.
    #[cold]
    pub(super) fn spend_leaving(&mut self, first: u32, step: u8, from: Time, to: Time) {
        let Some(meter) = &mut self.meter else { return };
        let (mut bytes, mut lead) = (0, first);
        while lead != NO_OP {
            let (mut together, mut at) = (0, lead);
            while at != NO_OP {
                together += u64::from(self.ops[at].bytes);
                at = self.ops[at].joined;
            }
            let op = &self.ops[lead];
            if op.steps >= step {
                let most = self.timing.most_bytes.into();
                bytes += if op.joined == NO_OP { together } else { together.min(most) };
            }
            lead = op.mate;
        }
        meter.transfer(bytes, from, to);
    }
}
