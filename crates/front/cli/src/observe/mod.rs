//! Observers of a run that write a file: the log of requests, the file of requests, and the timeline of the device.

mod requests;

pub(crate) use requests::{RequestFile, keep};

use crate::options::at;
use crate::output::{Beside, Fault, cannot_write};
use ::requests::inject::{Observer, Seen};
use config::Diagnostic;
use machine::result::Document;
use machine::run::{Observers, Plan};
use proto::{Account, IoOp};
use std::cell::RefCell;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use timeline::{Format, Show, Timeline};

/// Output file that remembers its first fault: a run does not end because its log cannot be written. Until the file is
/// complete its name ends in `.incomplete`; a file that cannot be completed is removed, which makes room for the
/// result.
pub(crate) struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
    /// Temporary file to move into place; `None` for a device or a pipe.
    beside: Option<Beside>,
    fault: Option<io::Error>,
}

impl Sink {
    /// Creates the file in an existing folder.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn create(path: &Path) -> Result<Sink, Fault> {
        let made = if path.exists() && !path.is_file() {
            File::options().write(true).open(path).map(|file| (None, file))
        } else {
            Beside::incomplete(path).map(|(beside, file)| (Some(beside), file))
        };
        let (beside, file) = made.map_err(|fault| match fault.kind() {
            ErrorKind::ResourceBusy => Fault::Input(
                Diagnostic::new(format!("another run is writing {}", path.display()))
                    .help("give every run a file of its own"),
            ),
            _ => cannot_write(path, &fault),
        })?;
        Ok(Sink { path: path.to_owned(), file: BufWriter::new(file), beside, fault: None })
    }

    /// Writes text, unless an earlier write has failed.
    pub(crate) fn write(&mut self, text: Arguments<'_>) {
        if self.fault.is_none()
            && let Err(fault) = self.file.write_fmt(text)
        {
            self.failed(fault);
        }
    }

    /// Writes bytes, unless an earlier write has failed.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) {
        if self.fault.is_none()
            && let Err(fault) = self.file.write_all(bytes)
        {
            self.failed(fault);
        }
    }

    fn failed(&mut self, fault: io::Error) {
        self.fault = Some(fault);
        self.beside = None;
    }

    /// Flushes the buffer, and gives the file its name.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(&mut self) -> Result<(), Fault> {
        if self.fault.is_none()
            && let Err(fault) = self.file.flush()
        {
            self.failed(fault);
        }
        let settled = self.beside.take().map_or(Ok(()), Beside::settle);
        match self.fault.take().map_or(settled, Err) {
            Ok(()) => Ok(()),
            // The file could be created, so the path itself was fine.
            Err(fault) => Err(Fault::Undelivered(cannot_write(&self.path, &fault).diagnostic())),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A failure is reported when the file is finished.
        self.write_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Log of requests being written. Warm-up is included; lines are in order of completion.
#[derive(Clone)]
pub(crate) struct RequestLog(Rc<RefCell<Sink>>);

impl RequestLog {
    /// Creates the file.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn create(path: &Path) -> Result<RequestLog, Fault> {
        Ok(RequestLog(Rc::new(RefCell::new(Sink::create(path)?))))
    }

    /// Flushes the buffer.
    ///
    /// # Errors
    /// The log is incomplete.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        self.0.borrow_mut().finish()
    }
}

/// Code of a direction in fio's logs.
const fn direction(op: IoOp) -> u8 {
    match op {
        IoOp::Read => 0,
        IoOp::Write => 1,
        IoOp::Trim | IoOp::WriteZeroes => 2,
        IoOp::Flush => 3,
    }
}

impl Observer for RequestLog {
    fn completed(&mut self, seen: &Seen, _: Option<&Account>) {
        let Seen { request, submitted, completed, .. } = seen;
        self.0.borrow_mut().write(format_args!(
            "{}, {}, {}, {}, {}, 0, {}\n",
            completed.ps() / 1_000_000_000,
            (*completed - request.at).ps() / 1_000,
            direction(request.op),
            request.bytes,
            request.offset,
            submitted.ps() / 1_000
        ));
    }
}

/// Timeline, and its output file.
pub(crate) struct TimelineFile {
    sink: Sink,
    format: Format,
    timeline: Timeline,
}

impl TimelineFile {
    /// Creates the file: in Perfetto's own format if its name ends in `.pftrace`, else in Chrome's.
    ///
    /// # Errors
    /// The file cannot be created, or the system cannot be read.
    pub(crate) fn create(path: &Path, show: Show, plan: &Plan) -> Result<TimelineFile, Fault> {
        let is_pftrace = path.extension().is_some_and(|ending| ending == "pftrace");
        Ok(TimelineFile {
            timeline: Timeline::new(show, &plan.load()?),
            sink: Sink::create(path)?,
            format: if is_pftrace { Format::Pftrace } else { Format::Json },
        })
    }

    /// Observers that feed the timeline.
    pub(crate) fn observers(&self) -> Observers {
        self.timeline.observers()
    }

    /// Writes the file, with the series of a result as curves; returns notes on events that it omits.
    ///
    /// # Errors
    /// The file is incomplete.
    pub(crate) fn finish(mut self, document: &Document) -> Result<Vec<String>, Fault> {
        // The sink remembers failures.
        let told = self.timeline.write(document, self.format, &mut self.sink).unwrap_or_default();
        self.sink.finish()?;
        Ok(told)
    }
}

/// Parses `--timeline-show`.
///
/// # Errors
/// The text is not `all`, `slowest` or a window.
pub(crate) fn show(text: &str) -> Result<Show, Fault> {
    let help = "give `all`, `window=1ms..2ms`, or `slowest` for the surroundings of the slowest request";
    ::timeline::show(text)
        .map_err(|what| Fault::Input(at("--timeline-show", text, Diagnostic::new(what).help(help))))
}
