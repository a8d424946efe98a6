//! Tables and sets that take memory for what was written to them alone.

mod chunks;
mod leaves;
mod table;
mod zeroed;

pub use table::length_ahead;
pub use table::{Bits, Table};
