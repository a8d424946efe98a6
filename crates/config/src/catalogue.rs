//! What can be chosen, in words: the text behind `list` and `explain`.

use std::fmt::Write as _;

use schemars::{Schema, SchemaGenerator};

use crate::diag::Diagnostic;
use crate::schema::{self, Param};

/// One list of policies that are interchangeable.
#[derive(Debug)]
pub struct Family {
    /// The key that chooses one, such as `flash.ftl.gc.victim`.
    pub key: &'static str,
    /// Documentation as it stands in the source.
    pub doc: &'static str,
    /// The policies.
    pub entries: &'static [Entry],
}

/// One policy of a family.
#[derive(Debug)]
pub struct Entry {
    /// The name that a file has for it.
    pub name: &'static str,
    /// Documentation as it stands in the source.
    pub doc: &'static str,
    /// Whether it is used where a file chooses none.
    pub default: bool,
    /// JSON Schema of its parameters, if it has any.
    pub parameters: Option<fn(&mut SchemaGenerator) -> Schema>,
}

impl Family {
    /// The documentation without the margin of a doc comment.
    pub fn text(&self) -> String {
        unmargined(self.doc)
    }
    /// The first paragraph of the documentation, on one line.
    pub fn summary(&self) -> String {
        first_paragraph(self.doc)
    }
    /// The last part of the key: what stands before the `=` in a file.
    fn short_key(&self) -> &'static str {
        self.key.rsplit('.').next().unwrap_or(self.key)
    }
    /// Whether `name` is the key or its last parts.
    fn is_named(&self, name: &str) -> bool {
        self.key == name || self.key.strip_suffix(name).is_some_and(|front| front.ends_with('.'))
    }
}

impl Entry {
    /// The documentation without the margin of a doc comment.
    pub fn text(&self) -> String {
        unmargined(self.doc)
    }
    /// The first paragraph of the documentation, on one line.
    pub fn summary(&self) -> String {
        first_paragraph(self.doc)
    }
    /// The parameters, with keys relative to the policy.
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

/// Doc comments begin every line with a space.
fn unmargined(doc: &str) -> String {
    let lines: Vec<_> = doc.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n").trim().to_owned()
}

fn first_paragraph(doc: &str) -> String {
    let text = unmargined(doc);
    let lines: Vec<_> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    lines.join(" ")
}

/// The families whose key is `name`, ends in it (`victim`) or begins with it (`flash.ftl`), with one line for every
/// policy. Without a name, all families.
///
/// # Errors
/// No family has such a key.
pub fn list(families: &[&Family], name: Option<&str>) -> Result<String, Diagnostic> {
    let below = |family: &Family, name: &str| {
        family.key.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let chosen: Vec<_> =
        families.iter().filter(|f| name.is_none_or(|name| below(f, name) || f.is_named(name))).collect();
    if let (Some(name), []) = (name, &chosen[..]) {
        let mut fault =
            unknown(name, "family", families.iter().flat_map(|f| [f.key, f.short_key()]).collect());
        fault.allowed = families.iter().map(|f| f.key.to_owned()).collect();
        return Err(fault);
    }
    let mut text = String::new();
    for family in chosen {
        let _ = writeln!(text, "{}\n  {}", family.key, family.summary());
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

/// What a family or a policy does, its parameters, and how a file writes it. A policy is named by itself (`greedy`), or
/// after its family (`victim.greedy`) if several families have one of that name; without a family all are explained.
///
/// # Errors
/// Nothing has that name.
pub fn explain(families: &[&Family], name: &str) -> Result<String, Diagnostic> {
    let mut parts = Vec::new();
    for family in families {
        if family.is_named(name) {
            parts.push(explain_family(family));
        }
        for entry in family.entries {
            let of_family = name.strip_suffix(entry.name).and_then(|front| front.strip_suffix('.'));
            if entry.name == name || of_family.is_some_and(|front| family.is_named(front)) {
                parts.push(explain_entry(family, entry));
            }
        }
    }
    if parts.is_empty() {
        let entries = families.iter().flat_map(|f| f.entries.iter().map(|e| e.name));
        let candidates = families.iter().flat_map(|f| [f.key, f.short_key()]).chain(entries).collect();
        return Err(
            unknown(name, "family or policy", candidates).help("`list` shows every family and policy")
        );
    }
    Ok(parts.join("\n\n"))
}

fn explain_family(family: &Family) -> String {
    let mut text = format!("{}: a family of {}\n\n{}\n", family.key, family.entries.len(), family.text());
    for entry in family.entries {
        let _ = write!(text, "\n  {}\n      {}", shown_name(entry), entry.summary());
    }
    text
}

fn explain_entry(family: &Family, entry: &Entry) -> String {
    let default = if entry.default { ", the default" } else { "" };
    let mut text = format!("{}: a choice of {}{default}\n\n{}\n", entry.name, family.key, entry.text());
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
    let _ = write!(text, "\nIn a file\n  {} = \"{}\"", family.short_key(), entry.name);
    if let Some(param) = params.iter().find(|p| !p.key.contains('.')) {
        let value = param.default.as_deref().unwrap_or("…");
        let _ =
            write!(text, "\n  {} = {{ {} = {{ {} = {value} }} }}", family.short_key(), entry.name, param.key);
    }
    text
}

fn shown_name(entry: &Entry) -> String {
    if entry.default { format!("{} (default)", entry.name) } else { entry.name.to_owned() }
}

fn unknown(name: &str, kind: &str, candidates: Vec<&'static str>) -> Diagnostic {
    let mut fault = Diagnostic::new(format!("there is no {kind} `{name}`")).allowed(name, candidates);
    fault.allowed.clear();
    fault
}
