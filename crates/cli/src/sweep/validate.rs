//! What can be known to be wrong before anything runs.

use super::axis::Axis;
use super::file::Sweep;
use super::metrics::refuse_absent_parts;
use super::point::{advance, plan};
use config::Diagnostic;
use machine::run::{Plan, check};
use machine::spec::Kind;

/// Combinations of the axes' values that are all looked at. Of more, each value is looked at once, beside the first
/// values of the other axes: seconds, not minutes, for a sweep of any size.
const ALL_LOOKED_AT: usize = 2_000;

/// Looks at every combination of the axes' values and at every workload, so that a sweep is refused before its first run.
///
/// # Errors
/// The first value that cannot be, with its place in the file.
pub(crate) fn refuse_unusable(sweep: &Sweep) -> Result<(), Diagnostic> {
    let seed = sweep.seeds.first().copied().unwrap_or(1);
    let mut most = vec![0; Kind::ALL.len()];
    for steps in combinations(sweep) {
        let plan = plan(sweep, &[], &steps, seed);
        let (loaded, _) = check(&plan).map_err(|fault| at_its_axis(sweep, &steps, fault))?;
        for (most, kind) in most.iter_mut().zip(Kind::ALL) {
            *most = loaded.spec.count(*kind).max(*most);
        }
    }
    refuse_absent_parts(sweep, |kind| most[kind as usize])?;
    let first = vec![0; sweep.axes.len()];
    for (n, workloads) in sweep.workloads.iter().enumerate() {
        let plan = plan(sweep, workloads, &first, seed);
        check(&plan).map_err(|fault| at_its_workload(sweep, n, &plan, fault))?;
    }
    Ok(())
}

/// Steps of the axes that are looked at.
fn combinations(sweep: &Sweep) -> Vec<Vec<usize>> {
    let first = vec![0; sweep.axes.len()];
    let sizes = || sweep.axes.iter().map(|axis| axis.rows.len());
    let mut found = vec![first.clone()];
    if sizes().try_fold(1_usize, usize::checked_mul).is_some_and(|all| all <= ALL_LOOKED_AT) {
        let mut steps = first;
        while advance(sweep, &mut steps) {
            found.push(steps.clone());
        }
    } else {
        for (at, size) in sizes().enumerate() {
            found.extend((1..size).map(|step| {
                let mut steps = first.clone();
                steps[at] = step;
                steps
            }));
        }
    }
    found
}

/// A fault of a combination, told at the value in the sweep's file if it is one of an axis's.
fn at_its_axis(sweep: &Sweep, steps: &[usize], mut fault: Diagnostic) -> Diagnostic {
    let chosen = || sweep.axes.iter().zip(steps.iter().copied());
    let place = fault.place.as_ref().and_then(|place| {
        let is_its = |(axis, step): &(&Axis, usize)| axis.assignments(*step).any(|set| set == place.text);
        let (axis, step) = chosen().find(is_its)?;
        let at = axis.assignments(step).position(|set| set == place.text)?;
        Some(sweep.place_of(axis, &axis.keys[at], step))
    });
    if let Some(place) = place {
        fault = fault.at(place);
    }
    if sweep.axes.iter().any(|axis| axis.rows.len() > 1) {
        let set = chosen().flat_map(|(axis, step)| axis.assignments(step)).collect::<Vec<_>>().join(", ");
        fault.what = format!("{} (with {set})", fault.what);
    }
    fault
}

/// A fault of a workload, told at the workload in the sweep's file if it is not one inside a file of its own.
fn at_its_workload(sweep: &Sweep, n: usize, plan: &Plan, fault: Diagnostic) -> Diagnostic {
    let inside = fault.place.as_ref().is_some_and(|place| place.line > 0);
    if inside {
        return fault;
    }
    let text = plan.workloads.join(" + ");
    let what =
        if fault.what.contains(&text) { fault.what.clone() } else { format!("{}: {text}", fault.what) };
    Diagnostic { what, ..fault }.at(sweep.place_of_workload(n))
}
