//! Instructions and accesses, as Valgrind's lackey writes them.
//!
//! lackey is slow (600 to 1,100 times) and everywhere; plugins of QEMU's user mode are some 40 times faster, and are no part of this.

use std::ffi::OsString;
use std::io::{PipeReader, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use config::Diagnostic;
use programs::cpu_trace::{Counts, record};
use rustix::process::Signal;

use super::child::{LOOK, Traced};
use crate::output::{Fault, write_whole_with};
use crate::outside::STOP;

/// Records a program; whether the recording is whole.
///
/// # Errors
/// No Valgrind, no such program, and a file that cannot be written.
pub(super) fn capture(
    program: &[OsString],
    name: &Path,
    limit: Option<u64>,
    out: &Path,
) -> Result<bool, Fault> {
    let (counts, end) = write_whole_with(out, |file| {
        let (traced, pipe) = start(program)?;
        let counts = watched(&traced, pipe, file, limit)?;
        let end = traced.end(limit.filter(|limit| counts.instructions >= *limit))?;
        if counts.instructions > 0 {
            return Ok((counts, end));
        }
        Err(Diagnostic::new(format!("nothing of `{}` was recorded{}", name.display(), end.status())).help(
            "a program that runs on this machine must be given behind `--`; Valgrind's own words stand above",
        ))
    })?;
    end.say(name);
    let Counts { instructions, loads, stores, data_pages, text_pages } = counts;
    tell!(
        "note: {instructions} instructions, {loads} loads, {stores} stores, {data_pages} pages of data and \
         {text_pages} of text (4 KiB) written to {}",
        out.display()
    );
    Ok(end.is_whole())
}

/// Reads what lackey writes, and ends the program at an interrupt even while it is silent.
fn watched(
    traced: &Traced,
    pipe: PipeReader,
    to: &mut dyn Write,
    limit: Option<u64>,
) -> Result<Counts, Diagnostic> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if STOP.load(Ordering::Relaxed) {
                    return traced.stop();
                }
                std::thread::sleep(LOOK);
            }
        });
        let counts = record(pipe, to, limit, || STOP.load(Ordering::Relaxed));
        done.store(true, Ordering::Relaxed);
        counts
    })
}

/// Starts it; lackey's output comes through the pipe, and the program has standard input and output to itself.
fn start(program: &[OsString]) -> Result<(Traced, PipeReader), Diagnostic> {
    let fault = |fault: std::io::Error| Diagnostic::new(format!("cannot make a pipe for Valgrind: {fault}"));
    let (read, write) = std::io::pipe().map_err(fault)?;
    // Valgrind must have the end that it writes to.
    rustix::io::fcntl_setfd(&write, rustix::io::FdFlags::empty()).map_err(|errno| fault(errno.into()))?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        // Nobody's settings may send the output elsewhere.
        .args(["--command-line-only=yes", "--tool=lackey", "--trace-mem=yes", "--basic-counts=no"])
        // The child of a fork would write in between.
        .arg("--child-silent-after-fork=yes")
        .arg(format!("--log-fd={}", write.as_raw_fd()))
        .arg("--")
        .args(program);
    Ok((Traced::start("valgrind", &mut valgrind, Signal::KILL)?, read))
}
