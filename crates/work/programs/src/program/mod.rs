//! Programs of a GPU, executed on their data while the machine asks for their instructions.
//!
//! An application is arrays in a virtual address space of its own ([`Space`]) and kernels that host logic launches one
//! after another ([`Code`]). A warp's step executes about one iteration of its loop on the data and writes the
//! instructions of that iteration ([`Emit`]), so that addresses, divergence and loop counts come from the data.
//! [`Slots`] keeps the warps, [`Apps`] runs several applications side by side as [`proto::simt::Programs`],
//! [`open`] finds them by name, and [`census`] counts what one does without a machine.

// A diagnostic is returned once in the life of a program: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod apps;
mod census;
mod code;
mod dense;
mod dnn;
mod emit;
mod graph;
mod input;
mod list;
mod nest;
mod params;
mod space;

pub use apps::Apps;
pub use census::{Census, Requests, census, census_within};
pub use code::{Code, Kernel, Program, Slots, WarpAt};
pub(crate) use dnn::is_onnx;
pub use dnn::{Launches, launches};
pub use emit::{Emit, cost};
pub use input::Inputs;
pub use list::{Built, Entry, Table, entries, of_kernels, open};
pub use params::{Key, Params};
pub use space::{Allocation, Array, Space};
