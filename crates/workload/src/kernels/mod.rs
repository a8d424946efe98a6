//! Kernels of an accelerator: programs as loop nests, a user's own, and mixes of them.
//!
//! What one text names is one or more applications: instances of a kernel that a host offloads one after another. Instances of a
//! kernel share what they only read; those of two texts too, if the kernels are the same.

// A diagnostic is returned once in the life of a program: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod list;
pub mod mixes;
mod options;
#[cfg(test)]
mod tests;

pub use list::{Entry, entries, explained, names, open};

use nest::Kernel;

/// Instances of a kernel, offloaded one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// What each instance executes.
    pub kernel: Kernel,
    /// How many there are.
    pub instances: u32,
}
