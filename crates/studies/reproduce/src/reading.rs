//! Readings of a paper: answers to all that it leaves open, for all of its rows, as data beside its figures.
//!
//! `papers/NAME/readings.toml` lists them; the first is the default. Overrides of a reading come before those of a
//! row's own points, which take precedence; choices of a study (how a figure is read) have the study's own type.

use super::Evidence;
use super::study::Entry;
use config::Diagnostic;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

/// Reading of a paper.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reading {
    /// Name for `--reading`.
    pub(crate) id: String,
    /// Description in one line.
    pub(crate) about: String,
    /// Day of the decision, before the reading was run in full.
    pub(crate) decided: String,
    /// Choices of the reading.
    #[serde(default, rename = "choice")]
    pub(crate) choices: Vec<Choice>,
    /// Ids of rows, or their prefixes, whose values had been seen.
    #[serde(default)]
    seen: Vec<String>,
    /// Ids among `seen`, or their prefixes, that the choices cannot affect.
    #[serde(default)]
    clean: Vec<String>,
    /// True for the first reading of a file, the one that variants accompany.
    #[serde(skip)]
    pub(crate) is_first: bool,
}

/// Choice of a reading or a variant.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    /// Short description.
    pub(crate) about: String,
    /// Sentence of the paper, or another source, that supports it.
    #[serde(default)]
    pub(crate) sentence: String,
    /// Systems that `set` applies to; all of the paper's if empty.
    #[serde(default)]
    systems: Vec<String>,
    /// Assignments of keys, as `--set` takes them.
    #[serde(default)]
    set: Vec<String>,
    /// Fields of the study's own type.
    #[serde(default)]
    study: toml::Table,
}

/// Rows under a different choice, beside the reading's own; they do not count.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Variant {
    /// Suffix of its rows' names.
    pub(crate) id: String,
    /// Ids of the paper's rows to show, or their prefixes.
    pub(crate) rows: Vec<String>,
    /// Ids or prefixes excluded from `rows`.
    #[serde(default)]
    pub(crate) without: Vec<String>,
    /// Programs that the rows use, if not all.
    #[serde(default)]
    pub(crate) programs: Vec<String>,
    /// True if the rows are shown without `--full` as well.
    #[serde(default)]
    pub(crate) beside: bool,
    #[serde(rename = "choice")]
    pub(crate) choices: Vec<Choice>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    reading: Vec<Reading>,
    #[serde(default)]
    variant: Vec<Variant>,
    /// Named lists of ids that variants share: `@name` in `rows` and `without`.
    #[serde(default)]
    groups: BTreeMap<String, Vec<String>>,
}

fn file(text: &str) -> File {
    toml::from_str(text).unwrap_or_else(|fault| panic!("readings.toml ships with the program: {fault}"))
}

/// Readings of a `readings.toml`; one without choices or name if the file has none.
pub(super) fn readings(text: &str) -> Vec<Reading> {
    let mut all = file(text).reading;
    if all.is_empty() {
        all.push(Reading::default());
    }
    all[0].is_first = true;
    all
}

/// Variants of a `readings.toml`.
pub(super) fn variants(text: &str) -> Vec<Variant> {
    let File { variant, groups, .. } = file(text);
    let ids = |name: String| match name.strip_prefix('@') {
        Some(group) => {
            groups.get(group).cloned().unwrap_or_else(|| panic!("readings.toml has no group `{group}`"))
        }
        None => vec![name],
    };
    let expanded = |names: Vec<String>| names.into_iter().flat_map(ids).collect();
    let of = |variant: Variant| Variant {
        rows: expanded(variant.rows),
        without: expanded(variant.without),
        ..variant
    };
    variant.into_iter().map(of).collect()
}

/// Returns the reading with this id of a target, or the first if no id is given.
///
/// # Errors
/// The target does not have the id; the diagnostic lists those that it has.
pub(super) fn find(target: &str, text: &str, id: Option<&str>) -> Result<Reading, Diagnostic> {
    let mut all = readings(text);
    let Some(id) = id else { return Ok(all.swap_remove(0)) };
    if let Some(at) = all.iter().position(|reading| !reading.id.is_empty() && reading.id == id) {
        return Ok(all.swap_remove(at));
    }
    let fault = Diagnostic::new(format!("`{target}` has no reading `{id}`"));
    if all[0].id.is_empty() {
        return Err(fault.help(format!("`{target}` has only one reading: omit --reading")));
    }
    let lines: Vec<String> = all.iter().map(|reading| format!("{}: {}", reading.id, reading.about)).collect();
    Err(fault.allowed(id, all.iter().map(|reading| reading.id.as_str())).help(lines.join("; ")))
}

/// Assignments of choices for a system, in order.
pub(crate) fn sets<'a>(choices: &'a [Choice], system: &str) -> Vec<&'a str> {
    let applies = |choice: &&Choice| choice.systems.is_empty() || choice.systems.iter().any(|s| s == system);
    choices.iter().filter(applies).flat_map(|choice| choice.set.iter().map(String::as_str)).collect()
}

/// Choices in the study's own type: fields of later choices replace those of earlier ones.
pub(crate) fn study<T: DeserializeOwned>(choices: &[Choice]) -> T {
    let mut all = toml::Table::new();
    for choice in choices {
        all.extend(choice.study.clone());
    }
    all.try_into().unwrap_or_else(|fault| panic!("readings.toml ships with the program: {fault}"))
}

impl Reading {
    /// Entry with the evidence that the reading leaves its row, unless the entry's own is weaker.
    pub(super) fn judged(&self, entry: Entry) -> Entry {
        let is_of = |ids: &[String]| ids.iter().any(|id| begins(&entry.id, id));
        if !is_of(&self.seen) || is_of(&self.clean) {
            return entry;
        }
        let id = entry.id.clone();
        entry.changed(id, |row| {
            let evidence = if row.is_measured() { row.evidence.max(Evidence::Seen) } else { row.evidence };
            super::Row { evidence, ..row }
        })
    }
}

impl Variant {
    /// Returns whether the variant shows the row of this id, without the paper's name.
    pub(crate) fn shows(&self, id: &str) -> bool {
        let is_of = |ids: &[String]| ids.iter().any(|name| begins(id, name));
        is_of(&self.rows) && !is_of(&self.without)
    }
}

/// Returns whether `name` is the id, or a prefix of it in whole components; `*` matches every id.
pub(super) fn begins(id: &str, name: &str) -> bool {
    name == "*" || id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::super::{Row, Rule, TARGETS};
    use super::*;
    use std::collections::BTreeSet;

    const TEXT: &str = r#"
[[reading]]
id = "new"
about = "as the sentences say"
decided = "2026-11-29"
seen = ["p"]
clean = ["p.map"]

[[reading.choice]]
about = "six cores"
systems = ["rival"]
set = ["cores=6"]

[[reading.choice]]
about = "own inputs"
set = ["inputs=own"]
study = { least = 1 }

[[reading]]
id = "old"
about = "as it was"
decided = "2026-01-01"

[groups]
some = ["bw"]

[[variant]]
id = "eight"
rows = ["@some", "lat"]
without = ["bw.mixes"]
choice = [{ about = "eight cores", set = ["cores=8"], study = { least = 2 } }]
"#;

    #[test]
    fn the_first_reading_is_the_default_and_others_go_by_name() {
        assert_eq!(find("p", TEXT, None).expect("the first").id, "new");
        assert_eq!(find("p", TEXT, Some("old")).expect("known").id, "old");
        let fault = find("p", TEXT, Some("odl")).expect_err("unknown");
        assert_eq!(fault.nearest.as_deref(), Some("old"));
        assert!(find("theory", "", Some("old")).expect_err("none").to_string().contains("omit --reading"));
    }

    #[test]
    fn later_choices_replace_fields_and_sets_follow_the_system() {
        #[derive(Deserialize, PartialEq, Debug)]
        struct Study {
            least: u32,
        }
        let reading = find("p", TEXT, None).expect("the first");
        assert_eq!(sets(&reading.choices, "rival"), ["cores=6", "inputs=own"]);
        assert_eq!(sets(&reading.choices, "hero"), ["inputs=own"]);
        let all = [reading.choices, variants(TEXT).remove(0).choices].concat();
        assert_eq!(study::<Study>(&all), Study { least: 2 });
    }

    #[test]
    fn a_variant_shows_beginnings_up_to_a_point() {
        let variant = variants(TEXT).remove(0);
        assert!(variant.shows("bw.data") && !variant.shows("bw.mixes.some") && !variant.shows("bws"));
    }

    #[test]
    fn rows_that_a_reading_may_move_are_seen() {
        let reading = find("p", TEXT, None).expect("the first");
        let evidence = |id: &'static str, evidence| {
            let row = Row { evidence, ..Row::new(id, "x", 1.0, 1.0, Rule::Exact) };
            let entry = Entry::new(id, Vec::new(), move |_| Ok(row.clone()));
            reading.judged(entry).row(&super::super::study::Found::default()).evidence
        };
        assert_eq!(evidence("p.bw", Evidence::Clean), Evidence::Seen);
        assert_eq!(evidence("p.map.size", Evidence::Clean), Evidence::Clean);
        assert_eq!(evidence("p.bw", Evidence::Fit), Evidence::Fit);
    }

    /// Readings that ship can be read, have names of their own, a day, and a source for each choice.
    #[test]
    fn every_shipped_reading_is_whole() {
        for target in TARGETS.iter().filter(|target| !target.readings.is_empty()) {
            let mut names = BTreeSet::new();
            for reading in readings(target.readings) {
                let Reading { id, about, decided, choices, .. } = &reading;
                assert!(names.insert(id.clone()), "{}: `{id}` twice", target.name);
                assert!(!id.is_empty() && !about.is_empty() && decided.len() == 10, "{reading:?}");
                assert!(choices.iter().all(|choice| !choice.about.is_empty()), "{reading:?}");
                let sourced = choices.iter().all(|choice| !choice.sentence.is_empty());
                assert!(sourced, "{}: `{id}` has a choice without a sentence", target.name);
            }
            for variant in variants(target.readings) {
                assert!(names.insert(variant.id.clone()), "{}: `{}` twice", target.name, variant.id);
            }
        }
    }
}
