//! FlashAbacus (Zhang and Jung, 2018). How each figure is read from runs was decided before any was; it stands in `papers/flashabacus/README.md`.

mod constants;
mod metrics;
mod rows;
mod serial;
mod spent;
mod suite;
mod variants;

use super::Effort;
use super::expected::Expected;
use super::study::Entry;
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/flashabacus/expected.toml"))
}

/// The rows: the paper's, and beside them those under other assumptions.
pub(super) fn entries(effort: Effort) -> Vec<Entry> {
    let suite = Suite::of(effort);
    let expected = expected();
    let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
    own.chain(variants::entries(expected.figures(), effort)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_is_a_row() {
        let expected = expected();
        let figures: Vec<String> = expected.figures().iter().map(|figure| figure.id.clone()).collect();
        let suite = Suite::of(Effort::Full);
        let own = expected.figures().iter().filter_map(|figure| rows::entry(figure, &suite));
        let rows: Vec<String> = own.map(|entry| entry.id).collect();
        assert_eq!(rows, figures);
    }
}
