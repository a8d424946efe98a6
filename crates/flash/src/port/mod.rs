//! Ports: who asks for what lies on flash, in which protocol. They know no media and no controller.
//!
//! [`host`] is the port of a drive, with [`nvme`] queues and [`cores`]. In front of one stand [`engine`] and [`initiator`], which answer
//! the memory protocol with block commands.

pub mod cores;
pub mod engine;
pub mod host;
pub mod initiator;
pub mod nvme;
