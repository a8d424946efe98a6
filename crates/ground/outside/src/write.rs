//! Files written atomically, their temporary names, and errors of delivery.

use config::Diagnostic;
use std::path::{Path, PathBuf};
use std::{
    fmt,
    fs::File,
    io::{self, ErrorKind, Write},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Writer that keeps its first error. The caller reports it.
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

/// Fills a writer to its end. A write error is reported through `cannot`, whatever `fill` returns.
///
/// # Errors
/// The writer cannot be written, or `fill` fails.
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

/// Writes a temporary file beside the destination, then renames it. Readers see the whole file or none.
///
/// # Errors
/// The file cannot be written.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), Fault> {
    write_whole_with(path, |file| file.write_all(content).map_err(|e| cannot_write(path, &e).diagnostic()))
}

/// Writes as [`write_whole`] does, with the content on disk before the rename: neither a killed process nor a power
/// loss leaves a partial file.
///
/// # Errors
/// Errors of [`write_whole`].
pub fn write_durable(path: &Path, content: &[u8]) -> Result<(), Fault> {
    let cannot = |fault: io::Error| cannot_write(path, &fault);
    let (beside, mut file) = Beside::hidden(path).map_err(cannot)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot)?;
    beside.settle().map_err(cannot)
}

/// Writes as [`write_whole`] does, with the content that `fill` writes.
///
/// # Errors
/// Errors of [`write_whole`], and those of `fill`.
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

/// Creates the error of a file that cannot be written. An impossible path is unusable input; any other cause is a
/// failed delivery of a result.
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

/// Suggests a remedy for a write error.
pub fn remedy(path: &Path, fault: ErrorKind) -> String {
    use ErrorKind as E;
    match fault {
        E::StorageFull | E::QuotaExceeded | E::FileTooLarge => {
            "the disk is full: free space on it or use a different one; no partial file was left".to_owned()
        }
        E::NotFound => {
            let folder = path.parent().unwrap_or(path).display();
            format!("the folder `{folder}` does not exist: create it first")
        }
        E::NotADirectory => "a part of the path is a file, not a folder: choose a different path".to_owned(),
        E::IsADirectory => "the path is a folder: name a file in it".to_owned(),
        _ => "give a writable path: a file in a folder that you own".to_owned(),
    }
}

// Errors of a command: unusable input, or failed delivery of its result.

/// Reason why a command failed.
#[derive(Debug)]
pub enum Fault {
    /// Unusable input: exit status 2.
    Input(Diagnostic),
    /// Result that could not be delivered: exit status 1.
    Undelivered(Diagnostic),
}

impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Fault {
        Fault::Input(diagnostic)
    }
}

impl Fault {
    /// Returns the diagnostic.
    pub fn diagnostic(self) -> Diagnostic {
        let (Fault::Input(diagnostic) | Fault::Undelivered(diagnostic)) = self;
        diagnostic
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Fault::Input(diagnostic) | Fault::Undelivered(diagnostic)) = self;
        diagnostic.fmt(f)
    }
}

// Files not yet in place.
//
// Their names are recorded, so that an interrupt that ends the process removes them. Git's temporary files work the
// same way (`tempfile.c`).

/// Paths of unfinished files.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Counter that numbers unfinished files: two threads may write the same one.
static TURN: AtomicU64 = AtomicU64::new(0);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes all unfinished files and prevents new ones: the process is about to end.
pub fn remove_unfinished() {
    let all = unfinished();
    for path in all.iter() {
        // A file that was just renamed no longer exists under this name, and need not be removed.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(all);
}

/// Temporary file beside its destination. It is removed unless it is settled.
#[derive(Debug)]
pub struct Beside {
    place: PathBuf,
    path: PathBuf,
}

impl Beside {
    /// Creates a file that no other process has, under a hidden name.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn hidden(place: &Path) -> io::Result<(Beside, File)> {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}.{turn}", name_of(place), std::process::id());
        let path = place.with_file_name(name);
        Beside::made(place, path, |path| File::create(path))
    }

    /// Creates a long-growing file under a name that marks it as incomplete, so that the remains of a killed process
    /// are recognisable.
    ///
    /// # Errors
    /// The file cannot be created, or another process is writing it.
    pub fn incomplete(place: &Path) -> io::Result<(Beside, File)> {
        let path = place.with_file_name(format!("{}.incomplete", name_of(place)));
        Beside::made(place, path, |path| {
            let file = File::options().write(true).create(true).truncate(false).open(path)?;
            match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                // If files cannot be locked, concurrent writers are not prevented.
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
            }
            file.set_len(0)?;
            Ok(file)
        })
    }

    /// Creates the file and records its name in one step, which an interrupt cannot split.
    fn made(
        place: &Path,
        path: PathBuf,
        make: impl FnOnce(&Path) -> io::Result<File>,
    ) -> io::Result<(Beside, File)> {
        let mut all = unfinished();
        let file = make(&path)?;
        all.push(path.clone());
        Ok((Beside { place: place.to_owned(), path }, file))
    }

    /// Returns the temporary path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves the file to its destination.
    ///
    /// # Errors
    /// The file cannot be moved; it is then removed.
    pub fn settle(self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.place)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.path);
        // A settled file no longer exists under this name.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Creates a folder and its parents; returns those that did not exist before, the outermost first.
///
/// # Errors
/// The folder cannot be created.
pub fn make_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let is_absent = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let mut made: Vec<PathBuf> = folder.ancestors().take_while(is_absent).map(Path::to_owned).collect();
    made.reverse();
    std::fs::create_dir_all(folder)?;
    Ok(made)
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
        assert!(fault(ErrorKind::NotFound).to_string().contains("the folder `a` does not exist"));
        assert!(fault(ErrorKind::StorageFull).to_string().contains("the disk is full"));
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
