//! Spec of channels and dies.

use super::{GeometrySpec, SpecError};
use config::units::{Duration, Power, TransferRate};
use engine::Time;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::Scheduling;
use nand::dies::{MultiPlane, PowerBudget, Sharing, Suspend};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Channels between controller and dies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelSpec {
    /// Signalling; determines command cycles, address cycles and set-up times.
    pub interface: Interface,
    /// Data transfers per second on each data line.
    pub rate: TransferRate,
    /// Number of data lines.
    #[schemars(extend("enum" = [8, 16]))]
    pub width: u8,
    /// Arbitration policy of the channel.
    pub arbiter: Arbitration,
}

config::policies! {
    /// Signalling on the channel.
    #[derive(Copy, Eq)]
    pub family Interface: choice {
        /// ONFI asynchronous single data rate, up to 50 MT/s.
        default sdr,
        /// ONFI NV-DDR2, up to 533 MT/s by the standard; faster parts exist.
        nv_ddr2,
        /// ONFI NV-DDR3, up to 1600 MT/s.
        nv_ddr3,
        /// ONFI NV-LPDDR4, up to 3600 MT/s.
        nv_lpddr4,
        /// Toggle mode DDR, up to 3600 MT/s.
        toggle,
    }
}

/// Times of a channel interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cycles {
    /// One command or address cycle (tWC, tCAD).
    cycle: Time,
    /// Chip enable set-up (tCS).
    select: Time,
    /// Last cycle to busy (tWB).
    busy: Time,
    /// Ready to data (tRR).
    ready: Time,
    /// Read preamble and strobe (tRPRE, tDQSRE; tREA for SDR).
    data_out: Time,
    /// Address to data (tADL).
    data_in: Time,
    /// Change of column to data (tCCS).
    column: Time,
}

impl Interface {
    fn cycles(self) -> Cycles {
        let ns = Time::from_ns;
        match self {
            // ONFI 4.2, table of SDR timing mode 5.
            Interface::sdr => Cycles {
                cycle: ns(20),
                select: ns(15),
                busy: ns(100),
                ready: ns(20),
                data_out: ns(16),
                data_in: ns(70),
                column: ns(200),
            },
            // tCCS: as MQSim's NV-DDR2 channel has it.
            // ONFI 4.2, tables of NV-DDR2, NV-DDR3 and NV-LPDDR4: the same command and address timing.
            Interface::nv_ddr2 | Interface::nv_ddr3 | Interface::nv_lpddr4 => Cycles {
                cycle: ns(25),
                select: ns(20),
                busy: ns(100),
                ready: ns(20),
                data_out: ns(30),
                data_in: ns(150),
                column: ns(300),
            },
            // Toggle 2.0 data sheets: as NV-DDR2, with a longer address-to-data time.
            Interface::toggle => Cycles {
                cycle: ns(25),
                select: ns(20),
                busy: ns(100),
                ready: ns(20),
                data_out: ns(30),
                data_in: ns(300),
                column: ns(300),
            },
        }
    }
    /// Highest rate of the standard, in transfers per second.
    fn limit(self) -> u64 {
        match self {
            Interface::sdr => 50_000_000,
            // The standard stops at 533 MT/s; simulators and parts have used 800.
            Interface::nv_ddr2 => 800_000_000,
            Interface::nv_ddr3 => 1_600_000_000,
            Interface::nv_lpddr4 | Interface::toggle => 3_600_000_000,
        }
    }
}

impl ChannelSpec {
    /// Bandwidth, in bytes per second.
    pub(crate) fn bytes_per_s(&self) -> u64 {
        self.rate.per_s() * u64::from(self.width) / 8
    }
    /// Command and address of a read (two commands, five address cycles), up to the array's start.
    pub(crate) fn read_command(&self) -> Time {
        let c = self.interface.cycles();
        c.select + c.cycle.times(7) + c.busy
    }
    /// Command and address of a change of column on a plane (two commands, five address cycles: Change Read Column
    /// Enhanced), up to the data.
    pub(crate) fn column_command(&self) -> Time {
        let c = self.interface.cycles();
        c.select + c.cycle.times(7) + c.column
    }
    /// Command and address of a program (two commands, five address cycles); its data comes in between.
    pub(crate) fn program_command(&self) -> Time {
        self.read_command()
    }
    /// Command and address of an erase (two commands, three address cycles).
    pub(crate) fn erase_command(&self) -> Time {
        let c = self.interface.cycles();
        c.select + c.cycle.times(5) + c.busy
    }
    /// Set-up before data leaves.
    pub(crate) fn data_out(&self) -> Time {
        let c = self.interface.cycles();
        c.ready + c.data_out
    }
    /// Set-up before data enters.
    pub(crate) fn data_in(&self) -> Time {
        self.interface.cycles().data_in
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if ![8, 16].contains(&self.width) {
            return Err(SpecError::new(
                "channel.width",
                format!("{} data lines; allowed are 8 or 16", self.width),
            ));
        }
        let limit = self.interface.limit();
        if self.rate.per_s() == 0 || self.rate.per_s() > limit {
            let what = format!(
                "{} on {}, whose limit is {} MT/s",
                self.rate,
                self.interface.name(),
                limit / 1_000_000
            );
            return Err(
                SpecError::new("channel.rate", what).help("choose a faster interface or a lower rate")
            );
        }
        Ok(())
    }
}

/// Maximum number of planes that take turns.
const MOST_PLANES: u64 = 16;

/// Capabilities of dies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DieSpec {
    /// Die interleaving: the dies of a way work at the same time. If false, a way carries out one command at a time, as
    /// in MQSim.
    pub interleave: bool,
    /// Die scheduler: the operation that a free die takes next.
    pub scheduler: Scheduling,
    /// Rule for operations of a die's planes that share one command.
    pub multi_plane: MultiPlaneRule,
    /// Reads of each other plane, oldest first, examined for one that may share a read's command. Programs and erases
    /// pair only with the oldest.
    #[schemars(range(min = 1))]
    pub partner_search: u32,
    /// Independent (asynchronous) plane reads: each plane of a die starts a read when it is free, regardless of the
    /// others. This applies to reads that a requester waits for; every other operation takes the whole die. False if
    /// omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub independent_reads: Option<bool>,
    /// Register reads: a read of the page still held in a plane's register takes a change of column instead of a
    /// sensing (ONFI 4.2, Change Read Column). False if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub register_reads: Option<bool>,
    /// Read joining: a read of a page whose sensing is queued or under way joins it. False if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_reads: Option<bool>,
    /// Suspension of programs and erases for reads.
    pub suspend: SuspendSpec,
    /// Power budget of programs and erases over all dies; unlimited if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerBudgetSpec>,
}

config::policies! {
    /// Rule for operations of a die's planes that share one command.
    #[derive(Copy, Eq)]
    pub family MultiPlaneRule: choice {
        /// None: planes work one after the other.
        default off,
        /// Same page number, any block of each plane.
        same_page,
        /// Same block and page number.
        same_block,
    }
}

/// Suspension of programs and erases for reads that a requester waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SuspendSpec {
    /// Enables suspension of programs.
    pub program: bool,
    /// Enables suspension of erases.
    pub erase: bool,
    /// Time from the decision until the die takes commands.
    pub latency: Duration,
    /// Extra time when the suspended operation resumes.
    pub resume: Duration,
    /// Minimum remaining time: an operation with less left is not suspended.
    pub least: Duration,
    /// Maximum suspensions of one operation.
    pub limit: u8,
}

/// Power budget of programs and erases over all dies. A program or an erase begins when enough power is left, in the
/// order in which dies began to wait. Reads need no power from the budget. A die holds its power until its operation
/// has ended, even while it is suspended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PowerBudgetSpec {
    /// Total power of all dies.
    pub limit: Power,
    /// Power of a die that programs, for any number of planes.
    pub program: Power,
    /// Power of a die that erases.
    pub erase: Power,
}

impl PowerBudgetSpec {
    fn budget(&self) -> PowerBudget {
        let PowerBudgetSpec { limit, program, erase } = *self;
        PowerBudget { limit: limit.microwatts(), program: program.microwatts(), erase: erase.microwatts() }
    }
}

impl DieSpec {
    /// Returns the rule by which planes of a die share a command.
    pub fn sharing(&self) -> Sharing {
        let rule = match self.multi_plane {
            MultiPlaneRule::off => MultiPlane::Off,
            MultiPlaneRule::same_page => MultiPlane::SamePage,
            MultiPlaneRule::same_block => MultiPlane::SameBlock,
        };
        Sharing { rule, search: self.partner_search }
    }
    pub(crate) fn check(&self, geometry: &GeometrySpec) -> Result<(), SpecError> {
        SpecError::positive("die.partner_search", self.partner_search.into())?;
        let planes = u64::from(geometry.dies) * u64::from(geometry.planes);
        if !self.interleave && planes > MOST_PLANES {
            let what =
                format!("{planes} planes share one command at a time; allowed are at most {MOST_PLANES}");
            return Err(SpecError::new("die.interleave", what));
        }
        if self.independent_reads == Some(true) {
            let fault = |what: &str| Err(SpecError::new("die.independent_reads", what));
            if !self.interleave {
                return fault("independent plane reads need ways that carry out several commands at a time")
                    .map_err(|e| e.help("set `die.interleave = true`"));
            }
            if matches!(self.scheduler, Scheduling::in_order) {
                return fault("independent plane reads need a scheduler that may reorder operations")
                    .map_err(|e| e.help("choose a different `die.scheduler`, such as `oldest`"));
            }
        }
        self.power.map_or(Ok(()), |power| self.check_power(power.budget()))
    }

    fn check_power(&self, power: PowerBudget) -> Result<(), SpecError> {
        SpecError::positive("die.power.program", power.program)?;
        SpecError::positive("die.power.erase", power.erase)?;
        if power.limit < power.program.max(power.erase) {
            let what = "the limit is below the power of one program or erase, so none could ever begin";
            return Err(SpecError::new("die.power.limit", what));
        }
        if matches!(self.scheduler, Scheduling::in_order) {
            let what = "a power budget cannot be combined with a scheduler that cannot reorder operations";
            return Err(SpecError::new("die.power", what)
                .help("choose a different `die.scheduler`, such as `oldest`"));
        }
        Ok(())
    }

    pub(crate) fn budget(&self) -> Option<PowerBudget> {
        self.power.map(|power| power.budget())
    }

    pub(crate) fn suspend(&self) -> Suspend {
        let s = &self.suspend;
        Suspend {
            program: s.program,
            erase: s.erase,
            latency: s.latency.time(),
            resume: s.resume.time(),
            least: s.least.time(),
            limit: s.limit,
        }
    }
}
