//! Processors: multiprocessors of a GPU (`simt`), out-of-order cores of a server (`ooo`), VLIW cores of an accelerator (`vliw`).
//!
//! * Knows instructions, warps, windows, first-level caches, dispatch of blocks, scheduling of screens.
//! * Does not know memory behind the first level: a processor sends lines and waits for answers.
//! * Read first: `simt/mod.rs`, `ooo/mod.rs` or `vliw/mod.rs`.

pub mod ooo;
pub mod simt;
pub mod vliw;
