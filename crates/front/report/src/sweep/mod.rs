//! The page of a sweep: a table with a row for each run.

mod groups;

use self::groups::Groups;
use crate::html::{lacking, list, paragraph, script_json};
use crate::number::{Unit, leaf};
use crate::page::Page;
use crate::table::{Cell, Table};
use config::Diagnostic;
use serde_json::Value;

/// A column's name and its values.
pub type Column = (String, Vec<Value>);

/// A table of runs, by columns: as `nandscape sweep` writes it, whatever it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What it is called.
    name: String,
    /// Columns by name, all of one length; null where a run has no value.
    columns: Vec<Column>,
}

/// Columns that are neither axes nor metrics.
const WORDS: [&str; 5] = ["run", "state", "result", "message", "config"];
/// The column that tells what became of a run: axes stand before it, metrics behind it.
const STATE: &str = "state";
/// The axis over which means are taken.
const SEED: &str = "seed";

impl Sweep {
    /// A sweep of these columns.
    ///
    /// # Errors
    /// It has not the columns of a sweep's table, or not all of one length.
    pub fn new(name: impl Into<String>, columns: Vec<Column>) -> Result<Sweep, Diagnostic> {
        let name = name.into();
        let has = |word: &&&str| columns.iter().any(|(name, _)| name == **word);
        if let Some(word) = ["run", STATE].iter().find(|word| !has(word)) {
            let what = format!("{name} is no table of a sweep: it has no column `{word}`");
            return Err(Diagnostic::new(what).help("`nandscape sweep FILE --out DIR` leaves one in DIR"));
        }
        let rows = columns.first().map_or(0, |(_, values)| values.len());
        if rows == 0 || columns.iter().any(|(_, values)| values.len() != rows) {
            return Err(Diagnostic::new(format!(
                "{name} is no whole table: it has no rows, or columns of several lengths"
            ))
            .help("`nandscape sweep FILE --out DIR` leaves one in DIR"));
        }
        Ok(Sweep { name, columns })
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same sweep by another name.
    pub fn named(self, name: impl ToString) -> Sweep {
        Sweep { name: name.to_string(), ..self }
    }

    fn rows(&self) -> usize {
        self.columns[0].1.len()
    }

    fn column(&self, name: &str) -> Option<&[Value]> {
        self.columns.iter().find(|(known, _)| known == name).map(|(_, values)| values.as_slice())
    }

    /// Columns that were set, and those that were found.
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

/// The page of a sweep.
pub fn sweep(sweep: &Sweep) -> String {
    let groups = Groups::of(sweep);
    let (axes, metrics) = (groups.axes.len(), groups.metrics.len());
    let lead = format!("<p class=\"facts\">{} runs, {axes} axes, {metrics} metrics.</p>", sweep.rows());
    let mut page = Page::new(format!("{} – nandscape", sweep.name), lead);
    page.section("To be seen first", trouble(sweep));
    page.section("Pictures", pictures(&groups));
    page.section("Means", groups.table().html());
    page.section("Runs", runs(sweep));
    page.html()
}

/// Runs that are not well.
fn trouble(sweep: &Sweep) -> String {
    let Some(states) = sweep.column(STATE) else { return String::new() };
    let messages = sweep.column("message");
    let mut table = Table::new("Runs that are not well", ["run", "state", "message"]);
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
            "Runs that failed have no figures, and are in no mean; those with a failed check are in them."
        ),
        table.html()
    )
}

/// Pictures that the reader chooses.
fn pictures(groups: &Groups<'_>) -> String {
    if groups.metrics.is_empty() {
        return lacking(
            "Pictures",
            "the table has no metrics: `metrics` in the sweep's file says which to have",
        );
    }
    if groups.axes.is_empty() {
        return lacking("Pictures", "nothing was varied but the seed: the means are below");
    }
    let mut out = list([
        "Points are means over seeds; bars at them are the 95 % confidence interval of the mean, by Student's t distribution, where there are two seeds or more.",
        "The knee is where throughput over latency is greatest (L. Kleinrock, Power and deterministic rules of thumb, ICC 1979): beyond it, latency grows by a larger factor than throughput.",
        "On a Pareto front is what no other point equals in both figures and surpasses in one.",
    ]);
    out +=
        &format!("<script type=\"application/json\" id=\"sweep\">{}</script>", script_json(&groups.json()));
    for view in ["line", "heat", "knee", "pareto"] {
        out += &format!("<figure class=\"view\" data-view=\"{view}\"></figure>");
    }
    out
}

/// Every run.
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
