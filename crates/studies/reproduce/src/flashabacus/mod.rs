//! FlashAbacus (Zhang and Jung, 2018). How each figure is read from runs was decided before any was; it stands in `papers/flashabacus/README.md`.

mod choices;
mod constants;
mod metrics;
mod rows;
mod serial;
mod spent;
mod suite;
mod variants;

use super::expected::Expected;
use super::study::Entry;
use super::{Effort, Reading};
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/flashabacus/expected.toml"))
}

/// The readings of the paper, and the ranges that are swept beside them.
pub(super) const READINGS: &str = include_str!("../../../../../papers/flashabacus/readings.toml");

/// The rows: the paper's, and beside them those under other assumptions.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    own.chain(variants::entries(expected.figures(), effort, reading)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let expected = expected();
        let figures: Vec<String> = expected.figures().iter().map(|figure| figure.id.clone()).collect();
        let suite = Suite::of(Effort::Full, &Reading::default());
        let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
        let rows: Vec<String> = own.map(|entry| entry.id).collect();
        assert_eq!(rows, figures);
    }
}
