//! Links between parts.

mod rate;

pub mod energy;
pub mod fabric;
pub mod mesh;
pub mod noc;
pub mod pcie;
pub mod sata;

pub use rate::Rate;
