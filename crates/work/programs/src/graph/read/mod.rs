//! Reading graphs from files, plain or compressed.

mod dimacs;
mod list;
mod market;
mod metis;
mod text;

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ::text::Input;
use config::Diagnostic;
use rustc_hash::FxHashMap;

use crate::graph::{Edges, Graph, Keep};
use text::Text;

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
            "name the format; file names tell .txt .el .edges .snap .tsv, .csv, .graph .metis, .gr, .mtx";
        let mut unknown = Diagnostic::new(format!("`{name}` does not say what format it has")).help(help);
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
            "`{name}` has 2^31 edges or more, which no graph here can hold"
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
