//! Programs whose work depends on their data: what they do is known by executing them on it.
//!
//! A [`Kernel`](crate::Kernel) says of any part of it what that does; these say it of pieces that are fixed, while they execute: who [watches](Watch) hears each access to memory, and how often
//! each [body](Body) of a loop is passed. From that follow the same numbers: operations by kind, what caches miss, page groups. The arrays are the program's own; what stands in
//! variables costs nothing, as in a kernel.

mod bfs;
mod drawn;
mod nn;
mod summary;
mod wc;

pub use bfs::Bfs;
pub use nn::Nn;
pub use summary::Summary;
pub use wc::{Count, Wc};

use crate::counts::Counts;
use crate::kernel::Section;
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
