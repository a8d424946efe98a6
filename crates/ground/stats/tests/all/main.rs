//! Tests of `stats` from outside, in one binary: a test is built and linked once.

mod batch;
mod batched;
mod document;
mod draw;
mod histogram;
mod mser;
mod time;
