//! SimpleSSD.
