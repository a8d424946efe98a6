//! Tests of `ssd` from outside, in one binary: a test is built and linked once.

mod allocation;
mod bench;
mod budget;
mod errors;
mod hazards;
mod slc;
mod soaked;
mod wear;
