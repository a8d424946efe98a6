//! Graph programs of ZnG's Table II: kernels modelled on GraphBIG's `gpu_bench` (Nai et al., SC'15), with its element
//! sizes (rows and targets of 64 bits, properties of 32) and loops. They cover what GraphBIG times: the
//! initialisation of properties before it is not a kernel here, except for betweenness, which repeats it for each
//! source.
//!
//! Lanes of a step that write the same element do so one after another, so a vertex enters a worklist once. A
//! worklist has room for every vertex (GraphBIG's has 16 Mi entries whatever the graph). The short list that a thread
//! of a data-driven kernel keeps before it pushes is counted as arithmetic: it is in local memory, and stays in the
//! first-level cache.

mod betw;
mod bfs_atomic;
mod bfs_data;
mod bfs_frontier;
mod bfs_topo;
mod colour;
mod degree;
mod rank;
mod sssp;
mod sweep;
#[cfg(test)]
mod tests;

use super::{Built, Entry, Table};
use crate::{
    graph::{self, Graph, Keep, Listed, ReadOptions, Rmat, Values},
    program::{Code, Inputs, Key, Params, Program, Slots},
};
use betw::Betweenness;
use bfs_atomic::BfsAtomic;
use bfs_data::BfsData;
use bfs_frontier::BfsFrontier;
use bfs_topo::BfsTopo;
use colour::Colour;
use config::Diagnostic;
use degree::Degree;
use rank::Rank;
use sssp::Sssp;
use std::{path::Path, sync::Arc};

/// Value for unreached or uncoloured vertices: GraphBIG's `MY_INFINITY`.
const INFINITY: u32 = 0xffff_ff00;
/// Threads per block, GraphBIG's `maxThreadsPerBlock`.
const BLOCK: u32 = 1024;
/// Registers per thread: as `nvcc` allocates for kernels of this size, and few enough for all of a multiprocessor's
/// warps.
const REGISTERS: u32 = 24;

// Graph programs in the list, and their common parameters.

const fn key(name: &'static str, what: &'static str, default: &'static str) -> Key {
    Key { name, what, default }
}

const SCALE: Key = key("scale", "binary logarithm of the generated graph's vertices", "18");

const SCALE_SMALL: Key = key("scale", "binary logarithm of the generated graph's vertices", "16");

const DEGREE: Key = key("degree", "edges drawn per vertex; mirrored, and repeated ones dropped", "16");

const SEED: Key = key("seed", "seed of the generated graph and of what the program draws", "1");

// The milder of the skewed shapes of Çatalyürek et al., "Graph coloring algorithms for multi-core and massively
// multithreaded architectures" (Parallel Computing, 2012), RMAT-G: degrees are spread about as in the social network
// that GraphBIG generates. With Graph500's 0.57 and 0.19 a thread-centric kernel uses 6 % of its lanes.
const A: Key = key("a", "R-MAT: probability of the upper left quarter (Graph500: 0.57)", "0.45");

const B: Key =
    key("b", "R-MAT: probability of the upper right quarter, and of the lower left (Graph500: 0.19)", "0.15");

const MIRRORED: Key = key("mirrored", "whether each edge goes both ways: yes, no", "yes");

const GRAPH: Key = key("graph", "file to read instead of generating a graph", "");

const FORMAT: Key =
    key("format", "format of the file: snap, csv, metis, dimacs, mtx; default: from its name", "");

const ROOT: Key = key("root", "start vertex; default: the one with most edges", "");

const SOURCES: Key = key("sources", "number of vertices that paths are counted from, from the root on", "1");

// The number of kernels in Table II for the first program; the other visits far more edges per round.
const ROUNDS: Key = key("rounds", "maximum number of colours; 0: no limit", "8");

const FEW_ROUNDS: Key = key("rounds", "maximum number of colours; 0: no limit", "2");

const WEIGHT: Key = key("weight", "largest weight drawn for an edge of a graph without weights", "1");

const ITERATIONS: Key = key("iterations", "iterations", "2");

const SWEEP: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT];

const SMALL_SEARCH: &[Key] = &[SCALE_SMALL, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, ROOT];

const SEARCH: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, ROOT];

const BETW: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, ROOT, SOURCES];

const COLOUR: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, ROUNDS];

const COLOUR_BY_WARP: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, FEW_ROUNDS];

const PATHS: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, ROOT, WEIGHT];

const RANK: &[Key] = &[SCALE, DEGREE, SEED, A, B, MIRRORED, GRAPH, FORMAT, ITERATIONS];

type Build = fn(&Params, &mut Inputs) -> Built;

const fn entry(
    name: &'static str,
    what: &'static str,
    table: (f64, u32),
    keys: &'static [Key],
    build: Build,
) -> Entry {
    let table = Some(Table { read_ratio: table.0, kernels: table.1 });
    Entry { name, suite: "GraphBIG", what, table, keys, build }
}

/// The graph programs.
pub(in crate::program) const ENTRIES: &[Entry] = &[
    entry("betw", "betweenness centrality", (0.98, 11), BETW, betw),
    entry("bfs1", "breadth-first search, a thread for every vertex", (0.95, 7), SEARCH, |p, i| {
        search(p, i, |graph, root| BfsTopo::new("bfs1", graph, root, false))
    }),
    entry("bfs2", "breadth-first search, a warp for every vertex", (0.99, 9), SEARCH, |p, i| {
        search(p, i, |graph, root| BfsTopo::new("bfs2", graph, root, true))
    }),
    entry(
        "bfs3",
        "breadth-first search, frontier masks and two kernels a level",
        (0.88, 10),
        SEARCH,
        |p, i| search(p, i, BfsFrontier::new),
    ),
    entry(
        "bfs4",
        "breadth-first search, a thread for every vertex of a worklist",
        (0.97, 12),
        SEARCH,
        |p, i| search(p, i, |graph, root| BfsData::new("bfs4", graph, root, false)),
    ),
    entry(
        "bfs5",
        "breadth-first search, a warp for every vertex of a worklist",
        (0.99, 6),
        SEARCH,
        |p, i| search(p, i, |graph, root| BfsData::new("bfs5", graph, root, true)),
    ),
    entry(
        "bfs6",
        "breadth-first search, all edges each time with atomic minima",
        (0.97, 7),
        SMALL_SEARCH,
        |p, i| search(p, i, BfsAtomic::new),
    ),
    entry("gc1", "graph colouring, a thread for every vertex of a worklist", (0.98, 8), COLOUR, |p, i| {
        colour(p, i, false)
    }),
    entry(
        "gc2",
        "graph colouring, a warp for every vertex of a worklist",
        (0.99, 10),
        COLOUR_BY_WARP,
        |p, i| colour(p, i, true),
    ),
    entry("sssp3", "shortest paths, a thread for every vertex", (0.98, 8), PATHS, |p, i| {
        let most = p.integer("weight", 1..=65_535)? as u32;
        search_in(p, weighted(p, i, most)?, Sssp::new)
    }),
    entry("deg", "degree centrality", (1.0, 1), SWEEP, |p, i| boxed(Degree::new(input(p, i)?))),
    entry("pr", "PageRank, pulled along the edges in", (0.99, 53), RANK, |p, i| {
        let iterations = p.integer("iterations", 1..=10_000)? as u32;
        boxed(Rank::new(&input(p, i)?, iterations))
    }),
];

fn boxed<C: Code + 'static>(code: C) -> Built {
    let program: Box<dyn Program> = Box::new(Slots::new(code));
    Ok(program)
}

fn betw(params: &Params, inputs: &mut Inputs) -> Built {
    let graph = input(params, inputs)?;
    let root = root(params, &graph)?;
    let most = graph.vertices() as u64;
    let sources = params.integer("sources", 1..=most)? as u32;
    let each = (0..sources).map(|n| (root as u32 + n) % most as u32);
    boxed(Betweenness::new(graph, each.collect()))
}

fn colour(params: &Params, inputs: &mut Inputs, by_warp: bool) -> Built {
    let graph = input(params, inputs)?;
    let rounds = match params.integer("rounds", 0..=u64::from(INFINITY) - 1)? as u32 {
        0 => INFINITY,
        some => some,
    };
    let seed = params.integer("seed", 0..=u64::MAX)?;
    boxed(Colour::new(graph, seed, rounds, by_warp))
}

fn search<C: Code + 'static>(
    params: &Params,
    inputs: &mut Inputs,
    make: impl FnOnce(Arc<Graph>, usize) -> C,
) -> Built {
    search_in(params, input(params, inputs)?, make)
}

fn search_in<C: Code + 'static>(
    params: &Params,
    graph: Arc<Graph>,
    make: impl FnOnce(Arc<Graph>, usize) -> C,
) -> Built {
    let root = root(params, &graph)?;
    boxed(make(graph, root))
}

fn root(params: &Params, graph: &Graph) -> Result<usize, Diagnostic> {
    if params.text("root").is_some() {
        return Ok(params.integer("root", 0..=graph.vertices() as u64 - 1)? as usize);
    }
    // GraphBIG's default, vertex 0, is often isolated or in a small component.
    Ok(graph.hub().unwrap_or(0))
}

/// Returns the graph of a program that needs no weights.
fn input(params: &Params, inputs: &mut Inputs) -> Result<Arc<Graph>, Diagnostic> {
    input_with(params, inputs, Values::Ignored)
}

fn input_with(params: &Params, inputs: &mut Inputs, values: Values) -> Result<Arc<Graph>, Diagnostic> {
    let mut recipe = String::new();
    // A generated graph has no values: programs with and without weights share it.
    if params.text("graph").is_some() {
        recipe.push_str(&format!("{values:?},"));
    }
    for (key, value) in params.values() {
        if SWEEP.iter().any(|shared| shared.name == key.name) {
            recipe.push_str(&format!("{}={value},", key.name));
        }
    }
    inputs.graph(&recipe, |notes| make(params, values, notes))
}

/// Returns the program's graph with weights: those of the file, or drawn ones.
fn weighted(params: &Params, inputs: &mut Inputs, most: u32) -> Result<Arc<Graph>, Diagnostic> {
    let graph = input_with(params, inputs, Values::Weights)?;
    if graph.weights().is_some() || most == 1 {
        return Ok(graph);
    }
    let seed = params.integer("seed", 0..=u64::MAX)?;
    Ok(Arc::new(Graph::clone(&graph).weighted(seed, most)))
}

/// Describes a graph that was read: its size, and the dropped parts of the file.
fn told(path: &str, graph: &Graph, listed: &Listed, mirrored: bool) -> String {
    let ways = if mirrored { 2 } else { 1 };
    let (edges, listed_edges, loops) = (graph.edges() as u64, listed.edges, listed.loops);
    let repeated = ((listed_edges - loops) * ways).saturating_sub(edges);
    let both = if mirrored { ", each in both directions" } else { "" };
    format!(
        "the graph of {path} has {} vertices and {edges} edges: of {listed_edges} listed{both}, {loops} self-loops and {repeated} repeated ones are \
         dropped",
        graph.vertices()
    )
}

/// Describes the treatment of a file's values.
fn valued(path: &str, values: Values) -> String {
    match values {
        Values::Weights => format!("the values of the edges of {path} are their weights"),
        Values::Ignored => format!("the values of the edges of {path} are not used: this program needs none"),
    }
}

fn make(params: &Params, values: Values, notes: &mut Vec<String>) -> Result<Graph, Diagnostic> {
    let mirrored = params.word("mirrored", &[("yes", true), ("no", false)])?;
    if let Some(path) = params.text("graph") {
        let format = match params.text("format") {
            Some(_) => Some(params.word("format", &graph::Format::ALL)?),
            None => None,
        };
        let keep = if mirrored { Keep::Both } else { Keep::Simple };
        let options = ReadOptions { format, keep, values, ..ReadOptions::default() };
        let (graph, listed) = graph::read_counted(Path::new(path), &options)?;
        if graph.edges() == 0 {
            return Err(Diagnostic::new(format!("the graph of `{path}` has no edges")));
        }
        notes.push(told(path, &graph, &listed, mirrored));
        notes.extend(listed.valued.then(|| valued(path, values)));
        return Ok(graph);
    }
    let b = params.real("b", 0.0..=0.5)?;
    let a = params.real("a", 0.0..=1.0 - 2.0 * b)?;
    let rmat = Rmat {
        scale: params.integer("scale", 1..=24)? as u32,
        degree: params.integer("degree", 1..=64)? as u32,
        seed: params.integer("seed", 0..=u64::MAX)?,
        a,
        b,
        c: b,
        mirrored,
    };
    Ok(rmat.generate())
}
