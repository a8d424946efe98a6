//! Tests of read-ahead.
