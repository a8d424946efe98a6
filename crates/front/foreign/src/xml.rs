//! XML with source places.

use config::{Diagnostic, Place};
use roxmltree::{Document, Node, ParsingOptions};
use std::borrow::Cow;
use std::cell::Cell;

/// Parsed XML file.
pub(crate) struct Xml<'t> {
    /// Name of the file.
    name: &'t str,
    text: &'t str,
    document: Document<'t>,
    /// Offsets at which lines begin.
    lines: Vec<usize>,
    /// Bytes of lines quoted by places so far.
    quoted: Cell<usize>,
}

/// Maximum number of attributes of an element: the parser compares each with all others.
const MOST_ATTRIBUTES: usize = 1_000;
/// Bytes of quoted lines above which places only number a line: a file may be one line with many settings.
const MOST_QUOTED: usize = 1 << 24;

impl<'t> Xml<'t> {
    /// Parses a text.
    ///
    /// # Errors
    /// The text is not XML; the fault has its place.
    pub(crate) fn read(name: &'t str, text: &'t str) -> Result<Xml<'t>, Diagnostic> {
        if let Some(at) = crowded(text) {
            let lines = line_starts(text);
            let place = located(name, text, &lines, at);
            let what = format!("{name} has an element with more than {MOST_ATTRIBUTES} attributes");
            let help = "settings are elements: `<Name>value</Name>`; attributes are ignored";
            return Err(Diagnostic::new(what).at(place).help(help));
        }
        let options = ParsingOptions { allow_dtd: false, nodes_limit: 1 << 20, ..ParsingOptions::default() };
        match Document::parse_with_options(text, options) {
            Ok(document) => Ok(Xml { name, text, document, lines: line_starts(text), quoted: Cell::new(0) }),
            Err(fault) => {
                let pos = fault.pos();
                let place = place_of(name, text, u64::from(pos.row), u64::from(pos.col));
                let help = "every <tag> needs its </tag>; `xmllint FILE` reports all faults of a file";
                Err(Diagnostic::new(format!("{name} is not XML: {fault}")).at(place).help(help))
            }
        }
    }

    /// Root element.
    pub(crate) fn root(&self) -> Node<'_, 't> {
        self.document.root_element()
    }

    /// Place where an element begins.
    pub(crate) fn place(&self, node: Node<'_, '_>) -> Place {
        let at = node.range().start;
        let row = self.lines.partition_point(|from| *from <= at);
        let end = self.lines.get(row).copied().unwrap_or(self.text.len());
        let quoted = self.quoted.get().saturating_add(end - self.lines[row - 1]);
        if quoted > MOST_QUOTED {
            return Place { source: self.name.to_owned(), line: row as u64, ..Place::default() };
        }
        self.quoted.set(quoted);
        located(self.name, self.text, &self.lines, at)
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    [0].into_iter().chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// Place of a byte offset.
fn located(name: &str, text: &str, lines: &[usize], at: usize) -> Place {
    let row = lines.partition_point(|from| *from <= at);
    let from = lines[row - 1];
    let line = text[from..].lines().next().unwrap_or_default().to_owned();
    let column = text[from..at].chars().count() as u64 + 1;
    Place { source: name.to_owned(), line: row as u64, column, text: line, ..Place::default() }
}

/// Offset of the first element with too many attributes, found by counting equals signs outside quotes.
fn crowded(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(from) = text[at..].find('<').map(|found| at + found) {
        let closed = |end: &str| text[from..].find(end).map_or(text.len(), |found| from + found + end.len());
        at = match &text[from..] {
            rest if rest.starts_with("<!--") => closed("-->"),
            rest if rest.starts_with("<![CDATA[") => closed("]]>"),
            rest if rest.starts_with("<?") => closed("?>"),
            _ => {
                let (mut end, mut quote, mut count) = (from + 1, None, 0);
                while let Some(byte) = bytes.get(end) {
                    match (quote, byte) {
                        (None, b'>' | b'<') => break,
                        (None, b'"' | b'\'') => quote = Some(*byte),
                        (None, b'=') => count += 1,
                        (Some(open), byte) if open == *byte => quote = None,
                        _ => {}
                    }
                    end += 1;
                }
                if count > MOST_ATTRIBUTES {
                    return Some(from);
                }
                end
            }
        };
    }
    None
}

fn place_of(name: &str, text: &str, line: u64, column: u64) -> Place {
    let row = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    let shown = text.lines().nth(row).unwrap_or_default().to_owned();
    Place { source: name.to_owned(), line, column, text: shown, ..Place::default() }
}

/// Blanks anything before the XML declaration, which must come first, without moving any place.
pub(crate) fn cleaned(text: &str) -> Cow<'_, str> {
    let text = text.trim_start_matches('\u{feff}');
    let Some(from) = text.find("<?xml").filter(|at| *at > 0) else { return Cow::Borrowed(text) };
    let Some(length) = text[from..].find("?>").map(|at| at + 2) else { return Cow::Borrowed(text) };
    let blank: String = text[from..from + length].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
    Cow::Owned([&text[..from], &blank, &text[from + length..]].concat())
}

/// Child elements of a node.
pub(crate) fn elements<'a, 't>(node: Node<'a, 't>) -> impl Iterator<Item = Node<'a, 't>> {
    node.children().filter(Node::is_element)
}

/// Trimmed text of an element.
pub(crate) fn text_of<'a>(node: Node<'a, '_>) -> &'a str {
    node.text().unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_counted_where_they_are() {
        let many = |count: usize| (0..count).map(|n| format!(" a{n}='='")).collect::<String>();
        assert_eq!(crowded(&format!("<r{}/>", many(MOST_ATTRIBUTES))), None);
        assert_eq!(crowded(&format!("<r>\n<s{}/></r>", many(MOST_ATTRIBUTES + 1))), Some(4));
        let hidden = many(MOST_ATTRIBUTES + 1);
        assert_eq!(crowded(&format!("<?x{hidden}?><r><!--<s{hidden}>--><![CDATA[<t{hidden}>]]></r>")), None);
        assert_eq!(crowded("<r a='<"), None);
        let told = Xml::read("x", &format!("<r>\n<s{}/></r>", many(20_000))).err().expect("refused");
        assert!(told.to_string().contains("x:2:1") && told.what.contains("1000 attributes"), "{told}");
    }

    /// 20,000 places in a line of 400 KB would quote 8 GB of it.
    #[test]
    fn places_of_a_long_line_cost_a_bounded_number_of_bytes() {
        let text = format!("<r>{}</r>", "<a>b</a>".repeat(50_000));
        let Ok(xml) = Xml::read("x", &text) else { panic!("it is XML") };
        let bytes: usize = elements(xml.root()).map(|node| xml.place(node).text.len()).sum();
        assert!((text.len()..=MOST_QUOTED).contains(&bytes), "{bytes}");
        assert!(elements(xml.root()).all(|node| xml.place(node).line == 1));
    }
}
