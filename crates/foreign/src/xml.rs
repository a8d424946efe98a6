//! XML with places.

use config::{Diagnostic, Place};
use roxmltree::{Document, Node, ParsingOptions};
use std::borrow::Cow;

/// A file of elements.
pub(crate) struct Xml<'t> {
    /// What it is called.
    name: &'t str,
    text: &'t str,
    document: Document<'t>,
    /// Where lines begin.
    lines: Vec<usize>,
}

impl<'t> Xml<'t> {
    /// Reads a text.
    ///
    /// # Errors
    /// It is no XML, with the place.
    pub(crate) fn read(name: &'t str, text: &'t str) -> Result<Xml<'t>, Diagnostic> {
        let options = ParsingOptions { allow_dtd: false, nodes_limit: 1 << 20, ..ParsingOptions::default() };
        match Document::parse_with_options(text, options) {
            Ok(document) => {
                let lines = [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
                Ok(Xml { name, text, document, lines })
            }
            Err(fault) => {
                let pos = fault.pos();
                let place = place_of(name, text, u64::from(pos.row), u64::from(pos.col));
                let help = "every <tag> needs its </tag>; `xmllint FILE` tells all faults of a file";
                Err(Diagnostic::new(format!("{name} is no XML: {fault}")).at(place).help(help))
            }
        }
    }

    /// The outermost element.
    pub(crate) fn root(&self) -> Node<'_, 't> {
        self.document.root_element()
    }

    /// Where an element begins.
    pub(crate) fn place(&self, node: Node<'_, '_>) -> Place {
        let at = node.range().start;
        let row = self.lines.partition_point(|from| *from <= at);
        let from = self.lines[row - 1];
        let text = self.text[from..].lines().next().unwrap_or_default().to_owned();
        let column = self.text[from..at].chars().count() as u64 + 1;
        Place { source: self.name.to_owned(), line: row as u64, column, text, ..Place::default() }
    }
}

fn place_of(name: &str, text: &str, line: u64, column: u64) -> Place {
    let row = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let shown = text.lines().nth(row).unwrap_or_default().to_owned();
    Place { source: name.to_owned(), line, column, text: shown, ..Place::default() }
}

/// A text as XML wants it, with every place where it was: nothing before the declaration, which stands first or is not there.
pub(crate) fn cleaned(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\u{feff}');
    let Some(from) = text.find("<?xml").filter(|at| *at > 0) else { return Cow::Borrowed(text) };
    let Some(length) = text[from..].find("?>").map(|at| at + 2) else { return Cow::Borrowed(text) };
    let blank: String = text[from..from + length].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
    Cow::Owned([&text[..from], &blank, &text[from + length..]].concat())
}

/// The elements right inside another.
pub(crate) fn elements<'a, 't>(node: Node<'a, 't>) -> impl Iterator<Item = Node<'a, 't>> {
    node.children().filter(Node::is_element)
}

/// The text of an element, without the space around it.
pub(crate) fn text_of<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default().trim()
}
