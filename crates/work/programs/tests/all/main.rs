//! Tests of `programs` from outside, in one binary: a test is built and linked once.

mod detection;
mod gpu_trace;
mod graphs;
mod kernel_sizes;
mod program_list;
mod program_slots;
