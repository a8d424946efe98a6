//! A file that is written while a run goes on.

use crate::output::{Beside, Fault, cannot_write};
use config::Diagnostic;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file that remembers its first fault: a run does not end because its log cannot be written. Until it is whole its name
/// ends in `.incomplete`; one that cannot be written to its end is removed, which also makes room for the result.
pub(crate) struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
    /// Its way into its place; none of a device or a pipe.
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
