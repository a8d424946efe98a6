//! Links of Markdown pages.

use std::path::{Component, Path, PathBuf};

/// Link targets inside the repository, with their places; code is left alone.
pub(crate) fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let (mut at, mut is_code) = (0, false);
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        let begins =
            if is_code { Vec::new() } else { line.match_indices("](").map(|(n, _)| n + 2).collect() };
        for begin in begins {
            let target = line[begin..].split(')').next().unwrap_or_default();
            let is_inside = !target.contains("://") && !target.contains(char::is_whitespace);
            let is_quoted = line[..begin].matches('`').count() % 2 == 1;
            if is_inside && !is_quoted && !target.is_empty() {
                found.push((at + begin, target));
            }
        }
        at += line.len();
    }
    found
}

/// Path, from the root of the repository, that a link of a page leads to.
pub(crate) fn resolved(page: &str, file: &str) -> String {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(file).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().replace('\\', "/")
}
