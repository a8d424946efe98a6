//! AstriFlash (Gupta et al., HPCA 2023). What was decided before the first ratio was seen stands in `papers/astriflash/README.md`.

mod curve;
mod metrics;
mod model;
mod rows;
mod suite;
mod tail;

use super::Effort;
use super::expected::Expected;
use super::study::Entry;
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/astriflash/expected.toml"))
}

/// The rows.
pub(super) fn entries(effort: Effort) -> Vec<Entry> {
    let suite = Suite::of(effort);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    let planes = expected.figures().iter().filter_map(|figure| rows::with_planes(figure, &suite));
    own.chain(planes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_that_the_paper_does_not_cite_is_a_row() {
        let mut figures: Vec<String> = expected().figures().iter().map(|figure| figure.id.clone()).collect();
        figures.retain(|id| id != "astriflash.gc.blocked");
        let rows: Vec<String> = entries(Effort::Full).into_iter().map(|entry| entry.id).collect();
        assert!(rows.starts_with(&figures), "{rows:?}");
    }
}
