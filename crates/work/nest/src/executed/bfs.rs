//! Breadth-first search, level by level (Rodinia's `bfs`, OpenMP), with marks for nodes to be visited and for nodes
//! found.

use super::{Area, Body, Executed, Operation, Watch, load, store};
use crate::counts::Counts;
use crate::kernel::Section;

/// Number of nodes per piece.
pub(super) const BLOCK: usize = 1 << 14;

// Arrays, in order: a node's first edge and its number of edges; targets of edges; marks of a byte each; levels.
const NODES: usize = 0;
const EDGES: usize = 1;
const MASK: usize = 2;
const FOUND: usize = 3;
const VISITED: usize = 4;
const LEVELS: usize = 5;

// Bodies, in order.
const BEGIN: usize = 0;
const SOURCE: usize = 1;
const LOOK: usize = 2;
const VISIT: usize = 3;
const EDGE: usize = 4;
const NEW: usize = 5;
const GATHER: usize = 6;
const MARK: usize = 7;

/// A graph and a start node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bfs {
    /// Start of each node's edges; last, the number of edges.
    offsets: Vec<u32>,
    edges: Vec<u32>,
    source: u32,
}

impl Bfs {
    /// Creates a search from a node. `offsets` has the start of each node's edges, and last the number of edges;
    /// `edges` has the target nodes.
    ///
    /// # Panics
    /// If offsets decrease or do not end with the number of edges, an edge has an invalid target, or the source is
    /// not a node.
    pub fn new(offsets: Vec<u32>, edges: Vec<u32>, source: u32) -> Bfs {
        let nodes = offsets.len().saturating_sub(1);
        let ends =
            offsets.first() == Some(&0) && offsets.last().is_some_and(|end| *end as usize == edges.len());
        assert!(ends && offsets.is_sorted(), "offsets from zero to the number of edges");
        assert!(edges.iter().chain([&source]).all(|node| (*node as usize) < nodes), "a node that there is");
        Bfs { offsets, edges, source }
    }

    /// Returns the minimum page groups of `group` bytes that the largest piece touches on a graph of `nodes` nodes.
    /// Each node draws `degree / 2` partners on average, one more or one less, with edges both ways. The graph is not
    /// needed.
    pub fn least_groups(nodes: u64, degree: u32, group: u64) -> u64 {
        super::groups(nodes, degree / 2, group)
    }

    fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns each node's distance from the source in edges; `-1` if it is unreachable.
    pub fn levels(&self, watch: &mut dyn Watch) -> Vec<i32> {
        let nodes = self.nodes();
        let mut levels = vec![-1; nodes];
        let (mut mask, mut found, mut visited) = (vec![false; nodes], vec![false; nodes], vec![false; nodes]);
        self.begin(watch);
        let source = self.source as usize;
        (levels[source], mask[source], visited[source]) = (0, true, true);
        let mut goes_on = true;
        while goes_on {
            watch.microblock(true);
            for first in (0..nodes).step_by(BLOCK) {
                watch.piece();
                let below = (first + BLOCK).min(nodes);
                watch.body(LOOK, 1, (below - first) as u64);
                for (node, mark) in mask.iter_mut().enumerate().take(below).skip(first) {
                    load(watch, MASK, node as u64);
                    if std::mem::take(mark) {
                        self.visit(node, &visited, &mut found, &mut levels, watch);
                    }
                }
            }
            goes_on = false;
            watch.microblock(true);
            for first in (0..nodes).step_by(BLOCK) {
                watch.piece();
                let below = (first + BLOCK).min(nodes);
                watch.body(GATHER, 1, (below - first) as u64);
                for node in first..below {
                    load(watch, FOUND, node as u64);
                    if std::mem::take(&mut found[node]) {
                        watch.body(MARK, 1, 1);
                        [MASK, VISITED, FOUND].into_iter().for_each(|array| store(watch, array, node as u64));
                        (mask[node], visited[node], goes_on) = (true, true, true);
                    }
                }
            }
        }
        levels
    }

    /// Initialises, serially: nothing is marked, no node but the source has a level.
    fn begin(&self, watch: &mut dyn Watch) {
        watch.microblock(false);
        for first in (0..self.nodes()).step_by(BLOCK) {
            watch.piece();
            let below = (first + BLOCK).min(self.nodes());
            watch.body(BEGIN, 1, (below - first) as u64);
            for node in first as u64..below as u64 {
                [MASK, FOUND, VISITED].into_iter().for_each(|array| store(watch, array, node));
                store(watch, LEVELS, 4 * node);
            }
        }
        watch.body(SOURCE, 1, 1);
        let source = u64::from(self.source);
        [MASK, VISITED].into_iter().for_each(|array| store(watch, array, source));
        store(watch, LEVELS, 4 * source);
    }

    /// Visits a node of this level: its unvisited neighbours are in the next level.
    fn visit(
        &self,
        node: usize,
        visited: &[bool],
        found: &mut [bool],
        levels: &mut [i32],
        watch: &mut dyn Watch,
    ) {
        watch.body(VISIT, 1, 1);
        store(watch, MASK, node as u64);
        load(watch, NODES, 8 * node as u64);
        load(watch, NODES, 8 * node as u64 + 4);
        let range = self.offsets[node] as usize..self.offsets[node + 1] as usize;
        if !range.is_empty() {
            watch.body(EDGE, 1, range.len() as u64);
        }
        for edge in range {
            let next = self.edges[edge] as usize;
            load(watch, EDGES, 4 * edge as u64);
            load(watch, VISITED, next as u64);
            if !visited[next] {
                watch.body(NEW, 1, 1);
                load(watch, LEVELS, 4 * node as u64);
                store(watch, LEVELS, 4 * next as u64);
                store(watch, FOUND, next as u64);
                levels[next] = levels[node] + 1;
                found[next] = true;
            }
        }
    }
}

impl Executed for Bfs {
    fn name(&self) -> &'static str {
        "bfs"
    }

    fn arrays(&self) -> Vec<Area> {
        let nodes = self.nodes() as u64;
        vec![
            Area::new("nodes", 8 * nodes, Section::Input),
            Area::new("edges", 4 * self.edges.len() as u64, Section::Input),
            Area::new("mask", nodes, Section::Scratch),
            Area::new("found", nodes, Section::Scratch),
            Area::new("visited", nodes, Section::Scratch),
            Area::new("levels", 4 * nodes, Section::Output),
        ]
    }

    fn bodies(&self) -> Vec<Body> {
        use Operation::{Add, Compare, Load, Store};
        let none = Counts::default();
        let body = |about, own, chain, overlaps| Body { about, own, chain, recurrence: &[], overlaps };
        vec![
            body("nothing is marked", Counts { stores: 4, iterations: 1, ..none }, &[Store], true),
            body("the source", Counts { stores: 3, ..none }, &[Store], false),
            body(
                "is it marked",
                Counts { loads: 1, compares: 1, iterations: 1, ..none },
                &[Load, Compare],
                true,
            ),
            body("its edges", Counts { loads: 2, stores: 1, adds: 1, ..none }, &[Load, Add], false),
            body(
                "was its end visited",
                Counts { loads: 2, compares: 1, iterations: 1, ..none },
                &[Load, Load, Compare],
                true,
            ),
            body("it is found", Counts { loads: 1, adds: 1, stores: 2, ..none }, &[Load, Add, Store], false),
            body(
                "was it found",
                Counts { loads: 1, compares: 1, iterations: 1, ..none },
                &[Load, Compare],
                true,
            ),
            body("it is marked", Counts { stores: 3, ..none }, &[Store], false),
        ]
    }

    fn execute(&self, watch: &mut dyn Watch) {
        self.levels(watch);
    }
}
