//! Whether a run is to be believed.

use crate::html::{Text, list, paragraph};
use crate::number::{Unit, leaf};
use crate::read::{at, items, text};
use crate::table::{Cell, Table};
use serde_json::Value;
use std::fmt::Write as _;

/// Checks that failed and what a reader must know; empty where there is nothing.
pub(super) fn trouble(document: &Value) -> String {
    let mut out = String::new();
    let failed: Vec<&Value> =
        items(document, "checks").iter().filter(|check| check["ok"] != Value::Bool(true)).collect();
    if !failed.is_empty() {
        out.push_str("<div class=\"bad\" role=\"alert\">");
        out.push_str(&paragraph("Checks that failed: the figures below are not to be relied on."));
        let mut table = Table::new("Checks that failed", ["check", "what was found"]);
        for check in failed {
            table.push([Cell::from(text(check, "name")), Cell::from(text(check, "detail"))]);
        }
        out.push_str(&table.html());
        out.push_str("</div>");
    } else if document["ok"] == Value::Bool(false) {
        out.push_str("<div class=\"bad\" role=\"alert\"><p>The run says that not all is well.</p></div>");
    }
    if document["partial"] == Value::Bool(true) {
        out.push_str(
            "<div class=\"warn\"><p>The run was ended early: what follows is of its part.</p></div>",
        );
    }
    let warnings = items(document, "warnings");
    if !warnings.is_empty() {
        let _ = write!(
            out,
            "<div class=\"warn\"><p>What a reader must know:</p>{}</div>",
            list(warnings.iter().filter_map(Value::as_str))
        );
    }
    out
}

/// All checks, and the cost of the run.
pub(super) fn all(document: &Value) -> String {
    let checks = items(document, "checks");
    let passed = checks.iter().filter(|check| check["ok"] == Value::Bool(true)).count();
    let mut table = Table::new("Checks", ["check", "holds", "what was found"]);
    for check in checks {
        let holds = leaf(&check["ok"], Unit::Plain);
        table.push([text(check, "name").into(), Cell::Text(holds), text(check, "detail").into()]);
    }
    let mut out = match checks.len() {
        0 => paragraph("The document has no checks."),
        many => format!(
            "<p>{passed} of {many} checks passed: each compares what two parts counted by themselves.</p><details><summary>Table: checks</summary>{}</details>",
            table.html()
        ),
    };
    let mut cost = Table::new("What the run took on the computer that made it", ["figure", "value"]);
    let Some(run) = at(document, "run").and_then(Value::as_object) else { return out };
    for (name, value) in run {
        cost.push([Cell::from(name.as_str()), Cell::Number(leaf(value, Unit::of_key(name)))]);
    }
    if !cost.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{}</summary>{}</details>",
            Text("Table: what the run took"),
            cost.html()
        );
    }
    out
}
