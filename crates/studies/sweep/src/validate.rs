//! What can be known to be wrong before anything runs.

use super::axis::{Key, assignment};
use super::file::Sweep;
use super::metrics::refuse_absent_parts;
use super::point::{Cell, advance, plan, settings};
use config::{Diagnostic, Place};
use machine::run::{Plan, check};
use machine::spec::Kind;

/// Combinations of the axes' values that are all looked at. Of more, each value is looked at once, beside the first
/// values of the other axes: seconds, not minutes, for a sweep of any size.
const ALL_LOOKED_AT: usize = 2_000;

/// Looks at every combination of the axes' values and at every workload, so that a sweep is refused before its first run.
///
/// # Errors
/// The first value that cannot be, with its place in the file.
pub fn refuse_unusable(sweep: &Sweep) -> Result<(), Diagnostic> {
    let mut most = vec![0; Kind::ALL.len()];
    let all = combinations(sweep);
    for cell in &all {
        let (loaded, _) =
            check(&plan(sweep, cell, false)).map_err(|fault| at_its_axis(sweep, cell, fault))?;
        for (most, kind) in most.iter_mut().zip(Kind::ALL) {
            *most = loaded.spec.count(*kind).max(*most);
        }
    }
    refuse_absent_parts(sweep, |kind| most[kind as usize])?;
    // Files are read through once, with the first combination; what options make of a job is looked at with each of their values.
    let has_options = |cell: &Cell| settings(sweep, cell).iter().any(|(key, _)| key.option().is_some());
    for workload in 0..sweep.workloads.len() {
        for (_, cell) in all.iter().enumerate().filter(|(n, cell)| *n == 0 || has_options(cell)) {
            let cell = Cell { workload, ..cell.clone() };
            let plan = plan(sweep, &cell, true);
            check(&plan).map_err(|fault| at_its_workload(sweep, &cell, &plan, fault))?;
        }
    }
    Ok(())
}

/// Combinations that are looked at.
fn combinations(sweep: &Sweep) -> Vec<Cell> {
    let sought = sweep.search.as_ref().map_or_else(Vec::new, |search| search.first_and_last());
    let first = Cell {
        system: 0,
        workload: 0,
        steps: vec![0; sweep.axes.len()],
        sought: sought.first().copied(),
        seed: 0,
    };
    let sizes = || sweep.axes.iter().map(|axis| axis.rows.len());
    let mut found = vec![first.clone()];
    let all = sizes().try_fold(sweep.systems.len(), usize::checked_mul);
    if all.is_some_and(|all| all <= ALL_LOOKED_AT) {
        for system in 0..sweep.systems.len() {
            let mut steps = first.steps.clone();
            if system > 0 {
                found.push(Cell { system, steps: steps.clone(), ..first.clone() });
            }
            while advance(sweep, &mut steps) {
                found.push(Cell { system, steps: steps.clone(), ..first.clone() });
            }
        }
    } else {
        found.extend((1..sweep.systems.len()).map(|system| Cell { system, ..first.clone() }));
        for (at, size) in sizes().enumerate() {
            found.extend((1..size).map(|step| {
                let mut cell = first.clone();
                cell.steps[at] = step;
                cell
            }));
        }
    }
    found.extend(sought.into_iter().skip(1).map(|value| Cell { sought: Some(value), ..first.clone() }));
    found
}

/// Where the values of a combination stand in the file, with what each sets.
fn places(sweep: &Sweep, cell: &Cell) -> Vec<(Key, toml::Value, Place)> {
    let axes = sweep.axes.iter().zip(&cell.steps).flat_map(|(axis, step)| {
        let settings = axis.settings(*step).enumerate();
        settings.map(|(at, (key, value))| (key.clone(), value.clone(), sweep.place(&axis.place(at, *step))))
    });
    let search = sweep.search.iter().zip(cell.sought).map(|(search, sought)| {
        let place = format!("search.{}.{}", search.name(), search.key_of_key());
        (search.key.clone(), search.values.at(sought), sweep.place(&place))
    });
    axes.chain(search).collect()
}

/// A fault of a combination, told at the value in the sweep's file if it is one of an axis's.
fn at_its_axis(sweep: &Sweep, cell: &Cell, mut fault: Diagnostic) -> Diagnostic {
    let values = places(sweep, cell);
    let text = fault.place.as_ref().map(|place| place.text.clone());
    let is_its = |(key, value, _): &&(Key, toml::Value, Place)| assignment((key, value)) == text;
    if let Some((_, value, place)) = values.iter().find(is_its).filter(|_| text.is_some()) {
        fault = fault.at(place.clone());
        // The values of the axis were written as the one value of a key that is an array itself.
        if !value.is_array() && fault.what.ends_with("is not an array") {
            fault = fault.help("the key's value is an array: its axis is an array of arrays, [[...], [...]]");
        }
    } else if sweep.has_systems && fault.place.is_none() {
        fault = fault.at(sweep.place(&format!("system.{}", cell.system)));
    }
    if sweep.axes.iter().any(|axis| axis.rows.len() > 1) || sweep.search.is_some() {
        let set = values.iter().map(|(key, value, _)| format!("{}={value}", key.text()));
        fault.what = format!("{} (with {})", fault.what, set.collect::<Vec<_>>().join(", "));
    }
    fault
}

/// A fault of a workload, told in the sweep's file if it is not one inside a file of its own: at the option that it is about, else at
/// the workload.
fn at_its_workload(sweep: &Sweep, cell: &Cell, plan: &Plan, fault: Diagnostic) -> Diagnostic {
    let inside = fault.place.as_ref().is_some_and(|place| place.line > 0);
    if inside {
        return fault;
    }
    let text = plan.workloads.join(" + ");
    let what =
        if fault.what.contains(&text) { fault.what.clone() } else { format!("{}: {text}", fault.what) };
    let values = places(sweep, cell);
    let key = fault.place.as_ref().map(|place| place.key.clone());
    let named = values.iter().find(|(at, ..)| at.option().is_some() && at.option() == key.as_deref());
    let place = match named {
        Some((.., place)) => place.clone(),
        None => sweep.place_of_workload(cell.workload),
    };
    Diagnostic { what, ..fault }.at(place)
}
