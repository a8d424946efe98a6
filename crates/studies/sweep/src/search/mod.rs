//! Which runs of a sweep are made: all combinations, or those that a search asks for, round by round.
//!
//! A search sees what all runs so far have come to, and says which come next. It is the same whatever runs beside what, and wherever: a
//! sweep that is resumed asks for the same runs again, and takes them from the store.

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

/// What runs have come to: the metric that a search looks at; none of a run that failed, or that has none.
pub(crate) type Ended = BTreeMap<Cell, Option<f64>>;

/// Chooses the runs of a sweep.
pub(crate) trait Choice {
    /// The runs of the next round, none of which was made; none when all is known.
    fn next(&mut self, ended: &Ended) -> Vec<Cell>;

    /// What was found, once no more runs are asked for.
    fn answer(&self, ended: &Ended) -> Option<Answer>;
}

/// What a search has found.
pub struct Answer {
    /// What it says, in a sentence without a stop.
    pub what: String,
    /// What stands behind what distinguishes a row.
    pub heads: Vec<String>,
    /// A run that stands for a row, and the row's values.
    pub(crate) rows: Vec<(Cell, Vec<serde_json::Value>)>,
}

/// `[search]` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchText {
    crossing: Option<crossing::Text>,
    halving: Option<halving::Text>,
}

/// A search.
pub(crate) struct Search {
    /// What it chooses values of.
    pub(crate) key: Key,
    /// The values.
    pub(crate) values: Values,
    /// What it looks at.
    pub(crate) metric: String,
    way: Way,
}

enum Way {
    Crossing(crossing::Crossing),
    Halving(halving::Halving),
}

/// Values in their order.
pub(crate) enum Values {
    /// Whole numbers.
    Whole,
    /// A list.
    Listed(Vec<Value>),
}

impl Values {
    /// The value of a number.
    pub(super) fn at(&self, number: u64) -> Value {
        match self {
            Values::Whole => Value::Integer(i64::try_from(number).unwrap_or(i64::MAX)),
            // Numbers come from the list.
            Values::Listed(values) => values[number as usize].clone(),
        }
    }
}

impl Search {
    /// Reads `[search]`.
    ///
    /// # Errors
    /// Everything that is wrong with it, with its place.
    pub(super) fn read(text: &SearchText, axes: &[Axis], resolved: &Resolved) -> Result<Search, Diagnostic> {
        let search = match (&text.crossing, &text.halving) {
            (Some(text), None) => crossing::read(text, resolved)?,
            (None, Some(text)) => halving::read(text, resolved)?,
            _ => {
                return Err(resolved
                    .diagnose("search", "a search has one way to search")
                    .help("[search.crossing] finds where a metric passes a limit, [search.halving] the best combination"));
            }
        };
        let place = format!("search.{}.{}", search.name(), search.key_of_key());
        refuse_unknown_key(&search.key.text()).map_err(|d| d.at(resolved.place(&place)))?;
        let taken: Vec<String> = axes.iter().flat_map(|axis| &axis.keys).map(Key::text).collect();
        refuse_taken(&search.key.text(), &taken).map_err(|d| d.at(resolved.place(&place)))?;
        Ok(search)
    }

    /// The way's name in the file.
    pub(super) fn name(&self) -> &'static str {
        match self.way {
            Way::Crossing(_) => "crossing",
            Way::Halving(_) => "halving",
        }
    }

    /// What stands before the key in the file.
    pub(super) fn key_of_key(&self) -> &'static str {
        match self.way {
            Way::Crossing(_) => "key",
            Way::Halving(_) => "budget",
        }
    }

    /// Values that are looked at before anything runs.
    pub(super) fn first_and_last(&self) -> Vec<u64> {
        match &self.way {
            Way::Crossing(crossing) => vec![crossing.first, crossing.last],
            Way::Halving(halving) => vec![halving.from],
        }
    }
}

/// What chooses the runs of a sweep.
pub(crate) fn choice(sweep: &Sweep) -> Box<dyn Choice + '_> {
    match sweep.search.as_ref().map(|search| (search, &search.way)) {
        None => Box::new(All(Some(cells(sweep)))),
        Some((search, Way::Crossing(crossing))) => Box::new(crossing.begin(search, cells(sweep))),
        Some((search, Way::Halving(halving))) => Box::new(halving.begin(search, cells(sweep))),
    }
}

/// All combinations, in one round.
struct All(Option<Vec<Cell>>);

impl Choice for All {
    fn next(&mut self, _: &Ended) -> Vec<Cell> {
        self.0.take().unwrap_or_default()
    }

    fn answer(&self, _: &Ended) -> Option<Answer> {
        None
    }
}

/// A metric that a search looks at.
///
/// # Errors
/// No result has it.
fn metric(name: &str, place: &str, resolved: &Resolved) -> Result<(), Diagnostic> {
    super::validate::refuse_unknown_at(name, place, resolved)
}

/// A limit of a metric: a number, or a time where the metric is one.
///
/// # Errors
/// It is neither.
fn limit(value: &Value, metric: &str, place: &str, resolved: &Resolved) -> Result<f64, Diagnostic> {
    let is_time = unit_of(metric) == Some("ns");
    let found = match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) if number.is_finite() => Some(*number),
        Value::String(text) if is_time => text.parse::<Duration>().ok().map(|limit| limit.time().as_ns_f64()),
        _ => None,
    };
    let help = if is_time {
        "a number of nanoseconds, or a time: \"1ms\""
    } else {
        "a number, in the metric's unit"
    };
    found.ok_or_else(|| resolved.diagnose(place, format!("`{value}` is no limit of `{metric}`")).help(help))
}
