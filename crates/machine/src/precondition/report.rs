//! What preconditioning has done.

use flash::ftl::Ftl;
use schemars::JsonSchema;
use serde::Serialize;

/// The state that was reached.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// The state's name.
    pub kind: &'static str,
    /// Share of the logical units that hold data.
    pub mapped_share: f64,
    /// Share of the programmed map units that hold no valid data, padding among them.
    pub invalid_share: f64,
    /// Free reclaim units of the groups.
    pub free_reclaim_units: FreeUnits,
    /// Units written, the fill included, for each unit of the share that was filled.
    pub drive_writes: f64,
    /// Units programmed for each unit written in the last window of overwrites; null if nothing was overwritten.
    pub write_amplification: Option<f64>,
    /// Whether write amplification has become steady; null if the state does not ask.
    pub steady: Option<bool>,
}

/// Free reclaim units of a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FreeUnits {
    /// Fewest.
    pub min: u32,
    /// Over all groups.
    pub mean: f64,
}

impl FreeUnits {
    pub(super) fn of(ftl: &Ftl) -> FreeUnits {
        let free = (0..ftl.geo.groups).map(|group| ftl.free(group));
        let sum: u64 = free.clone().map(u64::from).sum();
        FreeUnits { min: free.min().unwrap_or(0), mean: sum as f64 / f64::from(ftl.geo.groups) }
    }
}
