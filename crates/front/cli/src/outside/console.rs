//! Signals that tell a process to end, where there is a console: Control-C.

use std::io;

/// A signal to end.
#[derive(Clone, Copy)]
pub(super) struct Signal {
    /// What has happened to the command.
    pub(super) name: &'static str,
    /// Exit status of a command that was told so twice.
    pub(super) status: i32,
}

/// Calls `heard` at each, in a thread of its own.
///
/// # Errors
/// If the operating system refuses.
pub(super) fn listen(heard: impl Fn(Signal) + Send + 'static) -> io::Result<()> {
    let heard = move || heard(Signal { name: "interrupted", status: 130 });
    ctrlc::set_handler(heard).map_err(io::Error::other)
}
