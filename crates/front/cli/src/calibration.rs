//! Sources of the numbers of a shipped system: the tables of its `calibration.md`, read for `init` and `explain
//! energy`.

use config::Place;

/// Calibration page of every shipped system.
const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/calibrations.rs"));

/// Sources of one system.
struct Calibration {
    /// Sources to which the page gives a short name, one a line.
    legend: Vec<String>,
    /// Keys, each with the text of its row.
    rows: Vec<(String, String)>,
}

impl Calibration {
    /// Reads the page of a system. `keys` are the keys that its spec sets.
    fn of(system: &str, keys: &[&str]) -> Option<Calibration> {
        let (_, page) = PAGES.iter().find(|(name, _)| *name == system)?;
        Some(Calibration::read(page, keys))
    }

    /// Reads a page: rows `| keys | value | source |`. The first key is complete; the others are relative to its table
    /// or to one of the tables around it.
    fn read(page: &str, keys: &[&str]) -> Calibration {
        let is_there = |key: &str| {
            let below = |known: &&str| known.strip_prefix(key).is_some_and(|rest| rest.starts_with('.'));
            keys.contains(&key) || keys.iter().any(below)
        };
        let mut rows = Vec::new();
        for cells in page.lines().filter_map(cells) {
            let [names, _, source, ..] = &cells[..] else { continue };
            let mut whole = String::new();
            for name in names.split('`').skip(1).step_by(2) {
                let tables = whole.match_indices('.').map(|(dot, _)| &whole[..=dot]).rev();
                let beside = tables.map(|table| format!("{table}{name}")).find(|key| is_there(key));
                match Some(name.to_owned()).filter(|name| is_there(name)).or(beside) {
                    Some(key) => {
                        rows.push((key.clone(), plain(source)));
                        whole = key;
                    }
                    // This key may be set by a different system; the keys relative to it still belong to this one.
                    None if name.contains('.') => whole = name.to_owned(),
                    None => {}
                }
            }
        }
        Calibration { legend: legend(page), rows }
    }

    /// Source text of a key: from its own row, or from the row of a table around it.
    fn source(&self, key: &str) -> Option<&str> {
        let covers = |row: &str| key.strip_prefix(row).is_some_and(|r| r.is_empty() || r.starts_with('.'));
        let nearest = self.rows.iter().filter(|(row, _)| covers(row)).max_by_key(|(row, _)| row.len())?;
        Some(&nearest.1)
    }
}

/// Calibration pages of the systems that values come from.
pub(crate) struct Sources(Vec<(String, Calibration)>);

impl Sources {
    /// Sources to which each page gives a short name.
    pub(crate) fn legends(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.0.iter().map(|(system, page)| (system.as_str(), page.legend.as_slice()))
    }

    pub(crate) fn of(values: &[(String, toml::Value, Place)], as_kind: &dyn Fn(&str) -> String) -> Sources {
        let mut found: Vec<(String, Calibration)> = Vec::new();
        for (_, _, place) in values {
            let Some(system) = system_of(place) else { continue };
            if found.iter().any(|(known, _)| known == system) {
                continue;
            }
            let is_its = |(_, _, at): &&(String, toml::Value, Place)| at.source == place.source;
            // A component that inherits a table of a different component has its values under another name there.
            let named = |(key, ..): &(String, toml::Value, Place)| [key.clone(), as_kind(key)];
            let keys: Vec<String> = values.iter().filter(is_its).flat_map(named).collect();
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            found.extend(Calibration::of(system, &keys).map(|page| (system.to_owned(), page)));
        }
        Sources(found)
    }

    /// Source of a value by one of its names, with the page that has it if there are several.
    pub(crate) fn of_key(&self, keys: &[&str], place: &Place) -> Option<String> {
        let (system, page) = self.0.iter().find(|(system, _)| Some(system.as_str()) == system_of(place))?;
        let source = keys.iter().find_map(|key| page.source(key))?;
        Some(if self.0.len() > 1 { format!("{source} ({system})") } else { source.to_owned() })
    }
}

/// Returns the shipped system whose spec contains a value.
fn system_of(place: &Place) -> Option<&str> {
    place.source.strip_prefix("systems/")?.strip_suffix("/spec.toml")
}

/// Splits a row that begins with a key into cells.
fn cells(line: &str) -> Option<Vec<String>> {
    let row = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    if !row.trim_start().starts_with('`') {
        return None;
    }
    // `\|` is an escaped bar within a cell.
    let cells = row.replace("\\|", "\u{0}");
    Some(cells.split('|').map(|cell| cell.replace('\u{0}', "|").trim().to_owned()).collect())
}

/// Items of the list that defines short names of sources.
fn legend(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_item = false;
    for line in page.lines() {
        if line.starts_with("* **") {
            found.push(plain(&line[2..]));
            is_item = true;
        } else if let (true, Some(more), Some(last)) = (is_item, line.strip_prefix("  "), found.last_mut()) {
            last.push(' ');
            last.push_str(&plain(more));
        } else {
            is_item = false;
        }
    }
    found
}

/// Removes Markdown markup: emphasis, and the targets of links.
fn plain(markdown: &str) -> String {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, link)) = rest.split_once("](") {
        let (front, name) = before.rsplit_once('[').unwrap_or((before, ""));
        let Some((_, after)) = link.split_once(')') else { break };
        text.push_str(front);
        text.push_str(name);
        rest = after;
    }
    text.push_str(rest);
    // A star with spaces around it multiplies.
    let unmarked = text.replace(" * ", "\u{0}").replace('*', "");
    unmarked.replace('\u{0}', " * ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# Sources

* **sheet**: a data sheet,
  of two lines.
* an item of another list

| key | value | source |
|---|---|---|
| `a.b.c`, `d`, `e.f` | 1, 2, 3 | *chosen*: as [ideal](../ideal/calibration.md), 2 * 3 |
| `a.g` | 4 | the sheet \\| the paper | x1.0 |
";

    #[test]
    fn every_key_of_a_row_has_its_words() {
        let keys = ["a.b.c", "a.b.d", "a.e.f", "a.g.x"];
        let read = Calibration::read(PAGE, &keys);
        for key in ["a.b.c", "a.b.d", "a.e.f"] {
            assert_eq!(read.source(key), Some("chosen: as ideal, 2 * 3"), "{key}");
        }
        assert_eq!(Calibration::read(PAGE, &["a.b.d"]).source("a.b.d"), Some("chosen: as ideal, 2 * 3"));
        assert_eq!(read.source("a.g.x"), Some("the sheet | the paper"));
        assert_eq!(read.source("a.b"), None);
        assert_eq!(read.legend, ["sheet: a data sheet, of two lines."]);
    }
}
