//! Which rows a user asks for.

use super::study::Entry;
use super::{Case, Effort, TARGETS, Target, Work};
use config::Diagnostic;
use config::diag::nearest;
use std::collections::BTreeSet;

/// What is done of a target.
pub struct Chosen {
    /// The target's name.
    pub target: &'static str,
    pub(super) effort: Effort,
    pub(super) ids: BTreeSet<String>,
    pub(super) tasks: Tasks,
}

/// Cases or rows that were chosen.
pub(super) enum Tasks {
    Cases(Vec<Case>),
    Study(Vec<Entry>),
}

impl Tasks {
    fn of(target: &Target, effort: Effort) -> Tasks {
        match target.work {
            Work::Cases(cases) => Tasks::Cases(cases()),
            Work::Study(entries) => Tasks::Study(entries(effort)),
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

/// What a name (a target, or `all`) and the rows `only` choose: the rows of these ids, or whose ids begin with one of them; everything
/// if there are none. A target of which nothing is chosen is left out.
///
/// # Errors
/// A target that there is not, or a row's name that chooses nothing, with what exists and the nearest spelling.
pub fn choose(name: &str, only: &[String], effort: Effort) -> Result<Vec<Chosen>, Diagnostic> {
    of(&find(name)?, only, effort)
}

/// The targets of a name: one, or `all`.
fn find(name: &str) -> Result<Vec<&'static Target>, Diagnostic> {
    if name == "all" {
        return Ok(TARGETS.iter().collect());
    }
    match TARGETS.iter().find(|t| t.name == name) {
        Some(target) => Ok(vec![target]),
        None => Err(Diagnostic::new(format!("there is no target `{name}`"))
            .allowed(name, TARGETS.iter().map(|t| t.name).chain(["all"]))
            .help(TARGETS.iter().map(|t| format!("{}: {}", t.name, t.about)).collect::<Vec<_>>().join("; "))),
    }
}

/// As [`choose`], of these targets.
pub(super) fn of(
    targets: &[&'static Target],
    only: &[String],
    effort: Effort,
) -> Result<Vec<Chosen>, Diagnostic> {
    let all: Vec<(&str, Tasks)> = targets.iter().map(|t| (t.name, Tasks::of(t, effort))).collect();
    let ids: Vec<String> = all.iter().flat_map(|(_, tasks)| tasks.ids()).collect();
    if let Some(name) = only.iter().find(|name| !ids.iter().any(|id| begins(id, name))) {
        return Err(unknown(name, &ids, targets, effort));
    }
    let chosen = all.into_iter().map(|(target, mut tasks)| {
        let is_wanted = |id: &String| only.is_empty() || only.iter().any(|name| begins(id, name));
        let ids: BTreeSet<String> = tasks.ids().into_iter().filter(is_wanted).collect();
        tasks.keep(&ids);
        Chosen { target, effort, ids, tasks }
    });
    Ok(chosen.filter(|chosen| !chosen.ids.is_empty()).collect())
}

/// Whether `name` is the id, or its beginning up to one of its points.
fn begins(id: &str, name: &str) -> bool {
    id.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn unknown(name: &str, ids: &[String], targets: &[&'static Target], effort: Effort) -> Diagnostic {
    let mut fault = Diagnostic::new(format!("no row's id is `{name}` or begins with it"))
        .allowed(name, listed(name, ids));
    let all: BTreeSet<&str> = ids.iter().flat_map(|id| beginnings(id)).collect();
    fault.nearest = nearest(name, all).map(str::to_owned);
    let in_whole =
        |target: &&&Target| Tasks::of(target, Effort::Whole).ids().iter().any(|id| begins(id, name));
    fault.help(if effort != Effort::Whole && targets.iter().any(|target| in_whole(&target)) {
        "such rows take hours: they are there with --full"
    } else {
        "--only takes the id of a row, or its beginning up to a point"
    })
}

/// An id's beginnings up to its points, and itself.
fn beginnings(id: &str) -> impl Iterator<Item = &str> {
    id.match_indices('.').map(|(at, _)| &id[..at]).chain([id])
}

/// What can stand in a name's place: what is known of it up to one of its points, one part longer; further parts as long as there
/// is one only. So the parts of a paper are listed, not its name.
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
        choose(target, &[only.to_owned()], Effort::Full).err().expect(only)
    }

    #[test]
    fn every_row_has_a_name_of_its_own() {
        for target in TARGETS {
            let mut ids = Tasks::of(target, Effort::Whole).ids();
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

    /// Of all targets, those that have the rows.
    #[test]
    fn rows_of_several_targets_can_be_chosen() {
        let only = ["zng.ftl", "latency"].map(str::to_owned);
        let chosen = choose("all", &only, Effort::Full).expect("known rows");
        assert_eq!(chosen.iter().map(|c| c.target).collect::<Vec<_>>(), ["theory", "zng"]);
    }
}
