//! Which recorded program a path is, by content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use config::Diagnostic;
use proto::cpu::Service;
use text::fault::name;
use text::{Bad, Input};

use crate::cpu_trace::format::{FORMATS, Format};
use crate::cpu_trace::recorded::{Options, Recorded};

/// How much of a file says what it is.
const START: u64 = 64 << 10;

fn format(path: &Path) -> Option<&'static Format> {
    // A pipe gives its bytes only once.
    if !path.is_file() {
        return None;
    }
    let input = File::open(path).and_then(Input::new).ok()?;
    let mut start = Vec::new();
    // What can be read of a damaged file says what it is; opening it says what is wrong.
    let whole = input.bytes.take(START).read_to_end(&mut start).is_ok();
    let all = whole && (start.len() as u64) < START;
    FORMATS.iter().find(|format| (format.is)(&start, all)).copied()
}

/// Whether content begins as one does; `all` says that it is the whole of it.
pub(crate) fn is_beginning(start: &[u8], all: bool) -> bool {
    FORMATS.iter().any(|format| (format.is)(start, all))
}

/// Name and title of every format, in the order in which content is tried.
pub fn formats() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.name, format.title))
}

/// Whether a file is a recorded program of a CPU, by content.
pub fn is_cpu_trace(path: &Path) -> bool {
    format(path).is_some()
}

/// A recorded program as a service: a capture, what Valgrind's lackey or memtrace writes, ChampSim's records or a list of addresses,
/// also compressed. Reads all of it: every fault is found here.
///
/// # Errors
/// A file that is none of them, whatever in it cannot be read (the diagnostic names the file and the line or record), and options
/// that cannot be.
///
/// # Panics
/// The service panics when it comes to what has been changed in the file since.
pub fn open(path: &Path, options: &Options) -> Result<Box<dyn Service>, Diagnostic> {
    let source = name(path);
    let unreadable =
        |error: std::io::Error| Bad::new(format!("cannot read the trace: {error}")).in_file(&source);
    if !path.metadata().map_err(unreadable)?.is_file() {
        let help = "a trace is read twice: it must be a file, no folder and no pipe";
        return Err(Bad::new("no file").help(help).in_file(&source));
    }
    let file = File::open(path).map_err(unreadable)?;
    let Some(format) = format(path) else {
        let titles: Vec<&str> = FORMATS.iter().map(|format| format.title).collect();
        let help = format!("a recorded program is {}", titles.join(", "));
        return Err(Bad::new("no recorded program of a CPU").help(help).in_file(&source));
    };
    Ok(Box::new(Recorded::new(file, format, source, options)?))
}
