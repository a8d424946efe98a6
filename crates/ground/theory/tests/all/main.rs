//! Tests of `theory` from outside, in one binary: a test is built and linked once.

mod monte_carlo;
