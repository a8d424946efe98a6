//! State `uniform`: written once in random order, then overwritten at random, without garbage collection.

use super::session::{Halt, Session};
use super::{unit_of_group, units_of_group};
use config::Diagnostic;
use config::units::Share;
use proto::Lpn;
use requests::synth::Permutation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Parameters of `uniform`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// Share of the logical space, from its beginning.
    pub share: Share,
    /// Share of the programmed map units that is invalid in the end; zero overwrites nothing. Exact to one program
    /// unit, plus one for each plane if planes that share commands are kept in step.
    pub invalid: Share,
}

impl Default for Params {
    fn default() -> Params {
        Params { share: Share::percent(100), invalid: Share::ZERO }
    }
}

pub(super) fn apply(params: &Params, session: &mut Session<'_>) -> Result<(), Halt> {
    let units = session.share(params.share)?;
    let programmed = programmed_in_the_end(params, units, session)?;
    session.work = Some(programmed);
    let order = Permutation::new(units, session.key("order"));
    session.write((0..units).map(|at| order.at(at)))?;
    let per_program = u64::from(session.ftl.geo.units_per_program);
    let planes = session.planes_in_step();
    let mut overwritten = 0;
    while session.writer.programs() * per_program < programmed {
        let unit = session.rng.below(units);
        let group = session.writer.group_of(session.ftl, Lpn(unit));
        if group.is_some_and(|group| is_full(group, session)) {
            continue;
        }
        session.write_one(unit)?;
        overwritten += 1;
        // Overwrite once more in each plane that shares commands with this one: they stay in step.
        let Some(group) = group.filter(|_| planes > 1) else { continue };
        let first = group / planes * planes;
        for mate in (first..first + planes).filter(|mate| *mate != group) {
            let count = units_of_group(&session.ftl.geo, mate, units);
            let is_done = session.writer.programs() * per_program >= programmed;
            if count > 0 && !is_done && !is_full(mate, session) {
                let nth = session.rng.below(count);
                session.write_one(unit_of_group(&session.ftl.geo, mate, nth))?;
                overwritten += 1;
            }
        }
    }
    if overwritten > 0 {
        // Nothing was moved.
        session.amplification = Some(1.0);
    }
    Ok(())
}

/// Returns whether a group can continue only by garbage collection. The arithmetic of the share leaves room in some
/// other group.
fn is_full(group: u32, session: &Session<'_>) -> bool {
    session.ftl.free(group) <= session.ftl.thresholds.start
}

/// Map units that must be programmed for the invalid share: valid units divided by the valid share.
fn programmed_in_the_end(params: &Params, units: u64, session: &Session<'_>) -> Result<u64, Diagnostic> {
    let geo = &session.ftl.geo;
    let (blocks, kept) = (session.ftl.fewest_usable(), session.ftl.thresholds.start);
    // Garbage collection starts with the write that finds no more than `kept` units free, behind the first program unit
    // of the reclaim unit that was opened last.
    let whole = blocks.saturating_sub(kept + 1);
    let programs = u64::from(whole) * u64::from(geo.programs_per_ru) + 1;
    let space = programs * u64::from(geo.units_per_program) * u64::from(geo.groups);
    let valid = 1.0 - params.invalid.get();
    let needed = if valid > 0.0 { (units as f64 / valid).round() } else { f64::INFINITY };
    if needed <= space as f64 {
        return Ok(needed as u64);
    }
    let most = 100.0 * (1.0 - units as f64 / space as f64);
    let what = format!(
        "an invalid share of {} needs {needed:.0} programmed map units, {units} valid ones over {valid}; without garbage collection, {} groups hold {space}: {whole} of {blocks} reclaim units each and a program unit, with {kept} kept free",
        params.invalid, geo.groups,
    );
    Err(Diagnostic::new(what).help(if most > 0.0 {
        format!(
            "at most {:.2} % can be invalid; `steady` exceeds that with garbage collection",
            (most * 100.0).floor() / 100.0
        )
    } else {
        "lower the share".to_owned()
    }))
}
