//! ZnG (Zhang and Jung, ISCA 2020). What was decided before the first ratio was seen stands in `papers/zng/README.md`.

mod constants;
mod engine;
mod gc;
mod metrics;
mod programs;
mod rows;
mod slice;
mod suite;
mod variants;

use super::expected::Expected;
use super::study::Entry;
use super::{Effort, Reading};
use suite::Suite;

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/zng/expected.toml"))
}

/// The readings of the paper.
pub(super) const READINGS: &str = include_str!("../../../../../papers/zng/readings.toml");

/// Figures that only `--full` works out: designs of parts, and programs alone.
const DESIGNS: [&str; 6] = [
    "zng.read.",
    "zng.write.",
    "zng.net.",
    "zng.motivation.direct",
    "zng.motivation.read",
    "zng.motivation.write",
];

/// The rows: those that take minutes, or all.
pub(super) fn entries(effort: Effort, reading: &Reading) -> Vec<Entry> {
    let suite = Suite::of(effort, reading);
    let expected = expected();
    let left_out = |id: &str| effort == Effort::Full && DESIGNS.iter().any(|begin| id.starts_with(begin));
    let figures = expected.figures().iter().filter(|figure| !left_out(&figure.id));
    let mut entries: Vec<Entry> =
        figures.clone().filter_map(|figure| rows::entry(figure, &suite, effort)).collect();
    entries.extend(figures.clone().filter_map(|figure| rows::of_the_other_engine(figure, &suite)));
    if effort == Effort::Whole {
        entries.extend(figures.clone().flat_map(|figure| rows::at_other_scales(figure, &suite)));
        entries.extend(figures.clone().flat_map(|figure| rows::varied(figure, &suite)));
        entries.extend(figures.clone().filter_map(|figure| gc::over_the_run(figure, &suite)));
        entries.extend(figures.flat_map(|figure| rows::in_windows(figure, &suite)));
    }
    entries
}
