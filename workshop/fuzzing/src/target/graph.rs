//! Graphs: the first byte chooses the format and what is kept.

use super::Target;
use config::Diagnostic;
use programs::graph::{Format, Graph, Keep, Order, ReadOptions, Values, read_from};
use std::io::Cursor;

pub(super) const TARGET: Target = Target {
    name: "graph",
    about: "graphs in SNAP, CSV, METIS, DIMACS and MatrixMarket",
    run,
    examples,
    reads,
    cases: 7_000,
};

/// Maximum number of vertices that a damaged count may ask for: their lists take memory even without edges.
const VERTICES: usize = 1 << 22;

fn read(bytes: &[u8]) -> Option<Result<Graph, Diagnostic>> {
    let (choice, content) = bytes.split_first()?;
    let options = ReadOptions {
        format: Some(Format::ALL[usize::from(choice >> 2) % Format::ALL.len()].1),
        keep: if choice & 1 == 0 { Keep::All } else { Keep::Both },
        order: if choice & 2 == 0 { Order::Sorted } else { Order::Appearance },
        values: if choice & 0x80 == 0 { Values::Weights } else { Values::Ignored },
    };
    Some(read_from("input", Cursor::new(content.to_vec()), &options))
}

/// Checks that every edge ends at a vertex and every weight has its edge.
fn run(bytes: &[u8]) {
    // A count of vertices alone asks for its lists.
    if bytes.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > VERTICES.ilog10() as usize) {
        return;
    }
    match read(bytes) {
        Some(Ok(graph)) => {
            let all = 0..graph.vertices();
            let edges: usize = all.map(|v| graph.neighbours(v).len()).sum();
            assert_eq!(edges, graph.edges());
            let inside = |v: usize| graph.neighbours(v).iter().all(|w| (*w as usize) < graph.vertices());
            assert!((0..graph.vertices()).all(inside));
            assert!(graph.weights().is_none_or(|weights| weights.len() == edges));
        }
        Some(Err(fault)) => assert!(!fault.what.is_empty()),
        None => {}
    }
}

fn examples() -> Vec<Vec<u8>> {
    let texts = [
        "# a comment\n7\t900\n900 7\n7 12\n12 12\n",
        "from,to\n5,3\n3, 9\n",
        "% figure 2 of the manual\n7 11\n5 3 2\n1 3 4\n5 4 2 1\n2 3 6 7\n1 3 6\n5 4 7\n6 4\n",
        "c a road\np sp 3 2\na 1 2 10\na 2 3 4\n",
        "%%MatrixMarket matrix coordinate integer general\n3 3 2\n1 2 5\n3 1 7\n",
    ];
    texts.iter().enumerate().map(|(n, text)| [&[(n as u8) << 2], text.as_bytes()].concat()).collect()
}

fn reads(bytes: &[u8]) -> bool {
    matches!(read(bytes), Some(Ok(_)))
}
