//! Flash as memory from outside.

mod cached;
mod energy;
mod random;
mod reads;
mod reclaim;
mod specs;
mod writes;
