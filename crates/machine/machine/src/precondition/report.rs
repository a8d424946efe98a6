//! What preconditioning has done.

use engine::Snapshot;
use ftl::page_map::Ftl;
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

impl Report {
    /// Appends all but the state's name.
    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        // Naming every field makes a forgotten one a compile error.
        let Report {
            kind: _,
            mapped_share,
            invalid_share,
            free_reclaim_units,
            drive_writes,
            write_amplification,
            steady,
        } = self;
        mapped_share.save(out);
        invalid_share.save(out);
        free_reclaim_units.save(out);
        drive_writes.save(out);
        write_amplification.save(out);
        steady.save(out);
    }

    /// Whether what it says of a translation layer is so. A map on flash is written behind the report: of such a layer, the free units and the
    /// invalid share are not compared.
    pub(crate) fn is_of(&self, ftl: &Ftl) -> bool {
        let Report {
            kind: _,
            mapped_share,
            invalid_share,
            free_reclaim_units,
            drive_writes,
            write_amplification,
            steady: _,
        } = self;
        let is_amount = |amount: &f64| amount.is_finite() && *amount >= 0.0;
        let (mapped, invalid) = shares(ftl);
        let is_as_left = *invalid_share == invalid && *free_reclaim_units == FreeUnits::of(ftl);
        *mapped_share == mapped
            && (is_as_left || (ftl.hidden() > 0 && (0.0..=1.0).contains(invalid_share)))
            && [Some(*drive_writes), *write_amplification].iter().flatten().all(is_amount)
    }

    /// Takes the report of a state of this name off the front of `input`; `None` if it is cut short or malformed.
    pub(crate) fn load(kind: &'static str, input: &mut &[u8]) -> Option<Report> {
        Some(Report {
            kind,
            mapped_share: f64::load(input)?,
            invalid_share: f64::load(input)?,
            free_reclaim_units: FreeUnits::load(input)?,
            drive_writes: f64::load(input)?,
            write_amplification: Option::load(input)?,
            steady: Option::load(input)?,
        })
    }
}

/// The share of the logical units that hold data, and the share of the programmed map units that hold no valid data.
pub(super) fn shares(ftl: &Ftl) -> (f64, f64) {
    let (mapped, programmed) = (ftl.mapped(), ftl.programmed_units());
    (mapped as f64 / ftl.logical() as f64, (programmed - mapped) as f64 / programmed.max(1) as f64)
}

/// Free reclaim units of a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FreeUnits {
    /// Fewest.
    pub min: u32,
    /// Over all groups.
    pub mean: f64,
}

engine::snapshot!(FreeUnits { min, mean });

impl FreeUnits {
    pub(super) fn of(ftl: &Ftl) -> FreeUnits {
        let free = (0..ftl.geo.groups).map(|group| ftl.free(group));
        let sum: u64 = free.clone().map(u64::from).sum();
        FreeUnits { min: free.min().unwrap_or(0), mean: sum as f64 / f64::from(ftl.geo.groups) }
    }
}
