//! Conversion of files from and to other tools: text in, text out. Configurations of MQSim and SimpleSSD become systems
//! and workloads, with a report on each setting; results of fio become result documents, and documents become results
//! of fio.
//!
//! The crate does not know the machine: the code that builds a machine from its output checks it.
//!
//! * Knows formats of MQSim, SimpleSSD and fio.
//! * Does not know the machine.
//! * Read first: `mqsim/mod.rs`.

pub mod fio;
pub mod mqsim;
mod notes;
mod setting;
pub mod simplessd;
mod spec;
mod xml;

pub use notes::{Imported, Told};
pub use setting::Class;
pub use spec::Key;
