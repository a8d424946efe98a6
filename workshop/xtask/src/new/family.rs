//! Families as the tree has them: the list of each, the keys that choose from it, and a new policy's two lines in
//! its file, the module and the entry of the list.

use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// Policy family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Family {
    pub(super) name: String,
    /// Path of its list, from the root.
    pub(super) list: String,
    /// Trait object that its policies are built as; empty if it only chooses.
    pub(super) object: Option<String>,
    /// First paragraph of its documentation.
    doc: String,
    /// Names of its policies.
    pub(super) entries: Vec<String>,
    /// First paragraph of the documentation of each policy.
    pub(super) docs: Vec<String>,
    /// Spec keys that choose from it, as in docs/policies.md.
    pub(super) keys: Vec<String>,
}

/// Finds the family of this name, or the one that this key chooses from.
pub(super) fn find(root: &Path, wanted: &str) -> Result<Family> {
    let mut families = all(root)?;
    let of_key = |family: &Family| family.keys.iter().any(|key| is_key(key, wanted));
    if let Some(at) = families.iter().position(|family| family.name == wanted || of_key(family)) {
        return Ok(families.swap_remove(at));
    }
    let names = families.iter().map(|family| family.name.as_str());
    let known: Vec<&str> =
        names.chain(families.iter().flat_map(|f| f.keys.iter().map(String::as_str))).collect();
    let near = nearest(wanted, &known).map(|name| format!("; the nearest is `{name}`")).unwrap_or_default();
    let mut names: Vec<&str> = families.iter().map(|family| family.name.as_str()).collect();
    names.sort_unstable();
    bail!(
        "`{wanted}` is neither a policy family nor a key that chooses from one{near}\nfamilies: {}",
        names.join(", ")
    )
}

/// Returns whether this is a key, or its last components.
fn is_key(key: &str, wanted: &str) -> bool {
    key == wanted || wanted.contains('.') && key.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'))
}

/// All families of the crates, by file.
pub(super) fn all(root: &Path) -> Result<Vec<Family>> {
    let page = fs::read_to_string(root.join("docs/policies.md")).unwrap_or_default();
    let chapters = chapters(&page);
    let mut families = Vec::new();
    for floor in folders(&root.join("crates"))? {
        for room in folders(&floor)? {
            search(root, &room.join("src"), &mut families)?;
        }
    }
    for family in &mut families {
        let chapter = chapters.iter().find(|(_, doc)| *doc == family.doc);
        family.keys = chapter.map(|(keys, _)| keys.clone()).unwrap_or_default();
    }
    Ok(families)
}

/// Entries of a folder, by name.
fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<_> =
        fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    found.retain(|path| path.is_dir());
    found.sort();
    Ok(found)
}

fn search(root: &Path, folder: &Path, families: &mut Vec<Family>) -> Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    let mut paths: Vec<_> = entries.map(|entry| entry.map(|e| e.path())).collect::<std::io::Result<_>>()?;
    paths.sort();
    for path in paths {
        if path.is_dir() {
            search(root, &path, families)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let list = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            families.extend(lists(&text, &list));
        }
    }
    Ok(())
}

/// Families in a file.
pub(super) fn lists(text: &str, list: &str) -> Vec<Family> {
    let lines: Vec<&str> = text.lines().collect();
    let mut families = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((name, rest)) = head(line) else { continue };
        let object = rest.split([',', '{']).next().unwrap_or_default().trim();
        let doc = lines[..at]
            .iter()
            .rev()
            .map(|line| line.trim())
            .take_while(|line| line.starts_with("///") || line.starts_with("#["));
        let mut doc: Vec<&str> = doc.filter_map(|line| line.strip_prefix("///")).map(str::trim).collect();
        doc.reverse();
        let (entries, docs) = entries(&lines[at + 1..]).into_iter().unzip();
        families.push(Family {
            name: name.into(),
            list: list.into(),
            object: (object != "choice").then(|| object.into()),
            doc: paragraph(&doc),
            entries,
            docs,
            keys: Vec::new(),
        });
    }
    families
}

/// Name of the family that begins in a line, and the text after the colon.
pub(super) fn head(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let line = line.strip_prefix("pub ").unwrap_or(line);
    line.strip_prefix("family ")?.split_once(": ")
}

/// First paragraph of a documentation.
fn paragraph(doc: &[&str]) -> String {
    doc.iter().copied().take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Names of a list's entries, each with the first paragraph of its documentation.
fn entries(lines: &[&str]) -> Vec<(String, String)> {
    let inside = lines.iter().take_while(|line| **line != "    }").map(|line| line.strip_prefix("        "));
    let name = |line: &str| {
        let line = line.strip_prefix("default ").unwrap_or(line);
        let line = line.strip_prefix("r#").unwrap_or(line);
        line.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned()
    };
    let (mut found, mut doc) = (Vec::new(), Vec::new());
    for line in inside.flatten() {
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if !line.starts_with(['/', ' ', '#', '}', '|']) && !name(line).is_empty() {
            found.push((name(line), paragraph(&doc)));
            doc.clear();
        }
    }
    found
}

/// Chapters of docs/policies.md: the keys of the title, and the first paragraph.
fn chapters(page: &str) -> Vec<(Vec<String>, String)> {
    let chapter = |text: &str| {
        let (title, rest) = text.split_once('\n').unwrap_or((text, ""));
        let keys = title.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        let paragraph = rest.trim_start().split("\n\n").next().unwrap_or_default();
        (keys, paragraph.lines().collect::<Vec<_>>().join(" "))
    };
    page.split("\n## ").skip(1).map(chapter).collect()
}

impl Family {
    /// Module path of its list, as in names of tests.
    pub(super) fn module(&self) -> String {
        let path = self.list.strip_suffix("/mod.rs").or_else(|| self.list.strip_suffix(".rs"));
        path.unwrap_or_default().split('/').skip(4).collect::<Vec<_>>().join("::")
    }

    /// Package of its list.
    pub(super) fn package(&self, root: &Path) -> Result<String> {
        let folder: Vec<&str> = self.list.split('/').take(3).collect();
        let manifest = root.join(folder.join("/")).join("Cargo.toml");
        let text = fs::read_to_string(&manifest).with_context(|| manifest.display().to_string())?;
        let manifest: toml::Table = text.parse()?;
        Ok(manifest["package"]["name"].as_str().unwrap_or_default().to_owned())
    }
}

/// Nearest word by edit distance, at most half of its letters away.
pub(super) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, name) = known.iter().map(|name| (distance(given, name), *name)).min()?;
    (distance * 2 <= given.len()).then_some(name)
}

/// Edit distance: letters to insert, delete or replace, case-insensitive.
fn distance(from: &str, to: &str) -> usize {
    let (from, to) = (from.to_lowercase(), to.to_lowercase());
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (n, a) in from.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], n + 1);
        for (m, b) in to.chars().enumerate() {
            let changed = corner + usize::from(a != b);
            corner = row[m + 1];
            row[m + 1] = changed.min(corner + 1).min(row[m] + 1);
        }
    }
    row[row.len() - 1]
}

/// Text of the list's file with the module inserted in order and the entry at the end of the list.
pub(super) fn with_entry(text: &str, family: &Family, name: &str, kind: &str) -> Result<String> {
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

/// Line for the module of this name, in the first run of declarations, which is sorted by name.
fn place(lines: &[&str], name: &str) -> Option<usize> {
    let first = lines.iter().position(|line| declared(line).is_some())?;
    let run =
        lines[first..].iter().take_while(|line| declared(line).is_some() || line.starts_with("#[")).count();
    let later = (first..first + run).find(|at| declared(lines[*at]).is_some_and(|other| other > name));
    // Comments on a module precede it.
    let above = |at: usize| (first..at).rev().take_while(|at| lines[*at].starts_with("#[")).count();
    Some(later.map_or(first + run, |at| at - above(at)))
}

/// Module declared by a line.
pub(super) fn declared(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    line.strip_prefix("pub ")
        .or_else(|| line.strip_prefix("pub(crate) "))
        .unwrap_or(line)
        .strip_prefix("mod ")
}
