//! Which part of a machine a workload is for: `NAME=WORKLOAD`, or the only one that it could be for.

use crate::spec::{Id, Kind, Loaded};
use config::{Diagnostic, Place};
use std::path::Path;

/// What executes programs.
const PROCESSORS: [Kind; 4] = [Kind::Gpu, Kind::Cpu, Kind::Accelerator, Kind::Coprocessor];

/// A workload, and the part that the user says it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    /// The workload as a user writes it, without the part.
    pub(crate) text: &'a str,
    /// The part.
    pub(crate) to: Option<Id>,
}

/// A text as a part's name and a workload, if it has the form; a file of that name is a workload.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let (name, workload) = text.split_once('=')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(is_plain) && !Path::new(text).exists()).then_some((name, workload))
}

/// A workload without the part that it is for.
pub(crate) fn workload_of(text: &str) -> &str {
    split(text).map_or(text, |(_, workload)| workload)
}

/// What each text of a plan is for.
///
/// # Errors
/// A part that is not there, or that runs nothing.
pub(crate) fn bind<'a>(loaded: &Loaded, texts: &'a [String]) -> Result<Vec<Bound<'a>>, Diagnostic> {
    texts.iter().map(|text| bound(loaded, text)).collect()
}

fn bound<'a>(loaded: &Loaded, text: &'a str) -> Result<Bound<'a>, Diagnostic> {
    let Some((name, workload)) = split(text) else { return Ok(Bound { text, to: None }) };
    let spec = &loaded.spec;
    let all = PROCESSORS
        .into_iter()
        .chain([Kind::Flash, Kind::Stripe])
        .flat_map(|kind| (0..spec.count(kind)).map(move |number| Id { kind, number }));
    let takes = |id: &Id| PROCESSORS.contains(&id.kind) || drives(loaded).contains(id);
    let candidates: Vec<Id> = all.filter(takes).collect();
    let found = candidates.iter().copied().find(|id| spec.name_of(*id) == name);
    if found.is_some() {
        return Ok(Bound { text: workload, to: found });
    }
    let what = format!("no part `{name}` takes a workload");
    let names = candidates.iter().map(|id| spec.name_of(*id).to_owned()).collect::<Vec<_>>();
    let place =
        Place { source: "--workload".to_owned(), text: text.to_owned(), column: 1, ..Place::default() };
    Err(Diagnostic::new(what).at(place).allowed(name, names))
}

/// The drives that requests of the host can go to.
pub(crate) fn drives(loaded: &Loaded) -> &[Id] {
    loaded.spec.host.first().map_or(&[], |host| host.linked("drives"))
}

/// The part of a kind that a workload is for, of those that could be.
///
/// # Errors
/// There are several, and none is said; another kind is said.
pub(crate) fn part_for(
    loaded: &Loaded,
    bound: Bound<'_>,
    candidates: &[Id],
    what: &str,
) -> Result<Option<Id>, Diagnostic> {
    let spec = &loaded.spec;
    let Bound { text, to } = bound;
    let names = || candidates.iter().map(|id| spec.name_of(*id).to_owned()).collect::<Vec<_>>();
    match to {
        Some(id) if candidates.contains(&id) => Ok(Some(id)),
        Some(id) => {
            let name = spec.name_of(id);
            let fault = Diagnostic::new(format!("`{text}` is {what}, and `{name}` takes none"));
            Err(fault.allowed(name, names()))
        }
        None if candidates.len() > 1 => {
            let fault = Diagnostic::new(format!(
                "`{text}` is {what}, and there are {} parts for it",
                candidates.len()
            ));
            let help = format!("say which: --workload {}={text}", spec.name_of(candidates[0]));
            Err(fault.allowed("", names()).help(help))
        }
        None => Ok(candidates.first().copied()),
    }
}

/// All parts of a kind.
pub(crate) fn of_kind(loaded: &Loaded, kind: Kind) -> Vec<Id> {
    (0..loaded.spec.count(kind)).map(|number| Id { kind, number }).collect()
}
