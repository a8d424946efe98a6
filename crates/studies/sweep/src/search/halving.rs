//! Finds the best combination by successive halving (K. Jamieson, A. Talwalkar, Non-stochastic best arm identification
//! and hyperparameter optimization, AISTATS 2016): all run with a small budget, the best of them with a larger one,
//! until one is left.

use super::{Answer, Choice, Ended, Search, Values, Way, metric};
use crate::axes::Key;
use crate::point::Cell;
use config::{Diagnostic, Resolved};
use serde::Deserialize;

/// Table `[search.halving]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    metric: String,
    best: Best,
    /// Budget key, which sets the length of a run: an option such as `workload.number_ios`, or a spec key.
    budget: String,
    /// Budget of the first round.
    from: u64,
    /// Factor by which each round divides the combinations and multiplies the budget.
    #[serde(default = "three")]
    factor: u64,
}

fn three() -> u64 {
    3
}

/// Direction of improvement.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Best {
    Least,
    Most,
}

/// Parameters of the search.
pub(super) struct Halving {
    pub(super) from: u64,
    factor: u64,
    best: Best,
}

pub(super) fn read(text: &Text, resolved: &Resolved) -> Result<Search, Diagnostic> {
    let at = |key: &str| format!("search.halving.{key}");
    metric(&text.metric, &at("metric"), resolved)?;
    if !(2..=100).contains(&text.factor) {
        return Err(resolved.diagnose(&at("factor"), "the factor must be from 2 to 100"));
    }
    if text.from == 0 {
        return Err(resolved.diagnose(&at("from"), "the first budget must be at least 1"));
    }
    let way = Way::Halving(Halving { from: text.from, factor: text.factor, best: text.best });
    Ok(Search { key: Key::read(&text.budget), values: Values::Whole, metric: text.metric.clone(), way })
}

impl Halving {
    pub(super) fn begin<'s>(&'s self, search: &'s Search, cells: Vec<Cell>) -> Going<'s> {
        // Seeds of one combination are adjacent.
        let candidates =
            cells.chunk_by(|a, b| Cell { seed: 0, ..a.clone() } == Cell { seed: 0, ..b.clone() });
        let left = candidates.map(<[Cell]>::to_vec).collect();
        Going { of: self, search, left, budget: 0, runs: 0 }
    }
}

/// Search in progress.
pub(super) struct Going<'s> {
    of: &'s Halving,
    search: &'s Search,
    /// Remaining combinations, each with all its seeds; best first after a round.
    left: Vec<Vec<Cell>>,
    /// Budget of the last round; zero before the first.
    budget: u64,
    runs: usize,
}

impl Going<'_> {
    /// Mean over seeds; `None` if a run lacks the metric.
    fn score(&self, seeds: &[Cell], ended: &Ended) -> Option<f64> {
        let of =
            |cell: &Cell| ended.get(&Cell { sought: Some(self.budget), ..cell.clone() }).copied().flatten();
        let values: Option<Vec<f64>> = seeds.iter().map(of).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    }

    /// Keeps the best of the last round; returns whether another round is needed.
    fn keep_best(&mut self, ended: &Ended) -> bool {
        let mut scored: Vec<(f64, Vec<Cell>)> = std::mem::take(&mut self.left)
            .into_iter()
            .filter_map(|seeds| Some((self.score(&seeds, ended)?, seeds)))
            .collect();
        // Ties keep the order of the combinations.
        scored.sort_by(|(a, _), (b, _)| match self.of.best {
            Best::Least => a.total_cmp(b),
            Best::Most => b.total_cmp(a),
        });
        let keep = scored.len().div_ceil(self.of.factor as usize);
        let is_decided = keep <= 1;
        self.left = scored.into_iter().take(keep).map(|(_, seeds)| seeds).collect();
        !is_decided
    }
}

impl Choice for Going<'_> {
    fn next(&mut self, ended: &Ended) -> Vec<Cell> {
        if self.budget > 0 {
            let longer = self.budget.checked_mul(self.of.factor).filter(|budget| *budget <= i64::MAX as u64);
            if !self.keep_best(ended) {
                return Vec::new();
            }
            let Some(longer) = longer else { return Vec::new() };
            self.budget = longer;
        } else {
            self.budget = self.of.from;
        }
        let budget = self.budget;
        let asked: Vec<Cell> =
            self.left.iter().flatten().map(|cell| Cell { sought: Some(budget), ..cell.clone() }).collect();
        self.runs += asked.len();
        asked
    }

    fn answer(&self, ended: &Ended) -> Option<Answer> {
        let metric = &self.search.metric;
        let word = if self.of.best == Best::Least { "least" } else { "most" };
        let best = self.left.first().and_then(|seeds| Some((seeds[0].clone(), self.score(seeds, ended)?)));
        let row =
            |(cell, score): (Cell, f64)| (cell, vec![self.budget.into(), score.into(), self.runs.into()]);
        Some(Answer {
            what: format!("the {word} {metric}"),
            heads: vec![self.search.key.column(), metric.clone(), "runs".into()],
            rows: best.map(row).into_iter().collect(),
        })
    }
}
