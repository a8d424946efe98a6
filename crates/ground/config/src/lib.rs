//! Configuration: units in values, policy families, layered TOML that remembers where each value stands, and
//! diagnostics a person can act on.

pub mod catalogue;
pub mod diag;
pub mod energy;
pub mod layer;
mod policies;
pub mod policy;
mod quote;
pub mod schema;
mod sleep;
mod spec_error;
pub mod synonym;
mod text;
pub mod units;

pub use diag::{Diagnostic, Place};
pub use layer::{Layers, Pieces, Presets, Resolved};
pub use quote::plain;
pub use sleep::SleepSpec;
pub use spec_error::SpecError;
pub use text::read_text;
