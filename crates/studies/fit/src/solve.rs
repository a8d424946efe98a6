//! Values at which all figures are met at once.

use super::bench::Bench;
use super::choose::{Target, as_time};
use super::search::{Range, search};
use config::Diagnostic;

/// Each value moves the figures of the others a little: they are looked for again, so often at most.
const ROUNDS: u32 = 4;
/// A figure is met within this share; a percentile, which moves in steps, within a larger one.
const MET: f64 = 0.01;
const MET_TAIL: f64 = 0.05;

/// A value that was found.
#[derive(Clone, Debug)]
pub(super) struct Solved {
    pub(super) target: Target,
    /// The value, microseconds.
    pub(super) at: f64,
    /// The figure there, in its own unit.
    pub(super) reached: f64,
}

impl Solved {
    /// Whether the figure is met.
    pub(super) fn is_met(&self) -> bool {
        let within = if self.target.measure.is_tail() { MET_TAIL } else { MET };
        (self.reached / self.target.figure - 1.0).abs() <= within
    }
}

/// Overrides of what was found.
pub(super) fn assignments(bench: &Bench<'_>, found: &[Solved]) -> Vec<String> {
    found.iter().map(|one| one.target.knob.assignment(bench.base, one.at)).collect()
}

/// Looks for the values of all targets on a drive with these changes.
///
/// # Errors
/// As [`Bench::run`].
pub(super) fn solve(
    bench: &Bench<'_>,
    set: &[String],
    targets: &[Target],
) -> Result<Vec<Solved>, Diagnostic> {
    let begun = |target: &Target| Solved { at: target.guess, reached: f64::NAN, target: target.clone() };
    let mut found: Vec<Solved> = targets.iter().map(begun).collect();
    for _ in 0..ROUNDS {
        let mut moved = false;
        for n in 0..found.len() {
            let target = found[n].target.clone();
            let range = Range { start: found[n].at, ..target.knob.range(bench.base) };
            let others: Vec<String> = assignments(bench, &found);
            let at = |at: f64| {
                let mut values = [set, &others].concat();
                values[set.len() + n] = target.knob.assignment(bench.base, at);
                let figure = bench.figure(&values, &target.job, target.worn, target.measure)?;
                Ok::<_, Diagnostic>(as_time(target.measure, figure))
            };
            let best = search(as_time(target.measure, target.figure), range, at)?;
            moved |= best.at.to_bits() != found[n].at.to_bits();
            found[n].at = best.at;
            found[n].reached = as_time(target.measure, best.reached);
        }
        if !moved {
            break;
        }
    }
    Ok(found)
}

/// Whether every value that is needed was found.
pub(super) fn all_met(found: &[Solved]) -> bool {
    found.iter().all(Solved::is_met)
}
