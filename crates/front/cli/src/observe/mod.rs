//! What looks on at a run and writes a file: the log of requests, the file of requests, and the timeline of the
//! device.

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

/// A file that remembers its first fault: a run does not end because its log cannot be written. Until it is whole its
/// name ends in `.incomplete`; one that cannot be written to its end is removed, which also makes room for the result.
pub(crate) struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
    /// The temporary file's way into its place; `None` for a device or a pipe.
    beside: Option<Beside>,
    fault: Option<io::Error>,
}

impl Sink {
    /// Makes the file, in a folder that is there.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Sink, Fault> {
        let made = if path.exists() && !path.is_file() {
            File::options().write(true).open(path).map(|file| (None, file))
        } else {
            Beside::incomplete(path).map(|(beside, file)| (Some(beside), file))
        };
        let (beside, file) = made.map_err(|fault| match fault.kind() {
            ErrorKind::ResourceBusy => Fault::Input(
                Diagnostic::new(format!("another run is writing {}", path.display()))
                    .help("every run needs a file of its own"),
            ),
            _ => cannot_write(path, &fault),
        })?;
        Ok(Sink { path: path.to_owned(), file: BufWriter::new(file), beside, fault: None })
    }

    /// Writes, unless an earlier write has failed.
    pub(crate) fn write(&mut self, text: Arguments<'_>) {
        if self.fault.is_none()
            && let Err(fault) = self.file.write_fmt(text)
        {
            self.failed(fault);
        }
    }

    /// The same of bytes.
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

    /// Writes out what is buffered, and gives the file its name.
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
            // Where it could be made, the path is none the user should not have given.
            Err(fault) => Err(Fault::Undelivered(cannot_write(&self.path, &fault).diagnostic())),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What fails is told when the file is finished.
        self.write_bytes(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A log under way. Warm-up is logged too; the lines are in the order of completion.
#[derive(Clone)]
pub(crate) struct RequestLog(Rc<RefCell<Sink>>);

impl RequestLog {
    /// Makes the file.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<RequestLog, Fault> {
        Ok(RequestLog(Rc::new(RefCell::new(Sink::create(path)?))))
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The log is not whole.
    pub(crate) fn finish(&self) -> Result<(), Fault> {
        self.0.borrow_mut().finish()
    }
}

/// fio's number of a direction.
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

/// A timeline, and where it goes.
pub(crate) struct TimelineFile {
    sink: Sink,
    format: Format,
    timeline: Timeline,
}

impl TimelineFile {
    /// Makes the file: Perfetto's own format if its name ends so, else Chrome's.
    ///
    /// # Errors
    /// It cannot be made, or the system cannot be read.
    pub(crate) fn create(path: &Path, show: Show, plan: &Plan) -> Result<TimelineFile, Fault> {
        let is_pftrace = path.extension().is_some_and(|ending| ending == "pftrace");
        Ok(TimelineFile {
            timeline: Timeline::new(show, &plan.load()?),
            sink: Sink::create(path)?,
            format: if is_pftrace { Format::Pftrace } else { Format::Json },
        })
    }

    /// What looks on at the run for it.
    pub(crate) fn observers(&self) -> Observers {
        self.timeline.observers()
    }

    /// Writes the file, with the series of a result as curves; what a reader must know of events that it does not hold.
    ///
    /// # Errors
    /// The file is not whole.
    pub(crate) fn finish(mut self, document: &Document) -> Result<Vec<String>, Fault> {
        // The sink remembers what fails.
        let told = self.timeline.write(document, self.format, &mut self.sink).unwrap_or_default();
        self.sink.finish()?;
        Ok(told)
    }
}

/// What `--timeline-show` asks for.
///
/// # Errors
/// Anything but `all`, `slowest` and a window.
pub(crate) fn show(text: &str) -> Result<Show, Fault> {
    let help = "`all`, `window=1ms..2ms`, or `slowest`: what was going on around the slowest request";
    ::timeline::show(text)
        .map_err(|what| Fault::Input(at("--timeline-show", text, Diagnostic::new(what).help(help))))
}
