//! Graphs: compressed sparse rows, readers of the usual file formats, and a seeded generator.

// A diagnostic is returned once in the life of a graph: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod csr;
mod read;

pub use csr::{Edges, Graph, Keep};
pub use read::{Format, Listed, Order, ReadOptions, Values, read, read_counted, read_from};

use engine::Rng;

// R-MAT, the recursive matrix generator (Chakrabarti, Zhan, Faloutsos, SDM 2004).

/// What to generate. [`Rmat::graph500`] has the parameters of the Graph500 benchmark's Kronecker generator.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rmat {
    /// Binary logarithm of the number of vertices.
    pub scale: u32,
    /// Edges drawn a vertex, before loops and repeated ones are dropped.
    pub degree: u32,
    /// Seed of edges and numbering.
    pub seed: u64,
    /// Probability of the upper left quarter of the matrix: both ends in the lower half of the numbers.
    pub a: f64,
    /// Probability of the upper right quarter.
    pub b: f64,
    /// Probability of the lower left quarter; the rest is the lower right's.
    pub c: f64,
    /// Whether each edge is added in the other direction too.
    pub mirrored: bool,
}

impl Rmat {
    /// Graph500 specification, section 3.1: A = 0.57, B = C = 0.19, and both directions of each edge.
    pub const fn graph500(scale: u32, degree: u32, seed: u64) -> Rmat {
        Rmat { scale, degree, seed, a: 0.57, b: 0.19, c: 0.19, mirrored: true }
    }

    /// Draws the edges and numbers the vertices at random, as Graph500 does, so that a number says nothing of a degree.
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

/// Levels that one random word serves: 16 bits each, so that a probability is exact to 8e-6.
const LEVELS: u32 = 4;

struct Draw {
    rng: Rng,
    scale: u32,
    /// Where quarters end, in 1/65536: a, a + b, a + b + c.
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

#[cfg(test)]
mod tests {
    use super::{Draw, Rmat};

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
}
