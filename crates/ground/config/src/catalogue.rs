//! Text of `list` and `explain`: the policy families and their policies.

use std::fmt::Write as _;

use schemars::{Schema, SchemaGenerator};

use crate::diag::Diagnostic;
use crate::schema::{self, Param};

/// Policy family: a list of interchangeable policies. A family does not know which keys choose from it; see [`listed`].
#[derive(Debug)]
pub struct Family {
    /// Name of the family in a schema: that of its type.
    pub name: &'static str,
    /// Documentation as written in the source.
    pub doc: &'static str,
    /// Policies of the family.
    pub entries: &'static [Entry],
}

/// One policy of a family.
#[derive(Debug)]
pub struct Entry {
    /// Name of the policy in a file.
    pub name: &'static str,
    /// Documentation as written in the source.
    pub doc: &'static str,
    /// True for the policy used when a file chooses none.
    pub default: bool,
    /// JSON Schema of its parameters, if it has any.
    pub parameters: Option<fn(&mut SchemaGenerator) -> Schema>,
}

impl Family {
    /// Returns the documentation without the margin of a doc comment.
    pub fn text(&self) -> String {
        unmargined(self.doc)
    }
    /// Returns the first paragraph of the documentation, on one line.
    pub fn summary(&self) -> String {
        first_paragraph(self.doc)
    }
}

/// Family with the spec keys that choose from it.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The family.
    pub family: &'static Family,
    /// Keys, such as `flash.ftl.gc.victim`, in spec order.
    pub keys: Vec<String>,
}

/// Returns the families with the keys that choose from them: those whose field has the family's type.
pub fn listed(families: &[&'static Family], params: &[Param]) -> Vec<Listed> {
    let of = |family: &'static Family| {
        let chooses = params.iter().filter(|param| param.family.as_deref() == Some(family.name));
        Listed { family, keys: chooses.map(|param| param.key.clone()).collect() }
    };
    families.iter().map(|family| of(family)).collect()
}

impl Listed {
    /// Returns whether a key chooses from the family, or belongs to one of its policies.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|own| key.strip_prefix(own.as_str()).is_some_and(is_end))
    }
    /// Returns the first key that equals `name` or ends in it.
    fn named(&self, name: &str) -> Option<&str> {
        let is_named =
            |key: &&String| *key == name || key.strip_suffix(name).is_some_and(|front| front.ends_with('.'));
        self.keys.iter().find(is_named).map(String::as_str)
    }
    /// Iterates over every key and its last segment.
    fn names(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().flat_map(|key| [key.as_str(), last(key)])
    }
}

/// Returns the last segment of a key: the part before the `=` in a file.
fn last(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// Returns whether `rest`, which follows a key, begins a new segment.
fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('.')
}

impl Entry {
    /// Returns the documentation without the margin of a doc comment.
    pub fn text(&self) -> String {
        unmargined(self.doc)
    }
    /// Returns the first paragraph of the documentation, on one line.
    pub fn summary(&self) -> String {
        first_paragraph(self.doc)
    }
    /// Returns the parameters, with keys relative to the policy.
    pub fn params(&self) -> Vec<Param> {
        let Some(parameters) = self.parameters else { return Vec::new() };
        let mut generator = SchemaGenerator::default();
        let mut document = parameters(&mut generator).to_value();
        if let Some(object) = document.as_object_mut() {
            object.insert("$defs".to_owned(), generator.take_definitions(true).into());
        }
        schema::walk(&document)
    }
}

/// Removes the space that begins every line of a doc comment.
fn unmargined(doc: &str) -> String {
    let lines: Vec<_> = doc.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n").trim().to_owned()
}

fn first_paragraph(doc: &str) -> String {
    let text = unmargined(doc);
    let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ")
}

/// Lists the families with a key that is `name`, ends in it (`victim`) or begins with it (`flash.ftl`), with one line
/// for each key and policy. Lists all families if no name is given.
///
/// # Errors
/// No family has such a key.
pub fn list(families: &[Listed], name: Option<&str>) -> Result<String, Diagnostic> {
    let is_chosen = |listed: &&Listed| {
        let below = |name: &str| listed.keys.iter().any(|key| key.strip_prefix(name).is_some_and(is_end));
        name.is_none_or(|name| below(name) || listed.named(name).is_some())
    };
    let chosen: Vec<_> = families.iter().filter(is_chosen).collect();
    if let (Some(name), []) = (name, &chosen[..]) {
        let mut fault = unknown(name, "family", families.iter().flat_map(Listed::names).collect());
        fault.allowed = families.iter().flat_map(|listed| listed.keys.clone()).collect();
        return Err(fault);
    }
    let mut text = String::new();
    for Listed { family, keys } in chosen {
        let _ = writeln!(text, "{}\n  {}", keys.join("\n"), family.summary());
        let names: Vec<_> = family.entries.iter().map(shown_name).collect();
        let width = names.iter().map(String::len).max().unwrap_or(0);
        for (entry, name) in family.entries.iter().zip(&names) {
            let _ = writeln!(text, "    {name:width$}  {}", entry.summary());
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    Ok(text)
}

/// Describes a family or a policy: the keys that take it, its parameters, and how to write it in a file. Name a policy
/// alone (`greedy`), or after a key (`victim.greedy`) if several families have a policy of that name. Without a key,
/// all of them are explained.
///
/// # Errors
/// Nothing has that name.
pub fn explain(families: &[Listed], name: &str) -> Result<String, Diagnostic> {
    let mut parts = Vec::new();
    for listed in families {
        if listed.named(name).is_some() {
            parts.push(explain_family(listed));
        }
        for entry in listed.family.entries {
            let key = match name.strip_suffix(entry.name) {
                Some("") => listed.keys.first().map(String::as_str),
                Some(front) => front.strip_suffix('.').and_then(|front| listed.named(front)),
                None => None,
            };
            parts.extend(key.map(|key| explain_entry(listed, entry, last(key))));
        }
    }
    if parts.is_empty() {
        let entries = families.iter().flat_map(|listed| listed.family.entries.iter().map(|e| e.name));
        let candidates = families.iter().flat_map(Listed::names).chain(entries).collect();
        return Err(
            unknown(name, "family or policy", candidates).help("`list` shows every family and policy")
        );
    }
    Ok(parts.join("\n\n"))
}

fn explain_family(Listed { family, keys }: &Listed) -> String {
    let mut text =
        format!("{}: a family of {}\n\n{}\n", keys.join(", "), family.entries.len(), family.text());
    for entry in family.entries {
        let _ = write!(text, "\n  {}\n      {}", shown_name(entry), entry.summary());
    }
    text
}

/// Describes one policy. `key` is the text before the `=` in a file.
fn explain_entry(listed: &Listed, entry: &Entry, key: &str) -> String {
    let default = if entry.default { ", the default" } else { "" };
    let keys = listed.keys.join(", ");
    let mut text = format!("{}: a choice of {keys}{default}\n\n{}\n", entry.name, entry.text());
    let params = entry.params();
    if params.is_empty() {
        text.push_str("\nNo parameters.\n");
    } else {
        text.push_str("\nParameters\n");
    }
    for param in &params {
        let _ = writeln!(text, "  {}: {}", param.key, param.kind_and_default());
        for line in param.doc.lines() {
            let _ = writeln!(text, "      {line}");
        }
    }
    let _ = write!(text, "\nIn a file\n  {key} = \"{}\"", entry.name);
    if let Some(param) = params.iter().find(|p| !p.key.contains('.')) {
        let value = param.default.as_deref().unwrap_or("…");
        let _ = write!(text, "\n  {key} = {{ {} = {{ {} = {value} }} }}", entry.name, param.key);
    }
    text
}

fn shown_name(entry: &Entry) -> String {
    if entry.default { format!("{} (default)", entry.name) } else { entry.name.to_owned() }
}

fn unknown(name: &str, kind: &str, candidates: Vec<&str>) -> Diagnostic {
    let mut fault = Diagnostic::new(format!("unknown {kind} `{name}`")).allowed(name, candidates);
    fault.allowed.clear();
    fault
}
