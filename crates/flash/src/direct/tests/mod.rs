//! Flash as memory from outside.

mod cached;
mod random;
mod reads;
mod reclaim;
mod specs;
mod writes;
