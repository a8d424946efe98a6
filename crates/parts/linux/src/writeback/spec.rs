//! User-visible configuration of write-back, and the limits on dirty memory.

use super::{Global, Jiffies, Local, interval};
use crate::PAGE;
use config::SpecError;
use config::units::{Bytes, Duration, Share};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Write-back, with Linux's names (`Documentation/admin-guide/sysctl/vm.rst`, `/sys/class/bdi`). Ratios refer to the
/// memory that may be dirty: free and file memory, less the kernel's reserves. They are whole numbers of per cent, as
/// in Linux.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WritebackSpec {
    /// Dirty memory above which flushers write in the background. Default: 10 %, if the number of bytes is not given
    /// either. A value at or above the limit is replaced by half of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_background_ratio: Option<Share>,
    /// Dirty memory above which flushers write in the background, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "15TiB"))]
    pub dirty_background_bytes: Option<Bytes>,
    /// Limit on memory that is dirty or under write-back. Writers pause from half way between the background value and
    /// the limit on. Default: 20 %, if the number of bytes is not given either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_ratio: Option<Share>,
    /// Limit on memory that is dirty or under write-back, in bytes; at least two pages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "8KiB", "x-maximum" = "15TiB"))]
    pub dirty_bytes: Option<Bytes>,
    /// Age at which dirty data is written whatever its amount (`dirty_expire_centisecs`).
    pub dirty_expire: Duration,
    /// Interval at which flushers check for data of that age (`dirty_writeback_centisecs`); zero for never.
    pub dirty_writeback: Duration,
    /// Minimum share of the limit for each drive (`min_ratio` of a bdi); the rest is shared by the drives' speeds.
    pub min_ratio: Share,
    /// Maximum share of the limit for each drive (`max_ratio` of a bdi).
    pub max_ratio: Share,
}

impl Default for WritebackSpec {
    /// Linux's defaults.
    fn default() -> WritebackSpec {
        WritebackSpec {
            dirty_background_ratio: None,
            dirty_background_bytes: None,
            dirty_ratio: None,
            dirty_bytes: None,
            dirty_expire: Duration::new(Time::from_s(30)),
            dirty_writeback: Duration::new(Time::from_s(5)),
            min_ratio: Share::ZERO,
            max_ratio: Share::ONE,
        }
    }
}

impl WritebackSpec {
    /// Checks all values, for a host with `drives` drives.
    ///
    /// # Errors
    /// The first invalid value, with its key.
    pub fn check(&self, drives: u16) -> Result<(), SpecError> {
        self.bounds()?;
        let (min, max) = (percent("min_ratio", self.min_ratio)?, percent("max_ratio", self.max_ratio)?);
        if min > max {
            let what = format!("`min_ratio` ({min} %) exceeds `max_ratio` ({max} %)");
            return Err(SpecError::new("min_ratio", what));
        }
        if min * u32::from(drives) >= 100 {
            let what =
                format!("{drives} drives with {min} % each leave nothing to share: keep the sum below 100 %");
            return Err(SpecError::new("min_ratio", what));
        }
        Ok(())
    }

    /// Bounds of dirty memory.
    ///
    /// # Errors
    /// A bound that is given twice, or a ratio that is not a whole number of per cent.
    pub fn bounds(&self) -> Result<DirtyBounds, SpecError> {
        let background = bound(
            ("dirty_background_ratio", self.dirty_background_ratio),
            ("dirty_background_bytes", self.dirty_background_bytes),
        )?;
        let limit = bound(("dirty_ratio", self.dirty_ratio), ("dirty_bytes", self.dirty_bytes))?;
        let default = DirtyBounds::default();
        Ok(DirtyBounds {
            background: background.unwrap_or(default.background),
            limit: limit.unwrap_or(default.limit),
        })
    }

    /// Warning about values that Linux accepts but silently changes.
    pub fn warning(&self) -> Option<String> {
        let DirtyBounds { background, limit } = self.bounds().ok()?;
        let (background, limit, unit) = match (background, limit) {
            (Bound::Percent(background), Bound::Percent(limit)) => (background.into(), limit.into(), "%"),
            (Bound::Bytes(background), Bound::Bytes(limit)) => (background, limit, "B"),
            _ => return None,
        };
        let halved = background >= limit;
        halved.then(|| {
            format!(
                "background write-back starts at {background} {unit}, not below the limit of {limit} {unit}; as in Linux, \
                 half of the limit is used instead"
            )
        })
    }
}

impl DirtyBounds {
    /// Bounds from two ratios.
    ///
    /// # Errors
    /// A ratio that is not a whole number of per cent, with its key.
    pub fn of_ratios(background: Share, limit: Share) -> Result<DirtyBounds, SpecError> {
        Ok(DirtyBounds {
            background: Bound::Percent(percent("dirty_background_ratio", background)?),
            limit: Bound::Percent(percent("dirty_ratio", limit)?),
        })
    }
}

/// Bound given as a ratio or in bytes. In Linux, setting one form clears the other.
fn bound(ratio: (&str, Option<Share>), bytes: (&str, Option<Bytes>)) -> Result<Option<Bound>, SpecError> {
    Ok(match (ratio.1, bytes.1) {
        (Some(_), Some(_)) => {
            let what = format!("`{}` and `{}` are both given, but set the same limit", ratio.0, bytes.0);
            return Err(SpecError::new(bytes.0, what).help("leave one of them out"));
        }
        (Some(share), None) => Some(Bound::Percent(percent(ratio.0, share)?)),
        (None, Some(amount)) => {
            SpecError::positive(bytes.0, amount.get())?;
            if amount.get().div_ceil(PAGE) > u64::from(u32::MAX) {
                return Err(SpecError::new(bytes.0, format!("{amount} is above 2^32 - 1 pages")));
            }
            Some(Bound::Bytes(amount.get()))
        }
        (None, None) => None,
    })
}

/// Share in whole per cent.
pub(super) fn percent(key: &str, share: Share) -> Result<u32, SpecError> {
    let percent = share.get() * 100.0;
    let whole = percent.round();
    if (percent - whole).abs() > 1e-6 {
        let what = format!("{percent} % is not a whole number of per cent");
        return Err(SpecError::new(key, what).help("use a whole number, as in Linux, or a key in bytes"));
    }
    Ok(whole as u32)
}

// Limits on dirty memory (`mm/page-writeback.c`).
//
// Left out: the extra quarter for real-time tasks, memory control groups, nodes, `strictlimit`.

/// Bound of dirty memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bound {
    /// Per cent of the memory that may be dirty.
    Percent(u32),
    /// Bytes.
    Bytes(u64),
}

/// Bounds of dirty memory, `vm.dirty_*`. They may be changed at any time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyBounds {
    /// Bound above which flushers write.
    pub background: Bound,
    /// Bound that writers must not exceed.
    pub limit: Bound,
}

impl Default for DirtyBounds {
    /// Linux's defaults: 10 and 20 %.
    fn default() -> DirtyBounds {
        DirtyBounds { background: Bound::Percent(10), limit: Bound::Percent(20) }
    }
}

/// Bounds of dirty memory in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtyLimits {
    /// Background threshold.
    pub bg_thresh: u64,
    /// Limit.
    pub thresh: u64,
}

impl Bound {
    fn pages(self, avail: u64) -> u64 {
        match self {
            // Linux's ratios are multiples of 1/4096, rounded down.
            Bound::Percent(percent) => (u64::from(percent) * PAGE / 100) * avail / PAGE,
            Bound::Bytes(bytes) => bytes.div_ceil(PAGE),
        }
    }
}

impl DirtyBounds {
    /// Limits for a memory with `avail` pages that may be dirty (`domain_dirty_limits`).
    pub fn limits(&self, avail: u64) -> DirtyLimits {
        let thresh = self.limit.pages(avail).min(u32::MAX.into());
        let bg_thresh = self.background.pages(avail);
        DirtyLimits { thresh, bg_thresh: if bg_thresh >= thresh { thresh / 2 } else { bg_thresh } }
    }
}

impl DirtyLimits {
    /// Dirty pages up to which writers never pause (`dirty_freerun_ceiling`).
    pub fn freerun(&self) -> u64 {
        (self.thresh + self.bg_thresh) / 2
    }
}

/// Bounds on a device's share of the limits, whatever its speed (`min_ratio`, `max_ratio` of a bdi), in per cent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ratios {
    pub(super) min: u32,
    pub(super) max: u32,
}

/// All devices together (`struct wb_domain`).
#[derive(Clone, Debug)]
pub(super) struct Domain {
    /// Dirty pages (`NR_FILE_DIRTY`).
    pub(super) dirty: u64,
    /// Pages under write-back (`NR_WRITEBACK`).
    pub(super) writeback: u64,
    /// Smoothed limit: stays above the dirty pages even when memory has suddenly shrunk.
    pub(super) dirty_limit: u64,
    dirty_limit_stamp: Jiffies,
    completions: Global,
    /// End of the period; zero if nothing has been written for so long that no count is left.
    period_time: Jiffies,
    /// Minimum shares of all devices together, in per cent (`bdi_min_ratio`).
    min_ratio: u64,
    hz: u64,
}

impl Domain {
    pub(super) fn new(hz: u64, min_ratio: u32, now: Jiffies) -> Domain {
        Domain {
            dirty: 0,
            writeback: 0,
            dirty_limit: 0,
            dirty_limit_stamp: now,
            completions: Global::default(),
            period_time: 0,
            min_ratio: min_ratio.into(),
            hz,
        }
    }

    /// `VM_COMPLETIONS_PERIOD_LEN`: three seconds.
    fn period(&self) -> Jiffies {
        3 * self.hz
    }

    /// Ends the periods that have passed (`writeout_period`). The kernel's timer may be late while a processor sleeps;
    /// here it is exact.
    pub(super) fn age(&mut self, now: Jiffies) {
        while self.period_time != 0 && self.period_time <= now {
            let more = self.completions.new_period();
            self.period_time = if more { self.period_time + self.period() } else { 0 };
        }
    }

    /// Accounts for pages written by a device (`wb_domain_writeout_add`).
    pub(super) fn written(&mut self, completions: &mut Local, max_frac: u64, pages: u64, now: Jiffies) {
        self.age(now);
        completions.add(&mut self.completions, max_frac, pages);
        if self.period_time == 0 {
            self.period_time = now + self.period();
        }
    }

    /// Share of a device in a limit, by the pages that it has written (`__wb_calc_thresh`).
    pub(super) fn wb_thresh(&self, completions: &Local, ratios: Ratios, thresh: u64) -> u64 {
        let (numerator, denominator) = completions.fraction(&self.completions);
        let shared = u128::from(thresh * (100 - self.min_ratio) / 100);
        let own = (shared * u128::from(numerator) / u128::from(denominator)) as u64;
        (own + thresh * u64::from(ratios.min) / 100).min(thresh * u64::from(ratios.max) / 100)
    }

    /// `hard_dirty_limit`.
    pub(super) fn hard_limit(&self, thresh: u64) -> u64 {
        thresh.max(self.dirty_limit)
    }

    /// Moves the smoothed limit, at most every 200 ms (`domain_update_dirty_limit`, `update_dirty_limit`): up at once,
    /// down by a 32nd of the difference.
    pub(super) fn update_dirty_limit(&mut self, thresh: u64, dirty: u64, now: Jiffies) {
        if now < self.dirty_limit_stamp + interval(self.hz) {
            return;
        }
        self.dirty_limit_stamp = now;
        if self.dirty_limit < thresh {
            self.dirty_limit = thresh;
            return;
        }
        let floor = thresh.max(dirty);
        self.dirty_limit -= self.dirty_limit.saturating_sub(floor) >> 5;
    }
}
