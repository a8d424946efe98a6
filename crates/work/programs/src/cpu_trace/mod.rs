//! Recorded programs of a CPU as services of a server: Valgrind's lackey (and the files that `nandscape trace capture` makes of
//! it), memtrace, ChampSim, and plain lists of addresses.
//!
//! A trace is read twice. The first reading finds every fault in it and the pages that it touches; the second goes on while the
//! machine runs, a job at a time, so that a trace may be longer than memory. Pages of 4 KiB, of data and of text apart, are laid
//! one behind the other in the order of their first use: the address space is as large as the program's footprint.
//!
//! **Jobs.** The trace is cut into jobs of [`Options::job`] instructions. A job that begins takes the next cut, in whatever slot, so
//! what a job asks for depends on how many have begun before it. Behind the end of the trace comes its beginning, within a job
//! as well, so that all jobs are of one length.
//!
//! What a trace does not say, or says in a way that must be known:
//! * Instructions without an access to memory stand in groups (`count`). Where the format says where instructions lie, a group
//!   stays within a line of 64 bytes of text; where it does not, all of the text is one line, and fetching it never misses.
//! * Each access is an operation that counts one instruction, so an instruction that loads and stores counts two: the
//!   micro-operations of a core. Its stores need what it loads. An access that crosses a line of 64 bytes becomes two.
//! * Registers, thus dependences, are in ChampSim's records alone; in the other formats only the store of a
//!   load and store needs anything.
//! * Branches are in ChampSim's records alone; in the other formats every branch counts as predicted.
//! * ChampSim and lists of addresses do not say how wide an access is: it is taken for one of 8 bytes, or to the end of its line.
//! * The program's threads are one sequence, and its system calls take no time.
//! * Jobs that run at a time are cuts of one program. Each core has a copy of the program's data of its own ([`Memory::Private`]), as if
//!   as many processes ran; its threads share it, and all cores share the text. With [`Memory::Shared`] all jobs have one memory, stacks
//!   included: cores take lines from each other that the program alone would keep.

// A diagnostic is returned once in the life of a trace: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod capture;
mod detect;
mod format;
mod instruction;
mod ops;
mod pages;
mod recorded;

#[cfg(test)]
mod tests;

pub use capture::{Counts, record};
pub use detect::{formats, is_cpu_trace, open};
pub use recorded::{Memory, Options, PARAMETERS};

pub(crate) use detect::is_beginning;
