//! Compressed sparse rows.

/// A directed graph: the targets of vertex `v`'s edges are `targets[rows[v]..rows[v + 1]]`, ascending. An undirected one
/// has each edge in both directions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    rows: Vec<u32>,
    targets: Vec<u32>,
    weights: Option<Vec<u32>>,
}

impl Graph {
    /// Vertices.
    pub fn vertices(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }
    /// Directed edges.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }
}
