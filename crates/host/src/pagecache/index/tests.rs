//! Tests of the trees.
