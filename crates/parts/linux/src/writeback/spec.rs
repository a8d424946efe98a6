//! What a user writes about write-back.

use super::limits::{Bound, DirtyBounds};
use crate::PAGE;
use config::SpecError;
use config::units::{Bytes, Duration, Share};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Write-back, by the names of Linux (`Documentation/admin-guide/sysctl/vm.rst`, `/sys/class/bdi`). A ratio is of the memory that may hold dirty pages: what is
/// free and what files have, less the kernel's reserves. It is a whole number of per cent, as in Linux.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WritebackSpec {
    /// Dirty memory from which flushers write in the background; 10 % if neither it nor the number of bytes is given. As large as the limit or larger,
    /// it counts as half of the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_background_ratio: Option<Share>,
    /// The same in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "15TiB"))]
    pub dirty_background_bytes: Option<Bytes>,
    /// Dirty memory, pages being written included, that writers must not exceed; they pause from half way between both on. 20 % if neither it nor the
    /// number of bytes is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_ratio: Option<Share>,
    /// The same in bytes, two pages at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "8KiB", "x-maximum" = "15TiB"))]
    pub dirty_bytes: Option<Bytes>,
    /// Age from which dirty data is written whatever its amount (`dirty_expire_centisecs`).
    pub dirty_expire: Duration,
    /// How often flushers look for data of that age (`dirty_writeback_centisecs`); zero for never.
    pub dirty_writeback: Duration,
    /// Of the limit, what each drive has in any case (`min_ratio` of a bdi); what is left is shared by their speeds.
    pub min_ratio: Share,
    /// Of the limit, what each drive has at most (`max_ratio` of a bdi).
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
    /// Checks everything, for a host with so many drives.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key.
    pub fn check(&self, drives: u16) -> Result<(), SpecError> {
        self.bounds()?;
        let (min, max) = (percent("min_ratio", self.min_ratio)?, percent("max_ratio", self.max_ratio)?);
        if min > max {
            let what = format!("{min} % (`min_ratio`) are more than {max} % (`max_ratio`)");
            return Err(SpecError::new("min_ratio", what));
        }
        if min * u32::from(drives) >= 100 {
            let what =
                format!("{drives} drives with {min} % each leave nothing to share: less than 100 % in all");
            return Err(SpecError::new("min_ratio", what));
        }
        Ok(())
    }

    /// The two bounds of dirty memory.
    ///
    /// # Errors
    /// A bound that is given twice, or a ratio that is no whole number of per cent.
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

    /// What a user should know of values that Linux takes and silently changes.
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
                "write-back begins at {background} {unit}, which is not below the limit of {limit} {unit}: half of the limit counts, \
                 as in Linux"
            )
        })
    }
}

impl DirtyBounds {
    /// The bounds of two ratios.
    ///
    /// # Errors
    /// One that is no whole number of per cent, with its key.
    pub fn of_ratios(background: Share, limit: Share) -> Result<DirtyBounds, SpecError> {
        Ok(DirtyBounds {
            background: Bound::Percent(percent("dirty_background_ratio", background)?),
            limit: Bound::Percent(percent("dirty_ratio", limit)?),
        })
    }
}

/// A bound that may be given in either way. In Linux, setting one form clears the other.
fn bound(ratio: (&str, Option<Share>), bytes: (&str, Option<Bytes>)) -> Result<Option<Bound>, SpecError> {
    Ok(match (ratio.1, bytes.1) {
        (Some(_), Some(_)) => {
            let what =
                format!("`{}` and `{}` are both given, and say the same thing twice", ratio.0, bytes.0);
            return Err(SpecError::new(bytes.0, what).help("leave one of them out"));
        }
        (Some(share), None) => Some(Bound::Percent(percent(ratio.0, share)?)),
        (None, Some(amount)) => {
            SpecError::positive(bytes.0, amount.get())?;
            if amount.get().div_ceil(PAGE) > u64::from(u32::MAX) {
                return Err(SpecError::new(bytes.0, format!("{amount} are more than 2^32 pages")));
            }
            Some(Bound::Bytes(amount.get()))
        }
        (None, None) => None,
    })
}

/// A share in whole per cent.
pub(super) fn percent(key: &str, share: Share) -> Result<u32, SpecError> {
    let percent = share.get() * 100.0;
    let whole = percent.round();
    if (percent - whole).abs() > 1e-6 {
        let what = format!("{percent} % is no whole number of per cent");
        return Err(SpecError::new(key, what).help("Linux takes whole numbers; a number of bytes is finer"));
    }
    Ok(whole as u32)
}
