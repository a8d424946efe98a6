//! Ports: who asks for what lies on flash, in which protocol. They know no media and no controller.
//!
//! [`host`] is the port of a drive, with its [`cores`], whose times may vary, and which may have some [`upkeep`] left to do. How its commands come in is an [`interface`], a link with its protocol, one file each:
//! [`nvme`], [`ahci`], [`memory_port`]; its link may sleep between commands. In front of one stand [`engine`] and [`initiator`], which answer the memory protocol with
//! block commands.

pub mod ahci;
pub mod cores;
pub mod engine;
pub mod host;
pub mod initiator;
pub mod interface;
pub mod memory_port;
pub mod nvme;
pub mod upkeep;
