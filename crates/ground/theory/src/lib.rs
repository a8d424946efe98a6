//! Closed forms and fixed points that simulated figures are checked against.
//!
//! Pure functions, each with its source and its assumptions. They are used in tests, reports and to draw an
//! analytic steady state; no simulated event depends on their last bit.
#![allow(clippy::disallowed_methods, reason = "report-only mathematics: the last bit decides nothing")]

pub mod fit;
pub mod flash;
pub mod queue;
mod solve;
mod special;
pub mod tiered;
pub mod wa;

pub use special::{lambert_w0, ln_gamma, regularized_gamma_q};
