//! Dense linear algebra, stencils and particles: backprop, gaussian, hotspot and lavaMD after Rodinia, FDTD-2D and
//! Gram-Schmidt after PolyBench.
//!
//! Loops, block shapes and element sizes are those of the public CUDA sources (Rodinia 3.1; PolyBench/ACC). Each runs a
//! *window* of its application: the launches from the beginning up to a number that a key sets. The inputs are made so
//! that results can be compared: those of the sources are rank one, or contain zero columns.

mod backprop;
mod data;
mod fdtd;
mod gaussian;
mod gramschmidt;
mod hotspot;
mod lavamd;

#[cfg(test)]
mod tests;

use crate::program::Entry;

pub(super) use gaussian::divide;
pub(super) use gramschmidt::root;

/// All of them.
pub(super) const ENTRIES: &[Entry] =
    &[backprop::ENTRY, gaussian::ENTRY, fdtd::ENTRY, gramschmidt::ENTRY, hotspot::ENTRY, lavamd::ENTRY];
