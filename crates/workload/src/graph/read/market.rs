//! MatrixMarket coordinate files (NIST, "The Matrix Market exchange formats").

use config::Diagnostic;

use super::Named;
use super::text::Text;
use crate::graph::Edges;

const BANNER: &str = "%%MatrixMarket matrix coordinate <pattern|integer> <general|symmetric>";

/// A square matrix of `pattern` or `integer` entries; a `symmetric` one lists an entry on one side of the diagonal only.
pub(super) fn read(text: &mut Text) -> Result<Named, Diagnostic> {
    let (weighted, symmetric) = banner(text)?;
    let (n, entries) = size(text)?;
    let mut edges = Edges { ends: Vec::new(), weights: weighted.then(Vec::new) };
    let mut listed = 0_u64;
    while text.next()? {
        if text.line().first() == Some(&b'%') || text.word(0, None).is_none() {
            continue;
        }
        let (row, at) = text.next_integer(0, "row", 1..=n)?;
        let (column, mut at) = text.next_integer(at, "column", 1..=n)?;
        let mut weight = 0;
        if weighted {
            (weight, at) = text.next_integer(at, "value", 0..=u64::from(u32::MAX))?;
        }
        text.no_more(at, if weighted { "row column value" } else { "row column" })?;
        listed += 1;
        let (from, to) = (row as u32 - 1, column as u32 - 1);
        let mut put = |from, to| {
            edges.ends.push((from, to));
            edges.weights.iter_mut().for_each(|weights| weights.push(weight as u32));
        };
        put(from, to);
        if symmetric && from != to {
            put(to, from);
        }
    }
    if listed != entries {
        let what = format!("the size line promises {entries} entries, but {listed} are listed");
        return Err(text.refuse_file(what));
    }
    Ok(Named::Counted(n as usize, edges))
}

/// Whether entries have values, and whether the matrix is symmetric.
fn banner(text: &mut Text) -> Result<(bool, bool), Diagnostic> {
    text.next()?;
    let line = String::from_utf8_lossy(text.line()).to_lowercase();
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let [magic, object, layout, field, symmetry] = words[..] else {
        return Err(no_banner(text));
    };
    if magic != "%%matrixmarket" {
        return Err(no_banner(text));
    }
    let expect = |given: &str, what: &str, allowed: &[&str]| {
        allowed.iter().position(|a| *a == given).ok_or_else(|| {
            let unknown = text.refuse_line(format!("`{given}` is no {what} of a graph"));
            unknown.allowed(given, allowed.iter().copied())
        })
    };
    expect(object, "object", &["matrix"])?;
    expect(layout, "layout", &["coordinate"])?;
    let field = expect(field, "field", &["pattern", "integer"])
        .map_err(|refused| refused.help("weights are whole numbers: convert other values first"))?;
    let symmetry = expect(symmetry, "symmetry", &["general", "symmetric"])?;
    Ok((field == 1, symmetry == 1))
}

fn no_banner(text: &Text) -> Diagnostic {
    let help = format!(
        "the first line must be `{BANNER}` and the next `rows columns entries`; without them a list of edges is a `.txt`"
    );
    text.refuse_line("this MatrixMarket file has no banner").help(help)
}

/// Rows (and columns) and entries.
fn size(text: &mut Text) -> Result<(u64, u64), Diagnostic> {
    while text.next()? {
        if text.line().first() == Some(&b'%') || text.word(0, None).is_none() {
            continue;
        }
        let (rows, at) = text.next_integer(0, "number of rows", 0..=u64::from(u32::MAX) - 1)?;
        let (_, at) =
            text.next_integer(at, "number of columns, which a graph has as many as rows", rows..=rows)?;
        let (entries, at) = text.next_integer(at, "number of entries", 0..=u64::MAX)?;
        text.no_more(at, "rows columns entries")?;
        return Ok((rows, entries));
    }
    Err(text.refuse_file("the size line `rows columns entries` is missing"))
}
