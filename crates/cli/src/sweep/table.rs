//! The results of a sweep as a table.

use super::Sweep;
use super::point::{Point, columns};
use super::worker::Outcome;
use config::Diagnostic;
use serde_json::Value;

/// The column of the workload.
const WORKLOAD: usize = 0;

/// The table as CSV: number, what varies, state, metrics, place in the store, message.
///
/// # Errors
/// None that can be helped.
pub(crate) fn csv(sweep: &Sweep, points: &[Point], outcomes: &[Outcome]) -> Result<Vec<u8>, Diagnostic> {
    let fault = |fault: String| Diagnostic::new(format!("cannot write the table: {fault}"));
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut header = vec!["run".to_owned()];
    header.extend(columns(sweep));
    header.push("state".into());
    header.extend(sweep.metrics.iter().cloned());
    header.extend(["result".to_owned(), "message".to_owned()]);
    writer.write_record(&header).map_err(|e| fault(e.to_string()))?;
    for (number, (point, outcome)) in points.iter().zip(outcomes).enumerate() {
        let mut record = vec![number.to_string()];
        record.extend(point.labels.iter().cloned());
        record.push(state(outcome).into());
        record.extend(sweep.metrics.iter().map(|name| metric(outcome, name).map_or(String::new(), text)));
        let (result, message) = match outcome {
            Outcome::Done { key, .. } => (format!("runs/{key}.json"), String::new()),
            Outcome::Failed(diagnostic) => (String::new(), diagnostic.one_line()),
            Outcome::NotRun => Default::default(),
        };
        record.extend([result, message]);
        writer.write_record(&record).map_err(|e| fault(e.to_string()))?;
    }
    writer.into_inner().map_err(|e| fault(e.to_string()))
}

/// The table for a person: what varies, and the metrics that some run has. Workloads are numbered where there are
/// several.
pub(crate) fn human(sweep: &Sweep, points: &[Point], outcomes: &[Outcome]) -> String {
    let columns = columns(sweep);
    let mut workloads: Vec<&String> = points.iter().map(|point| &point.labels[WORKLOAD]).collect();
    workloads.dedup();
    let label = |point: &Point, at: usize| match at {
        WORKLOAD => workloads.iter().position(|w| **w == point.labels[at]).unwrap_or_default().to_string(),
        _ => point.labels[at].clone(),
    };
    let varies = |at: &usize| points.iter().any(|p| p.labels[*at] != points[0].labels[*at]);
    let labels: Vec<usize> = (0..columns.len()).filter(varies).collect();
    let is_there = |name: &&String| outcomes.iter().any(|o| metric(o, name).is_some_and(|v| !v.is_null()));
    let metrics: Vec<&String> = sweep.metrics.iter().filter(is_there).collect();
    let mut rows = vec![vec!["run".to_owned()]];
    rows[0].extend(labels.iter().map(|at| short(&columns[*at])));
    rows[0].extend(metrics.iter().map(|name| short_metric(name)));
    for (number, (point, outcome)) in points.iter().zip(outcomes).enumerate() {
        let mut row = vec![number.to_string()];
        row.extend(labels.iter().map(|at| label(point, *at)));
        match outcome {
            Outcome::Done { .. } => {
                row.extend(metrics.iter().map(|name| metric(outcome, name).map_or("-".into(), figure)));
                row.extend((!outcome.is_well()).then(|| "A CHECK FAILED".to_owned()));
            }
            Outcome::Failed(diagnostic) => row.push(format!("FAILED: {}", diagnostic.what)),
            Outcome::NotRun => row.push("not run".into()),
        }
        rows.push(row);
    }
    let mut text = String::new();
    if workloads.len() > 1 {
        for (number, workload) in workloads.iter().enumerate() {
            text.push_str(&format!("workload {number}: {workload}\n"));
        }
        text.push('\n');
    }
    text + &aligned(&rows, 1 + labels.len() + metrics.len())
}

fn aligned(rows: &[Vec<String>], columns: usize) -> String {
    // A message behind the last column, or in its place, does not widen it.
    let is_whole = |row: &&Vec<String>| row.len() >= columns;
    let widths: Vec<usize> = (0..columns)
        .map(|at| rows.iter().filter(is_whole).map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let line = |row: &Vec<String>| {
        let cell = |(at, text): (usize, &String)| {
            let width =
                widths.get(at).filter(|_| row.len() >= columns || at + 1 < row.len()).copied().unwrap_or(0);
            format!("{text:>width$}")
        };
        row.iter().enumerate().map(cell).collect::<Vec<_>>().join("  ")
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn state(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done { .. } if outcome.is_well() => "ok",
        Outcome::Done { .. } => "check failed",
        Outcome::Failed(_) => "failed",
        Outcome::NotRun => "not run",
    }
}

/// `io.read.latency_ns.p99` of the document.
fn metric<'o>(outcome: &'o Outcome, name: &str) -> Option<&'o Value> {
    let Outcome::Done { document, .. } = outcome else { return None };
    name.split('.').try_fold(document, |at, part| match at {
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        other => other.get(part),
    })
}

/// To the last bit.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// To five digits.
fn figure(value: &Value) -> String {
    match value.as_f64() {
        None => text(value),
        Some(number) if value.is_u64() || number.abs() >= 99_999.5 => format!("{number:.0}"),
        Some(0.0) => "0".into(),
        Some(number) => {
            let before = number.abs().log10().floor() as i32;
            format!("{number:.*}", (4 - before).clamp(0, 9) as usize)
        }
    }
}

/// The last two parts of a key.
fn short(key: &str) -> String {
    let parts: Vec<&str> = key.rsplitn(3, '.').collect();
    parts[..parts.len().min(2)].iter().rev().copied().collect::<Vec<_>>().join(".")
}

/// A metric without the tables that go without saying.
fn short_metric(name: &str) -> String {
    name.trim_start_matches("io.").trim_start_matches("flash.0.").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_have_five_digits() {
        for (value, shown) in [
            (json!(1234567), "1234567"),
            (json!(123456.7), "123457"),
            (json!(1234.567), "1234.6"),
            (json!(1.234567), "1.2346"),
            (json!(0.001234567), "0.0012346"),
            (json!(0.0), "0"),
            (json!(null), ""),
        ] {
            assert_eq!(figure(&value), shown);
        }
    }

    #[test]
    fn columns_are_right_aligned_and_messages_do_not_widen_them() {
        let row = |cells: &[&str]| cells.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>();
        let rows =
            [row(&["run", "x", "iops"]), row(&["0", "10", "5"]), row(&["1", "9", "FAILED: a long story"])];
        let shown = aligned(&rows[..2], 3);
        assert_eq!(shown, "run   x  iops\n  0  10     5");
        let rows = [rows[0].clone(), rows[1].clone(), row(&["1", "FAILED: a long story"])];
        assert_eq!(aligned(&rows, 3).lines().nth(2), Some("  1  FAILED: a long story"));
    }
}
