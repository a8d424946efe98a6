//! A new policy's two lines in the file of its family: the module, and the entry of the list.

use super::family::{Family, head};
use anyhow::{Context, Result};

/// The file with the module in its place among the others and the entry at the end of the list.
pub(super) fn with(text: &str, family: &Family, name: &str, kind: &str) -> Result<String> {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| head(line).is_some_and(|(of, _)| of == family.name));
    let at = at.with_context(|| format!("{} has no list of {}", family.list, family.name))?;
    let end = lines[at..].iter().position(|line| *line == "    }").map(|end| at + end);
    let end = end.with_context(|| format!("the list of {} in {} does not end", family.name, family.list))?;
    let entry = [
        "        /// FIXME: what it does, in a line.".to_owned(),
        "        ///".to_owned(),
        "        /// FIXME: its source, and what else a user must know.".to_owned(),
        format!("        {name} => {name}::{kind}::new,"),
    ];
    let module = format!("pub mod {name};");
    lines.splice(end..end, entry.iter().map(String::as_str));
    let place = place(&lines, name).with_context(|| format!("{} declares no modules", family.list))?;
    lines.insert(place, &module);
    Ok(lines.join("\n") + "\n")
}

/// Where the module of this name goes: in the first run of declarations, which is sorted by name.
fn place(lines: &[&str], name: &str) -> Option<usize> {
    let first = lines.iter().position(|line| declared(line).is_some())?;
    let run =
        lines[first..].iter().take_while(|line| declared(line).is_some() || line.starts_with("#[")).count();
    let later = (first..first + run).find(|at| declared(lines[*at]).is_some_and(|other| other > name));
    // What is said about a module stands above it.
    let above = |at: usize| (first..at).rev().take_while(|at| lines[*at].starts_with("#[")).count();
    Some(later.map_or(first + run, |at| at - above(at)))
}

/// The module that a line declares.
pub(super) fn declared(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    line.strip_prefix("pub ")
        .or_else(|| line.strip_prefix("pub(crate) "))
        .unwrap_or(line)
        .strip_prefix("mod ")
}
