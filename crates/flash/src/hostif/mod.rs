//! How a host reaches the device.

pub mod nvme;
