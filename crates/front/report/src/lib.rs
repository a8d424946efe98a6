//! Results as pages: documents in, one HTML file out.
//!
//! A page is one file that loads nothing: data, script and style are in it. It draws what a document has, and names
//! missing data where it would appear; behind every picture is a table. The crate knows no components of a machine: a
//! result of last year draws as well as a fresh one.
//!
//! * Knows the result document, tables of sweeps, and rows of `reproduce`.
//! * Does not know the machine: it reads JSON and CSV alone.
//! * Read first: `page.rs`; then `run/`.

mod compare;
mod figure;
mod many;
mod number;
mod page;
mod pair;
mod read;
mod rows;
mod run;
mod sweep;
mod tornado;

pub use compare::{Comparison, Difference, Moved, compare};
pub use many::many;
pub use number::shown_as;
pub use pair::pair;
pub use read::{Run, SCHEMA, lifted};
pub use rows::rows;
pub use run::{Shipped, Wire, run, wires};
pub use sweep::{Column, Sweep, sweep};
pub use tornado::{Bar, tornado};
