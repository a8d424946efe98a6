//! Choice of the runs of a sweep: all combinations, or those that a search asks for, round by round.
//!
//! A search sees the outcomes of all runs so far, and says which come next. It does not depend on where or beside what
//! runs are made: a resumed sweep asks for the same runs again, and takes them from the store.

mod crossing;
mod halving;

use super::axes::{Axis, Key, refuse_taken, refuse_unknown_key};
use super::file::Sweep;
use super::point::{Cell, cells};
use super::validate::unit_of;
use config::units::Duration;
use config::{Diagnostic, Resolved};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::Value;

/// Metric of a search by run; `None` for a run that failed or lacks it.
pub(crate) type Ended = BTreeMap<Cell, Option<f64>>;

/// Chooser of the runs of a sweep.
pub(crate) trait Choice {
    /// Runs of the next round, all new; empty once the answer is known.
    fn next(&mut self, ended: &Ended) -> Vec<Cell>;

    /// Answer, once no more runs are asked for.
    fn answer(&self, ended: &Ended) -> Option<Answer>;
}

/// Answer of a search.
pub struct Answer {
    /// Title, without a full stop.
    pub what: String,
    /// Headings of the columns after those that distinguish a row.
    pub heads: Vec<String>,
    /// Rows: a representative run, and the row's values.
    pub(crate) rows: Vec<(Cell, Vec<serde_json::Value>)>,
}

/// Table `[search]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchText {
    crossing: Option<crossing::Text>,
    halving: Option<halving::Text>,
}

/// Search definition.
pub(crate) struct Search {
    /// Key whose values it chooses.
    pub(crate) key: Key,
    /// Candidate values.
    pub(crate) values: Values,
    /// Metric that it evaluates.
    pub(crate) metric: String,
    way: Way,
}

enum Way {
    Crossing(crossing::Crossing),
    Halving(halving::Halving),
}

/// Ordered values.
pub(crate) enum Values {
    /// Whole numbers.
    Whole,
    /// A list.
    Listed(Vec<Value>),
}

impl Values {
    /// Value at a number.
    pub(super) fn at(&self, number: u64) -> Value {
        match self {
            Values::Whole => Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
            // The number is an index into the list.
            Values::Listed(values) => values[number as usize].clone(),
        }
    }
}

impl Search {
    /// Reads `[search]`.
    ///
    /// # Errors
    /// All faults, with their places.
    pub(super) fn read(text: &SearchText, axes: &[Axis], resolved: &Resolved) -> Result<Search, Diagnostic> {
        let search = match (&text.crossing, &text.halving) {
            (Some(text), None) => crossing::read(text, resolved)?,
            (None, Some(text)) => halving::read(text, resolved)?,
            _ => {
                return Err(resolved
                    .diagnose("search", "a search needs exactly one method")
                    .help("[search.crossing] finds where a metric crosses a limit, [search.halving] the best combination"));
            }
        };
        let place = format!("search.{}.{}", search.name(), search.key_of_key());
        refuse_unknown_key(&search.key.text()).map_err(|d| d.at(resolved.place(&place)))?;
        let taken: Vec<String> = axes.iter().flat_map(|axis| &axis.keys).map(Key::text).collect();
        refuse_taken(&search.key.text(), &taken).map_err(|d| d.at(resolved.place(&place)))?;
        Ok(search)
    }

    /// Name of the method in the file.
    pub(super) fn name(&self) -> &'static str {
        match self.way {
            Way::Crossing(_) => "crossing",
            Way::Halving(_) => "halving",
        }
    }

    /// Name of the entry that holds the key.
    pub(super) fn key_of_key(&self) -> &'static str {
        match self.way {
            Way::Crossing(_) => "key",
            Way::Halving(_) => "budget",
        }
    }

    /// Values checked before anything runs.
    pub(super) fn first_and_last(&self) -> Vec<u64> {
        match &self.way {
            Way::Crossing(crossing) => vec![crossing.first, crossing.last],
            Way::Halving(halving) => vec![halving.from],
        }
    }
}

/// Chooser for a sweep.
pub(crate) fn choice(sweep: &Sweep) -> Box<dyn Choice + '_> {
    match sweep.search.as_ref().map(|search| (search, &search.way)) {
        None => Box::new(All(Some(cells(sweep)))),
        Some((search, Way::Crossing(crossing))) => Box::new(crossing.begin(search, cells(sweep))),
        Some((search, Way::Halving(halving))) => Box::new(halving.begin(search, cells(sweep))),
    }
}

/// Chooser of all combinations, in one round.
struct All(Option<Vec<Cell>>);

impl Choice for All {
    fn next(&mut self, _: &Ended) -> Vec<Cell> {
        self.0.take().unwrap_or_default()
    }

    fn answer(&self, _: &Ended) -> Option<Answer> {
        None
    }
}

/// Checks a metric of a search.
///
/// # Errors
/// The metric is not in any result.
fn metric(name: &str, place: &str, resolved: &Resolved) -> Result<(), Diagnostic> {
    super::validate::refuse_unknown_at(name, place, resolved)
}

/// Parses a limit of a metric: a number, or a time for a metric in ns.
///
/// # Errors
/// The value is neither.
fn limit(value: &Value, metric: &str, place: &str, resolved: &Resolved) -> Result<f64, Diagnostic> {
    let is_time = unit_of(metric) == Some("ns");
    let found = match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) if number.is_finite() => Some(*number),
        Value::String(text) if is_time => text.parse::<Duration>().ok().map(|limit| limit.time().as_ns_f64()),
        _ => None,
    };
    let help = if is_time {
        "give a number of nanoseconds, or a time: \"1ms\""
    } else {
        "give a number, in the metric's unit"
    };
    found
        .ok_or_else(|| resolved.diagnose(place, format!("`{value}` is not a limit of `{metric}`")).help(help))
}
