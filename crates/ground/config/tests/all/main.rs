//! Tests of `config` from outside, in one binary: a test is built and linked once.

mod demo;
mod layers;
mod policies;
mod units;
