//! Reading graphs from files, plain or compressed: lines and words, and a format for each file here.

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

/// How a file says its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// SNAP edge list: `from to`, or `from to value`; comments begin with `#` or `%`.
    Snap,
    /// `from,to` or `from|to`, or with a value behind, with or without a header line.
    Csv,
    /// METIS: `n m [fmt [ncon]]`, then the neighbours of each vertex on a line of its own, counted from one.
    Metis,
    /// DIMACS shortest paths: `a from to weight`, the `p sp n m` line optional.
    Dimacs,
    /// MatrixMarket coordinates, counted from one.
    MatrixMarket,
}

impl Format {
    /// Every format with its name.
    pub const ALL: [(&'static str, Format); 5] = [
        ("snap", Format::Snap),
        ("csv", Format::Csv),
        ("metis", Format::Metis),
        ("dimacs", Format::Dimacs),
        ("mtx", Format::MatrixMarket),
    ];

    /// What a file's name says, compression suffixes left out.
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

/// How vertices of a format that does not count them are numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// By their names in the file, ascending.
    Sorted,
    /// By their first appearance.
    Appearance,
}

/// What becomes of the values that a file has for its edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// They are weights, whole numbers that fit 32 bits.
    Weights,
    /// They are not needed: any numbers are taken, and none are kept.
    Ignored,
}

/// How to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadOptions {
    /// The format; what the file's name says if none.
    pub format: Option<Format>,
    /// Which edges the graph keeps.
    pub keep: Keep,
    /// How its vertices are numbered.
    pub order: Order,
    /// What becomes of values.
    pub values: Values,
}

impl Default for ReadOptions {
    fn default() -> Self {
        ReadOptions { format: None, keep: Keep::All, order: Order::Sorted, values: Values::Weights }
    }
}

/// What a file's edges refer to.
enum Named {
    /// Vertices counted by the format, numbered from zero.
    Counted(usize, Edges),
    /// Names of any size.
    Free(Vec<(u64, u64)>, Option<Vec<u32>>),
}

/// Reads a graph. Vertices are renumbered from zero; those without an edge stay only where the format counts vertices
/// (METIS, MatrixMarket, DIMACS with a `p` line).
///
/// # Errors
/// A file that cannot be read or is not of its format: line, value, and what is allowed.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Graph, Diagnostic> {
    read_counted(path, options).map(|(graph, _)| graph)
}

/// As [`read`], with the edges that the file lists.
///
/// # Errors
/// As [`read`].
pub fn read_counted(path: &Path, options: &ReadOptions) -> Result<(Graph, Listed), Diagnostic> {
    let shown = path.display().to_string();
    let unreadable = |fault| Diagnostic::new(format!("cannot read `{shown}`: {fault}"));
    let file = File::open(path).map_err(unreadable)?;
    counted(&shown, file, options)
}

/// What a file lists, before anything is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Listed {
    /// Edges, each as often as it stands there.
    pub edges: u64,
    /// Those of them from a vertex to itself.
    pub loops: u64,
    /// Whether edges have values.
    pub valued: bool,
}

/// Reads a graph from bytes that are called `name` in diagnostics.
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
        let help =
            "set the format, or use a known extension: .txt .el .edges .snap .tsv, .csv, .graph .metis, .gr, .mtx";
        let mut unknown = Diagnostic::new(format!("the name `{name}` does not tell the format")).help(help);
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
        return Err(Diagnostic::new(format!(
            "`{name}` has 2^31 edges or more, more than a graph can hold"
        )));
    }
    let loops = edges.ends.iter().filter(|(from, to)| from == to).count() as u64;
    let listed = Listed { edges: edges.ends.len() as u64, loops, valued: edges.weights.is_some() };
    if options.values == Values::Ignored {
        edges.weights = None;
    }
    Ok((Graph::new(vertices, &edges, options.keep), listed))
}

/// Numbers from zero for the names that occur.
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

// Lines and words of a graph's file.

/// The longest line: a vertex of METIS with eight million neighbours.
const LONGEST: usize = 64 << 20;

/// Bytes of a line that a diagnostic shows.
const SHOWN: usize = 200;

/// A file's lines, one at a time.
struct Text {
    name: String,
    source: BufReader<Bytes>,
    line: Vec<u8>,
    number: u64,
    values: Values,
}

/// A word of a line and where it begins.
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

    /// Whether values are needed, as weights.
    fn wants_weights(&self) -> bool {
        self.values == Values::Weights
    }

    /// Whether the line has no edge: it is blank or a comment.
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

    /// The line.
    fn line(&self) -> &[u8] {
        &self.line
    }

    /// The next word from byte `at` on; words stand between blanks, or between `separator`s.
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

    /// The text of a word.
    fn text(&self, word: Word) -> &[u8] {
        &self.line[word.from..word.to]
    }

    /// A word's value, if it is a whole number below 2^64.
    fn number(&self, word: Word) -> Option<u64> {
        let digits = self.text(word);
        let digit = |value: u64, byte: u8| {
            let digit = byte.wrapping_sub(b'0');
            (digit <= 9).then(|| value.checked_mul(10)?.checked_add(u64::from(digit))).flatten()
        };
        (!digits.is_empty()).then(|| digits.iter().try_fold(0, |value, b| digit(value, *b))).flatten()
    }

    /// A whole number of `range`, called `what`.
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

    /// The next word, which must be a whole number of `range`, and the byte behind it.
    fn next_integer(
        &self,
        at: usize,
        what: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<(u64, usize), Diagnostic> {
        let word = self.next_word(at, what)?;
        Ok((self.integer(word, what, range)?, word.to))
    }

    /// An edge's value in a word: a whole number from `least` on if it is a weight; else any number, and zero comes back.
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

    /// A number of any kind. Fortran writes exponents with a D.
    fn real(&self, word: Word) -> Option<f64> {
        let shown = String::from_utf8_lossy(self.text(word)).replace(['d', 'D'], "e");
        shown.parse().ok().filter(|real: &f64| real.is_finite())
    }

    /// Refuses a word that is not a number of any kind.
    fn number_at_all(&self, word: Word, what: &str) -> Result<(), Diagnostic> {
        self.real(word).map(|_| ()).ok_or_else(|| self.refuse(word, what, "a number"))
    }

    /// The value in the next word, and the byte behind it.
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

    /// Refuses words from byte `at` on; `layout` is what a line is.
    fn no_more(&self, at: usize, layout: &str) -> Result<(), Diagnostic> {
        let Some(word) = self.word(at, None) else { return Ok(()) };
        let shown = String::from_utf8_lossy(self.text(word)).into_owned();
        Err(self.place(format!("more fields than `{layout}`: `{shown}`"), word))
    }

    /// A diagnostic about a word that is not what it must be.
    fn refuse(&self, word: Word, what: &str, allowed: impl Into<String>) -> Diagnostic {
        let end = word.to.min(word.from + SHOWN);
        let shown = String::from_utf8_lossy(&self.line[word.from..end]).into_owned();
        let mut refused = self.place(format!("`{shown}` is not a valid {what}"), word);
        refused.allowed = vec![allowed.into()];
        refused
    }

    /// A diagnostic about the whole line.
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

    /// A diagnostic about the whole file.
    fn refuse_file(&self, what: impl Into<String>) -> Diagnostic {
        let place = Place { source: self.name.clone(), ..Place::default() };
        Diagnostic::new(what).at(place)
    }
}
