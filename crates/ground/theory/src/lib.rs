//! Closed forms and fixed points that simulated figures are checked against.
//!
//! Pure functions, each with its source and its assumptions.
//!
//! * Knows queues, write amplification, tiers of memory, special functions.
//! * Does not know the simulator: it shares no code with the crates that it checks, and no simulated event depends on its last bit.
//! * Read first: `wa/mod.rs`, write amplification; then `queue/`.
#![allow(clippy::disallowed_methods, reason = "report-only mathematics: the last bit decides nothing")]

pub mod fit;
pub mod flash;
pub mod queue;
mod solve;
pub mod tiered;
pub mod wa;

pub use fit::{lambert_w0, ln_gamma, regularized_gamma_q};
