//! Spec as text: keys in their tables, each with its origin, and numbers of other simulators in the spec's notation.

use std::fmt::Write as _;

/// Spec key to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Path, such as `flash.geometry.channels`.
    pub path: String,
    /// Value as TOML.
    pub value: String,
    /// Settings that the value comes from.
    pub from: Vec<&'static str>,
    /// Additional note.
    pub note: &'static str,
}

impl Key {
    /// Creates a key with the settings that it comes from.
    pub(crate) fn new(path: &str, value: impl Into<String>, from: &[&'static str]) -> Key {
        Key { path: path.to_owned(), value: value.into(), from: from.to_vec(), note: "" }
    }

    /// Adds a note.
    pub(crate) fn noted(self, note: &'static str) -> Key {
        Key { note, ..self }
    }
}

/// Writes a system that sets these keys and inherits all others. `defaulted` tells which settings the file leaves at
/// their defaults.
pub(crate) fn toml(
    head: &str,
    (inherits, description): (&str, &str),
    keys: &[Key],
    defaulted: &dyn Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    // Text from a file may contain control characters that a comment must not.
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

/// Formats a time given in picoseconds, in the largest unit that needs few digits.
pub(crate) fn time_ps(ps: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("s", 1_000_000_000_000), ("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1000), ("ps", 1)];
    // At most two decimals.
    let fits = |(_, unit): &&(&str, u64)| {
        ps >= *unit && (ps.is_multiple_of(*unit) || (*unit >= 100 && ps.is_multiple_of(unit / 100)))
    };
    match UNITS.iter().find(fits) {
        Some((name, unit)) => format!("{}{name}", decimal(ps as f64 / *unit as f64)),
        None => "0us".to_owned(),
    }
}

/// Formats a time given in nanoseconds.
pub(crate) fn time_ns(ns: u64) -> String {
    time_ps(ns.saturating_mul(1000))
}

/// Formats a size in the largest unit that divides it.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 5] =
        [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];
    let (name, unit) =
        UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit)).unwrap_or(&("B", 1));
    format!("{}{name}", bytes / unit)
}

/// Formats a share as a percentage.
pub(crate) fn share(share: f64) -> String {
    format!("{}%", decimal(share * 100.0))
}

/// Formats a number with as many decimals as needed, at most six.
pub(crate) fn decimal(number: f64) -> String {
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Quotes a string for TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
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

    #[test]
    fn numbers_are_written_as_a_person_would() {
        for (ns, text) in [
            (750_000, "750us"),
            (3_800_000, "3.8ms"),
            (75_020, "75.02us"),
            (7, "7ns"),
            (0, "0us"),
            (2_000_000_000, "2s"),
        ] {
            assert_eq!(time_ns(ns), text);
        }
        assert_eq!((time_ps(40_000_001), time_ps(500)), ("40000001ps".to_owned(), "500ps".to_owned()));
        assert_eq!(
            (size(8192), size(100), size(1 << 28)),
            ("8KiB".to_owned(), "100B".to_owned(), "256MiB".to_owned())
        );
        assert_eq!(
            (share(0.07), share(0.127), share(1.0)),
            ("7%".to_owned(), "12.7%".to_owned(), "100%".to_owned())
        );
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c \"");
    }
}
