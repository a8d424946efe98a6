//! Graphs: compressed sparse rows, readers of the usual file formats, and a seeded generator.

// A graph returns at most one diagnostic in its life: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod read;

pub use read::{Format, Listed, Order, ReadOptions, Values, read, read_counted, read_from};

use engine::Rng;

// Generator R-MAT, the recursive matrix generator (Chakrabarti, Zhan, Faloutsos, SDM 2004).

/// Parameters of a generated graph. [`Rmat::graph500`] has those of the Graph500 benchmark's Kronecker generator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rmat {
    /// Binary logarithm of the number of vertices.
    pub scale: u32,
    /// Edges drawn per vertex, before loops and repeated ones are dropped.
    pub degree: u32,
    /// Seed of edges and numbering.
    pub seed: u64,
    /// Probability of the upper left quarter of the matrix: both ends in the lower half of the numbers.
    pub a: f64,
    /// Probability of the upper right quarter.
    pub b: f64,
    /// Probability of the lower left quarter; the lower right gets the rest.
    pub c: f64,
    /// True if each edge is added in the other direction too.
    pub mirrored: bool,
}

impl Rmat {
    /// Returns the parameters of the Graph500 specification, section 3.1: A = 0.57, B = C = 0.19, and both directions
    /// of each edge.
    pub const fn graph500(scale: u32, degree: u32, seed: u64) -> Rmat {
        Rmat { scale, degree, seed, a: 0.57, b: 0.19, c: 0.19, mirrored: true }
    }

    /// Draws the edges and numbers the vertices at random, as Graph500 does, so that a number is independent of the
    /// degree.
    /// Loops and repeated edges are dropped.
    ///
    /// # Panics
    /// If the scale is above 27 or there are 2^31 edges or more.
    pub fn generate(&self) -> Graph {
        assert!(self.scale <= 27, "a scale of at most 27");
        let vertices = 1_usize << self.scale;
        let count = vertices * self.degree as usize;
        assert!(count < 1 << 31, "less than 2^31 edges");
        let mut numbers: Vec<u32> = (0..vertices as u32).collect();
        Rng::stream(self.seed, "graph/numbers").shuffle(&mut numbers);
        let mut draw = Draw::new(self);
        let number = |(from, to): (u32, u32)| (numbers[from as usize], numbers[to as usize]);
        let ends = (0..count).map(|_| number(draw.edge())).collect();
        let keep = if self.mirrored { Keep::Both } else { Keep::Simple };
        Graph::new(vertices, &Edges { ends, weights: None }, keep)
    }
}

/// Number of levels per random word: 16 bits each, so that a probability is exact to 8e-6.
const LEVELS: u32 = 4;

struct Draw {
    rng: Rng,
    scale: u32,
    /// Ends of the quarters, in 1/65536: a, a + b, a + b + c.
    ends: [u32; 3],
}

impl Draw {
    fn new(rmat: &Rmat) -> Draw {
        let end = |share: f64| (share * 65536.0).round().clamp(0.0, 65536.0) as u32;
        let ends = [end(rmat.a), end(rmat.a + rmat.b), end(rmat.a + rmat.b + rmat.c)];
        Draw { rng: Rng::stream(rmat.seed, "graph/edges"), scale: rmat.scale, ends }
    }

    fn edge(&mut self) -> (u32, u32) {
        let (mut from, mut to, mut word) = (0, 0, 0);
        for level in 0..self.scale {
            if level % LEVELS == 0 {
                word = self.rng.next_u64();
            }
            let drawn = word as u32 & 0xffff;
            word >>= 16;
            let past = self.ends.map(|end| u32::from(drawn >= end));
            from = from << 1 | past[1];
            to = to << 1 | (past[0] - past[1] + past[2]);
        }
        (from, to)
    }
}

// Compressed sparse rows.

/// A directed graph: the targets of vertex `v`'s edges are `targets[rows[v]..rows[v + 1]]`, ascending. An undirected
/// one has each edge in both directions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    rows: Vec<u32>,
    targets: Vec<u32>,
    weights: Option<Vec<u32>>,
}

/// Edges of a list that a graph keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Keep {
    /// All edges as listed, including loops and repetitions.
    All,
    /// No loops; among edges with the same ends, the lightest.
    Simple,
    /// As `Simple`, after adding each edge in the other direction.
    Both,
}

/// List of edges. Vertices are numbered from zero.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Edges {
    /// Start and end vertex of each edge.
    pub ends: Vec<(u32, u32)>,
    /// Weight of each edge, if they have any.
    pub weights: Option<Vec<u32>>,
}

impl Graph {
    /// Creates the graph of `vertices` vertices and these edges.
    ///
    /// # Panics
    /// If an end is not below `vertices`, if the numbers of weights and edges differ, or with 2^32 edges or more.
    pub fn new(vertices: usize, edges: &Edges, keep: Keep) -> Graph {
        let ways = if keep == Keep::Both { 2 } else { 1 };
        let all = u32::try_from(edges.ends.len() * ways).expect("a graph has less than 2^32 edges");
        let mut next = vec![0_u32; vertices + 1];
        for &(from, to) in &edges.ends {
            if from != to || keep == Keep::All {
                next[from as usize + 1] += 1;
                if keep == Keep::Both {
                    next[to as usize + 1] += 1;
                }
            }
        }
        for v in 0..vertices {
            next[v + 1] += next[v];
        }
        let rows = next.clone();
        let mut targets = vec![0; rows.last().map_or(0, |end| *end as usize).min(all as usize)];
        let mut weights = edges.weights.as_ref().map(|weights| {
            assert_eq!(weights.len(), edges.ends.len(), "one weight an edge");
            vec![0; targets.len()]
        });
        let mut put = |from: u32, to: u32, n: usize| {
            let at = next[from as usize] as usize;
            next[from as usize] += 1;
            targets[at] = to;
            if let (Some(weights), Some(given)) = (&mut weights, &edges.weights) {
                weights[at] = given[n];
            }
        };
        for (n, &(from, to)) in edges.ends.iter().enumerate() {
            assert!((to as usize) < vertices, "vertex {to} of {vertices}");
            if from != to || keep == Keep::All {
                put(from, to, n);
                if keep == Keep::Both {
                    put(to, from, n);
                }
            }
        }
        let mut graph = Graph { rows, targets, weights };
        graph.sort_rows();
        if keep != Keep::All {
            graph.drop_repeated();
        }
        graph
    }

    fn sort_rows(&mut self) {
        let mut pairs: Vec<(u32, u32)> = Vec::new();
        for v in 0..self.vertices() {
            let row = self.row(v);
            let Some(weights) = &mut self.weights else {
                self.targets[row].sort_unstable();
                continue;
            };
            pairs.clear();
            pairs.extend(row.clone().map(|e| (self.targets[e], weights[e])));
            pairs.sort_unstable();
            for (e, (target, weight)) in row.zip(&pairs) {
                (self.targets[e], weights[e]) = (*target, *weight);
            }
        }
    }

    /// Keeps the first of equal neighbours in a row, which are sorted by weight.
    fn drop_repeated(&mut self) {
        let mut kept = 0;
        for v in 0..self.vertices() {
            let row = self.row(v);
            let begin = kept;
            for e in row {
                if kept > begin && self.targets[kept - 1] == self.targets[e] {
                    continue;
                }
                self.targets[kept] = self.targets[e];
                if let Some(weights) = &mut self.weights {
                    weights[kept] = weights[e];
                }
                kept += 1;
            }
            // The next row still begins at its old place: only the end of this one is known yet.
            self.rows[v] = begin as u32;
        }
        let vertices = self.vertices();
        self.rows[vertices] = kept as u32;
        self.targets.truncate(kept);
        self.targets.shrink_to_fit();
        if let Some(weights) = &mut self.weights {
            weights.truncate(kept);
            weights.shrink_to_fit();
        }
    }

    /// Returns the number of vertices.
    pub fn vertices(&self) -> usize {
        self.rows.len().saturating_sub(1)
    }
    /// Returns the number of directed edges.
    pub fn edges(&self) -> usize {
        self.targets.len()
    }
    /// Returns the start of each vertex's edges; the last entry is the number of edges.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
    /// Returns the target of each edge.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }
    /// Returns the weights of the edges, if they have any.
    pub fn weights(&self) -> Option<&[u32]> {
        self.weights.as_deref()
    }
    /// Returns the numbers of a vertex's edges.
    #[inline]
    pub fn row(&self, v: usize) -> std::ops::Range<usize> {
        self.rows[v] as usize..self.rows[v + 1] as usize
    }
    /// Returns a vertex's neighbours, ascending.
    #[inline]
    pub fn neighbours(&self, v: usize) -> &[u32] {
        &self.targets[self.row(v)]
    }
    /// Returns the out-degree of a vertex.
    #[inline]
    pub fn degree(&self, v: usize) -> usize {
        (self.rows[v + 1] - self.rows[v]) as usize
    }
    /// Returns the vertex with the most edges, the lowest among equals.
    pub fn hub(&self) -> Option<usize> {
        (0..self.vertices()).max_by_key(|&v| (self.degree(v), std::cmp::Reverse(v)))
    }
    /// Gives every edge a weight of 1 to `most`, drawn from its two ends and the seed: the same in both directions.
    #[must_use]
    pub fn weighted(mut self, seed: u64, most: u32) -> Graph {
        let weight = |a: u32, b: u32| {
            let ends = u64::from(a.min(b)) << 32 | u64::from(a.max(b));
            let drawn = engine::mix(engine::mix(ends) ^ seed) >> 32;
            1 + ((drawn * u64::from(most.max(1))) >> 32) as u32
        };
        let each = (0..self.vertices()).flat_map(|v| self.neighbours(v).iter().map(move |&w| (v as u32, w)));
        self.weights = Some(each.map(|(v, w)| weight(v, w)).collect());
        self
    }
    /// Returns the graph with every edge reversed.
    #[must_use]
    pub fn reversed(&self) -> Graph {
        let each = (0..self.vertices()).flat_map(|v| self.neighbours(v).iter().map(move |&w| (w, v as u32)));
        Graph::new(self.vertices(), &Edges { ends: each.collect(), weights: self.weights.clone() }, Keep::All)
    }
}

#[cfg(test)]
mod tests {
    use super::{Draw, Edges, Graph, Keep, Rmat};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[test]
    fn quarters_have_their_probabilities_on_every_level() {
        let rmat = Rmat::graph500(9, 16, 5);
        let mut draw = Draw::new(&rmat);
        let (draws, mut counts) = (100_000, [[0_u32; 4]; 9]);
        for _ in 0..draws {
            let (from, to) = draw.edge();
            for (level, counts) in counts.iter_mut().enumerate() {
                counts[((from >> level & 1) << 1 | (to >> level & 1)) as usize] += 1;
            }
        }
        for counts in counts {
            for (count, share) in counts.iter().zip([0.57, 0.19, 0.19, 0.05]) {
                // Five standard deviations of a binomial count.
                let (mean, sd) = (draws as f64 * share, (draws as f64 * share * (1.0 - share)).sqrt());
                assert!((f64::from(*count) - mean).abs() < 5.0 * sd, "{count} of {mean}");
            }
        }
    }

    #[test]
    fn mirrored_graphs_are_symmetric_without_loops() {
        let graph = Rmat::graph500(8, 8, 2).generate();
        assert_eq!(graph.vertices(), 256);
        for v in 0..256 {
            let row = graph.neighbours(v);
            assert!(row.windows(2).all(|pair| pair[0] < pair[1]) && !row.contains(&(v as u32)));
            assert!(row.iter().all(|&w| graph.neighbours(w as usize).contains(&(v as u32))));
        }
    }

    #[test]
    fn the_seed_decides_and_degrees_are_skewed() {
        let graph = Rmat::graph500(12, 16, 1).generate();
        assert_eq!(graph, Rmat::graph500(12, 16, 1).generate());
        assert_ne!(graph, Rmat::graph500(12, 16, 2).generate());
        // The vertex of all zero bits expects 0.76^12 of the 65,536 edges' beginnings, 2,435, some of them repeated.
        let hub = graph.degree(graph.hub().unwrap());
        assert!((1000..3000).contains(&hub), "{hub}");
        let directed = Rmat { mirrored: false, ..Rmat::graph500(12, 16, 1) }.generate();
        assert!(directed.edges() < 65_536 && graph.edges() > directed.edges());
    }

    fn edges() -> impl Strategy<Value = Edges> {
        proptest::collection::vec(((0..12u32, 0..12u32), 1..9u32), 0..60).prop_map(|all| {
            let (ends, weights) = all.into_iter().unzip();
            Edges { ends, weights: Some(weights) }
        })
    }

    /// Returns every edge of the graph with its weight.
    fn list(graph: &Graph) -> Vec<(u32, u32, u32)> {
        let weights = graph.weights().unwrap();
        (0..graph.vertices())
            .flat_map(|v| graph.row(v).map(move |e| (v as u32, graph.targets()[e], weights[e])))
            .collect()
    }

    proptest! {
        #[test]
        fn rows_hold_the_edges_of_the_list(edges in edges()) {
            let mut all: Vec<(u32, u32, u32)> =
                edges.ends.iter().zip(edges.weights.as_ref().unwrap()).map(|(&(a, b), &w)| (a, b, w)).collect();
            all.sort_unstable();
            prop_assert_eq!(list(&Graph::new(12, &edges, Keep::All)), all.clone());

            let mut lightest: BTreeMap<(u32, u32), u32> = BTreeMap::new();
            for &(a, b, w) in all.iter().filter(|(a, b, _)| a != b) {
                for ends in [(a, b), (b, a)] {
                    let least = lightest.entry(ends).or_insert(w);
                    *least = w.min(*least);
                }
            }
            let both: Vec<(u32, u32, u32)> = lightest.iter().map(|(&(a, b), &w)| (a, b, w)).collect();
            prop_assert_eq!(list(&Graph::new(12, &edges, Keep::Both)), both);
        }

        #[test]
        fn reversing_turns_every_edge(edges in edges()) {
            let graph = Graph::new(12, &edges, Keep::Simple);
            let mut turned: Vec<(u32, u32)> = list(&graph.reversed()).iter().map(|&(a, b, _)| (b, a)).collect();
            turned.sort_unstable();
            prop_assert_eq!(turned, list(&graph).iter().map(|&(a, b, _)| (a, b)).collect::<Vec<_>>());
            let again = graph.reversed().reversed();
            prop_assert_eq!(again.targets(), graph.targets());
        }
    }

    #[test]
    fn drawn_weights_are_the_same_both_ways_and_within_bounds() {
        let ends = (0..200u32).map(|n| (n % 40, n * 7 % 40)).collect();
        let graph = Graph::new(40, &Edges { ends, weights: None }, Keep::Both).weighted(3, 5);
        let by_ends: BTreeMap<(u32, u32), u32> = list(&graph).iter().map(|&(a, b, w)| ((a, b), w)).collect();
        assert!(by_ends.iter().all(|(&(a, b), w)| (1..=5).contains(w) && by_ends[&(b, a)] == *w));
        assert_eq!((1..=5).filter(|n| by_ends.values().any(|w| w == n)).count(), 5);
    }
}
