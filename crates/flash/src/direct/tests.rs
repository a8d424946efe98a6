//! Flash as memory from outside.
