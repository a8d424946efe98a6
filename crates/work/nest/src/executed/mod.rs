//! Programs whose work depends on their data: it is determined by executing them on it.
//!
//! A [`Kernel`](crate::Kernel) gives the work of any part of it; these programs give that of fixed pieces while they
//! execute. A [watcher](Watch) receives each access to memory, and how often each [body](Body) of a loop is passed.
//! From this follow the same numbers: operations by kind, cache misses, page groups. The arrays are the program's
//! own; variables cost nothing, as in a kernel.

mod bfs;
mod nn;
mod wc;

pub use bfs::Bfs;
pub use nn::Nn;
pub use wc::{Count, Wc};

use crate::counts::Counts;
use crate::kernel::Section;
use bfs::BLOCK;
use std::ops::Range;

/// An array, in a separate address space that begins at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Name of the array.
    pub name: String,
    /// Number of bytes, at least one.
    pub bytes: u64,
    /// Data section.
    pub section: Section,
}

impl Area {
    fn new(name: &str, bytes: u64, section: Section) -> Area {
        Area { name: name.to_owned(), bytes: bytes.max(1), section }
    }
}

/// An operation on which others depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Load of an element.
    Load,
    /// Store of an element, until a load sees it.
    Store,
    /// Addition.
    Add,
    /// Multiplication.
    Multiply,
    /// Comparison, choice, or operation on bits.
    Compare,
    /// Division.
    Divide,
    /// Square root.
    SquareRoot,
}

/// Code executed once per iteration of a loop, or where a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// Description.
    pub about: &'static str,
    /// Operations.
    pub own: Counts,
    /// Longest chain of operations, from the first to the last.
    pub chain: &'static [Operation],
    /// Chain that must end in one iteration before it can begin in the next.
    pub recurrence: &'static [Operation],
    /// True if iterations follow one another directly, so that they overlap.
    pub overlaps: bool,
}

/// Watcher of a program.
pub trait Watch {
    /// Reports that a microblock begins, after the previous one has ended. Its pieces may run at once, or run one
    /// after another.
    fn microblock(&mut self, is_split: bool);
    /// Reports that a piece of the microblock begins.
    fn piece(&mut self);
    /// Reports how often a body is entered, and how often it is passed in total.
    fn body(&mut self, body: usize, entries: u64, passes: u64);
    /// Reports an access to an array, by number, at a byte offset.
    fn access(&mut self, array: usize, byte: u64, write: bool);
    /// Reports loads of consecutive bytes, equivalent to one access each.
    fn loads(&mut self, array: usize, bytes: Range<u64>) {
        bytes.for_each(|byte| self.access(array, byte, false));
    }
}

/// Program that is executed on its data.
///
/// Contract: the calls are the same each time. Every microblock has a piece; the loads and stores counted for a
/// piece's bodies are its accesses.
pub trait Executed: Send + Sync {
    /// Returns the name.
    fn name(&self) -> &'static str;
    /// Returns the arrays. Their numbers elsewhere are indices into this list.
    fn arrays(&self) -> Vec<Area>;
    /// Returns the bodies of its loops. Their numbers elsewhere are indices into this list.
    fn bodies(&self) -> Vec<Body>;
    /// Executes the program.
    fn execute(&self, watch: &mut dyn Watch);
}

/// Reports a load at a byte of an array.
fn load(watch: &mut dyn Watch, array: usize, byte: u64) {
    watch.access(array, byte, false);
}

/// Reports a store at a byte of an array.
fn store(watch: &mut dyn Watch, array: usize, byte: u64) {
    watch.access(array, byte, true);
}

// Totals of a program.

/// Microblocks and operations of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of microblocks.
    pub microblocks: u64,
    /// Number of serial microblocks.
    pub serial: u64,
    /// Operations.
    pub counts: Counts,
}

impl Summary {
    /// Executes a program and sums up its work.
    pub fn of(program: &dyn Executed) -> Summary {
        let mut listener = Listener { bodies: program.bodies(), summary: Summary::default() };
        program.execute(&mut listener);
        listener.summary
    }
}

struct Listener {
    bodies: Vec<Body>,
    summary: Summary,
}

impl Watch for Listener {
    fn microblock(&mut self, is_split: bool) {
        self.summary.microblocks += 1;
        self.summary.serial += u64::from(!is_split);
    }

    fn piece(&mut self) {}

    fn body(&mut self, body: usize, _: u64, passes: u64) {
        self.summary.counts += self.bodies[body].own.times(passes);
    }

    fn access(&mut self, _: usize, _: u64, _: bool) {}
}

// Memory that a piece of a breadth-first search needs on a generated graph, from the graph's size alone.
//
// Each node draws `half - 1` to `half + 1` partners, and edges lead both ways, so a node has the edges it drew and a
// Poisson number of others. On such a graph the search is a branching process. Let `x[t]` be the probability that a
// node at the end of an edge has not been reached by level `t` in a different way. Then `x[t + 1] = G1(x[t])`, where
// `G1` generates the number of a node's further edges (Newman, Strogatz and Watts, Physical Review E 64, 2001). An
// edge from a node of level `t` leads to a node that is found through it with probability `(x[t - 1] - x[t]) x[t]`.

/// Share of the expected page groups that a piece touches in any case: *chosen*. Searches on generated graphs deviate
/// by less than 0.3 %.
const SURE: f64 = 0.98;

/// Number of phases between two levels: how far the last small level grows is random.
const PHASES: u32 = 8;

/// Number of levels after which nothing is left to be found.
const LEVELS: usize = 64;

/// Degree distribution of a graph in which each node draws `half` partners on average.
struct Degrees {
    half: i32,
}

impl Degrees {
    /// Generating function of a node's edges.
    fn all(&self, x: f64) -> f64 {
        self.powers(x, 0) * self.others(x)
    }

    /// Generating function of the further edges of a node at the end of an edge: the derivative of the above, whose
    /// value at 1 is the mean degree.
    fn further(&self, x: f64) -> f64 {
        let half = f64::from(self.half);
        (self.powers(x, 1) + half * self.powers(x, 0)) * self.others(x) / (2.0 * half)
    }

    /// Returns the mean of `x^k`, or of its derivative, over the partners that a node draws.
    fn powers(&self, x: f64, derivative: i32) -> f64 {
        let power =
            |k: i32| if derivative == 0 { powi(x, k) } else { f64::from(k) * powi(x, (k - 1).max(0)) };
        (self.half - 1..=self.half + 1).map(power).sum::<f64>() / 3.0
    }

    fn others(&self, x: f64) -> f64 {
        libm::exp(f64::from(self.half) * (x - 1.0))
    }
}

fn powi(x: f64, k: i32) -> f64 {
    libm::pow(x, f64::from(k))
}

/// Returns the page groups that random marks touch in an array.
fn touched(bytes: f64, marks: f64, group: f64) -> f64 {
    let groups = bytes / group;
    if groups > 0.0 { -groups * libm::expm1(-marks / groups) } else { 0.0 }
}

/// Returns the minimum page groups of `group` bytes that the largest piece of a search touches on a graph of `nodes`
/// nodes, each of which draws `half` partners on average. Zero with fewer than three partners: few nodes are
/// connected, so a search may end at once.
fn groups(nodes: u64, half: u32, group: u64) -> u64 {
    if half < 3 || nodes < BLOCK as u64 {
        return 0;
    }
    let degrees = Degrees { half: half as i32 };
    let (nodes, group) = (nodes as f64, group as f64);
    let block = BLOCK as f64;
    let edges = block * 2.0 * f64::from(half);
    let growth = (degrees.further(1.0) - degrees.further(1.0 - 1e-6)) / 1e-6;
    let largest = |phase: u32| {
        // A share so small that all levels that follow are also those of a larger graph.
        let first = 1.0 - 1e-6 * libm::pow(growth, f64::from(phase) / f64::from(PHASES));
        let (mut older, mut before, mut most) = (1.0, first, 0.0_f64);
        for _ in 0..LEVELS {
            let now = first * degrees.further(before);
            // The piece's nodes of this level, the starts of their edges, and the targets.
            let here = block * (degrees.all(older) - degrees.all(before));
            let own = touched(8.0 * block, here, group)
                + touched(4.0 * edges, here, group)
                + (block / group).floor();
            // Each edge checks a mark; a node found there is marked and gets its level.
            let looks = edges * (before - now);
            let finds = looks * now;
            let marks = touched(nodes, looks, group) + touched(nodes, finds, group);
            most = most.max(marks + touched(4.0 * nodes, finds, group) + own);
            (older, before) = (before, now);
        }
        most
    };
    let least = (0..PHASES).map(largest).fold(f64::INFINITY, f64::min);
    (SURE * least) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the function is one at 1, with the mean degree as derivative, and that the one of further edges is
    /// one at 1.
    #[test]
    fn edges_are_those_of_the_drawing() {
        for half in [1, 2, 3, 8] {
            let degrees = Degrees { half };
            assert!((degrees.all(1.0) - 1.0).abs() < 1e-12 && (degrees.further(1.0) - 1.0).abs() < 1e-12);
            let slope = (degrees.all(1.0) - degrees.all(1.0 - 1e-6)) / 1e-6;
            assert!((slope - 2.0 * f64::from(half)).abs() < 1e-3, "{half}: {slope}");
        }
    }

    /// Marks have a byte and levels 4 bytes: a piece with many more edges than page groups touches nearly all of
    /// them, 6 B per node. It has 16,384 nodes of 33 B with six edges each: at most 9 groups.
    #[test]
    fn a_piece_with_many_edges_touches_everything() {
        for (nodes, group) in [(16_000_000_u64, 65_536_u64), (1_000_000, 65_536)] {
            let all = 6.0 * nodes as f64 / group as f64;
            let found = groups(nodes, 3, group) as f64;
            assert!(found <= SURE * (all + 9.0) && found > 0.97 * all - 1.0, "{found} of {all}");
        }
        // Few groups are too few for randomness to matter.
        assert_eq!(groups(1_000_000, 2, 65_536), 0);
        assert_eq!(groups(100, 3, 64), 0);
    }
}
