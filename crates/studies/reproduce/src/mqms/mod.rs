//! MQMS (Gundawar, Chung and Kim, 2024). What was decided before the first ratio was seen stands in `papers/mqms/README.md`.

mod ablation;
mod alloc;
mod curve;
mod explain;
mod metrics;
mod places;
mod policy;
mod rows;
mod suite;
mod whole;

use super::expected::Expected;
use super::study::Entry;
use super::{Effort, Reading};
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/mqms/expected.toml"))
}

/// The readings, as data.
pub(super) const READINGS: &str = include_str!("../../../../../papers/mqms/readings.toml");

/// The rows: those that take minutes, or all. What stands beside a row under the other placement stands beside the first reading.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let figures = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    let own =
        whole::entries(&suite).into_iter().chain(ablation::entries(&suite)).chain(explain::entries(&suite));
    let beside = rows::beside(expected.figures(), &suite).into_iter().chain(places::entries(&suite));
    figures.chain(beside).chain(own).chain(curve::entries(effort)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let figures: Vec<String> = expected().figures().iter().map(|figure| figure.id.clone()).collect();
        let rows: Vec<String> =
            entries(Effort::Full, &Reading::default()).into_iter().map(|entry| entry.id).collect();
        let missing: Vec<&String> = figures.iter().filter(|figure| !rows.contains(figure)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
