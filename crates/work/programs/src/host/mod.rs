//! Programs of a host: services that answer requests, and programs that only have throughput, as system calls on files.
//!
//! A service's request is time of a core and system calls on real offsets of files, drawn from published laws of sizes and popularity.
//! What a call costs is the host's business. Clients are the arrivals of their requests: there is no network. A request's
//! response time is from the client's send to the last byte of the answer; what a server does after that (its log) only keeps the worker.
//!
//! Recorded programs (`strace`, `iolog`) do what a log of a real program says.
//!
//! [`open`] finds programs by name; everything that they draw follows from a seed and their name in the run, so that the same requests
//! come in the same order on any host.

// A diagnostic is returned once in the life of a program: its size costs nothing, a box would cost every caller.
#![allow(clippy::result_large_err)]

mod apache;
mod arrivals;
mod db;
mod images;
mod list;
mod objects;
pub mod offload;
mod options;
mod served;
mod server;
mod sizes;
mod syscalls;
mod ungzip;

#[cfg(test)]
mod drive;
#[cfg(test)]
mod tests;

use engine::Time;

pub use list::{Built, Entry, entries, open};
pub use options::{Parameter, Range};
pub use served::{Asked, Failed, Kind, Served};
pub(crate) use syscalls::is_strace;
pub use syscalls::{LogContents, LogKind, log_contents, strace_options};

/// A program that says how it fares.
pub trait HostProgram: proto::file::Program {
    /// Forgets what was measured: the measured part of the run begins. What is being served counts when it is answered.
    fn reset_stats(&mut self, now: Time);
    /// What was measured since then.
    fn measured(&self) -> &Served;
    /// How much of its work is done, between zero and one; none if it has no end.
    fn progress(&self) -> Option<f64>;
    /// What it has had a coprocessor execute in the measured part, in order; none of a program that uses none.
    fn executed(&self) -> &[offload::Executed] {
        &[]
    }
    /// What it leaves out of what it was told to do, a sentence each.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
}
