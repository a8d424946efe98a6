//! Readers of graph files, plain or compressed: lines and words, and one file here per format.

mod dimacs;
mod list;
mod market;
mod metis;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use config::{Diagnostic, Place};
use rustc_hash::FxHashMap;
use text::{Bytes, Input};

use crate::graph::{Edges, Graph, Keep};

/// Format of a graph file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// SNAP edge list: `from to`, or `from to value`; comments begin with `#` or `%`.
    Snap,
    /// Comma-separated list: `from,to` or `from|to`, optionally with a value, with or without a header line.
    Csv,
    /// METIS: `n m [fmt [ncon]]`, then one line per vertex with its neighbours, counted from one.
    Metis,
    /// DIMACS shortest paths: `a from to weight`, the `p sp n m` line optional.
    Dimacs,
    /// MatrixMarket coordinates, counted from one.
    MatrixMarket,
}

impl Format {
    /// All formats with their names.
    pub const ALL: [(&'static str, Format); 5] = [
        ("snap", Format::Snap),
        ("csv", Format::Csv),
        ("metis", Format::Metis),
        ("dimacs", Format::Dimacs),
        ("mtx", Format::MatrixMarket),
    ];

    /// Returns the format indicated by a file's name, ignoring compression suffixes.
    fn of_name(name: &str) -> Option<Format> {
        let lower = name.to_lowercase();
        let plain = [".gz", ".xz", ".zst", ".bz2"].iter().find_map(|s| lower.strip_suffix(s));
        let extension = Path::new(plain.unwrap_or(&lower)).extension()?.to_str()?;
        match extension {
            "txt" | "el" | "edges" | "snap" | "tsv" => Some(Format::Snap),
            "csv" => Some(Format::Csv),
            "graph" | "metis" => Some(Format::Metis),
            "gr" => Some(Format::Dimacs),
            "mtx" => Some(Format::MatrixMarket),
            _ => None,
        }
    }
}

/// Numbering of vertices in formats that do not count them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Order of their names in the file, ascending.
    Sorted,
    /// Order of first appearance.
    Appearance,
}

/// Treatment of edge values in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// Weights: whole numbers that fit 32 bits.
    Weights,
    /// Ignored: any numbers are accepted, and none are kept.
    Ignored,
}

/// Options for reading a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOptions {
    /// Format of the file; by its name if none.
    pub format: Option<Format>,
    /// Edges that the graph keeps.
    pub keep: Keep,
    /// Numbering of its vertices.
    pub order: Order,
    /// Treatment of values.
    pub values: Values,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions { format: None, keep: Keep::All, order: Order::Sorted, values: Values::Weights }
    }
}

/// Vertices to which a file's edges refer.
enum Named {
    /// Vertices counted by the format, numbered from zero.
    Counted(usize, Edges),
    /// Names of any size.
    Free(Vec<(u64, u64)>, Option<Vec<u32>>),
}

/// Reads a graph. Vertices are renumbered from zero; vertices without an edge are kept only if the format counts
/// vertices (METIS, MatrixMarket, DIMACS with a `p` line).
///
/// # Errors
/// If a file cannot be read or does not have its format: line, value, and what is allowed.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Graph, Diagnostic> {
    read_counted(path, options).map(|(graph, _)| graph)
}

/// Reads a graph like [`read`], and returns the counts of the listed edges as well.
///
/// # Errors
/// As [`read`].
pub fn read_counted(path: &Path, options: &ReadOptions) -> Result<(Graph, Listed), Diagnostic> {
    let shown = path.display().to_string();
    let unreadable = |fault| Diagnostic::new(format!("cannot read `{shown}`: {fault}"));
    let file = File::open(path).map_err(unreadable)?;
    counted(&shown, file, options)
}

/// Counts of a file's list, before anything is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Number of edges, with repetitions.
    pub edges: u64,
    /// Number of edges from a vertex to itself.
    pub loops: u64,
    /// True if edges have values.
    pub valued: bool,
}

/// Reads a graph from bytes; `name` is their name in diagnostics.
///
/// # Errors
/// As [`read`].
pub fn read_from(
    name: &str,
    source: impl Read + Send + 'static,
    options: &ReadOptions,
) -> Result<Graph, Diagnostic> {
    counted(name, source, options).map(|(graph, _)| graph)
}

fn counted(
    name: &str,
    source: impl Read + Send + 'static,
    options: &ReadOptions,
) -> Result<(Graph, Listed), Diagnostic> {
    let Some(format) = options.format.or_else(|| Format::of_name(name)) else {
        let help = "set the format, or use a known extension: .txt .el .edges .snap .tsv, .csv, .graph .metis, .gr, .mtx";
        let mut unknown =
            Diagnostic::new(format!("cannot tell the format from the name `{name}`")).help(help);
        unknown.allowed = Format::ALL.map(|(name, _)| name.to_owned()).to_vec();
        return Err(unknown);
    };
    let input =
        Input::new(source).map_err(|fault| Diagnostic::new(format!("cannot read `{name}`: {fault}")))?;
    let mut text = Text::new(name, input.bytes, options.values);
    let named = match format {
        Format::Snap => list::snap(&mut text),
        Format::Csv => list::csv(&mut text),
        Format::Metis => metis::read(&mut text),
        Format::Dimacs => dimacs::read(&mut text),
        Format::MatrixMarket => market::read(&mut text),
    }?;
    let (vertices, mut edges) = match named {
        Named::Counted(vertices, edges) => (vertices, edges),
        Named::Free(ends, weights) => {
            let (vertices, ends) = renumber(&ends, options.order);
            (vertices, Edges { ends, weights })
        }
    };
    if edges.ends.len() >= 1 << 31 {
        return Err(Diagnostic::new(format!("`{name}` has 2^31 edges or more, more than a graph can hold")));
    }
    let loops = edges.ends.iter().filter(|(from, to)| from == to).count() as u64;
    let listed = Listed { edges: edges.ends.len() as u64, loops, valued: edges.weights.is_some() };
    if options.values == Values::Ignored {
        edges.weights = None;
    }
    Ok((Graph::new(vertices, &edges, options.keep), listed))
}

/// Numbers the names that occur from zero.
fn renumber(ends: &[(u64, u64)], order: Order) -> (usize, Vec<(u32, u32)>) {
    let mut names: Vec<u64> = Vec::new();
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    for name in ends.iter().flat_map(|&(from, to)| [from, to]) {
        numbers.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as u32 - 1
        });
    }
    if order == Order::Sorted {
        names.sort_unstable();
        for (n, name) in names.iter().enumerate() {
            numbers.insert(*name, n as u32);
        }
    }
    let renumbered = ends.iter().map(|(from, to)| (numbers[from], numbers[to])).collect();
    (names.len(), renumbered)
}

// Lines and words of a graph file.

/// Maximum length of a line: a METIS vertex with eight million neighbours.
const LONGEST: usize = 64 << 20;

/// Bytes of a line that a diagnostic shows.
const SHOWN: usize = 200;

/// Lines of a file, one at a time.
struct Text {
    name: String,
    source: BufReader<Bytes>,
    line: Vec<u8>,
    number: u64,
    values: Values,
}

/// Position of a word in a line.
#[derive(Clone, Copy)]
struct Word {
    from: usize,
    to: usize,
}

impl Text {
    fn new(name: &str, source: Bytes, values: Values) -> Text {
        Text {
            name: name.to_owned(),
            source: BufReader::with_capacity(256 << 10, source),
            line: Vec::new(),
            number: 0,
            values,
        }
    }

    /// Returns true if values are needed, as weights.
    fn wants_weights(&self) -> bool {
        self.values == Values::Weights
    }

    /// Returns true if the line has no edge: it is blank or a comment.
    fn is_aside(&self) -> bool {
        self.word(0, None).is_none_or(|word| matches!(self.line[word.from], b'#' | b'%'))
    }

    /// Reads the next line; false at the end of the file.
    fn next(&mut self) -> Result<bool, Diagnostic> {
        self.line.clear();
        let limited = (&mut self.source).take(LONGEST as u64 + 1).read_until(b'\n', &mut self.line);
        let length = limited.map_err(|fault| {
            let what = format!("cannot read `{}`: {fault}", self.name);
            Diagnostic::new(what).at(Place {
                source: self.name.clone(),
                line: self.number + 1,
                ..Place::default()
            })
        })?;
        self.number += u64::from(length > 0);
        if length > LONGEST {
            return Err(self.refuse_line(format!("a line of more than {} MiB", LONGEST >> 20)));
        }
        while matches!(self.line.last(), Some(b'\n' | b'\r')) {
            self.line.pop();
        }
        Ok(length > 0)
    }

    /// Returns the line.
    fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns the next word from byte `at` on; words are separated by blanks, or by `separator`.
    fn word(&self, at: usize, separator: Option<u8>) -> Option<Word> {
        let Some(separator) = separator else {
            let from = at + self.line.get(at..)?.iter().position(|b| !b.is_ascii_whitespace())?;
            let rest = self.line[from..].iter().position(u8::is_ascii_whitespace);
            return Some(Word { from, to: rest.map_or(self.line.len(), |n| from + n) });
        };
        let rest = self.line.get(at..)?.iter().position(|b| *b == separator);
        let (mut from, mut to) = (at, rest.map_or(self.line.len(), |n| at + n));
        while from < to && self.line[from].is_ascii_whitespace() {
            from += 1;
        }
        while from < to && self.line[to - 1].is_ascii_whitespace() {
            to -= 1;
        }
        Some(Word { from, to })
    }

    /// Returns the text of a word.
    fn text(&self, word: Word) -> &[u8] {
        &self.line[word.from..word.to]
    }

    /// Returns a word's value, if it is a whole number below 2^64.
    fn number(&self, word: Word) -> Option<u64> {
        let digits = self.text(word);
        let digit = |value: u64, byte: u8| {
            let digit = byte.wrapping_sub(b'0');
            (digit <= 9).then(|| value.checked_mul(10)?.checked_add(u64::from(digit))).flatten()
        };
        (!digits.is_empty()).then(|| digits.iter().try_fold(0, |value, b| digit(value, *b))).flatten()
    }

    /// Reads a whole number in `range`, called `what`.
    fn integer(
        &self,
        word: Word,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<u64, Diagnostic> {
        let value = self.number(word).filter(|value| range.contains(value));
        value.ok_or_else(|| {
            let allowed = match (*range.start(), *range.end()) {
                (0, u64::MAX) => "a whole number".to_owned(),
                (least, most) => format!("a whole number from {least} to {most}"),
            };
            self.refuse(word, what, allowed)
        })
    }

    /// Reads the next word, which must be a whole number in `range`; also returns the byte after it.
    fn next_integer(
        &self,
        at: usize,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<(u64, usize), Diagnostic> {
        let word = self.next_word(at, what)?;
        Ok((self.integer(word, what, range)?, word.to))
    }

    /// Reads an edge's value: a whole number from `least` on if it is a weight; otherwise any number, and zero is
    /// returned.
    fn value(&self, word: Word, what: &str, least: u32) -> Result<u32, Diagnostic> {
        if !self.wants_weights() {
            return self.number_at_all(word, what).map(|()| 0);
        }
        let real = self.real(word);
        let (least, most) = (f64::from(least), f64::from(u32::MAX));
        let whole = real.filter(|real| real.fract() == 0.0 && (least..=most).contains(real));
        whole.map(|real| real as u32).ok_or_else(|| {
            let refused = self.refuse(word, what, format!("a whole number from {least} to {most}"));
            refused.help("weights are summed as whole numbers: scale the values; only programs of shortest paths read them")
        })
    }

    /// Reads a number of any kind. Fortran writes exponents with a D.
    fn real(&self, word: Word) -> Option<f64> {
        let shown = String::from_utf8_lossy(self.text(word)).replace(['d', 'D'], "e");
        shown.parse().ok().filter(|real: &f64| real.is_finite())
    }

    /// Refuses a word that is not a number of any kind.
    fn number_at_all(&self, word: Word, what: &str) -> Result<(), Diagnostic> {
        self.real(word).map(|_| ()).ok_or_else(|| self.refuse(word, what, "a number"))
    }

    /// Reads the value in the next word; also returns the byte after it.
    fn next_value(&self, at: usize, what: &str, least: u32) -> Result<(u32, usize), Diagnostic> {
        let word = self.next_word(at, what)?;
        Ok((self.value(word, what, least)?, word.to))
    }

    fn next_word(&self, at: usize, what: &str) -> Result<Word, Diagnostic> {
        self.word(at, None).ok_or_else(|| {
            let end = Word { from: self.line.len(), to: self.line.len() };
            self.place(format!("the line ends before the {what}"), end)
        })
    }

    /// Refuses words from byte `at` on; `layout` describes a line.
    fn no_more(&self, at: usize, layout: &str) -> Result<(), Diagnostic> {
        let Some(word) = self.word(at, None) else { return Ok(()) };
        let shown = String::from_utf8_lossy(self.text(word)).into_owned();
        Err(self.place(format!("more fields than `{layout}`: `{shown}`"), word))
    }

    /// Returns a diagnostic about an invalid word.
    fn refuse(&self, word: Word, what: &str, allowed: impl Into<String>) -> Diagnostic {
        let end = word.to.min(word.from + SHOWN);
        let shown = String::from_utf8_lossy(&self.line[word.from..end]).into_owned();
        let mut refused = self.place(format!("`{shown}` is not a valid {what}"), word);
        refused.allowed = vec![allowed.into()];
        refused
    }

    /// Returns a diagnostic about the whole line.
    fn refuse_line(&self, what: impl Into<String>) -> Diagnostic {
        self.place(what.into(), Word { from: 0, to: 0 })
    }

    fn place(&self, what: String, word: Word) -> Diagnostic {
        let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        // The line is shown from a little before the word, so that a long one is not copied whole.
        let first = word.from.saturating_sub(SHOWN / 2);
        let text = shown(&self.line[first..self.line.len().min(first + SHOWN)]);
        let column =
            if word.to > 0 { shown(&self.line[first..word.from]).chars().count() as u64 + 1 } else { 0 };
        let place = Place { source: self.name.clone(), line: self.number, column, text, key: String::new() };
        Diagnostic::new(what).at(place)
    }

    /// Returns a diagnostic about the whole file.
    fn refuse_file(&self, what: impl Into<String>) -> Diagnostic {
        let place = Place { source: self.name.clone(), ..Place::default() };
        Diagnostic::new(what).at(place)
    }
}
