//! Graphs: compressed sparse rows, readers of the usual file formats, and a seeded generator.

// A diagnostic is returned once in the life of a graph: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod csr;
mod read;
mod rmat;

pub use csr::{Edges, Graph, Keep};
pub use read::{Format, Listed, Order, ReadOptions, Values, read, read_counted, read_from};
pub use rmat::Rmat;
