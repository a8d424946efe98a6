//! Page of a sweep: a table with a row for each run, and means over runs that differ only in their seed.

use crate::figure::{Cell, Table};
use crate::number::{Unit, leaf, rounded, shown};
use crate::page::{Page, lacking, list, paragraph, script_json};
use config::Diagnostic;
use serde_json::{Value, json};
use stats::student_t_quantile;

/// Column of a table: name and values.
pub type Column = (String, Vec<Value>);

/// Table of runs by columns, as `nandscape sweep` writes it, in any format.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Name of the sweep.
    name: String,
    /// Columns with names, all of one length; null where a run has no value.
    columns: Vec<Column>,
}

/// Columns that are neither axes nor metrics.
const WORDS: [&str; 5] = ["run", "state", "result", "message", "config"];
/// Column with the outcome of a run: axes come before it, metrics after it.
const STATE: &str = "state";
/// Axis over which means are taken.
const SEED: &str = "seed";

impl Sweep {
    /// Builds a sweep from columns.
    ///
    /// # Errors
    /// A column of a sweep table is missing, or columns differ in length.
    pub fn new(name: impl Into<String>, columns: Vec<Column>) -> Result<Sweep, Diagnostic> {
        let name = name.into();
        let has = |word: &&&str| columns.iter().any(|(name, _)| name == **word);
        if let Some(word) = ["run", STATE].iter().find(|word| !has(word)) {
            let what = format!("{name} is not a sweep table: it has no column `{word}`");
            return Err(Diagnostic::new(what).help("`nandscape sweep FILE --out DIR` writes one into DIR"));
        }
        let rows = columns.first().map_or(0, |(_, values)| values.len());
        if rows == 0 || columns.iter().any(|(_, values)| values.len() != rows) {
            return Err(Diagnostic::new(format!(
                "{name} is not a complete table: it has no rows, or columns of different lengths"
            ))
            .help("`nandscape sweep FILE --out DIR` writes one into DIR"));
        }
        Ok(Sweep { name, columns })
    }

    /// Name of the sweep.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Renames the sweep.
    pub fn named(self, name: impl ToString) -> Sweep {
        Sweep { name: name.to_string(), ..self }
    }

    fn rows(&self) -> usize {
        self.columns[0].1.len()
    }

    fn column(&self, name: &str) -> Option<&[Value]> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }

    /// Columns that were set, and those that were measured.
    fn axes_and_metrics(&self) -> (Vec<&Column>, Vec<&Column>) {
        let state = self.columns.iter().position(|(name, _)| name == STATE).unwrap_or(0);
        let is_word = |name: &str| WORDS.contains(&name) || name == SEED;
        let (axes, metrics): (Vec<_>, Vec<_>) = self
            .columns
            .iter()
            .enumerate()
            .filter(|(_, (name, _))| !is_word(name))
            .partition(|(at, _)| *at < state);
        let bare = |all: Vec<(usize, _)>| all.into_iter().map(|(_, column)| column).collect();
        (bare(axes), bare(metrics))
    }
}

/// Renders the page of a sweep.
pub fn sweep(sweep: &Sweep) -> String {
    let groups = Groups::of(sweep);
    let (axes, metrics) = (groups.axes.len(), groups.metrics.len());
    let lead = format!("<p class=\"facts\">{} runs, {axes} axes, {metrics} metrics.</p>", sweep.rows());
    let mut page = Page::new(format!("{} – nandscape", sweep.name), lead);
    page.section("Attention", trouble(sweep));
    page.section("Charts", pictures(&groups));
    page.section("Means", groups.table().html());
    page.section("Runs", runs(sweep));
    page.html()
}

/// Table of runs that failed or have a failed check.
fn trouble(sweep: &Sweep) -> String {
    let Some(states) = sweep.column(STATE) else { return String::new() };
    let messages = sweep.column("message");
    let mut table = Table::new("Failed runs", ["run", "state", "message"]);
    for (at, state) in states.iter().enumerate().filter(|(_, state)| *state != "ok") {
        let message = messages.map_or("–".to_owned(), |messages| leaf(&messages[at], Unit::Plain));
        table.push([Cell::Number(at.to_string()), Cell::Text(leaf(state, Unit::Plain)), Cell::Text(message)]);
    }
    if table.is_empty() {
        return String::new();
    }
    format!(
        "<div class=\"warn\">{}{}</div>",
        paragraph(
            "Failed runs have no metrics and are excluded from means; runs with a failed check are included."
        ),
        table.html()
    )
}

/// Charts that the reader configures.
fn pictures(groups: &Groups<'_>) -> String {
    if groups.metrics.is_empty() {
        return lacking("Charts", "the table has no metrics: list them as `metrics` in the sweep file");
    }
    if groups.axes.is_empty() {
        return lacking("Charts", "only the seed was varied: the means are below");
    }
    let mut out = list([
        "Points are means over seeds; error bars are the 95 % confidence interval of the mean, by Student's t distribution, with two seeds or more.",
        "The knee is where throughput over latency is greatest (L. Kleinrock, Power and deterministic rules of thumb, ICC 1979): beyond it, latency grows by a larger factor than throughput.",
        "A Pareto front holds the points that no other point equals in both metrics and surpasses in one.",
    ]);
    out +=
        &format!("<script type=\"application/json\" id=\"sweep\">{}</script>", script_json(&groups.json()));
    for view in ["line", "heat", "knee", "pareto"] {
        out += &format!("<figure class=\"view\" data-view=\"{view}\"></figure>");
    }
    out
}

/// Table of every run.
fn runs(sweep: &Sweep) -> String {
    let shown: Vec<&Column> =
        sweep.columns.iter().filter(|(name, _)| name != "config" && name != "message").collect();
    let mut table = Table::new("Runs", shown.iter().map(|(name, _)| name.as_str()));
    for row in 0..sweep.rows() {
        table.push(shown.iter().map(|(name, values)| match &values[row] {
            Value::String(text) => Cell::Text(text.clone()),
            value => Cell::Number(leaf(
                value,
                if name == "run" || name == SEED { Unit::Plain } else { Unit::of_key(name) },
            )),
        }));
    }
    format!("<details><summary>Table: runs</summary>{}</details>", table.html())
}

/// Axis that was varied: a name, and its values in order of appearance, numbers by size.
struct Axis {
    name: String,
    values: Vec<Value>,
}

/// Mean of a metric over seeds.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Mean {
    /// Number of seeds with a value.
    n: u32,
    mean: f64,
    /// Half of the 95 % confidence interval; `None` below two seeds.
    half_width: Option<f64>,
}

impl Mean {
    /// Computes the mean of values.
    fn of(values: &[f64]) -> Option<Mean> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let half_width = (n > 1).then(|| {
            let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
            let variance = squares / f64::from(n - 1);
            student_t_quantile(0.975, n - 1) * (variance / f64::from(n)).sqrt()
        });
        Some(Mean { n, mean, half_width })
    }
}

struct Group {
    /// Index of its value on each axis.
    place: Vec<usize>,
    /// Mean by metric; `None` where no seed has a value.
    means: Vec<Option<Mean>>,
}

/// Runs grouped by the varied keys.
struct Groups<'s> {
    axes: Vec<Axis>,
    metrics: Vec<&'s str>,
    seeds: usize,
    groups: Vec<Group>,
}

impl<'s> Groups<'s> {
    fn of(sweep: &'s Sweep) -> Groups<'s> {
        let (columns, metrics) = sweep.axes_and_metrics();
        let varied: Vec<Column> = columns
            .into_iter()
            .flat_map(|(name, values)| {
                options(name, values).unwrap_or_else(|| vec![(name.clone(), values.clone())])
            })
            .filter(|(_, values)| values.iter().any(|value| *value != values[0]))
            .collect();
        let axes: Vec<Axis> = varied
            .iter()
            .map(|(name, values)| Axis { name: name.clone(), values: distinct(values) })
            .collect();
        // A metric without a number in any run cannot be drawn.
        let metrics: Vec<&Column> =
            metrics.into_iter().filter(|(_, values)| values.iter().any(Value::is_number)).collect();
        let place = |row: usize| -> Vec<usize> {
            let at = |((_, values), axis): (&Column, &Axis)| {
                axis.values.iter().position(|value| *value == values[row]).unwrap_or(0)
            };
            varied.iter().zip(&axes).map(at).collect()
        };
        let mut rows: Vec<(Vec<usize>, usize)> = (0..sweep.rows()).map(|row| (place(row), row)).collect();
        rows.sort();
        let mut groups = Vec::new();
        for same in rows.chunk_by(|one, other| one.0 == other.0) {
            let values = |column: &[Value]| -> Vec<f64> {
                same.iter().filter_map(|(_, row)| column[*row].as_f64()).collect()
            };
            let means = metrics.iter().map(|(_, column)| Mean::of(&values(column))).collect();
            groups.push(Group { place: same[0].0.clone(), means });
        }
        let seeds = sweep.column(SEED).map_or(1, |seeds| distinct(seeds).len());
        Groups { axes, metrics: metrics.into_iter().map(|(name, _)| name.as_str()).collect(), seeds, groups }
    }

    /// Data in the form that the page's script takes.
    fn json(&self) -> Value {
        let axis = |axis: &Axis| {
            let labels: Vec<String> = axis.values.iter().map(label).collect();
            let numbers: Option<Vec<f64>> = axis.values.iter().map(magnitude).collect();
            json!({ "name": axis.name, "labels": labels, "numbers": numbers })
        };
        let metric = |name: &&str| json!({ "name": name, "unit": Unit::of_key(name).name() });
        let cell = |group: &Group| {
            let of = |mean: &Option<Mean>| {
                mean.map_or(Value::Null, |mean| {
                    json!([rounded(mean.mean), mean.half_width.map(rounded), mean.n])
                })
            };
            json!({ "at": group.place, "of": group.means.iter().map(of).collect::<Vec<_>>() })
        };
        json!({
            "axes": self.axes.iter().map(axis).collect::<Vec<_>>(),
            "metrics": self.metrics.iter().map(metric).collect::<Vec<_>>(),
            "cells": self.groups.iter().map(cell).collect::<Vec<_>>(),
        })
    }

    /// Renders the table of means.
    fn table(&self) -> Table {
        let head = self.axes.iter().map(|axis| axis.name.as_str()).chain(self.metrics.iter().copied());
        let about = if self.seeds > 1 {
            "Means over seeds, ± half of the 95 % confidence interval"
        } else {
            "Metrics"
        };
        let mut table = Table::new(about, head);
        for group in &self.groups {
            let axes =
                group.place.iter().zip(&self.axes).map(|(at, axis)| Cell::Text(label(&axis.values[*at])));
            let metrics = group.means.iter().zip(&self.metrics).map(|(mean, name)| {
                let Some(Mean { mean, half_width, .. }) = mean else { return Cell::none() };
                let unit = Unit::of_key(name);
                let width = half_width.map(|half| format!(" ± {}", shown(half, unit))).unwrap_or_default();
                Cell::Number(format!("{}{width}", shown(*mean, unit)))
            });
            table.push(axes.chain(metrics));
        }
        table
    }
}

/// Options that set the length of a job and do not identify it.
const LENGTHS: [&str; 5] = ["number_ios", "runtime", "size", "io_size", "time_based"];

/// Splits fio workloads into a column for each option that varies; `None` where that would not distinguish them.
fn options(name: &str, values: &[Value]) -> Option<Vec<Column>> {
    let jobs: Option<Vec<Vec<(&str, &str)>>> = values.iter().map(|value| job(value.as_str()?)).collect();
    let jobs = jobs.filter(|_| name == "workload")?;
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in jobs.iter().flatten() {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    let of = |job: &[(&str, &str)], key: &str| {
        job.iter().find(|(known, _)| *known == key).map_or(Value::Null, |(_, value)| (*value).into())
    };
    keys.retain(|key| jobs.iter().any(|job| of(job, key) != of(&jobs[0], key)));
    let tells = |keys: &[&str]| {
        let all: Vec<Vec<Value>> =
            jobs.iter().map(|job| keys.iter().map(|key| of(job, key)).collect()).collect();
        (0..all.len()).all(|at| {
            all[..at].iter().zip(values).all(|(other, text)| (*other == all[at]) == (*text == values[at]))
        })
    };
    let short: Vec<&str> = keys.iter().copied().filter(|key| !LENGTHS.contains(key)).collect();
    let chosen = [short, keys].into_iter().find(|keys| !keys.is_empty() && tells(keys))?;
    Some(
        chosen.iter().map(|key| ((*key).to_owned(), jobs.iter().map(|job| of(job, key)).collect())).collect(),
    )
}

/// Options of an fio job.
fn job(text: &str) -> Option<Vec<(&str, &str)>> {
    let options = text.strip_prefix("fio:").filter(|options| !options.contains(" + "))?;
    Some(options.split(',').map(|option| option.split_once('=').unwrap_or((option, "1"))).collect())
}

fn label(value: &Value) -> String {
    leaf(value, Unit::Plain)
}

/// Converts a value to a number, if it is one: plain, or with a unit as in spec keys.
fn magnitude(value: &Value) -> Option<f64> {
    if let Some(number) = value.as_f64() {
        return Some(number);
    }
    let text = value.as_str()?;
    let end = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
    let number: f64 = text[..end].trim().parse().ok()?;
    let scale = match text[end..].trim() {
        "" => 1.0,
        "%" => 0.01,
        "ps" => 1e-3,
        "ns" | "B" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "k" | "KiB" => 1024.0,
        "kB" => 1e3,
        "m" | "M" | "MiB" => 1024.0 * 1024.0,
        "MB" => 1e6,
        "g" | "G" | "GiB" => 1024.0 * 1024.0 * 1024.0,
        "GB" => 1e9,
        _ => return None,
    };
    Some(number * scale)
}

/// Distinct values, in order of appearance; by size if all are numbers.
fn distinct(values: &[Value]) -> Vec<Value> {
    let mut found: Vec<Value> = Vec::new();
    for value in values {
        if !found.contains(value) {
            found.push(value.clone());
        }
    }
    if found.iter().all(|value| magnitude(value).is_some()) {
        found.sort_by(|one, other| magnitude(one).unwrap_or(0.0).total_cmp(&magnitude(other).unwrap_or(0.0)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_that_of_students_table() {
        // Five values, 1 to 5: mean 3, standard deviation sqrt(2.5); t(0.975, 4) = 2.776 (any table).
        let Some(Mean { n, mean, half_width: Some(half) }) = Mean::of(&[1.0, 2.0, 3.0, 4.0, 5.0]) else {
            panic!()
        };
        assert_eq!((n, mean), (5, 3.0));
        assert!((half - 2.776 * (2.5f64 / 5.0).sqrt()).abs() < 1e-3, "{half}");
        assert_eq!(Mean::of(&[7.0]).and_then(|mean| mean.half_width), None);
        assert_eq!(Mean::of(&[]), None);
    }

    #[test]
    fn jobs_are_told_apart_by_the_options_that_vary() {
        let values = json!([
            "fio:rw=read,bs=4k,number_ios=9",
            "fio:rw=read,bs=8k,number_ios=7",
            "fio:rw=read,bs=4k,number_ios=9"
        ]);
        let columns = options("workload", values.as_array().unwrap()).unwrap();
        assert_eq!(columns, [("bs".to_owned(), vec![json!("4k"), json!("8k"), json!("4k")])]);
        // Here the length alone tells them apart.
        let values = json!(["fio:rw=read,number_ios=9", "fio:rw=read,number_ios=7"]);
        assert_eq!(options("workload", values.as_array().unwrap()).unwrap()[0].0, "number_ios");
        assert_eq!(options("workload", &[json!("a.csv"), json!("fio:rw=read")]), None);
    }

    #[test]
    fn runs_are_grouped_by_what_was_varied_and_numbers_stand_by_size() {
        let column = |name: &str, values: Value| (name.to_owned(), values.as_array().unwrap().clone());
        let sweep = Sweep::new(
            "a",
            vec![
                column("run", json!([0, 1, 2, 3])),
                column("workload", json!(["w", "w", "w", "w"])),
                column("size", json!(["1MiB", "1MiB", "4KiB", "4KiB"])),
                column("seed", json!([1, 2, 1, 2])),
                column("state", json!(["ok", "ok", "ok", "failed"])),
                column("io.all.iops", json!([10.0, 14.0, 5.0, null])),
            ],
        )
        .unwrap();
        let groups = Groups::of(&sweep);
        let json = groups.json();
        assert_eq!(json["axes"].as_array().unwrap().len(), 1);
        assert_eq!(json["axes"][0]["labels"], json!(["4KiB", "1MiB"]));
        assert_eq!(json["cells"][0]["of"][0], json!([5, null, 1]));
        assert_eq!((&json["cells"][1]["of"][0][0], &json["cells"][1]["of"][0][2]), (&json!(12), &json!(2)));
    }
}
