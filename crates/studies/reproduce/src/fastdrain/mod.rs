//! FastDrain (Zhang et al., 2020). What was decided before the first ratio was seen, and what was changed after, stands in
//! `papers/fastdrain/README.md`.

mod metrics;
mod rows;
mod suite;
mod variants;

use super::expected::Expected;
use super::study::Entry;
use super::{Effort, Reading};
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/fastdrain/expected.toml"))
}

/// The readings, as data.
pub(super) const READINGS: &str = include_str!("../../../../../papers/fastdrain/readings.toml");

/// The rows: the paper's, and with everything the sweeps.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite).map(Entry::seen));
    own.chain(variants::entries(expected.figures(), effort, reading)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let figures: Vec<String> = expected().figures().iter().map(|figure| figure.id.clone()).collect();
        let rows: Vec<String> =
            entries(Effort::Full, &Reading::default()).into_iter().map(|entry| entry.id).collect();
        assert_eq!((rows.len(), &rows), (12, &figures));
    }
}
