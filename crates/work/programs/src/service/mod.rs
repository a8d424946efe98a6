//! Programs of a server, executed on their data while the machine asks for their operations.
//!
//! A [`Service`] holds terabytes of simulated data in megabytes: what is loaded at the beginning follows from formulas
//! (which keys there are, where each object lies, what points to what) and only what jobs change is kept. A program executes a
//! job piece by piece and writes the operations of each piece, so that addresses, branches and dependences come from the
//! data and from whatever the other jobs have done to it between the pieces.
//!
//! **A piece is atomic for the data.** What a program protects by a lock it does in one piece, which writes the operations that
//! take and release the lock as well. So locks have their cost, and conflicts between jobs show as changed versions, but no
//! job waits for a lock that another holds: threads are switched only at misses, so one that spun while the holder of its lock
//! waited on the same core would never let the holder run.
//!
//! An address space begins with a page for each slot (request, stack, reply), then come the tables of the program. Around its
//! data a job executes `work` instructions, which stand for everything else that a server does for a request.
//!
//! [`open`] finds the programs by name.

// A diagnostic is returned once in the life of a program: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod btree;
mod chains;
mod changed;
mod common;
mod emit;
mod exponential;
mod hash;
mod list;
mod masstree;
mod nest;
mod objects;
mod rbt;
mod requests;
mod served;
mod silo;
mod swap;
mod tatp;
mod tpcc;

#[cfg(test)]
mod drive;

pub use list::{Built, Entry, entries, file_of, of_kernels, open};
pub use proto::cpu::{Op, OpKind, Service};
