//! Arithmetic against the paper's numbers, worked examples of the log, and any run against a naive model.

mod geometry;
mod log;
mod reclaim;
mod rig;
mod shadow;
mod specs;
