//! Results of a sweep as a table with typed columns.

use super::file::Sweep;
use super::point::{Cell, Outcome, Point, columns, point};
use super::search::Answer;
use config::Diagnostic;
use machine::run::Plan;
use serde_json::Value;

/// Column with its name and values by row; a missing value is null.
pub(crate) struct Column {
    /// Key path, metric, or one of `run`, `workload`, `seed`, `state`, `result`, `message`, `config`.
    pub(crate) name: String,
    /// Values: numbers, bools and strings.
    pub(crate) values: Vec<Value>,
}

/// Table with a row for each run: number, workload, varied keys, seed, state, metrics, path of the document, message,
/// and the whole resolved spec as JSON text.
pub struct Table(pub(crate) Vec<Column>);

impl Table {
    /// Builds the table of a sweep.
    pub fn new(sweep: &Sweep, points: &[Point], outcomes: &[Outcome]) -> Table {
        let column = |name: &str, values: Vec<Value>| Column { name: name.to_owned(), values };
        let mut table = vec![column("run", (0..points.len()).map(Value::from).collect())];
        for (at, name) in columns(sweep).iter().enumerate() {
            table.push(column(name, points.iter().map(|point| point.labels[at].clone()).collect()));
        }
        table.push(column("state", outcomes.iter().map(|outcome| state(outcome).into()).collect()));
        for (at, name) in sweep.metrics.iter().enumerate() {
            table.push(column(name, outcomes.iter().map(|outcome| outcome.metric(at).clone()).collect()));
        }
        table.push(column("result", outcomes.iter().map(result).collect()));
        table.push(column("message", outcomes.iter().map(message).collect()));
        let config = |(point, outcome): (&Point, &Outcome)| config(&point.plan, outcome);
        table.push(column("config", points.iter().zip(outcomes).map(config).collect()));
        Table(table)
    }

    /// Writes CSV with a header; missing values are empty.
    ///
    /// # Errors
    /// None that the user can correct.
    pub fn csv(&self) -> Result<Vec<u8>, Diagnostic> {
        let rows = self.0.first().map_or(0, |column| column.values.len());
        let heads = self.0.iter().map(|column| column.name.clone());
        let records = (0..rows).map(|row| self.0.iter().map(|column| text(&column.values[row])).collect());
        written(std::iter::once(heads.collect()).chain(records))
    }
}

/// Writes records as CSV.
fn written(records: impl Iterator<Item = Vec<String>>) -> Result<Vec<u8>, Diagnostic> {
    let fault = |fault: String| Diagnostic::new(format!("cannot write the table: {fault}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.write_record(record).map_err(|e| fault(e.to_string()))?;
    }
    writer.into_inner().map_err(|e| fault(e.to_string()))
}

/// Answer of a search, as headings and rows: the values that distinguish a row, without the searched key, and the
/// findings.
pub fn answered(sweep: &Sweep, answer: &Answer) -> (Vec<String>, Vec<Vec<Value>>) {
    let key = sweep.search.as_ref().map(|search| search.key.column());
    let mut heads = columns(sweep);
    heads.retain(|name| Some(name) != key.as_ref());
    heads.extend(answer.heads.iter().cloned());
    let row = |(cell, values): &(Cell, Vec<Value>)| {
        let mut row = point(sweep, Cell { sought: None, ..cell.clone() }).labels;
        row.extend(values.iter().cloned());
        row
    };
    (heads, answer.rows.iter().map(row).collect())
}

/// Answer of a search, as CSV.
///
/// # Errors
/// None that the user can correct.
pub fn answer_csv(sweep: &Sweep, answer: &Answer) -> Result<Vec<u8>, Diagnostic> {
    let (heads, rows) = answered(sweep, answer);
    let rows = rows.iter().map(|row| row.iter().map(text).collect());
    written(std::iter::once(heads).chain(rows))
}

fn result(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Done(run) => format!("runs/{}.json", run.key).into(),
        _ => Value::Null,
    }
}

fn message(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Failed(diagnostic) => diagnostic.one_line().into(),
        _ => Value::Null,
    }
}

/// Resolved spec of a run; if the run was not made, the spec that it would have had.
fn config(plan: &Plan, outcome: &Outcome) -> Value {
    if let Outcome::Done(run) = outcome {
        return run.config.clone().into();
    }
    let loaded = machine::load(&plan.system, &plan.set).ok();
    loaded.map_or(Value::Null, |loaded| loaded.spec.to_json().to_string().into())
}

fn state(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(run) if run.well => "ok",
        Outcome::Done(_) => "check failed",
        Outcome::Failed(_) => "failed",
        Outcome::NotRun => "not run",
    }
}

/// Formats a cell of a table, exact to the last bit; empty for null.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
