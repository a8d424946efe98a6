//! The runs of a sweep.

use super::Sweep;
use machine::run::Plan;

/// One run.
pub(crate) struct Point {
    /// What distinguishes it, by column of the table.
    pub(crate) labels: Vec<String>,
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
fn advance(sweep: &Sweep, steps: &mut [usize]) -> bool {
    for (step, axis) in steps.iter_mut().zip(&sweep.axes).rev() {
        *step += 1;
        if *step < axis.rows.len() {
            return true;
        }
        *step = 0;
    }
    false
}

fn point(sweep: &Sweep, workloads: &[String], steps: &[usize], seed: u64) -> Point {
    let mut labels = vec![workloads.join(" + ")];
    let mut set = Vec::new();
    for (axis, step) in sweep.axes.iter().zip(steps) {
        for (key, value) in axis.keys.iter().zip(&axis.rows[*step]) {
            set.push(format!("{key}={value}"));
            labels.push(value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        }
    }
    labels.push(seed.to_string());
    let plan = Plan {
        system: sweep.system.clone(),
        set,
        workloads: workloads.to_vec(),
        seed,
        precondition: None,
        warmup: sweep.warmup,
        trace: sweep.trace.clone(),
        queue_depth: sweep.queue_depth,
    };
    Point { labels, plan }
}
