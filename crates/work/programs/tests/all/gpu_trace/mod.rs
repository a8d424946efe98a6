//! Recorded instruction traces of GPUs.

// A diagnostic ends a test: its size costs nothing.
#![allow(clippy::result_large_err)]

mod accelsim;
mod macsim;
mod samples;
mod support;
