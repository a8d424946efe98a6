//! Tests of `programs` from outside, in one binary: a test is built and linked once.

mod gpu_trace;
mod graphs;
mod programs;
