//! A spec as text: keys in their tables, each with where it comes from.

use crate::units::quoted;
use std::fmt::Write as _;

/// A key of the spec that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its path, such as `flash.geometry.channels`.
    pub path: String,
    /// Its value as TOML.
    pub value: String,
    /// The settings that it comes from.
    pub from: Vec<&'static str>,
    /// What else must be said of it.
    pub note: &'static str,
}

impl Key {
    /// A key with the settings that it comes from.
    pub(crate) fn new(path: &str, value: impl Into<String>, from: &[&'static str]) -> Key {
        Key { path: path.to_owned(), value: value.into(), from: from.to_vec(), note: "" }
    }

    /// With what else must be said of it.
    pub(crate) fn noted(self, note: &'static str) -> Key {
        Key { note, ..self }
    }
}

/// The text of a system that says these keys, and inherits all others. `defaulted` says which settings the file does not name.
pub(crate) fn toml(
    head: &str,
    (inherits, description): (&str, &str),
    keys: &[Key],
    defaulted: &dyn Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    // What a file says may hold what a comment must not.
    let plain = head.replace(|c: char| c.is_control() && c != '\n', " ");
    for line in plain.lines() {
        let _ = writeln!(text, "{}", format!("# {line}").trim_end());
    }
    let _ = write!(text, "\ninherits = {}\ndescription = {}\n", quoted(inherits), quoted(description));
    let mut tables: Vec<&str> = Vec::new();
    let table_of = |key: &Key| key.path.rfind('.').unwrap_or(0);
    for key in keys {
        let table = &key.path[..table_of(key)];
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    for table in tables {
        let _ = writeln!(text, "\n[{table}]");
        let inside: Vec<&Key> = keys.iter().filter(|key| &key.path[..table_of(key)] == table).collect();
        let line = |key: &Key| format!("{} = {}", &key.path[table.len() + 1..], key.value);
        let width =
            inside.iter().map(|key| line(key).chars().count()).filter(|n| *n <= 40).max().unwrap_or(0);
        for key in inside {
            let origin = origin(key, defaulted);
            let _ = match origin.is_empty() {
                true => writeln!(text, "{}", line(key)),
                false => writeln!(text, "{:width$}  # {origin}", line(key)),
            };
        }
    }
    text
}

fn origin(key: &Key, defaulted: &dyn Fn(&str) -> bool) -> String {
    let name =
        |name: &&str| if defaulted(name) { format!("{name} (default there)") } else { (*name).to_owned() };
    let mut text = key.from.iter().map(name).collect::<Vec<_>>().join(", ");
    if !key.note.is_empty() {
        let _ = write!(text, "{}{}", if text.is_empty() { "" } else { "; " }, key.note);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_holds_nothing_that_toml_refuses() {
        let key = Key::new("flash.die.scheduler", "\"priority\"", &["Policy"]);
        let text = toml("a\u{1}b\rc\nd", ("d16", "x\u{7f}"), &[key], &|_| true);
        assert!(text.starts_with("# a b c\n# d\n"), "{text}");
        assert!(text.contains("description = \"x \""), "{text}");
        assert!(
            text.ends_with("[flash.die]\nscheduler = \"priority\"  # Policy (default there)\n"),
            "{text}"
        );
    }
}
