//! Links between parts.

mod rate;

pub mod pcie;

pub use rate::Rate;
