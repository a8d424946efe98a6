//! ZnG (Zhang and Jung, ISCA 2020). What was decided before the first ratio was seen stands in `papers/zng/README.md`.

mod constants;
mod mean;
mod rows;
mod variants;

use super::Effort;
use super::expected::Expected;
use super::study::Entry;

/// The pairs that the paper's text names.
const NAMED: [&str; 4] = ["betw-back", "bfs1-gaus", "bfs2-gaus", "bfs6-gaus"];
/// All pairs: a read-intensive program with a write-intensive one.
const PAIRS: [&str; 12] = [
    "betw-back",
    "bfs1-gaus",
    "bfs2-gaus",
    "bfs3-FDT",
    "bfs4-back",
    "bfs5-back",
    "bfs6-gaus",
    "gc1-FDT",
    "gc2-FDT",
    "sssp3-gram",
    "deg-gram",
    "pr-gaus",
];
/// The read-intensive programs, alone: Fig. 5 has twelve workloads.
const SINGLES: [&str; 12] =
    ["betw", "bfs1", "bfs2", "bfs3", "bfs4", "bfs5", "bfs6", "gc1", "gc2", "sssp3", "deg", "pr"];

/// What a study runs.
#[derive(Clone)]
struct Suite {
    pairs: Vec<&'static str>,
    singles: Vec<&'static str>,
    seeds: Vec<u64>,
}

impl Suite {
    fn of(effort: Effort) -> Suite {
        match effort {
            Effort::Whole => Suite { pairs: PAIRS.to_vec(), singles: SINGLES.to_vec(), seeds: vec![1, 2, 3] },
            Effort::Full => Suite { pairs: NAMED.to_vec(), singles: vec!["betw", "bfs1"], seeds: vec![1] },
            Effort::Quick => Suite { pairs: vec![NAMED[0]], singles: vec!["betw"], seeds: vec![1] },
        }
    }
}

/// The paper's figures.
fn expected() -> Expected {
    Expected::read(include_str!("../../../../../papers/zng/expected.toml"))
}

/// The rows: those that take minutes, or all.
pub(super) fn entries(effort: Effort) -> Vec<Entry> {
    let suite = Suite::of(effort);
    let expected = expected();
    let figures = expected.figures().iter();
    figures.filter_map(|figure| rows::entry(figure, &suite, effort)).collect()
}
