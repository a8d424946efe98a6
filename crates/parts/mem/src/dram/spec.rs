//! A memory behind controllers as a user writes it.

use super::energy::DramEnergySpec;
use super::sched::DramScheduler;
use config::SpecError;
use config::units::{Bytes, Duration, TransferRate};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// DRAM, or another memory of rows and banks, behind one or more controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {
    /// Controllers, each with a channel of its own.
    #[schemars(range(min = 1, max = 1_024))]
    pub controllers: u16,
    /// Consecutive bytes behind one controller, before those of the next begin: whole lines.
    #[schemars(extend("x-maximum" = "1TiB"))]
    pub interleave: Bytes,
    /// Time of a command in controller and pins, there and back, on top of what banks and bus take.
    pub latency: Duration,
    /// The data bus of one controller.
    pub bus: DramBusSpec,
    /// The banks of one controller.
    pub banks: DramBanksSpec,
    /// Times between the commands of a bank and of a bus, as data sheets define them.
    pub timing: DramTimingSpec,
    /// Refresh; left out, the memory needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<DramRefreshSpec>,
    /// In which order a controller serves what waits.
    pub scheduler: DramScheduler,
    /// What it spends; left out, it reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<DramEnergySpec>,
}

/// The data bus of one controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramBusSpec {
    /// Data lines: bits.
    #[schemars(range(min = 8, max = 32_768), extend("multipleOf" = 8))]
    pub width: u32,
    /// Transfers a second on each data line.
    pub rate: TransferRate,
    /// Transfers of one column access.
    #[schemars(range(min = 1, max = 4_096))]
    pub burst: u32,
}

/// The banks of one controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramBanksSpec {
    /// Banks, at most 64. Consecutive rows lie in consecutive banks.
    #[schemars(range(min = 1, max = 64))]
    pub count: u32,
    /// Bytes of a row over all devices of the bus: what an activation makes ready, in whole lines.
    #[schemars(extend("x-maximum" = "1TiB"))]
    pub row: Bytes,
    /// Whether the bank is the exclusive or of the bank's and the lowest bits of the row's number, so that strides
    /// do not meet in one bank. Needs a number of banks that is a power of two.
    pub hash: bool,
}

/// Times between commands. A time that does not apply to a memory is "0ns".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramTimingSpec {
    /// Activation to column access (tRCD).
    pub rcd: Duration,
    /// Column read to its data (tCL).
    pub cl: Duration,
    /// Column write to its data (tCWL).
    pub cwl: Duration,
    /// Precharge to activation (tRP).
    pub rp: Duration,
    /// Activation to precharge at least (tRAS).
    pub ras: Duration,
    /// Column access to column access (tCCD). If it is longer than a burst, it bounds the bandwidth.
    pub ccd: Duration,
    /// Activation to activation of another bank (tRRD).
    pub rrd: Duration,
    /// Window in which at most four activations begin (tFAW).
    pub faw: Duration,
    /// End of written data to precharge (tWR): write recovery. In a memory that writes slowly it bounds what a bank can
    /// take.
    pub wr: Duration,
    /// End of written data to column read (tWTR).
    pub wtr: Duration,
    /// Column read to precharge (tRTP).
    pub rtp: Duration,
    /// Empty time on the data bus between read data and the written data after them.
    pub turnaround: Duration,
}

/// Refresh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramRefreshSpec {
    /// Time from one refresh to the next (tREFI).
    pub interval: Duration,
    /// Time that the banks of a controller are busy with one (tRFC); they are closed then.
    pub duration: Duration,
}

impl DramSpec {
    /// Whether a memory can be built whose commands count lines of `line` bytes.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the memory's own table.
    pub fn check(&self, line: u64) -> Result<(), SpecError> {
        SpecError::positive("controllers", self.controllers.into())?;
        lines("interleave", self.interleave, line)?;
        self.bus.check(line)?;
        self.banks.check(line)?;
        match &self.refresh {
            Some(refresh) => {
                refresh.check()?;
                self.check_between(refresh, line)
            }
            None => Ok(()),
        }
    }

    /// Whether a line can be accessed between two refreshes: a refresh closes the row that an access has opened, and the access
    /// begins anew.
    fn check_between(&self, refresh: &DramRefreshSpec, line: u64) -> Result<(), SpecError> {
        let DramTimingSpec { rcd, cl, cwl, rp, ras, ccd, rrd, faw, wr, rtp, .. } = self.timing;
        let bursts = line / self.bus.burst_bytes();
        let columns = Time::from_ps(ccd.time().ps().saturating_mul(bursts));
        let data = Duration::new(Time::transfer(line, self.bus.bandwidth()).max(columns));
        let needs = [
            ("ras", ras, "an activation and a precharge", &[ras, rp][..]),
            ("rcd", rcd, "a read", &[rcd, cl, data]),
            ("rtp", rtp, "a read and a precharge", &[rcd, data, rtp, rp]),
            ("wr", wr, "a write and a precharge", &[rcd, cwl, data, wr, rp]),
            ("rrd", rrd, "two activations", &[rrd, rcd]),
            ("faw", faw, "five activations", &[faw, rcd]),
        ];
        for (key, value, work, times) in needs {
            let times = times.iter().chain([&refresh.duration]).map(|time| time.time());
            let all = times.fold(Time::ZERO, |sum, time| sum.checked_add(time).unwrap_or(Time::MAX));
            if all >= refresh.interval.time() {
                let interval = refresh.interval;
                let what = format!(
                    "a refresh and {work} take {all} (`{key}` is {value}), and the next refresh comes after {interval} \
                     (`refresh.interval`) and closes the row again"
                );
                let help = "give times whose sum is below the interval, or leave out the table `refresh`";
                return Err(SpecError::new(&format!("timing.{key}"), what).help(help));
            }
        }
        Ok(())
    }
}

impl DramBusSpec {
    fn check(&self, line: u64) -> Result<(), SpecError> {
        SpecError::positive("bus.rate", self.rate.per_s())?;
        SpecError::positive("bus.burst", self.burst.into())?;
        if self.width == 0 || !self.width.is_multiple_of(8) {
            let what = format!("a data bus of {} bits does not carry whole bytes", self.width);
            return Err(SpecError::new("bus.width", what).help("give a multiple of 8"));
        }
        let burst = self.burst_bytes();
        if !line.is_multiple_of(burst) {
            let what = format!(
                "{} transfers on {} bits are {burst} B, of which a line of {line} B is no multiple",
                self.burst, self.width
            );
            return Err(SpecError::new("bus.burst", what));
        }
        Ok(())
    }

    /// Bytes of one column access.
    pub(super) fn burst_bytes(&self) -> u64 {
        u64::from(self.burst) * u64::from(self.width / 8)
    }

    /// Bytes a second.
    pub(super) fn bandwidth(&self) -> u64 {
        self.rate.per_s().saturating_mul((self.width / 8).into())
    }
}

impl DramBanksSpec {
    fn check(&self, line: u64) -> Result<(), SpecError> {
        SpecError::positive("banks.count", self.count.into())?;
        if self.count > 64 {
            let what = format!("{} banks are more than a controller can have", self.count);
            return Err(SpecError::new("banks.count", what).help("give at most 64, or more controllers"));
        }
        if self.hash && !self.count.is_power_of_two() {
            let what = format!("{} banks cannot be hashed: that needs a power of two", self.count);
            return Err(SpecError::new("banks.hash", what).help("give `hash = false`"));
        }
        lines("banks.row", self.row, line)
    }
}

impl DramRefreshSpec {
    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("refresh.duration", self.duration.time().ps())?;
        if self.duration >= self.interval {
            let what = format!(
                "a refresh of {} every {} leaves no time for anything else",
                self.duration, self.interval
            );
            return Err(SpecError::new("refresh.duration", what).help("leave out the table for no refresh"));
        }
        Ok(())
    }
}

/// Whether a size is a number of whole lines of `line` bytes.
fn lines(key: &str, size: Bytes, line: u64) -> Result<(), SpecError> {
    if size.get() == 0 || !size.get().is_multiple_of(line) {
        return Err(SpecError::new(key, format!("{size} is not a number of whole lines of {line} B")));
    }
    Ok(())
}
