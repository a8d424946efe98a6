//! The runs of a sweep.

use super::axis::{Key, assignment};
use super::file::{Sweep, with_options};
use super::{refuse_absent_parts, search::option_text};
use config::{Diagnostic, Place};
use machine::{
    run::{Plan, check},
    spec::Kind,
};
use serde_json::Value;

/// A run by the numbers of its values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Cell {
    /// Of the systems.
    pub(crate) system: usize,
    /// Of the workloads.
    pub(crate) workload: usize,
    /// Of the values of each axis.
    pub(crate) steps: Vec<usize>,
    /// Of the values that a search chooses from.
    pub(crate) sought: Option<u64>,
    /// Of the seeds.
    pub(crate) seed: usize,
}

/// One run.
#[derive(Clone)]
pub(crate) struct Point {
    /// Where it is among all.
    pub(crate) cell: Cell,
    /// What distinguishes it, by column of the table.
    pub(crate) labels: Vec<Value>,
    /// The run.
    pub(crate) plan: Plan,
}

/// The columns of [`Point::labels`].
pub(crate) fn columns(sweep: &Sweep) -> Vec<String> {
    let axes = sweep.axes.iter().flat_map(|axis| &axis.keys);
    let keys = axes.chain(sweep.search.iter().map(|search| &search.key)).map(Key::column);
    let system = sweep.has_systems.then(|| "system".to_owned());
    system.into_iter().chain(["workload".to_owned()]).chain(keys).chain(["seed".to_owned()]).collect()
}

/// Every combination: systems, workloads, then the axes in order, then seeds; the last changes fastest.
pub(crate) fn cells(sweep: &Sweep) -> Vec<Cell> {
    let mut cells = Vec::new();
    for system in 0..sweep.systems.len() {
        for workload in 0..sweep.workloads.len() {
            let mut steps = vec![0; sweep.axes.len()];
            loop {
                let of_seed = |seed| Cell { system, workload, steps: steps.clone(), sought: None, seed };
                cells.extend((0..sweep.seeds.len()).map(of_seed));
                if !advance(sweep, &mut steps) {
                    break;
                }
            }
        }
    }
    cells
}

/// The next combination; false after the last.
pub(super) fn advance(sweep: &Sweep, steps: &mut [usize]) -> bool {
    for (step, axis) in steps.iter_mut().zip(&sweep.axes).rev() {
        *step += 1;
        if *step < axis.rows.len() {
            return true;
        }
        *step = 0;
    }
    false
}

/// What a combination sets.
pub(super) fn settings(sweep: &Sweep, cell: &Cell) -> Vec<(Key, toml::Value)> {
    let axes = sweep.axes.iter().zip(&cell.steps).flat_map(|(axis, step)| axis.settings(*step));
    let mut all: Vec<(Key, toml::Value)> = axes.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let (Some(search), Some(sought)) = (&sweep.search, cell.sought) {
        all.push((search.key.clone(), search.values.at(sought)));
    }
    all
}

/// The options that a combination puts on its workloads.
fn options(settings: &[(Key, toml::Value)]) -> Vec<(&str, String)> {
    settings.iter().filter_map(|(key, value)| Some((key.option()?, option_text(value)?))).collect()
}

/// The run of a combination; without its workloads, its system alone.
pub(super) fn plan(sweep: &Sweep, cell: &Cell, has_workloads: bool) -> Plan {
    let settings = settings(sweep, cell);
    let workloads = if has_workloads { sweep.workloads[cell.workload].as_slice() } else { &[] };
    Plan {
        system: sweep.systems[cell.system].clone(),
        text: None,
        set: settings.iter().filter_map(|(key, value)| assignment((key, value))).collect(),
        workloads: workloads.iter().map(|text| with_options(text, &options(&settings))).collect(),
        seed: sweep.seeds.get(cell.seed).copied().unwrap_or(1),
        precondition: None,
        warmup: sweep.warmup,
        trace: sweep.trace.clone(),
        queue_depth: sweep.queue_depth,
    }
}

/// The run of a combination, with what distinguishes it.
pub(crate) fn point(sweep: &Sweep, cell: Cell) -> Point {
    let plan = plan(sweep, &cell, true);
    let settings = settings(sweep, &cell);
    let mut labels: Vec<Value> = sweep.has_systems.then(|| plan.system.clone().into()).into_iter().collect();
    labels.push(name_of_workload(sweep, &cell).into());
    labels.extend(settings.iter().map(|(_, value)| label(value)));
    labels.push(plan.seed.into());
    Point { cell, labels, plan }
}

/// The workloads of a run, with the options that all runs have.
fn name_of_workload(sweep: &Sweep, cell: &Cell) -> String {
    let fixed = sweep.axes.iter().filter(|axis| axis.rows.len() == 1).flat_map(|axis| axis.settings(0));
    let fixed: Vec<(Key, toml::Value)> = fixed.map(|(key, value)| (key.clone(), value.clone())).collect();
    let options = options(&fixed);
    let texts = sweep.workloads[cell.workload].iter().map(|text| with_options(text, &options));
    texts.collect::<Vec<_>>().join(" + ")
}

/// A value of an axis; what is no number, truth value or text is TOML.
pub(super) fn label(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}

// What can be known to be wrong before anything runs.

/// Combinations of the axes' values that are all looked at. Of more, each value is looked at once, beside the first
/// values of the other axes: seconds, not minutes, for a sweep of any size.
const ALL_LOOKED_AT: usize = 2_000;

/// Looks at every combination of the axes' values and at every workload, so that a sweep is refused before its first run.
///
/// # Errors
/// The first value that cannot be, with its place in the file.
pub(crate) fn refuse_unusable(sweep: &Sweep) -> Result<(), Diagnostic> {
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
