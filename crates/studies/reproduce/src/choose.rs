//! Selection of the rows that a user asks for.

use super::reading::{Choice, begins, find as find_reading};
use super::study::Entry;
use super::{Case, Effort, Reading, TARGETS, Target, Work};
use config::Diagnostic;
use config::diag::nearest;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Selected part of a target.
pub struct Chosen {
    /// Name of the target.
    pub target: &'static str,
    /// Reading under which its rows are computed.
    pub(super) reading: Reading,
    pub(super) effort: Effort,
    pub(super) ids: BTreeSet<String>,
    pub(super) tasks: Tasks,
}

impl Chosen {
    /// Describes the reading with its choices, one per line; `None` for a target with a single reading.
    pub fn read_as(&self) -> Option<String> {
        let Reading { id, about, decided, choices, .. } = &self.reading;
        if id.is_empty() {
            return None;
        }
        let mut text = format!("{} read as `{id}` ({decided}): {about}\n", self.target);
        for Choice { about, sentence, .. } in choices {
            let _ = writeln!(text, "  {about}\n      {sentence}");
        }
        Some(text)
    }
}

/// Selected cases or rows.
pub(super) enum Tasks {
    Cases(Vec<Case>),
    Study(Vec<Entry>),
}

impl Tasks {
    fn of(target: &Target, effort: Effort, reading: &Reading) -> Tasks {
        match target.work {
            Work::Cases(cases) => Tasks::Cases(cases()),
            Work::Study(entries) => {
                let entries = entries(effort, reading).into_iter();
                Tasks::Study(entries.map(|entry| reading.judged(entry)).collect())
            }
        }
    }

    fn ids(&self) -> Vec<String> {
        match self {
            Tasks::Cases(cases) => cases.iter().flat_map(|case| &case.ids).cloned().collect(),
            Tasks::Study(entries) => entries.iter().map(|entry| entry.id.clone()).collect(),
        }
    }

    fn keep(&mut self, ids: &BTreeSet<String>) {
        match self {
            Tasks::Cases(cases) => cases.retain(|case| case.ids.iter().any(|id| ids.contains(id))),
            Tasks::Study(entries) => entries.retain(|entry| ids.contains(&entry.id)),
        }
    }
}

/// Selects rows by a target name (or `all`) and by `only`: rows with these ids, or whose ids begin with one of them;
/// all rows if `only` is empty. Targets without selected rows are omitted. Rows are computed under `reading`, or each
/// target's first.
///
/// # Errors
/// The target does not exist, a row's name selects nothing, or the target does not have the reading; the diagnostic
/// lists what exists and the nearest spelling.
pub fn choose(
    name: &str,
    only: &[String],
    effort: Effort,
    reading: Option<&str>,
) -> Result<Vec<Chosen>, Diagnostic> {
    let targets = find(name)?;
    if let (Some(id), [_, _, ..]) = (reading, &targets[..]) {
        let read = TARGETS.iter().filter(|target| !target.readings.is_empty()).map(|target| target.name);
        let read: Vec<&str> = read.collect();
        return Err(Diagnostic::new(format!(
            "`--reading {id}` belongs to one target, but all were requested"
        ))
        .help(format!("targets that have readings: {}", read.join(", "))));
    }
    of(&targets, only, effort, reading)
}

/// Targets of a name: one, or `all`.
fn find(name: &str) -> Result<Vec<&'static Target>, Diagnostic> {
    if name == "all" {
        return Ok(TARGETS.iter().collect());
    }
    match TARGETS.iter().find(|t| t.name == name) {
        Some(target) => Ok(vec![target]),
        None => Err(Diagnostic::new(format!("unknown target `{name}`"))
            .allowed(name, TARGETS.iter().map(|t| t.name).chain(["all"]))
            .help(TARGETS.iter().map(|t| format!("{}: {}", t.name, t.about)).collect::<Vec<_>>().join("; "))),
    }
}

/// Selects from these targets; see [`choose`].
pub(super) fn of(
    targets: &[&'static Target],
    only: &[String],
    effort: Effort,
    reading: Option<&str>,
) -> Result<Vec<Chosen>, Diagnostic> {
    let mut all = Vec::new();
    for target in targets {
        let reading = find_reading(target.name, target.readings, reading)?;
        let tasks = Tasks::of(target, effort, &reading);
        all.push((target.name, reading, tasks));
    }
    let ids: Vec<String> = all.iter().flat_map(|(.., tasks)| tasks.ids()).collect();
    if let Some(name) = only.iter().find(|name| !ids.iter().any(|id| begins(id, name))) {
        return Err(unknown(name, &ids, targets, effort));
    }
    let chosen = all.into_iter().map(|(target, reading, mut tasks)| {
        let is_wanted = |id: &String| only.is_empty() || only.iter().any(|name| begins(id, name));
        let ids: BTreeSet<String> = tasks.ids().into_iter().filter(is_wanted).collect();
        tasks.keep(&ids);
        Chosen { target, reading, effort, ids, tasks }
    });
    Ok(chosen.filter(|chosen| !chosen.ids.is_empty()).collect())
}

fn unknown(name: &str, ids: &[String], targets: &[&'static Target], effort: Effort) -> Diagnostic {
    let mut fault =
        Diagnostic::new(format!("no row id is or begins with `{name}`")).allowed(name, listed(name, ids));
    let all: BTreeSet<&str> = ids.iter().flat_map(|id| beginnings(id)).collect();
    fault.nearest = nearest(name, all).map(str::to_owned);
    let has = |target: &Target| {
        let reading = super::reading::readings(target.readings).swap_remove(0);
        Tasks::of(target, Effort::Whole, &reading).ids().iter().any(|id| begins(id, name))
    };
    if effort != Effort::Whole && targets.iter().any(|target| has(target)) {
        return fault.help("such rows take hours: add --full");
    }
    let elsewhere = TARGETS.iter().filter(|target| !targets.iter().any(|of| of.name == target.name));
    match elsewhere.filter(|target| has(target)).map(|target| target.name).next() {
        Some(other) => fault.help(format!("`{other}` has it: nandscape reproduce {other} --only {name}")),
        None => fault.help("--only takes the id of a row, or a prefix of it that ends at a dot"),
    }
}

/// Prefixes of an id that end at its dots, and the id itself.
fn beginnings(id: &str) -> impl Iterator<Item = &str> {
    id.match_indices('.').map(|(at, _)| &id[..at]).chain([id])
}

/// Possible continuations of a name: its longest known prefix with one more component, and further ones as long as they
/// are unique. So the components of a paper are listed, not its name.
fn listed(name: &str, ids: &[String]) -> Vec<String> {
    let known = beginnings(name).filter(|part| ids.iter().any(|id| begins(id, part)));
    let mut from = known.last().unwrap_or_default().to_owned();
    loop {
        let parts = from.split('.').filter(|part| !part.is_empty()).count() + 1;
        let below = ids.iter().filter(|id| from.is_empty() || begins(id, &from));
        let below: BTreeSet<String> =
            below.filter_map(|id| beginnings(id).nth(parts - 1)).map(str::to_owned).collect();
        match below.len() {
            0 => return vec![from],
            1 => from = below.into_iter().next().unwrap_or_default(),
            _ => return below.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(target: &str, only: &str) -> Diagnostic {
        choose(target, &[only.to_owned()], Effort::Full, None).err().expect(only)
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        for target in TARGETS {
            let reading = find_reading(target.name, target.readings, None).expect("the first");
            let mut ids = Tasks::of(target, Effort::Whole, &reading).ids();
            let count = ids.len();
            ids.sort_unstable();
            ids.dedup();
            assert!(count > 0 && ids.len() == count, "{}: {count} ids, {} names", target.name, ids.len());
        }
    }

    /// The ids of a paper all begin with its name, which says nothing.
    #[test]
    fn the_parts_of_the_chosen_paper_are_listed() {
        for target in ["zng", "astriflash", "mqms"] {
            let fault = fault(target, "nonsense");
            let is_a_part =
                |name: &String| name.starts_with(&format!("{target}.")) && name.matches('.').count() == 1;
            assert!(fault.allowed.len() > 3 && fault.allowed.iter().all(is_a_part), "{fault}");
        }
        let of_all = fault("all", "nonsense").allowed;
        assert!(
            ["latency", "gap", "zng", "mqms"].iter().all(|name| of_all.iter().any(|n| n == name)),
            "{of_all:?}"
        );
    }

    #[test]
    fn the_rows_below_what_is_known_of_a_name_are_listed() {
        let fault = fault("astriflash", "astriflash.service_p99.tatp.astriflsh");
        assert_eq!(fault.nearest.as_deref(), Some("astriflash.service_p99.tatp.astriflash"));
        assert!(fault.allowed.iter().all(|name| name.starts_with("astriflash.service_p99.tatp.")), "{fault}");
        let all = ["a.b.c", "a.b.d", "e"].map(str::to_owned);
        assert_eq!(listed("x", &all), ["a", "e"]);
        assert_eq!(listed("a.x", &all), ["a.b.c", "a.b.d"]);
        assert_eq!(listed("e.x", &all), ["e"]);
    }

    #[test]
    fn a_row_of_the_long_form_is_pointed_to() {
        assert!(fault("astriflash", "astriflash.gc.fresh").to_string().contains("--full"));
        assert!(!fault("astriflash", "astriflash.gc.frsh").to_string().contains("--full"));
    }

    #[test]
    fn a_row_of_another_target_is_pointed_to() {
        let text = fault("flashabacus", "zng.ftl").to_string();
        assert!(text.contains("nandscape reproduce zng --only zng.ftl"), "{text}");
    }

    #[test]
    fn a_reading_belongs_to_one_target_that_has_it() {
        let fault = |target: &str, id: &str| {
            choose(target, &[], Effort::Full, Some(id)).err().expect("refused").to_string()
        };
        assert!(fault("all", "first").contains("belongs to one target"));
        assert!(fault("theory", "first").contains("omit --reading"));
        let chosen = choose("flashabacus", &[], Effort::Full, Some("first")).expect("known");
        assert_eq!(chosen[0].reading.id, "first");
        assert!(fault("flashabacus", "frist").contains("first"));
    }

    /// Only targets with such rows are selected from `all`.
    #[test]
    fn rows_of_several_targets_can_be_chosen() {
        let only = ["zng.ftl", "latency"].map(str::to_owned);
        let chosen = choose("all", &only, Effort::Full, None).expect("known rows");
        assert_eq!(chosen.iter().map(|c| c.target).collect::<Vec<_>>(), ["theory", "zng"]);
    }
}
