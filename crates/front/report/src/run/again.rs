//! The command that repeats a run.

use super::Shipped;
use super::spec::{Changed, changed};
use crate::html::{Text, paragraph};
use crate::read::{at, items, text};
use serde_json::Value;

/// More changes than this are not a command's but a file's.
const MOST: usize = 24;

/// The section.
pub(super) fn html(document: &Value, shipped: Option<&Shipped>) -> String {
    let system = text(document, "system");
    let changes = shipped.map(|shipped| changed(&shipped.spec, &document["spec"]));
    let seed = document.get("seed").map(Value::to_string).unwrap_or_default();
    let (of, note) =
        match shipped.zip(changes).and_then(|(shipped, changes)| options(&shipped.spec, &changes)) {
            Some(options) => (std::iter::once(word(system)).chain(options).collect::<Vec<_>>().join(" "), ""),
            None => (
                "spec.toml".to_owned(),
                " `spec.toml` is the resolved spec that `run --out` leaves beside the result.",
            ),
        };
    let mut command = format!("nandscape run {of}");
    for workload in items(document, "workload").iter().filter_map(Value::as_str) {
        command += &format!(" --workload {}", word(workload));
    }
    command += &format!(" --seed {seed}");
    let version = text(document, "version");
    format!("<pre class=\"command\">{}</pre>", Text(&command))
        + &paragraph(&format!(
            "With nandscape {version} it gives the same figures, bit for bit.{note} A document does not keep `--warmup`, `--queue-depth` and the \
             options of traces: if they were given, they must be given again."
        ))
}

/// Changes as options; none where options cannot say them, or are too many.
fn options(base: &Value, changes: &[Changed<'_>]) -> Option<Vec<String>> {
    // What is gone because a value has taken the place of a table is said by that value.
    let said = |gone: &str| {
        let is_over = |key: &str| gone.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
        changes.iter().any(|change| !change.to.is_null() && is_over(&change.key))
    };
    let told = changes.iter().filter(|change| !(change.to.is_null() && said(&change.key)));
    let options = told.map(|change| sets(base, change)).collect::<Option<Vec<String>>>()?;
    (options.len() <= MOST).then_some(options)
}

/// A change as an option; none where an option cannot say it.
fn sets(base: &Value, change: &Changed<'_>) -> Option<String> {
    // A key that the system has not at all needs a file.
    at(base, &change.key)?;
    let value = match change.to {
        Value::String(text) => text.clone(),
        Value::Number(_) | Value::Bool(_) => change.to.to_string(),
        Value::Array(all) if all.iter().all(|one| one.is_string() || one.is_number()) => {
            change.to.to_string()
        }
        _ => return None,
    };
    Some(format!("--set {}", word(&format!("{}={value}", change.key))))
}

/// A word of a shell.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}
