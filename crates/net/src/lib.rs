//! Links between parts.

mod rate;

pub mod mesh;
pub mod pcie;

pub use rate::Rate;
