//! Recorded instruction traces of GPUs as programs: Accel-Sim's (SASS as NVBit sees it) and MacSim's (NVBit).
//!
//! A trace is read once, whole, and every fault in it is found then; its instructions are held in a few bytes each, so that
//! running it reads no file. Addresses of the device are moved into a space from zero up, page by page.
//!
//! What a trace does not say, or says in a way that must be known:
//! * Registers: SASS's R0 to R254 are registers, R255 and predicates are none. Only the first register of a pair or
//!   quadruple is named.
//! * An instruction whose lanes are all predicated off takes its turn as arithmetic.
//! * Constant memory is arithmetic; texture, surface and bulk-copy instructions are refused.
//! * `BAR.ARV` does not wait. All barriers of a block are one.
//! * Accel-Sim's generic `LD`/`ST` are told apart by address: the windows that the head of the kernel file names.

// A diagnostic is returned once in the life of a trace: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod accelsim;
mod builder;
mod code;
mod detect;
mod macsim;
mod opcode;
mod program;
mod space;

#[cfg(test)]
mod tests;

pub use detect::{is_gpu_trace, open};

pub(crate) use detect::is_text as is_gpu_text;
