//! Flows of a scenario: which part of the drive each has.

use super::drive::{SECTOR, planes};
use crate::values::Values;
use config::{Diagnostic, Place};

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// What its file says of it.
    pub(super) values: Values,
    /// Whether it replays a trace.
    pub(super) is_trace: bool,
    /// Where it stands.
    pub(super) place: Place,
    /// The first byte of its share of the logical space.
    pub(super) first: u64,
    /// Bytes of its share.
    pub(super) bytes: u64,
}

/// The flows of a scenario.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    /// In their order.
    pub(super) all: Vec<Flow>,
}

/// Sets of channels, chips, dies and planes, by their settings and what bounds them.
const SETS: [(&str, &str); 4] = [
    ("Channel_IDs", "Flash_Channel_Count"),
    ("Chip_IDs", "Chip_No_Per_Channel"),
    ("Die_IDs", "Die_No_Per_Chip"),
    ("Plane_IDs", "Plane_No_Per_Die"),
];
/// Bytes beyond which no drive can be built.
const LARGEST: u64 = 1 << 62;
/// Planes for which shares are counted one by one.
const MOST: u64 = 1 << 20;

impl Flows {
    /// Gives each flow its share of the logical space, as MQSim does: each plane is parted evenly among the flows that name it, and the flows follow each other.
    ///
    /// # Errors
    /// A channel, chip, die or plane that the drive does not have.
    pub(super) fn place(&mut self, drive: &Values) -> Result<(), Diagnostic> {
        let sets: Vec<[Vec<u64>; 4]> =
            self.all.iter().map(|flow| sets(flow, drive)).collect::<Result<_, _>>()?;
        let usable = usable_sectors(drive);
        let whole = |set: &[Vec<u64>; 4]| {
            set.iter().zip(SETS).all(|(set, (_, bound))| set.len() as u64 == drive.whole(bound))
        };
        let sectors: Vec<u64> = if sets.iter().all(whole) || planes(drive) > MOST {
            let sharing = sets.len().max(1) as f64;
            sets.iter().map(|_| ((usable / sharing) as u64).saturating_mul(planes(drive))).collect()
        } else {
            shares(&sets, usable)
        };
        let page = drive.whole("Page_Capacity");
        let mut first = 0u64;
        for (flow, sectors) in self.all.iter_mut().zip(sectors) {
            flow.first = first.div_ceil(page) * page;
            first = first.saturating_add(sectors.saturating_mul(SECTOR)).min(LARGEST);
            flow.bytes = first.saturating_sub(flow.first) / page * page;
        }
        Ok(())
    }

    /// The share of the logical space that the flows fill before they begin.
    pub(super) fn occupancy(&self) -> f64 {
        let all: f64 = self.all.iter().map(|flow| flow.bytes as f64).sum();
        let filled =
            |flow: &Flow| flow.bytes as f64 * flow.values.real("Initial_Occupancy_Percentage") / 100.0;
        let share = self.all.iter().map(filled).sum::<f64>() / all.max(1.0);
        // A share to the hundredth of a percent.
        libm::round(share * 1e4) / 1e4
    }
}

/// Sectors of a plane that the host sees.
fn usable_sectors(drive: &Values) -> f64 {
    let raw =
        ["Block_No_Per_Plane", "Page_No_Per_Block"].iter().fold(1.0, |all, name| all * drive.real(name));
    raw * (drive.whole("Page_Capacity") / SECTOR) as f64 * (1.0 - drive.real("Overprovisioning_Ratio"))
}

/// The channels, chips, dies and planes that a flow names; all of them where it names none.
fn sets(flow: &Flow, drive: &Values) -> Result<[Vec<u64>; 4], Diagnostic> {
    let one = |(name, bound): (&'static str, &'static str)| {
        let there = drive.whole(bound);
        if !flow.values.is_given(name) {
            return Ok((0..there).collect());
        }
        let named = flow.values.numbers(name);
        match named.iter().find(|id| **id >= there) {
            Some(id) => {
                let what = format!("`{name}` names {id}, and `{bound}` is {there}");
                let help = format!("they count from 0 to {}", there - 1);
                Err(Diagnostic::new(what).at(flow.values.place(name)).help(help))
            }
            None => Ok(named),
        }
    };
    let [channels, chips, dies, planes] = SETS.map(one);
    Ok([channels?, chips?, dies?, planes?])
}

/// Sectors of each flow, plane by plane.
fn shares(sets: &[[Vec<u64>; 4]], usable: f64) -> Vec<u64> {
    let names = |set: &[Vec<u64>; 4], at: &[u64; 4]| {
        set.iter().zip(at).all(|(set, id)| set.binary_search(id).is_ok())
    };
    let of = |set: &[Vec<u64>; 4]| {
        let [channels, chips, dies, planes] = set;
        let mut sectors = 0;
        for c in channels {
            for w in chips {
                for d in dies {
                    for p in planes {
                        let sharing = sets.iter().filter(|other| names(other, &[*c, *w, *d, *p])).count();
                        sectors += (usable / sharing as f64) as u64;
                    }
                }
            }
        }
        sectors
    };
    sets.iter().map(of).collect()
}
