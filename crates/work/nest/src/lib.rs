//! Kernels as loop nests: data from which counts of operations, footprints, accesses and results follow.
//!
//! A [`Kernel`] is read from a TOML text ([`Kernel::read`]; `docs/kernels.md` has the language). It is a list of microblocks that run one after
//! another; a [`Microblock`] is loops and statements over arrays, all bounds and subscripts sums of loop variables. The iterations
//! of its split loop are dealt out as screens ([`Kernel::screens`]), and a screen is executed section by section
//! ([`Kernel::sections`]). Each of these is a [`Piece`], of which
//!
//! * [`Kernel::counts`] says how many operations it executes, in closed form,
//! * [`Kernel::footprint`] which bytes of which arrays it touches,
//! * [`Kernel::accesses`] which elements, one by one, in their true order,
//! * [`Kernel::execute_piece`] what comes out.
//!
//! A [`Grid`] deals a microblock out to threads instead, and [`Lanes`] go through it 32 threads at a time, as a GPU's do.
//!
//! Nothing is said twice: all of them read the same loops. Programs whose work depends on their data are [executed] on it and watched.
//!
//! * Knows loops, arrays, and closed forms of their accesses.
//! * Does not know processors or time.
//! * Read first: `kernel.rs`.

mod affine;
mod axis;
mod counts;
mod domain;
mod execute;
pub mod executed;
mod footprint;
mod kernel;
mod lockstep;
mod microblock;
mod piece;
mod polynomial;
mod programs;
mod read;
mod registers;
mod sections;
mod walk;

pub use affine::{Affine, DEPTH, Point};
pub use axis::Axis;
pub use counts::{Counts, OPERATIONS_OF_AN_ITERATION};
pub use execute::Data;
pub use footprint::{Extent, Footprint};
pub use kernel::{Array, Element, Kernel, Paper, Section};
pub use lockstep::{Grid, LANES, Lanes, Passed, Span};
pub use microblock::{Binary, Dependence, Loop, Microblock, Node, Reference, Split, Statement, Term, Unary};
pub use piece::Piece;
pub use programs::{programs, programs_of_gpus};
pub use registers::Held;
pub use sections::Sections;
pub use walk::Access;
