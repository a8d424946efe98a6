//! Kernels as loop nests: data from which operation counts, footprints, accesses and results follow.
//!
//! * Knows loops, arrays, and closed forms of their accesses.
//! * Does not know processors or time.
//! * Read first: `kernel.rs`.
//!
//! A [`Kernel`] is read from a TOML text ([`Kernel::read`]; `docs/kernels.md` has the language). It is a list of
//! microblocks that run one after another; a [`Microblock`] consists of loops and statements over arrays, with all
//! bounds and subscripts sums of loop variables. The iterations of its split loop are distributed as screens
//! ([`Kernel::screens`]), and a screen is executed section by section ([`Kernel::sections`]). Each of these is a
//! [`Piece`], for which
//!
//! * [`Kernel::counts`] returns its operations, in closed form,
//! * [`Kernel::footprint`] its touched bytes of each array,
//! * [`Kernel::accesses`] its accesses, one by one, in sequential order,
//! * [`Kernel::execute_piece`] its results.
//!
//! A [`Grid`] distributes a microblock to threads instead, and [`Lanes`] execute it 32 threads at a time, like a GPU.
//!
//! All of them read the same loops. Programs whose work depends on their data are [executed] on it and watched.

mod counts;
mod domain;
mod execute;
pub mod executed;
mod footprint;
mod kernel;
mod lockstep;
mod piece;
mod programs;
mod read;

pub use counts::{Counts, Held, OPERATIONS_OF_AN_ITERATION};
pub use domain::{Affine, DEPTH, Point};
pub use execute::{Access, Data};
pub use footprint::{Extent, Footprint, Sections};
pub use kernel::{
    Array, Binary, Dependence, Element, Kernel, Loop, Microblock, Node, Paper, Reference, Section, Split,
    Statement, Term, Unary,
};
pub use lockstep::{Axis, Grid, LANES, Lanes, Passed, Span};
pub use piece::Piece;
pub use programs::{programs, programs_of_gpus};
