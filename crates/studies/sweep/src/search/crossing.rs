//! Finds where a metric crosses a limit, by bisection, for each combination of the other axes and each seed.

use super::{Answer, Choice, Ended, Search, Values, Way, limit, metric};
use crate::axes::Key;
use crate::point::{Cell, label};
use config::{Diagnostic, Resolved};
use serde::Deserialize;
use toml::Value;

/// Table `[search.crossing]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    /// Key to step: an option such as `workload.iodepth`, or a spec key.
    key: String,
    /// First and last of a range of whole numbers.
    between: Option<(u64, u64)>,
    /// Ordered values, instead of numbers.
    among: Option<Vec<Value>>,
    metric: String,
    /// Limit that the metric crosses.
    passes: Value,
}

/// Range of the search.
pub(super) struct Crossing {
    pub(super) first: u64,
    pub(super) last: u64,
    limit: f64,
    /// The limit as the file gives it.
    words: String,
}

pub(super) fn read(text: &Text, resolved: &Resolved) -> Result<Search, Diagnostic> {
    let at = |key: &str| format!("search.crossing.{key}");
    metric(&text.metric, &at("metric"), resolved)?;
    let limit = limit(&text.passes, &text.metric, &at("passes"), resolved)?;
    let (values, first, last) = match (text.between, &text.among) {
        (Some((first, last)), None) => (Values::Whole, first, last),
        (None, Some(values)) => (Values::Listed(values.clone()), 0, (values.len() as u64).saturating_sub(1)),
        _ => {
            return Err(resolved
                .diagnose("search.crossing", "the range is missing: give `between` or `among`")
                .help("`between = [1, 256]`, or `among = [\"4k\", \"16k\", \"64k\"]` in order"));
        }
    };
    if first >= last || last > i64::MAX as u64 {
        let key = if text.among.is_some() { "among" } else { "between" };
        return Err(resolved
            .diagnose(&at(key), "the range needs two values at least")
            .help("give the smaller number first; of values, at least two"));
    }
    let words = text.passes.as_str().map_or_else(|| text.passes.to_string(), str::to_owned);
    let way = Way::Crossing(Crossing { first, last, limit, words });
    Ok(Search { key: Key::read(&text.key), values, metric: text.metric.clone(), way })
}

impl Crossing {
    pub(super) fn begin<'s>(&'s self, search: &'s Search, cells: Vec<Cell>) -> Going<'s> {
        let ends = |cell| Span { cell, low: self.first, high: self.last };
        Going { of: self, search, spans: cells.into_iter().map(ends).collect(), begun: false }
    }
}

/// Current interval of a combination.
struct Span {
    cell: Cell,
    /// End where the metric is on one side of the limit,
    low: u64,
    /// and end where it is on the other, as far as known.
    high: u64,
}

impl Span {
    fn at(&self, value: u64) -> Cell {
        Cell { sought: Some(value), ..self.cell.clone() }
    }
}

/// Search in progress.
pub(super) struct Going<'s> {
    of: &'s Crossing,
    search: &'s Search,
    spans: Vec<Span>,
    begun: bool,
}

impl Going<'_> {
    /// Returns whether the metric is above the limit; `None` if the run lacks it.
    fn is_beyond(&self, cell: &Cell, ended: &Ended) -> Option<bool> {
        ended.get(cell).copied().flatten().map(|value| value > self.of.limit)
    }

    /// Sides at the ends of a span, if they differ.
    fn sides(&self, span: &Span, ended: &Ended) -> Option<(bool, bool)> {
        let of = |value| self.is_beyond(&span.at(value), ended);
        Some((of(span.low)?, of(span.high)?)).filter(|(low, high)| low != high)
    }

    /// Next run of a combination, once its ends have moved as far as known.
    fn next_middle(&mut self, number: usize, ended: &Ended) -> Option<Cell> {
        let (side_of_low, _) = self.sides(&self.spans[number], ended)?;
        loop {
            let span = &self.spans[number];
            let middle = span.low + (span.high - span.low) / 2;
            if middle == span.low {
                return None;
            }
            let cell = span.at(middle);
            if !ended.contains_key(&cell) {
                return Some(cell);
            }
            // The side of a failed run is unknown.
            let side = self.is_beyond(&cell, ended)?;
            let span = &mut self.spans[number];
            *(if side == side_of_low { &mut span.low } else { &mut span.high }) = middle;
        }
    }
}

impl Choice for Going<'_> {
    fn next(&mut self, ended: &Ended) -> Vec<Cell> {
        if !std::mem::replace(&mut self.begun, true) {
            return self.spans.iter().flat_map(|span| [span.at(span.low), span.at(span.high)]).collect();
        }
        (0..self.spans.len()).filter_map(|number| self.next_middle(number, ended)).collect()
    }

    fn answer(&self, ended: &Ended) -> Option<Answer> {
        let metric = &self.search.metric;
        let figure = |cell: &Cell| serde_json::Value::from(ended.get(cell).copied().flatten());
        let row = |span: &Span| {
            let (low, high) = (span.at(span.low), span.at(span.high));
            let found = match self.sides(span, ended) {
                Some(_) if span.high - span.low == 1 => "crossing",
                Some(_) => "a run in between failed",
                None if figure(&low).is_null() || figure(&high).is_null() => "a run at an end failed",
                None if self.is_beyond(&low, ended) == Some(true) => {
                    "beyond the limit from the first value on"
                }
                None => "within the limit up to the last value",
            };
            let value = |number| label(&self.search.values.at(number));
            let row = vec![value(span.low), figure(&low), value(span.high), figure(&high), found.into()];
            (span.cell.clone(), row)
        };
        let key = self.search.key.column();
        Some(Answer {
            what: format!("where {metric} crosses {}", self.of.words),
            heads: vec![
                format!("{key} before"),
                format!("{metric} before"),
                format!("{key} after"),
                format!("{metric} after"),
                "found".into(),
            ],
            rows: self.spans.iter().map(row).collect(),
        })
    }
}
