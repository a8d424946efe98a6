//! Files of other tools as nandscape says them, and its results as another tool says them: text in, text out. Configurations of MQSim and of SimpleSSD become
//! systems and workloads, each setting with what became of it; results of fio become result documents, and documents results of fio.
//!
//! Knows no machine: what is written here is checked by whoever builds one from it.
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
