//! Which runs of a sweep are made: all combinations, or those that a search asks for, round by round.
//!
//! A search sees what all runs so far have come to, and says which come next. It is the same whatever runs beside what, and wherever: a
//! sweep that is resumed asks for the same runs again, and takes them from the store.

mod crossing;
mod halving;

use super::axis::{Axis, Key, WORKLOAD, flatten, zipped};
use super::file::Sweep;
use super::point::{Cell, cells};
use super::unit_of;
use config::{Diagnostic, Resolved};
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

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
pub(crate) struct Answer {
    /// What it says, in a sentence without a stop.
    pub(crate) what: String,
    /// What stands behind what distinguishes a row.
    pub(crate) heads: Vec<String>,
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
    super::refuse_unknown_at(name, place, resolved)
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
        Value::String(text) if is_time => crate::trace_args::time(text).ok().map(engine::Time::as_ns_f64),
        _ => None,
    };
    let help = if is_time {
        "a number of nanoseconds, or a time: \"1ms\""
    } else {
        "a number, in the metric's unit"
    };
    found.ok_or_else(|| resolved.diagnose(place, format!("`{value}` is no limit of `{metric}`")).help(help))
}

// The axes of a sweep's file: its tables `[workload]`, `[set]` and `[[zip]]`.

/// Reads the axes, in the order in which their columns stand: options of workloads first.
///
/// # Errors
/// Keys that no spec has, that vary twice, that have no values, or that do not step together.
pub(super) fn axes(
    workload: &Table,
    set: &Table,
    zip: &[Table],
    resolved: &Resolved,
) -> Result<Vec<Axis>, Diagnostic> {
    let mut axes = Vec::new();
    let mut taken: Vec<String> = Vec::new();
    for (key, values) in listed(WORKLOAD, workload, resolved)? {
        let key = format!("{WORKLOAD}.{key}");
        take(&key, &key, &values, &mut taken, resolved)?;
        axes.push(Axis::of(Key::read(&key), key, values));
    }
    for (key, values) in listed("set", set, resolved)? {
        let place = format!("set.{key}");
        if let Key::Option(option) = Key::read(&key) {
            let help = format!("`{option}` stands in a table [workload]");
            return Err(resolved
                .diagnose(&place, format!("`{key}` is an option of the workload, not a key of a spec"))
                .help(help));
        }
        take(&key, &place, &values, &mut taken, resolved)?;
        axes.push(Axis::of(Key::read(&key), place, values));
    }
    for (n, table) in zip.iter().enumerate() {
        let name = format!("zip.{n}");
        let listed = listed(&name, table, resolved)?;
        for (key, values) in &listed {
            take(key, &format!("{name}.{key}"), values, &mut taken, resolved)?;
        }
        axes.push(zipped(&name, listed).map_err(|what| resolved.diagnose(&name, what))?);
    }
    Ok(axes)
}

/// The keys of a table with their values; options of workloads have plain values only.
fn listed(name: &str, table: &Table, resolved: &Resolved) -> Result<Vec<(String, Vec<Value>)>, Diagnostic> {
    let listed = flatten(table);
    for (key, values) in &listed {
        let is_option = name == WORKLOAD || matches!(Key::read(key), Key::Option(_));
        let Some(at) = values.iter().position(|value| is_option && option_text(value).is_none()) else {
            continue;
        };
        let what = format!("`{}` is no value of an option of a workload", values[at]);
        return Err(resolved
            .diagnose(&format!("{name}.{key}.{at}"), what)
            .help("a number, a truth, or a text without commas"));
    }
    Ok(listed)
}

/// A key has its axis, unless it has one already.
fn take(
    key: &str,
    place: &str,
    values: &[Value],
    taken: &mut Vec<String>,
    resolved: &Resolved,
) -> Result<(), Diagnostic> {
    let fault = |what: String| resolved.diagnose(place, what);
    refuse_unknown_key(key).map_err(|d| d.at(resolved.place(place)))?;
    refuse_taken(key, taken).map_err(|d| d.at(resolved.place(place)))?;
    if values.is_empty() {
        return Err(fault(format!("`{key}` has no values: there is nothing to run")));
    }
    taken.push(key.to_owned());
    Ok(())
}

/// Refuses a key that varies already, or a part of which does, or of which it is a part.
pub(super) fn refuse_taken(key: &str, taken: &[String]) -> Result<(), Diagnostic> {
    let Some(other) = taken.iter().find(|other| overlap(key, other)) else { return Ok(()) };
    let part = if key == other { String::new() } else { format!(", with `{other}`") };
    Err(Diagnostic::new(format!("`{key}` varies already{part}"))
        .help("a key has one axis; keys that go together stand in one [[zip]] table"))
}

/// Whether two keys are one, or one is a part of the other.
fn overlap(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    long.strip_prefix(short).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The value of an option as a workload has it; `None` of what cannot be one.
pub(super) fn option_text(value: &Value) -> Option<String> {
    match value {
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Boolean(truth) => Some(u8::from(*truth).to_string()),
        Value::String(text) if !text.contains([',', '\n']) => Some(text.clone()),
        _ => None,
    }
}

/// A misspelt key is an error of the sweep, not of each of its runs. Which options a workload has, it says itself.
pub(super) fn refuse_unknown_key(key: &str) -> Result<(), Diagnostic> {
    if matches!(Key::read(key), Key::Option(_)) {
        return Ok(());
    }
    let known: Vec<String> = machine::catalogue::params().into_iter().map(|p| p.key).collect();
    let is_part_of = |known: &str, key: &str| {
        known == key || known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'))
    };
    // Of a part with a name of its own, the rest must be a key of some kind: which, its system says.
    let below = |key: &str| key.split_once('.').map(|(_, rest)| rest.to_owned());
    let rest =
        below(key).filter(|_| !known.iter().any(|known| known.split('.').next() == key.split('.').next()));
    let of_some_kind = |known: &String| {
        rest.as_ref().zip(below(known)).is_some_and(|(rest, known)| is_part_of(&known, rest))
    };
    if known.iter().any(|known| is_part_of(known, key) || of_some_kind(known)) {
        return Ok(());
    }
    let mut fault = Diagnostic::new(format!("a spec has no key `{key}`")).allowed(key, known);
    fault.allowed.clear();
    Err(fault.help("`nandscape params` lists every key").pointed(key))
}
