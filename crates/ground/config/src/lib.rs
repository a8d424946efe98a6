//! Configuration: units in values, policy families, layered TOML that remembers the place of each value, and
//! diagnostics that name a remedy.
//!
//! * Knows the syntax of specs, `policies!`, JSON schemas with limits, inheritance, the catalogue of keys.
//! * Does not know any key. Types of keys stand with their components.
//! * Read first: `layer/mod.rs`, from files to one resolved spec; then `policies.rs`.

pub mod catalogue;
pub mod diag;
pub mod layer;
mod policies;
pub mod policy;
pub mod schema;
mod sleep;
pub mod synonym;
pub mod units;

pub use diag::{Diagnostic, Place, plain, read_text};
pub use layer::{Layers, Pieces, Presets, Resolved};
pub use schema::SpecError;
pub use sleep::SleepSpec;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Power;

// Powers that specs of several parts name alike.

/// What something takes that is at work or not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatePower {
    /// Power while there is nothing to do.
    pub idle: Power,
    /// Power at work, the idle power included.
    pub busy: Power,
}
