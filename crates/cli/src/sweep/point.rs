//! The runs of a sweep.

use super::file::Sweep;
use machine::run::Plan;
use serde_json::Value;

/// One run.
pub(crate) struct Point {
    /// What distinguishes it, by column of the table.
    pub(crate) labels: Vec<Value>,
    /// The run.
    pub(crate) plan: Plan,
}

/// The columns of [`Point::labels`].
pub(crate) fn columns(sweep: &Sweep) -> Vec<String> {
    let keys = sweep.axes.iter().flat_map(|axis| axis.keys.iter().cloned());
    ["workload".to_owned()].into_iter().chain(keys).chain(["seed".to_owned()]).collect()
}

/// Every run: workloads, then the axes in order, then seeds; the last changes fastest.
pub(crate) fn points(sweep: &Sweep) -> Vec<Point> {
    let mut points = Vec::new();
    for workloads in &sweep.workloads {
        let mut steps = vec![0; sweep.axes.len()];
        loop {
            points.extend(sweep.seeds.iter().map(|seed| point(sweep, workloads, &steps, *seed)));
            if !advance(sweep, &mut steps) {
                break;
            }
        }
    }
    points
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

/// The run of a combination.
pub(super) fn plan(sweep: &Sweep, workloads: &[String], steps: &[usize], seed: u64) -> Plan {
    Plan {
        system: sweep.system.clone(),
        text: None,
        set: sweep.axes.iter().zip(steps).flat_map(|(axis, step)| axis.assignments(*step)).collect(),
        workloads: workloads.to_vec(),
        seed,
        precondition: None,
        warmup: sweep.warmup,
        trace: sweep.trace.clone(),
        queue_depth: sweep.queue_depth,
    }
}

fn point(sweep: &Sweep, workloads: &[String], steps: &[usize], seed: u64) -> Point {
    let values = sweep.axes.iter().zip(steps).flat_map(|(axis, step)| &axis.rows[*step]);
    let mut labels = vec![Value::from(workloads.join(" + "))];
    labels.extend(values.map(label));
    labels.push(seed.into());
    Point { labels, plan: plan(sweep, workloads, steps, seed) }
}

/// A value of an axis; what is no number, truth value or text is TOML.
fn label(value: &toml::Value) -> Value {
    match value {
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => (*number).into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::String(text) => text.clone().into(),
        other => other.to_string().into(),
    }
}
