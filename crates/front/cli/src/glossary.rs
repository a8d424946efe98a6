//! The glossary, `docs/glossary.md`: terms of the field and of the program's output, a line each.

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/glossary.md"));

/// A term with its other names and its definition.
pub(crate) struct Entry<'p> {
    pub(crate) term: &'p str,
    other: Vec<&'p str>,
    definition: &'p str,
}

/// Every entry: `**term** (other name, ...): definition`.
pub(crate) fn entries() -> impl Iterator<Item = Entry<'static>> {
    PAGE.lines().filter_map(entry)
}

fn entry(line: &str) -> Option<Entry<'_>> {
    let (term, rest) = line.strip_prefix("**")?.split_once("**")?;
    let (other, definition) = match rest.strip_prefix(" (") {
        Some(rest) => rest.split_once("): ")?,
        None => ("", rest.strip_prefix(": ")?),
    };
    let other = other.split(", ").filter(|name| !name.is_empty()).collect();
    Some(Entry { term, other, definition })
}

impl Entry<'_> {
    /// All names of the term.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.term).chain(self.other.iter().copied())
    }

    fn has(&self, name: &str) -> bool {
        self.names().any(|known| plain(known) == plain(name))
    }
}

/// A name without case, with blanks for underscores and hyphens.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], " ")
}

/// The definition of a term, with its other names.
pub(crate) fn define(name: &str) -> Option<String> {
    let Entry { term, other, definition } = entries().find(|entry| entry.has(name))?;
    let other = if other.is_empty() { String::new() } else { format!(" ({})", other.join(", ")) };
    Some(format!("{term}{other}: in the glossary\n\n{definition}"))
}

/// The first term with `word` among its words.
pub(crate) fn containing(word: &str) -> Option<&'static str> {
    let word = plain(word);
    entries().find(|entry| plain(entry.term).split(' ').any(|part| part == word)).map(|entry| entry.term)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::result::metrics::{MILESTONES, STAGES};
    use std::collections::BTreeSet;

    /// Every line with a term is an entry, and no name stands for two terms.
    #[test]
    fn the_page_is_read_whole_and_each_name_is_of_one_term() {
        let terms = PAGE.lines().filter(|line| line.starts_with("**")).count();
        assert_eq!(entries().count(), terms);
        let mut seen = BTreeSet::new();
        for entry in entries() {
            for name in entry.names() {
                assert!(seen.insert(plain(name)), "`{name}` twice");
            }
        }
    }

    /// Every wait, stage and holder of a breakdown is explained.
    #[test]
    fn every_word_of_a_breakdown_is_in_the_glossary() {
        let waits = MILESTONES.iter().chain(STAGES).map(|(name, _)| *name);
        for name in waits.chain(proto::Holder::NAMES) {
            assert!(define(name).is_some(), "{name}");
        }
    }

    #[test]
    fn names_are_found_without_case_and_hyphens() {
        let of = |name: &str| define(name).unwrap_or_default();
        assert!(of("GC").starts_with("garbage collection (GC"));
        assert_eq!(of("die wait"), of("die_wait"));
        assert_eq!(of("Over provisioning"), of("over-provisioning"));
        assert_eq!(containing("Garbage"), Some("garbage collection"));
    }
}
