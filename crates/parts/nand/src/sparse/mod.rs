//! Tables and sets that take memory for what was written to them alone.

mod chunks;
mod leaves;
mod table;

pub use table::{Bits, Table, length_ahead};
