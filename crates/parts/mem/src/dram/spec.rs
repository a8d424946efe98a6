//! Spec of a memory behind controllers.

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
    /// Number of controllers, each with its own channel.
    #[schemars(range(min = 1, max = 1_024))]
    pub controllers: u16,
    /// Interleave: consecutive bytes of one controller, in whole lines.
    #[schemars(extend("x-maximum" = "1TiB"))]
    pub interleave: Bytes,
    /// Latency of a command in controller and pins, both ways, in addition to the times of banks and bus.
    pub latency: Duration,
    /// Data bus of one controller.
    pub bus: DramBusSpec,
    /// Banks of one controller.
    pub banks: DramBanksSpec,
    /// Times between the commands of a bank and of a bus, as data sheets define them.
    pub timing: DramTimingSpec,
    /// Refresh; none if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<DramRefreshSpec>,
    /// Scheduling policy of a controller.
    pub scheduler: DramScheduler,
    /// Energy of operations; if omitted, the memory reports no energy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy: Option<DramEnergySpec>,
}

/// Data bus of one controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramBusSpec {
    /// Width of the data bus, in bits.
    #[schemars(range(min = 8, max = 32_768), extend("multipleOf" = 8))]
    pub width: u32,
    /// Transfers per second on each data line.
    pub rate: TransferRate,
    /// Transfers per column access.
    #[schemars(range(min = 1, max = 4_096))]
    pub burst: u32,
}

/// Banks of one controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramBanksSpec {
    /// Number of banks, at most 64. Consecutive rows are in consecutive banks.
    #[schemars(range(min = 1, max = 64))]
    pub count: u32,
    /// Row size over all devices of the bus: the data that one activation opens, in whole lines.
    #[schemars(extend("x-maximum" = "1TiB"))]
    pub row: Bytes,
    /// Bank hashing: the bank is the exclusive or of the bank number and the lowest bits of the row number, so that
    /// strides do not hit one bank. Needs a power-of-two number of banks.
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
    /// Minimum time from activation to precharge (tRAS).
    pub ras: Duration,
    /// Column access to column access (tCCD). A value longer than a burst limits the bandwidth.
    pub ccd: Duration,
    /// Activation to activation of another bank (tRRD).
    pub rrd: Duration,
    /// Window of at most four activations (tFAW).
    pub faw: Duration,
    /// End of written data to precharge (tWR): write recovery. In a memory with slow writes it limits the write rate of
    /// a bank.
    pub wr: Duration,
    /// End of written data to column read (tWTR).
    pub wtr: Duration,
    /// Column read to precharge (tRTP).
    pub rtp: Duration,
    /// Idle time on the data bus between read data and subsequent written data.
    pub turnaround: Duration,
}

/// Refresh of the memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DramRefreshSpec {
    /// Time from one refresh to the next (tREFI).
    pub interval: Duration,
    /// Time that one refresh occupies the banks of a controller (tRFC); their rows are closed then.
    pub duration: Duration,
}

impl DramSpec {
    /// Checks that a memory can be built whose commands count lines of `line` bytes.
    ///
    /// # Errors
    /// Returns the first invalid value; its key is relative to the memory's own table.
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

    /// Checks that a line can be accessed between two refreshes: a refresh closes the row that an access has opened,
    /// and the access begins anew.
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
                    "a refresh and {work} take {all} (`{key}` is {value}), but the next refresh is after {interval} \
                     (`refresh.interval`) and closes the row again"
                );
                let help = "choose times whose sum is below the interval, or omit the table `refresh`";
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
            let what = format!("a data bus of {} bits is not a whole number of bytes", self.width);
            return Err(SpecError::new("bus.width", what).help("choose a multiple of 8"));
        }
        let burst = self.burst_bytes();
        if !line.is_multiple_of(burst) {
            let what = format!(
                "a burst of {} transfers on {} bits is {burst} B; the line size, {line} B, must be a multiple of it",
                self.burst, self.width
            );
            return Err(SpecError::new("bus.burst", what));
        }
        Ok(())
    }

    /// Bytes per column access.
    pub(super) fn burst_bytes(&self) -> u64 {
        u64::from(self.burst) * u64::from(self.width / 8)
    }

    /// Bandwidth in bytes per second.
    pub(super) fn bandwidth(&self) -> u64 {
        self.rate.per_s().saturating_mul((self.width / 8).into())
    }
}

impl DramBanksSpec {
    fn check(&self, line: u64) -> Result<(), SpecError> {
        SpecError::positive("banks.count", self.count.into())?;
        if self.count > 64 {
            let what = format!("{} banks exceed the limit of a controller", self.count);
            return Err(SpecError::new("banks.count", what).help("choose at most 64, or more controllers"));
        }
        if self.hash && !self.count.is_power_of_two() {
            let what = format!("{} banks cannot be hashed; hashing needs a power of two", self.count);
            return Err(SpecError::new("banks.hash", what).help("set `hash = false`"));
        }
        lines("banks.row", self.row, line)
    }
}

impl DramRefreshSpec {
    fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("refresh.duration", self.duration.time().ps())?;
        if self.duration >= self.interval {
            let what =
                format!("a refresh of {} every {} leaves no time for accesses", self.duration, self.interval);
            return Err(SpecError::new("refresh.duration", what).help("omit the table for no refresh"));
        }
        Ok(())
    }
}

/// Checks that a size is a whole number of lines of `line` bytes.
fn lines(key: &str, size: Bytes, line: u64) -> Result<(), SpecError> {
    if size.get() == 0 || !size.get().is_multiple_of(line) {
        return Err(SpecError::new(key, format!("{size} is not a multiple of the line size, {line} B")));
    }
    Ok(())
}
