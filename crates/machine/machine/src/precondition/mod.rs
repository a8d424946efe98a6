//! The state that a device is brought into before a run: functional, without time.
//!
//! Writes go through the same functions of the translation layer as timed ones: frontiers, thresholds and victim
//! policy of the spec. What depends on time does not happen: no write waits, no move loses a race, and where
//! `flash.ftl.allocation` is dynamic, groups take turns, because without time no die is busier than another. All data
//! goes to the first placement. Erase counts stay after preconditioning; all other counters start from zero.
//!
//! The states are those of a device at rest, seen after any of its writes with equal likelihood. A device under load
//! is seen in the middle of a collection more often than that: its reclaim units that were filled last are then a few
//! more, by less than one cycle of the collector in each group.
//!
//! Where the planes of a die share multi-plane commands and each has reclaim units of its own, every state leaves the
//! host's frontiers of these planes at the same page ([`ftl::page_map::Ftl::lags`]), as on a fresh drive, so that what is then written in
//! order is written in multi-plane commands. `uniform` overwrites as often in each of these planes, `analytic` draws one
//! page for all of them, `steady` and `zipf` end with overwrites drawn for the planes that lag behind; what is still missing is
//! padded: less than a program unit a plane after a fill, and after a trace as much as its last blocks differ in. None of these
//! writes counts as a drive write.
//!
//! Shares of the logical space are taken from its beginning. A *drive write* is as many units as that share has.

pub mod analytic;
mod draw;
mod fill;
mod places;
mod report;
mod session;
pub mod steady;
mod text;
pub mod trace;
pub mod uniform;
pub mod zipf;

pub use fill::Fill;
pub use report::{FreeUnits, Report};
pub use session::Progress;
pub use text::parse;

use config::Diagnostic;
use ftl::page_map::Ftl;
use session::{Halt, Session};
use ssd::spec::FlashSpec;

config::policies! {
    /// The state that the device is brought into before the run.
    pub family Precondition: choice {
        /// As it comes from the factory: nothing written.
        default none,
        /// Written once, in order.
        ///
        /// Implicit: costs a record for each reclaim unit, not for each map unit, until something is overwritten.
        sequential(Fill),
        /// Written once, one map unit after another to the next group in turn: neighbours lie in different planes.
        ///
        /// What small writes in order leave behind that go to any idle plane. Implicit, like `sequential`, and the same where a map
        /// unit is a program unit.
        interleaved(Fill),
        /// Written once, in random order, then overwritten at random until enough is invalid.
        ///
        /// No garbage collection takes place: an invalid share that needs it is refused.
        uniform(uniform::Params),
        /// Written in order, then overwritten with Zipf-distributed popularity.
        ///
        /// The popularity of unit number k is in proportion to `k^-theta`; popular units are scattered over the share.
        zipf(zipf::Params),
        /// Written in order, then at random until write amplification is steady.
        ///
        /// A round is a fifth of a drive write, or a thousandth of the device if that is more. Write amplification is
        /// steady when over five windows of equal length (one round each, or two, four …) its range is at most twice
        /// `tolerance` and the rise of its fitted line at most `tolerance`, both relative to its mean, and at least one
        /// drive write has passed since the first reclaim. With a tolerance of 10 % this is how SNIA's Solid State
        /// Storage Performance Test Specification defines it. 20 drive writes after the first reclaim it ends anyway,
        /// and the report says that it is not steady.
        steady(steady::Params),
        /// Written in order, then with the writes of a trace, one after another.
        ///
        /// Units that a write touches are written whole; deallocations count, reads do not.
        trace(trace::Params),
        /// The steady state under uniform random writes, drawn from its theory.
        ///
        /// Valid counts are drawn from the stationary histogram of the victim policy (`greedy`, `d_choices`, `random`,
        /// `fifo`), frontiers and free units from one cycle of the collector. Which units are valid where is random;
        /// under `fifo`, valid counts follow the age. No unit is written: O(units), and no wear.
        analytic(Fill),
    }
}

/// Brings a device into a state. The counters of the FTL start from zero afterwards.
///
/// # Errors
/// If the state cannot be reached, with the arithmetic.
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
    Ok(report.expect("nobody wants an early end"))
}

/// As [`apply`]; `watch` is told how far it is, many times a second, and says whether to give it up. Nothing if it was: the device
/// is then on its way, and of no use.
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
        Precondition::sequential(fill) => fill::sequential(fill, &mut session)?,
        Precondition::interleaved(fill) => fill::interleaved(fill, &mut session)?,
        Precondition::uniform(params) => uniform::apply(params, &mut session)?,
        Precondition::zipf(params) => zipf::apply(params, &mut session)?,
        Precondition::steady(params) => steady::apply(params, &mut session)?,
        Precondition::trace(params) => trace::apply(params, &mut session)?,
        Precondition::analytic(fill) => analytic::apply(fill, &mut session)?,
    }
    Ok(session.report(state.name())?)
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
