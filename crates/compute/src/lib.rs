//! Processors.
