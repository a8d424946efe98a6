//! Programs whose work depends on their data: what they do is known by executing them on it.
//!
//! A [`Kernel`](crate::Kernel) says of any part of it what that does; these say it of pieces that are fixed, while they execute: who [watches](Watch) hears each access to memory, and how often
//! each [body](Body) of a loop is passed. From that follow the same numbers: operations by kind, what caches miss, page groups. The arrays are the program's own; what stands in
//! variables costs nothing, as in a kernel.

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

/// An array: alone in its own addresses, which begin at zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Area {
    /// Its name.
    pub name: String,
    /// How many bytes it has, at least one.
    pub bytes: u64,
    /// Which data section it is.
    pub section: Section,
}

impl Area {
    fn new(name: &str, bytes: u64, section: Section) -> Area {
        Area { name: name.to_owned(), bytes: bytes.max(1), section }
    }
}

/// An operation that others wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Of an element.
    Load,
    /// Of an element, until a load sees it.
    Store,
    /// An addition.
    Add,
    /// A multiplication.
    Multiply,
    /// A comparison, a choice, or an operation on bits.
    Compare,
    /// A division.
    Divide,
    /// A square root.
    SquareRoot,
}

/// What is executed once an iteration of a loop, or where a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Body {
    /// What it does.
    pub about: &'static str,
    /// Its operations.
    pub own: Counts,
    /// The longest chain of operations, from the first to the last.
    pub chain: &'static [Operation],
    /// The chain of which an iteration needs the end before the next can begin its own.
    pub recurrence: &'static [Operation],
    /// Whether iterations follow one another with nothing between, so that they overlap.
    pub overlaps: bool,
}

/// Who watches a program.
pub trait Watch {
    /// A microblock begins: after the one before it has ended. Its pieces may run at once, or are one after another.
    fn microblock(&mut self, is_split: bool);
    /// A piece of it begins.
    fn piece(&mut self);
    /// A body is entered so often, and passed so often in all.
    fn body(&mut self, body: usize, entries: u64, passes: u64);
    /// An access to an array, by number, at a byte of its addresses.
    fn access(&mut self, array: usize, byte: u64, write: bool);
    /// Loads of bytes one after another: the same as an access each.
    fn loads(&mut self, array: usize, bytes: Range<u64>) {
        bytes.for_each(|byte| self.access(array, byte, false));
    }
}

/// A program that is executed on its data.
///
/// Contract: the same calls each time. Every microblock has a piece; what a piece's bodies count as loads and stores are its accesses.
pub trait Executed: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its arrays. Their numbers elsewhere are places in this list.
    fn arrays(&self) -> Vec<Area>;
    /// The bodies of its loops. Their numbers elsewhere are places in this list.
    fn bodies(&self) -> Vec<Body>;
    /// Executes it.
    fn execute(&self, watch: &mut dyn Watch);
}

/// Loads at a byte of an array.
fn load(watch: &mut dyn Watch, array: usize, byte: u64) {
    watch.access(array, byte, false);
}

/// Stores there.
fn store(watch: &mut dyn Watch, array: usize, byte: u64) {
    watch.access(array, byte, true);
}

// What a program does in all.

/// A program's microblocks and operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Microblocks.
    pub microblocks: u64,
    /// Those of them that are serial.
    pub serial: u64,
    /// Operations.
    pub counts: Counts,
}

impl Summary {
    /// Executes a program.
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

// The memory that a piece of a breadth-first search needs on a graph that is drawn, from the graph's size alone.
//
// Each node draws `half - 1` to `half + 1` partners, and edges lead both ways, so that a node has as many edges as it drew and a Poisson number of
// others. On such a graph the search is a branching process: with `x[t]` the probability that a node at the end of an edge has not been reached by
// level `t` in another way, `x[t + 1] = G1(x[t])`, where `G1` generates the number of a node's further edges (Newman, Strogatz and Watts, Physical
// Review E 64, 2001). An edge leads from a node of level `t` to a node that is found from there with probability `(x[t - 1] - x[t]) x[t]`.

/// Share of the expected page groups that a piece touches in any case: *chosen*. Searches on drawn graphs deviate by less than 0.3 %.
const SURE: f64 = 0.98;

/// Starts of the process between two levels: how far the last small level grows is a matter of chance.
const PHASES: u32 = 8;

/// Levels after which nothing is left to be found.
const LEVELS: usize = 64;

/// A node's edges on a graph of which each node draws `half` partners on average.
struct Degrees {
    half: i32,
}

impl Degrees {
    /// Generates the edges of a node.
    fn all(&self, x: f64) -> f64 {
        self.powers(x, 0) * self.others(x)
    }

    /// Generates the further edges of a node at the end of an edge: the derivative of the above, of which the value at 1 is the mean degree.
    fn further(&self, x: f64) -> f64 {
        let half = f64::from(self.half);
        (self.powers(x, 1) + half * self.powers(x, 0)) * self.others(x) / (2.0 * half)
    }

    /// The mean of `x^k`, or of its derivative, over what a node draws.
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

/// Page groups that marks at random touch in an array.
fn touched(bytes: f64, marks: f64, group: f64) -> f64 {
    let groups = bytes / group;
    if groups > 0.0 { -groups * libm::expm1(-marks / groups) } else { 0.0 }
}

/// Page groups of `group` bytes that the largest piece of a search touches at least on a graph of `nodes` nodes, of which each draws `half` partners on
/// average. Zero where a search may end at once, since a few nodes hang together: with fewer than three partners.
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
        // A share so small that all levels that follow are those of a larger graph, too.
        let first = 1.0 - 1e-6 * libm::pow(growth, f64::from(phase) / f64::from(PHASES));
        let (mut older, mut before, mut most) = (1.0, first, 0.0_f64);
        for _ in 0..LEVELS {
            let now = first * degrees.further(before);
            // The piece's nodes of this level, where their edges begin, and what these lead to.
            let here = block * (degrees.all(older) - degrees.all(before));
            let own = touched(8.0 * block, here, group)
                + touched(4.0 * edges, here, group)
                + (block / group).floor();
            // Each edge looks at a mark, and what is found there is marked and has its level.
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

    /// One at 1, with the mean degree as derivative; of the further edges one at 1.
    #[test]
    fn edges_are_those_of_the_drawing() {
        for half in [1, 2, 3, 8] {
            let degrees = Degrees { half };
            assert!((degrees.all(1.0) - 1.0).abs() < 1e-12 && (degrees.further(1.0) - 1.0).abs() < 1e-12);
            let slope = (degrees.all(1.0) - degrees.all(1.0 - 1e-6)) / 1e-6;
            assert!((slope - 2.0 * f64::from(half)).abs() < 1e-3, "{half}: {slope}");
        }
    }

    /// Two marks of a byte and a level of 4: where a piece has many more edges than these have page groups, it touches nearly all, 6 B a node. It has
    /// 16,384 nodes of its own, of 33 B with six edges each: 9 groups at most.
    #[test]
    fn a_piece_with_many_edges_touches_everything() {
        for (nodes, group) in [(16_000_000_u64, 65_536_u64), (1_000_000, 65_536)] {
            let all = 6.0 * nodes as f64 / group as f64;
            let found = groups(nodes, 3, group) as f64;
            assert!(found <= SURE * (all + 9.0) && found > 0.97 * all - 1.0, "{found} of {all}");
        }
        // Few groups leave nothing to chance.
        assert_eq!(groups(1_000_000, 2, 65_536), 0);
        assert_eq!(groups(100, 3, 64), 0);
    }
}
