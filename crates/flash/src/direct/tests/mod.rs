//! Flash as memory from outside.

mod random;
mod reads;
mod reclaim;
mod specs;
mod writes;
