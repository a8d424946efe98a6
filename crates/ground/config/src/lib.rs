//! Configuration: units in values, policy families, layered TOML that remembers the place of each value, and
//! diagnostics that name a remedy.
//!
//! * Knows the syntax of specs, `policies!`, JSON schemas with limits, inheritance, the catalogue of keys.
//! * Does not know any key. Types of keys stand with their components.
//! * Read first: `layer/mod.rs`, from files to one resolved spec; then `policies.rs`.

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
