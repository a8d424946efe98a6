//! Which trace a path is, by content.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use config::Diagnostic;
use text::Input;
use text::fault::{self, Bad};

use super::Builder;
use crate::program::Program;
use crate::simt_trace::{accelsim, macsim};

/// What a path is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// A list of Accel-Sim's kernels.
    AccelSimList,
    /// One of Accel-Sim's kernels.
    AccelSimKernel,
    /// A folder or a configuration file of MacSim.
    MacSim,
    /// A tar archive of a folder of MacSim.
    MacSimArchive,
}

/// How much of a file says what it is.
const START: u64 = 64 << 10;
/// Accel-Sim's lists of kernels.
const LISTS: [&str; 2] = ["kernelslist.g", "kernelslist"];

fn format(path: &Path) -> Option<Format> {
    if path.is_dir() {
        if LISTS.iter().any(|name| path.join(name).is_file()) {
            return Some(Format::AccelSimList);
        }
        return macsim::ROOTS.iter().any(|name| path.join(name).is_file()).then_some(Format::MacSim);
    }
    // A pipe gives its bytes only once.
    if !path.is_file() {
        return None;
    }
    let mut start = Vec::new();
    let input = File::open(path).and_then(Input::new).ok()?;
    // What can be read of a damaged file says what it is; opening it says what is wrong.
    let _ = input.bytes.take(START).read_to_end(&mut start);
    if macsim::is_archive(&start) {
        return Some(Format::MacSimArchive);
    }
    let text = String::from_utf8_lossy(&start);
    if accelsim::is_list(&text) {
        Some(Format::AccelSimList)
    } else if accelsim::is_kernel(&text) {
        Some(Format::AccelSimKernel)
    } else {
        macsim::is_config(&text).then_some(Format::MacSim)
    }
}

/// Whether a text is the beginning of a file of one.
pub(crate) fn is_text(start: &str) -> bool {
    accelsim::is_list(start) || accelsim::is_kernel(start) || macsim::is_config(start)
}

/// Whether a file or folder is a recorded instruction trace of a GPU, by content.
pub fn is_gpu_trace(path: &Path) -> bool {
    format(path).is_some()
}

/// A recorded trace as a program: Accel-Sim's `kernelslist.g`, a folder that has one, or one kernel file (`.traceg` of
/// tracer versions 3 to 5, or the tracer's own `.trace`); MacSim's folder, `kernel_config.txt` or a kernel's `trace.txt`, or
/// a tar archive of a folder; each also compressed. Every fault is found here.
///
/// # Errors
/// A path that is none of them, and whatever in it cannot be read: the diagnostic names the file and the line or record.
pub fn open(path: &Path) -> Result<Box<dyn Program>, Diagnostic> {
    read(path).map(|trace| Box::new(trace) as Box<dyn Program>)
}

pub(super) fn read(path: &Path) -> Result<super::Trace, Diagnostic> {
    let source = fault::name(path);
    let Some(format) = format(path) else {
        if let Err(error) = path.metadata() {
            return Err(Bad::new(format!("cannot read the trace: {error}")).in_file(&source));
        }
        let help = "a trace is Accel-Sim's `kernelslist.g` or kernel file, or MacSim's folder, configuration or archive";
        return Err(Bad::new("no instruction trace of a GPU").help(help).in_file(&source));
    };
    let mut builder = Builder::default();
    let name = match format {
        Format::AccelSimList if path.is_dir() => {
            let list = LISTS.iter().map(|name| path.join(name)).find(|list| list.is_file());
            accelsim::read_list(&list.unwrap_or_else(|| path.to_owned()), &mut builder)?;
            "accel-sim"
        }
        Format::AccelSimList => {
            accelsim::read_list(path, &mut builder)?;
            "accel-sim"
        }
        Format::AccelSimKernel => {
            accelsim::read_kernel(path, &mut builder)?;
            "accel-sim"
        }
        Format::MacSim => {
            macsim::read_files(path, &mut builder)?;
            "macsim"
        }
        Format::MacSimArchive => {
            macsim::read_archive(path, &mut builder)?;
            "macsim"
        }
    };
    builder.finish(name).map_err(|bad| bad.in_file(&source))
}
