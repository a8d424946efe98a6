//! Ports: requesters of data on flash, and their protocols. They do not know media or controllers.
//!
//! [`host`] is the port of a drive, with its [`cores`], whose times may vary, and which may have some [`upkeep`] left
//! to do. Commands arrive by an [`interface`], a link with its protocol, one file each: [`nvme`], [`ahci`],
//! [`memory_port`]; its link may sleep between commands. [`engine`] and [`initiator`] stand in front of one, and answer
//! the memory protocol with block commands.

pub mod ahci;
pub mod cores;
pub mod engine;
pub mod host;
pub mod initiator;
pub mod interface;
pub mod memory_port;
pub mod nvme;
pub mod upkeep;
