//! Tests of `sampling` from outside, in one binary: a test is built and linked once.

mod coverage;
mod formats;
mod support;
