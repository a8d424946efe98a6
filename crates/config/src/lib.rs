//! Configuration: units in values, policy families, layered TOML that remembers where each value stands, and
//! diagnostics a person can act on.

pub mod diag;

pub use diag::{Diagnostic, Place};
