//! Block traces, from bytes to requests.

// A diagnostic ends a test: its size costs nothing.
#![allow(clippy::result_large_err)]

mod bad_input;
mod convert;
mod data;
mod detection;
mod formats;
mod headers;
mod more_formats;
mod packing;
mod properties;
mod replay;
mod support;
mod together;
