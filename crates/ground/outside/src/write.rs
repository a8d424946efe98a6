//! Files that appear whole or not at all, and what is said where one cannot be written.

use crate::beside::Beside;
use crate::fault::Fault;
use config::Diagnostic;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// A writer that keeps its first fault. The caller reports the fault.
struct Noting<W> {
    inner: W,
    fault: Option<io::Error>,
}

impl<W: Write> Noting<W> {
    fn noted<T>(&mut self, done: io::Result<T>) -> io::Result<T> {
        done.inspect_err(|fault| {
            self.fault.get_or_insert(fault.kind().into());
        })
    }
}

impl<W: Write> Write for Noting<W> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(text);
        self.noted(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.inner.flush();
        self.noted(flushed)
    }
}

/// Fills a writer to its end. What could not be written is told by `cannot`, whatever `fill` says of it.
///
/// # Errors
/// The writer cannot be written, and whatever `fill` refuses.
pub fn filled<T>(
    inner: impl Write,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>,
    cannot: impl Fn(&io::Error) -> Fault,
) -> Result<T, Fault> {
    let mut noting = Noting { inner, fault: None };
    let done = fill(&mut noting);
    let flushed = noting.flush();
    match (noting.fault.take(), flushed) {
        (Some(fault), _) | (None, Err(fault)) => Err(cannot(&fault)),
        (None, Ok(())) => Ok(done?),
    }
}

/// Writes a file beside its place, then renames it. Readers see the whole file or none.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), Fault> {
    write_whole_with(path, |file| file.write_all(content).map_err(|e| cannot_write(path, &e).diagnostic()))
}

/// As [`write_whole`], and the content is on the disk before the file has its name: neither a killed process nor a loss of
/// power leaves a part.
///
/// # Errors
/// As [`write_whole`].
pub fn write_durable(path: &Path, content: &[u8]) -> Result<(), Fault> {
    let cannot = |fault: io::Error| cannot_write(path, &fault);
    let (beside, mut file) = Beside::hidden(path).map_err(cannot)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot)?;
    beside.settle().map_err(cannot)
}

/// As [`write_whole`], with what `fill` writes.
///
/// # Errors
/// As [`write_whole`], and whatever `fill` refuses.
pub fn write_whole_with<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>,
) -> Result<T, Fault> {
    let cannot = |fault: &io::Error| cannot_write(path, fault);
    // A device or a pipe cannot be replaced, only written to.
    if path.exists() && !path.is_file() {
        let file = std::fs::OpenOptions::new().write(true).open(path).map_err(|e| cannot(&e))?;
        return filled(file, fill, cannot);
    }
    let (beside, file) = Beside::hidden(path).map_err(|e| cannot(&e))?;
    let done = filled(io::BufWriter::new(file), fill, cannot)?;
    beside.settle().map_err(|e| cannot(&e))?;
    Ok(done)
}

/// A file that cannot be written. A path where no file can be is unusable input; anything else has come between a result and
/// its delivery.
pub fn cannot_write(path: &Path, fault: &io::Error) -> Fault {
    use ErrorKind as E;
    let what =
        Diagnostic::new(format!("cannot write {}: {fault}", path.display())).help(remedy(path, fault.kind()));
    match fault.kind() {
        E::NotFound
        | E::NotADirectory
        | E::IsADirectory
        | E::PermissionDenied
        | E::ReadOnlyFilesystem
        | E::InvalidFilename
        | E::AlreadyExists => Fault::Input(what),
        _ => Fault::Undelivered(what),
    }
}

/// What helps against a fault of writing.
pub fn remedy(path: &Path, fault: ErrorKind) -> String {
    use ErrorKind as E;
    match fault {
        E::StorageFull | E::QuotaExceeded | E::FileTooLarge => {
            "there is no room: make some, or write to another disk; nothing half written is left".to_owned()
        }
        E::NotFound => {
            let folder = path.parent().unwrap_or(path).display();
            format!("the folder `{folder}` is not there: make it first")
        }
        E::NotADirectory => "a part of the path is a file: name a folder that is one".to_owned(),
        E::IsADirectory => "this is a folder: name a file in it".to_owned(),
        _ => "a path that can be written must be given: a file in a folder of yours".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_path_is_input_and_what_is_wrong_with_a_disk_is_not() {
        let fault = |kind: ErrorKind| cannot_write(Path::new("a/b.json"), &kind.into());
        for kind in [ErrorKind::NotFound, ErrorKind::NotADirectory, ErrorKind::PermissionDenied] {
            assert!(matches!(fault(kind), Fault::Input(_)), "{kind}");
        }
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::Other] {
            assert!(matches!(fault(kind), Fault::Undelivered(_)), "{kind}");
        }
        assert!(fault(ErrorKind::NotFound).to_string().contains("the folder `a` is not there"));
        assert!(fault(ErrorKind::StorageFull).to_string().contains("there is no room"));
    }

    #[test]
    fn a_file_that_is_given_up_leaves_the_old_one_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_whole(&path, b"old").unwrap();
        let given_up: Result<(), Fault> = write_whole_with(&path, |file| {
            file.write_all(b"new").unwrap();
            Err(Diagnostic::new("no more"))
        });
        assert!(matches!(given_up, Err(Fault::Input(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
