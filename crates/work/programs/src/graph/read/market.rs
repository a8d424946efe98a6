//! MatrixMarket coordinate files (NIST, "The Matrix Market exchange formats").

use config::Diagnostic;

use super::{Named, Text};
use crate::graph::Edges;

const BANNER: &str = "%%MatrixMarket matrix coordinate <pattern|integer|real|complex> <general|symmetric|skew-symmetric|hermitian>";

/// Content of the banner.
struct Banner {
    /// Number of values after row and column.
    values: usize,
    /// True if entries are on one side of the diagonal only.
    one_side: bool,
}

/// Reads a square matrix, each entry of which is an edge from its row to its column.
pub(super) fn read(text: &mut Text) -> Result<Named, Diagnostic> {
    let Banner { values, one_side } = banner(text)?;
    let (n, entries) = size(text)?;
    let mut edges = Edges { ends: Vec::new(), weights: (values > 0).then(Vec::new) };
    let mut listed = 0_u64;
    while text.next()? {
        if text.is_aside() {
            continue;
        }
        let (row, at) = text.next_integer(0, "row", 1..=n)?;
        let (column, mut at) = text.next_integer(at, "column", 1..=n)?;
        let mut weight = 0;
        for _ in 0..values {
            (weight, at) = text.next_value(at, "value", 0)?;
        }
        text.no_more(at, ["row column", "row column value", "row column real imaginary"][values])?;
        listed += 1;
        let (from, to) = (row as u32 - 1, column as u32 - 1);
        let mut put = |from, to| {
            edges.ends.push((from, to));
            edges.weights.iter_mut().for_each(|weights| weights.push(weight));
        };
        put(from, to);
        if one_side && from != to {
            put(to, from);
        }
    }
    if listed != entries {
        let what = format!("the size line promises {entries} entries, but {listed} are listed");
        return Err(text.refuse_file(what));
    }
    Ok(Named::Counted(n as usize, edges))
}

fn banner(text: &mut Text) -> Result<Banner, Diagnostic> {
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
            let unknown = text.refuse_line(format!("`{given}` is not a valid {what} of a graph"));
            unknown.allowed(given, allowed.iter().copied())
        })
    };
    expect(object, "object", &["matrix"])?;
    expect(layout, "layout", &["coordinate"]).map_err(|refused| match layout {
        "array" => refused.help(
            "an array lists every element of a dense matrix: each vertex would have an edge to every other one",
        ),
        _ => refused,
    })?;
    let field = expect(field, "field", &["pattern", "integer", "real", "complex"])?;
    // Allowed combinations: NIST, "The Matrix Market exchange formats", table of qualifiers.
    let allowed: &[&str] = match field {
        0 => &["general", "symmetric"],
        3 => &["general", "symmetric", "skew-symmetric", "hermitian"],
        _ => &["general", "symmetric", "skew-symmetric"],
    };
    let symmetry = expect(symmetry, "symmetry", allowed)?;
    let no_weights = match (field, symmetry) {
        (3, _) => Some("complex values are not weights"),
        (_, 2) => {
            Some("the values of a skew-symmetric matrix are negative on one side: they are not weights")
        }
        _ => None,
    };
    if let Some(what) = no_weights.filter(|_| text.wants_weights()) {
        let help = "shortest paths need whole numbers from 0 on; `pattern` entries have none, and each edge then counts 1";
        return Err(text.refuse_line(what).help(help));
    }
    Ok(Banner { values: [0, 1, 1, 2][field], one_side: symmetry > 0 })
}

fn no_banner(text: &Text) -> Diagnostic {
    let help = format!(
        "the first line must be `{BANNER}` and the next `rows columns entries`; name a plain list of edges `.txt`"
    );
    text.refuse_line("this MatrixMarket file has no banner").help(help)
}

/// Reads the number of rows (and columns) and of entries.
fn size(text: &mut Text) -> Result<(u64, u64), Diagnostic> {
    while text.next()? {
        if text.is_aside() {
            continue;
        }
        let (rows, at) = text.next_integer(0, "number of rows", 0..=u64::from(u32::MAX) - 1)?;
        let (_, at) = text.next_integer(at, "number of columns (equal to the rows)", rows..=rows)?;
        let (entries, at) = text.next_integer(at, "number of entries", 0..=u64::MAX)?;
        text.no_more(at, "rows columns entries")?;
        return Ok((rows, entries));
    }
    Err(text.refuse_file("the size line `rows columns entries` is missing"))
}
