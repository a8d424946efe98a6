//! Links between parts.

mod rate;
mod spec;

pub mod crossbar;
pub mod fabric;
pub mod mesh;
pub mod pcie;

pub use rate::Rate;
pub use spec::CrossbarSpec;
