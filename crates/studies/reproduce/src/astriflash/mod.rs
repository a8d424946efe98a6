//! AstriFlash (Gupta et al., HPCA 2023). What was decided before the first ratio was seen stands in `papers/astriflash/README.md`.

mod curve;
mod gc;
mod growth;
mod metrics;
mod model;
mod rows;
mod suite;
mod tail;
mod variants;

use super::expected::Expected;
use super::study::Entry;
use super::{Effort, Reading};
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/astriflash/expected.toml"))
}

/// The figure that the paper cites from elsewhere.
const COLLECTING: &str = "astriflash.gc.blocked";

/// The readings, as data.
pub(super) const READINGS: &str = include_str!("../../../../../papers/astriflash/readings.toml");

/// The rows. What a reading chooses are keys, which rows do not see.
pub(super) fn entries(effort: Effort, _: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort);
    let expected = expected();
    let figures = expected.figures();
    let own = figures.iter().filter_map(|figure| rows::entry(figure, &suite));
    let collecting = figures.iter().filter(|figure| figure.id == COLLECTING);
    let collecting = collecting.flat_map(|figure| gc::entries(figure, &suite, effort));
    let swept = variants::entries(figures, &suite, effort);
    own.chain(collecting).chain(swept).chain(growth::entries(figures, &suite, effort)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let mut figures: Vec<String> = expected().figures().iter().map(|figure| figure.id.clone()).collect();
        figures.retain(|id| id != COLLECTING);
        let rows: Vec<String> =
            entries(Effort::Full, &Reading::default()).into_iter().map(|entry| entry.id).collect();
        assert!(rows.starts_with(&figures), "{rows:?}");
        assert!(entries(Effort::Whole, &Reading::default()).iter().any(|entry| entry.id == COLLECTING));
    }
}
