//! Tests of `ssd` from outside, in one binary: a test is built and linked once.

mod allocation;
mod bench;
mod budget;
mod hazards;
mod parity;
mod slc;
mod soaked;
mod wear;
