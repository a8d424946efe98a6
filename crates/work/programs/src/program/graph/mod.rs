//! The graph programs of ZnG's Table II: kernels in the manner of GraphBIG's `gpu_bench` (Nai et al., SC'15), with its
//! element sizes (rows and targets of 64 bits, properties of 32) and loops. What runs is what GraphBIG times: the
//! initialisation of properties before it is no kernel here, except for betweenness, which repeats it for each source.
//!
//! Lanes of a step that write the same element do so one after another, so a vertex enters a worklist once. A worklist has
//! room for every vertex (GraphBIG's has 16 Mi entries whatever the graph). The short list that a thread of a data-driven
//! kernel keeps before it pushes is counted as arithmetic: it is local memory, and stays in the first-level cache.

mod betw;
mod bfs_atomic;
mod bfs_data;
mod bfs_frontier;
mod bfs_topo;
mod colour;
mod degree;
mod options;
mod rank;
mod sssp;
mod sweep;
#[cfg(test)]
mod tests;
mod worklist;

pub(super) use options::ENTRIES;

/// Not reached, or without a colour: GraphBIG's `MY_INFINITY`.
const INFINITY: u32 = 0xffff_ff00;
/// Threads a block, GraphBIG's `maxThreadsPerBlock`.
const BLOCK: u32 = 1024;
/// Registers a thread: what `nvcc` takes for kernels of this size, and few enough for all of a multiprocessor's warps.
const REGISTERS: u32 = 24;
