//! A file that is written while a run goes on.

use crate::output::cannot_write;
use config::Diagnostic;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file that remembers its first fault: a run does not end because its log cannot be written.
pub(crate) struct Sink {
    path: PathBuf,
    file: BufWriter<File>,
    fault: Option<io::Error>,
}

impl Sink {
    /// Makes the file, and its folder if need be.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn create(path: &Path) -> Result<Sink, Diagnostic> {
        let cannot = |fault: io::Error| cannot_write(path, &fault);
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(cannot)?;
        }
        let file = File::create(path).map_err(cannot)?;
        Ok(Sink { path: path.to_owned(), file: BufWriter::new(file), fault: None })
    }

    /// Writes, unless an earlier write has failed.
    pub(crate) fn write(&mut self, text: Arguments<'_>) {
        if self.fault.is_none()
            && let Err(fault) = self.file.write_fmt(text)
        {
            self.fault = Some(fault);
        }
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The first write that failed.
    pub(crate) fn finish(&mut self) -> Result<(), Diagnostic> {
        let flushed = self.file.flush().err();
        match self.fault.take().or(flushed) {
            Some(fault) => Err(cannot_write(&self.path, &fault)),
            None => Ok(()),
        }
    }
}
