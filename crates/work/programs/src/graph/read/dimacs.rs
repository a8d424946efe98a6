//! Graphs of the 9th DIMACS implementation challenge (shortest paths).

use config::Diagnostic;

use super::{Named, Text};
use crate::graph::Edges;

/// Reads `c` comments, at most one `p sp n m` line, and `a from to weight` lines. With a `p` line, vertices are 1 to
/// `n`; without one, any names.
pub(super) fn read(text: &mut Text) -> Result<Named, Diagnostic> {
    let mut promised: Option<(u64, u64)> = None;
    let (mut ends, mut weights): (Vec<(u64, u64)>, Vec<u32>) = (Vec::new(), Vec::new());
    while text.next()? {
        let Some(kind) = text.word(0, None) else { continue };
        match text.text(kind) {
            b"c" => {}
            b"p" => {
                if promised.is_some() || !ends.is_empty() {
                    return Err(text.refuse_line("a `p` line that is not the first"));
                }
                let problem = text.word(kind.to, None).unwrap_or(kind);
                if text.text(problem) != b"sp" {
                    return Err(text.refuse(problem, "problem", "sp"));
                }
                let (n, at) =
                    text.next_integer(problem.to, "number of vertices", 0..=u64::from(u32::MAX) - 1)?;
                let (m, at) = text.next_integer(at, "number of edges", 0..=u64::MAX)?;
                text.no_more(at, "p sp n m")?;
                promised = Some((n, m));
            }
            b"a" => {
                let range = promised.map_or(0..=u64::MAX, |(n, _)| 1..=n);
                let (from, at) = text.next_integer(kind.to, "vertex", range.clone())?;
                let (to, at) = text.next_integer(at, "second vertex", range)?;
                let (weight, at) = text.next_value(at, "weight", 0)?;
                text.no_more(at, "a from to weight")?;
                ends.push((from, to));
                weights.push(weight);
            }
            _ => return Err(text.refuse(kind, "kind of line of DIMACS", "a, c or p")),
        }
    }
    let Some((n, m)) = promised else { return Ok(Named::Free(ends, Some(weights))) };
    if ends.len() as u64 != m {
        return Err(
            text.refuse_file(format!("the `p` line promises {m} edges, but {} are listed", ends.len()))
        );
    }
    let ends = ends.iter().map(|(from, to)| ((from - 1) as u32, (to - 1) as u32)).collect();
    Ok(Named::Counted(n as usize, Edges { ends, weights: Some(weights) }))
}
