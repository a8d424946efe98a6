//! METIS graph files (METIS 5 manual, section 4.1.1).

use config::Diagnostic;

use super::{Named, Text};
use crate::graph::Edges;

/// Content of the header.
struct Header {
    vertices: u64,
    /// Number of undirected edges: each is on two lines.
    edges: u64,
    /// Number of values before a vertex's neighbours: its size, its weights.
    before: u64,
    /// True if a weight follows each neighbour.
    weighted: bool,
}

/// Reads one line per vertex, with its neighbours counted from one; lines that begin with `%` are comments.
pub(super) fn read(text: &mut Text) -> Result<Named, Diagnostic> {
    if !next(text)? {
        return Err(text.refuse_file("the file is empty: a first line `n m [fmt [ncon]]` is missing"));
    }
    let header = header(text)?;
    let mut edges = Edges { ends: Vec::new(), weights: header.weighted.then(Vec::new) };
    for vertex in 0..header.vertices {
        if !next(text)? {
            let what = format!("the file ends after {vertex} of {} vertices", header.vertices);
            return Err(text.refuse_file(what));
        }
        let mut at = 0;
        for _ in 0..header.before {
            (_, at) = text.next_integer(at, "vertex weight", 0..=u64::MAX)?;
        }
        while let Some(word) = text.word(at, None) {
            let neighbour = text.integer(word, "vertex", 1..=header.vertices)?;
            at = word.to;
            edges.ends.push((vertex as u32, neighbour as u32 - 1));
            if let Some(weights) = &mut edges.weights {
                let weight;
                (weight, at) = text.next_value(at, "edge weight", 1)?;
                weights.push(weight);
            }
        }
    }
    while next(text)? {
        if text.word(0, None).is_some() {
            return Err(text.refuse_line(format!("more lines than the {} vertices", header.vertices)));
        }
    }
    let listed = edges.ends.len() as u64;
    if listed != header.edges.saturating_mul(2) {
        let what = format!(
            "the header promises {} edges, each listed twice, but the lines list {listed}",
            header.edges
        );
        return Err(text.refuse_file(what).help("a header counts each undirected edge once"));
    }
    Ok(Named::Counted(header.vertices as usize, edges))
}

/// Reads the next line that is not a comment. An empty one is a vertex without neighbours.
fn next(text: &mut Text) -> Result<bool, Diagnostic> {
    while text.next()? {
        if text.line().first() != Some(&b'%') {
            return Ok(true);
        }
    }
    Ok(false)
}

fn header(text: &Text) -> Result<Header, Diagnostic> {
    let (vertices, at) = text.next_integer(0, "number of vertices", 0..=u64::from(u32::MAX) - 1)?;
    let (edges, mut at) = text.next_integer(at, "number of edges", 0..=u64::MAX)?;
    let (mut sizes, mut weights, mut weighted, mut constraints) = (false, false, false, 1);
    if let Some(word) = text.word(at, None) {
        let fmt = text.text(word);
        if fmt.len() > 3 || !fmt.iter().all(|b| matches!(b, b'0' | b'1')) {
            return Err(text.refuse(word, "fmt of METIS", "up to three digits, each 0 or 1"));
        }
        let digit = |n: usize| fmt.len() > n && fmt[fmt.len() - 1 - n] == b'1';
        (weighted, weights, sizes) = (digit(0), digit(1), digit(2));
        at = word.to;
        if let Some(word) = text.word(at, None) {
            constraints = text.integer(word, "number of vertex weights", 1..=1024)?;
            at = word.to;
        }
    }
    text.no_more(at, "n m [fmt [ncon]]")?;
    let before = u64::from(sizes) + if weights { constraints } else { 0 };
    Ok(Header { vertices, edges, before, weighted })
}
