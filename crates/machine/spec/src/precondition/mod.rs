//! State of a device before a run: reached functionally, without time.
//!
//! Writes go through the same functions of the translation layer as timed ones: frontiers, thresholds and victim policy
//! of the spec. Effects of time do not happen: no write waits, no move loses a race, and with a dynamic
//! `flash.ftl.allocation` groups take turns, because without time all dies are equally busy. All data go to the first
//! placement. Erase counts are kept after preconditioning; all other counters start from zero.
//!
//! The states are those of a device at rest, seen after any of its writes with equal likelihood. A device under load is
//! more often seen during garbage collection: it then has slightly more recently filled reclaim units, by less than one
//! cycle of garbage collection in each group.
//!
//! Where the planes of a die share multi-plane commands and each has its own reclaim units, every state leaves the
//! host's frontiers of these planes at the same page ([`ftl::page_map::Ftl::lags`]), as on a fresh drive. Later
//! sequential writes can then use multi-plane commands. `uniform` overwrites as often in each of these planes,
//! `analytic` draws one page for all of them, `steady` and `zipf` end with overwrites drawn for the planes that lag
//! behind. The rest is padded: less than a program unit per plane after a fill, and after a trace as much as its last
//! blocks differ in. None of these writes counts as a drive write.
//!
//! Shares of the logical space start at its beginning. A *drive write* is as many units as the share has.

pub mod analytic;
mod session;
pub mod steady;
mod text;
pub mod trace;
pub mod uniform;
pub mod zipf;

pub use session::Progress;
pub use text::parse;

use config::{Diagnostic, units::Share};
use engine::{Rng, Snapshot};
use ftl::page_map::Ftl;
use nand::geometry::Geometry;
use requests::synth::{Permutation, Zipf};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session::{Halt, Session};
use ssd::spec::FlashSpec;

config::policies! {
    /// The state that the device is brought into before the run.
    pub family Precondition: choice {
        /// Factory state: nothing written.
        default none,
        /// Written once, in order.
        ///
        /// Implicit: costs a record for each reclaim unit, not for each map unit, until something is overwritten.
        sequential(Fill),
        /// Written once, one map unit after another to the next group in turn: neighbours lie in different planes.
        ///
        /// This is the result of small sequential writes that go to any idle plane. Implicit, like `sequential`, and
        /// equal to it if a map unit is a program unit.
        interleaved(Fill),
        /// Written once, in random order, then overwritten at random until enough is invalid.
        ///
        /// Without garbage collection: an invalid share that would need it is refused.
        uniform(uniform::Params),
        /// Written in order, then overwritten with Zipf-distributed popularity.
        ///
        /// The popularity of unit number k is proportional to `k^-theta`; popular units are scattered over the share.
        zipf(zipf::Params),
        /// Written in order, then at random until write amplification is steady.
        ///
        /// A round is a fifth of a drive write, or a thousandth of the device if that is more. Write amplification is
        /// steady when two conditions hold. Over five windows of equal length (one round each, or two, four …), its
        /// range is at most twice `tolerance` and the rise of its fitted line at most `tolerance`, both relative to its
        /// mean. At least one drive write has passed since the first reclaim. With a tolerance of 10 % this is the
        /// definition of SNIA's Solid State Storage Performance Test Specification. 20 drive writes after the first
        /// reclaim, preconditioning ends in any case, and the report says that it is not steady.
        steady(steady::Params),
        /// Written in order, then with the writes of a trace, one after another.
        ///
        /// Units touched by a write are written whole; deallocations count, reads do not.
        trace(trace::Params),
        /// Steady state under uniform random writes, drawn from theory.
        ///
        /// Valid counts are drawn from the stationary histogram of the victim policy (`greedy`, `d_choices`, `random`,
        /// `fifo`), frontiers and free units from one cycle of garbage collection. The positions of valid units are
        /// random; under `fifo`, valid counts follow the age. No unit is written: O(units), and no wear.
        analytic(Fill),
    }
}

/// Brings a device into a state. The counters of the FTL start from zero afterwards.
///
/// # Errors
/// A state that cannot be reached, with the arithmetic.
///
/// # Panics
/// If the device has been written to.
pub fn apply(
    state: &Precondition,
    flash: &FlashSpec,
    ftl: &mut Ftl,
    seed: u64,
) -> Result<Report, Diagnostic> {
    let never = &mut |_| false;
    let report = apply_watched(state, flash, ftl, seed, never)?;
    Ok(report.expect("no early end was requested"))
}

/// Works like [`apply`]. `watch` receives the progress many times a second, and may abandon the work; then this returns
/// `None` and the device is unusable.
///
/// # Errors
/// As [`apply`].
///
/// # Panics
/// As [`apply`].
pub fn apply_watched(
    state: &Precondition,
    flash: &FlashSpec,
    ftl: &mut Ftl,
    seed: u64,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<Option<Report>, Diagnostic> {
    assert!(ftl.is_fresh(), "preconditioning starts from an empty device");
    match bring(state, Session::new(flash, ftl, seed, watch)) {
        Ok(report) => Ok(Some(report)),
        Err(Halt::Wanted) => Ok(None),
        Err(Halt::Unusable(fault)) => Err(fault),
    }
}

fn bring(state: &Precondition, mut session: Session<'_>) -> Result<Report, Halt> {
    session.pause()?;
    match state {
        Precondition::none => {}
        Precondition::sequential(fill) => sequential(fill, &mut session)?,
        Precondition::interleaved(fill) => interleaved(fill, &mut session)?,
        Precondition::uniform(params) => uniform::apply(params, &mut session)?,
        Precondition::zipf(params) => zipf::apply(params, &mut session)?,
        Precondition::steady(params) => steady::apply(params, &mut session)?,
        Precondition::trace(params) => trace::apply(params, &mut session)?,
        Precondition::analytic(fill) => analytic::apply(fill, &mut session)?,
    }
    Ok(session.report(state.name())?)
}

// Assignment of units to groups by static allocation.

/// Number of the units `0..units` that static allocation sends to a group.
fn units_of_group(geo: &Geometry, group: u32, units: u64) -> u64 {
    let per_program = u64::from(geo.units_per_program);
    let groups = u64::from(geo.groups);
    let position = geo.sequential_unit(group, 0, 0) / per_program;
    let (stripes, rest) = (units / per_program, units % per_program);
    let whole = (stripes + groups - 1 - position) / groups;
    whole * per_program + if stripes % groups == position { rest } else { 0 }
}

/// Unit with number `nth` among those that static allocation sends to a group.
fn unit_of_group(geo: &Geometry, group: u32, nth: u64) -> u64 {
    let per_program = u64::from(geo.units_per_program);
    geo.sequential_unit(group, nth / per_program, (nth % per_program) as u32)
}

// Choice of the unit to write next.

/// Draws of units from a share, with replacement.
enum Draw {
    /// Every unit with equal likelihood.
    Uniform(u64),
    /// By rank, with ranks scattered over the share.
    Zipf(Box<(Zipf, Permutation)>),
}

impl Draw {
    #[inline]
    fn unit(&self, rng: &mut Rng) -> u64 {
        match self {
            Draw::Uniform(units) => rng.below(*units),
            Draw::Zipf(ranks) => ranks.1.at(ranks.0.rank(|| rng.unit())),
        }
    }
}

// States written once.

/// Parameters of a fill.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Fill {
    /// Share of the logical space, from its beginning.
    pub share: Share,
}

impl Default for Fill {
    fn default() -> Fill {
        Fill { share: Share::percent(100) }
    }
}

fn sequential(fill: &Fill, session: &mut Session<'_>) -> Result<(), Diagnostic> {
    session.share(fill.share)?;
    session.fill_in_order();
    Ok(())
}

fn interleaved(fill: &Fill, session: &mut Session<'_>) -> Result<(), Diagnostic> {
    session.share(fill.share)?;
    session.fill_in_turn();
    Ok(())
}

// Report of preconditioning.

/// Report of the state that was reached.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Report {
    /// Name of the state.
    pub kind: &'static str,
    /// Share of the logical units that hold data.
    pub mapped_share: f64,
    /// Share of the programmed map units without valid data, padding included.
    pub invalid_share: f64,
    /// Free reclaim units per group.
    pub free_reclaim_units: FreeUnits,
    /// Units written, the fill included, per unit of the filled share.
    pub drive_writes: f64,
    /// Units programmed per unit written in the last window of overwrites; null if nothing was overwritten.
    pub write_amplification: Option<f64>,
    /// Whether write amplification became steady; null if the state does not require it.
    pub steady: Option<bool>,
}

impl Report {
    /// Appends all fields except the state's name.
    pub fn save(&self, out: &mut Vec<u8>) {
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

    /// Returns whether the report agrees with a translation layer. A map on flash is written after the report: for such
    /// a layer, free units and the invalid share are not compared.
    pub fn is_of(&self, ftl: &Ftl) -> bool {
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

    /// Reads the report of a state with this name from the front of `input`; `None` if it is truncated or malformed.
    pub fn load(kind: &'static str, input: &mut &[u8]) -> Option<Report> {
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

/// Share of the logical units that hold data, and share of the programmed map units that hold no valid data.
fn shares(ftl: &Ftl) -> (f64, f64) {
    let (mapped, programmed) = (ftl.mapped(), ftl.programmed_units());
    (mapped as f64 / ftl.logical() as f64, (programmed - mapped) as f64 / programmed.max(1) as f64)
}

/// Free reclaim units per group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FreeUnits {
    /// Fewest in any group.
    pub min: u32,
    /// Mean over all groups.
    pub mean: f64,
}

engine::snapshot!(FreeUnits { min, mean });

impl FreeUnits {
    fn of(ftl: &Ftl) -> FreeUnits {
        let free = (0..ftl.geo.groups).map(|group| ftl.free(group));
        let sum: u64 = free.clone().map(u64::from).sum();
        FreeUnits { min: free.min().unwrap_or(0), mean: sum as f64 / f64::from(ftl.geo.groups) }
    }
}

#[cfg(test)]
mod tests {
    use super::Precondition;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<Precondition>().expect("the list is whole");
        config::policy::check_family::<super::steady::Distribution>().expect("the list is whole");
    }
}
