//! Links between components.
//!
//! * Knows PCIe and SATA links, the network on a GPU's chip (crossbar, ring), meshes; their bandwidth, latency, queues and energy.
//! * Does not know the payload of a transfer, and its ends.
//! * Read first: `pcie.rs`; then `noc/`.

mod rate;

pub mod energy;
pub mod fabric;
pub mod mesh;
pub mod noc;
pub mod pcie;
pub mod sata;

pub use rate::Rate;
