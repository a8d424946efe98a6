//! Conversion of a configuration to a spec: which tables are parts, and of which kind.

use super::kinds::{Declared, Kind};
use super::{Sim, Spec, links, schema};
use config::schema::Param;
use config::{Diagnostic, Pieces, Resolved};
use serde::Deserialize;

/// Key of every part that gives its kind.
pub(super) const KIND: &str = "kind";
pub(super) const COUNT: &str = "count";

/// Most parts of one table.
const MOST: i64 = 256;

/// Contents of a spec other than parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    description: String,
    sim: Sim,
}

/// Keys at the root that are not parts.
const WORDS: [&str; 3] = ["description", "inherits", "sim"];

/// Keys that have moved: the old and the new path.
const MOVED: [(&str, &str); 2] = [("cpu.0", "cpu"), ("precondition", "flash.precondition")];

/// Moved keys below the tables of a kind's parts, with the new names of their values.
const MOVED_WITHIN: [(Kind, &str, &str, &str); 1] = [(
    Kind::Memory,
    "direct.array.order",
    "direct.array.scheduler",
    "`fifo` is `oldest` there, `reads_first` is `priority`",
)];

/// Alternative tables below the tables of a kind's parts.
const ALTERNATIVES: [(Kind, &str, &[&str]); 1] = [(Kind::Flash, "host", &["nvme", "ahci"])];

/// Reads a spec.
///
/// # Errors
/// Every error in the spec, with places.
pub(super) fn read(resolved: &mut Resolved) -> Result<Spec, Diagnostic> {
    moved(resolved)?;
    let keys = schema::keys();
    let (declared, told) = declared(resolved);
    moved_within(resolved, &declared)?;
    for (kind, below, names) in ALTERNATIVES {
        for part in declared.iter().filter(|part| part.kind == kind) {
            resolved.replace(&[&part.table, below], names);
        }
    }
    let root = resolved.table();
    let mut missing = missing(&root, &declared);
    // A part with a reported error is not also reported as absent.
    let is_told = |table: &str| told.iter().any(|(name, _)| name == table);
    missing.retain(|param| {
        let table = param.key.split('.').next().unwrap_or_default();
        told.is_empty() || (root.contains_key(table) && !is_told(table))
    });
    let mut pieces = resolved.pieces(keys, missing);
    let mut is_whole = told.is_empty();
    // Names of kinds may stand at the root, like words: list them where a word is misspelt.
    let words: Option<Words> = pieces.read(&[], &no_words(&declared, &told));
    told.into_iter().for_each(|(_, fault)| pieces.tell(fault));
    let Words { description, sim } = match words {
        Some(words) => words,
        None => {
            is_whole = false;
            Words { description: String::new(), sim: Sim::default() }
        }
    };
    let mut spec = Spec::empty(description, sim);
    for from in &declared {
        is_whole &= read_part(&mut spec, &mut pieces, from);
    }
    spec.tables = declared;
    pieces.end(is_whole.then_some(spec))
}

fn read_part(spec: &mut Spec, pieces: &mut Pieces<'_>, from: &Declared) -> bool {
    let apart: Vec<&str> =
        [KIND, COUNT].into_iter().chain(from.kind.links().iter().map(|link| link.key)).collect();
    spec.read(pieces, from, &apart)
}

/// Keys that are not words, or must not be reported as such.
fn no_words<'a>(declared: &'a [Declared], told: &'a [(String, Diagnostic)]) -> Vec<&'a str> {
    let tables = declared.iter().map(|declared| declared.table.as_str());
    let kinds = Kind::ALL.iter().map(|kind| kind.name());
    let mut all: Vec<&str> = kinds.chain(told.iter().map(|(name, _)| name.as_str())).collect();
    all.extend(tables.filter(|table| Kind::ALL.iter().all(|kind| kind.name() != *table)));
    all
}

/// Refuses keys that have moved, and gives their new path.
fn moved(resolved: &Resolved) -> Result<(), Diagnostic> {
    let table = toml::Value::Table(resolved.table());
    for (old, new) in MOVED {
        if old.split('.').try_fold(&table, |at, name| at.get(name)).is_some() {
            let what = format!("the key `{old}` is now `{new}`");
            return Err(resolved.diagnose(old, what).help(format!("write `{new}`")));
        }
    }
    Ok(())
}

/// Refuses keys of parts that have moved.
fn moved_within(resolved: &Resolved, declared: &[Declared]) -> Result<(), Diagnostic> {
    let table = toml::Value::Table(resolved.table());
    for (kind, old, new, values) in MOVED_WITHIN {
        for part in declared.iter().filter(|part| part.kind == kind) {
            let (old, new) = (format!("{}.{old}", part.table), format!("{}.{new}", part.table));
            if old.split('.').try_fold(&table, |at, name| at.get(name)).is_some() {
                let what = format!("the key `{old}` is now `{new}`");
                return Err(resolved.diagnose(&old, what).help(values));
            }
        }
    }
    Ok(())
}

/// Tables that are parts, in order, and the errors of other tables, by name.
fn declared(resolved: &Resolved) -> (Vec<Declared>, Vec<(String, Diagnostic)>) {
    let root = resolved.table();
    let (mut found, mut told) = (Vec::new(), Vec::new());
    for name in resolved.names() {
        let Some(value) = root.get(&name).filter(|_| !WORDS.contains(&name.as_str())) else { continue };
        match part(resolved, &name, value) {
            Some(Ok(part)) => found.push(part),
            Some(Err(fault)) => told.push((name, fault)),
            None => {}
        }
    }
    (found, told)
}

/// Tables that are parts of a kind.
pub(crate) fn of_kind(resolved: &Resolved, kind: Kind) -> Vec<String> {
    let (declared, _) = declared(resolved);
    declared.into_iter().filter(|part| part.kind == kind).map(|part| part.table).collect()
}

/// Interprets a table at the root as a part; `None` for a word, or for a misspelt word that is reported as one.
fn part(resolved: &Resolved, name: &str, value: &toml::Value) -> Option<Result<Declared, Diagnostic>> {
    let own = Kind::ALL.iter().copied().find(|kind| kind.name() == name);
    let Some(table) = value.as_table() else {
        // For a kind whose table is a choice, a bare name is a part too: its parser reports errors.
        return own.map(|kind| Ok(Declared { table: name.to_owned(), kind, count: None, links: Vec::new() }));
    };
    let kinds = || Kind::ALL.iter().map(|kind| kind.name());
    let kind = match (table.get(KIND), own) {
        (None, Some(own)) => own,
        (None, None) => {
            let all = kinds().chain(WORDS);
            let fault = resolved.diagnose(name, format!("unknown key `{name}`")).allowed(name, all);
            let help = "a part with a name of its own needs its kind: `kind = \"flash\"`";
            return Some(Err(if fault.nearest.is_some() { fault } else { fault.help(help) }));
        }
        (Some(said), own) => {
            let key = format!("{name}.{KIND}");
            let text = said.as_str().unwrap_or_default();
            let Some(kind) = Kind::ALL.iter().copied().find(|kind| kind.name() == text) else {
                let what = format!("unknown kind of part {said}");
                return Some(Err(resolved.diagnose(&key, what).allowed(text, kinds())));
            };
            if own.is_some_and(|own| own != kind) {
                let what = format!("a part named `{name}` must be of that kind");
                return Some(Err(resolved.diagnose(&key, what).help("give the part a different name")));
            }
            kind
        }
    };
    Some(named(resolved, name).and_then(|()| {
        let count = count(resolved, name, table)?;
        Ok(Declared { table: name.to_owned(), kind, count, links: links::written(resolved, name, kind)? })
    }))
}

/// Checks that a name can be part of a key.
fn named(resolved: &Resolved, name: &str) -> Result<(), Diagnostic> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.chars().all(is_plain) && !name.is_empty() {
        return Ok(());
    }
    let what = format!("`{name}` is not a valid name for a part: use letters, digits, `_` and `-`");
    Err(resolved.diagnose(name, what))
}

fn count(resolved: &Resolved, name: &str, table: &toml::Table) -> Result<Option<u16>, Diagnostic> {
    match table.get(COUNT) {
        None => Ok(None),
        Some(toml::Value::Integer(count @ 1..=MOST)) => Ok(Some(*count as u16)),
        Some(other) => {
            let what = format!("{other} parts; allowed are 1 to {MOST}");
            Err(resolved.diagnose(&format!("{name}.{COUNT}"), what))
        }
    }
}

/// Keys missing from the words, from the parts, and from needed parts that are absent.
pub(super) fn missing(root: &toml::Table, declared: &[Declared]) -> Vec<Param> {
    let document = schema::document();
    let words = || {
        let is_word = |(name, _): &(&String, &toml::Value)| WORDS.contains(&name.as_str());
        root.iter()
            .filter(is_word)
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<toml::Table>()
    };
    let mut found = config::schema::missing(document, &words(), &[]);
    for part in declared {
        let mut table = words();
        if let Some(value) = root.get(&part.table) {
            table.insert(part.kind.name().to_owned(), value.clone());
        }
        let lacking = config::schema::missing(document, &table, &[]);
        let own = lacking.into_iter().filter(|param| below(&param.key, part.kind.name()));
        found.extend(own.map(|param| Param { key: renamed(&param.key, part), ..param }));
    }
    let is_there = |kind: &Kind| declared.iter().any(|part| part.kind == *kind);
    let mut absent: Vec<&str> = Vec::new();
    let mut wanted: Vec<Kind> = declared.iter().map(|part| part.kind).collect();
    while let Some(kind) = wanted.pop() {
        let only = |link: &&super::links::Link| matches!(link.to, [_]) && link.is_always();
        for link in kind.links().iter().filter(only).filter(|link| !is_there(&link.to[0])) {
            if !absent.contains(&link.to[0].name()) {
                absent.push(link.to[0].name());
                wanted.push(link.to[0]);
            }
        }
    }
    // A drive is asked by a host if no other part could ask it.
    let asks = |kind: &&Kind| kind.links().iter().any(|link| link.to.contains(&Kind::Flash));
    if is_there(&Kind::Flash) && !Kind::ALL.iter().filter(asks).any(is_there) {
        absent.push(Kind::Host.name());
    }
    let lacking = config::schema::missing(document, &words(), &absent);
    found.extend(lacking.into_iter().filter(|param| absent.iter().any(|name| below(&param.key, name))));
    found
}

/// Returns whether a key is in the table with this name.
fn below(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Translates a key of a kind to that of a part.
pub(super) fn renamed(key: &str, part: &Declared) -> String {
    format!("{}{}", part.table, key.strip_prefix(part.kind.name()).unwrap_or_default())
}
