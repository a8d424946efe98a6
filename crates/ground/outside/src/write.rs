//! Files that appear whole or not at all, their names while they are under way, and faults of delivery.

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

// Faults of a command: of its input, or of the delivery of its result.

/// Why a command has not done what it was asked for.
#[derive(Debug)]
pub enum Fault {
    /// The input cannot be used: exit status 2.
    Input(Diagnostic),
    /// What was worked out could not be delivered: exit status 1.
    Undelivered(Diagnostic),
}

impl From<Diagnostic> for Fault {
    fn from(diagnostic: Diagnostic) -> Fault {
        Fault::Input(diagnostic)
    }
}

impl Fault {
    /// What is said of it.
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

// Files on their way into their places.
//
// The names of all that are under way are kept, so that an interrupt that ends the process takes them along. Git's
// temporary files work the same way (`tempfile.c`).

/// Files that mean nothing yet.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Numbers the files that are not yet in their place: two threads may write the same one.
static TURN: AtomicU64 = AtomicU64::new(0);

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what is not finished, and lets nobody begin a file any more: the process is about to end.
pub fn remove_unfinished() {
    let all = unfinished();
    for path in all.iter() {
        // One that has just got its name is gone, and need not be removed.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(all);
}

/// A file beside its place. It goes away unless it is settled.
#[derive(Debug)]
pub struct Beside {
    place: PathBuf,
    path: PathBuf,
}

impl Beside {
    /// Makes a file that nobody else has, under a name that hides it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn hidden(place: &Path) -> io::Result<(Beside, File)> {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}.{turn}", name_of(place), std::process::id());
        let path = place.with_file_name(name);
        Beside::made(place, path, |path| File::create(path))
    }

    /// Makes a file that grows for long under a name that says that it is not whole: what a killed process leaves is marked.
    ///
    /// # Errors
    /// It cannot be made, or another process is writing it.
    pub fn incomplete(place: &Path) -> io::Result<(Beside, File)> {
        let path = place.with_file_name(format!("{}.incomplete", name_of(place)));
        Beside::made(place, path, |path| {
            let file = File::options().write(true).create(true).truncate(false).open(path)?;
            match file.try_lock() {
                Err(std::fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::ResourceBusy.into()),
                // Where files cannot be locked, nobody is kept from writing.
                Ok(()) | Err(std::fs::TryLockError::Error(_)) => {}
            }
            file.set_len(0)?;
            Ok(file)
        })
    }

    /// Makes the file and notes its name in one: no interrupt comes between them.
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

    /// Where it is until then.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it into its place.
    ///
    /// # Errors
    /// It cannot be moved; it is removed then.
    pub fn settle(self) -> io::Result<()> {
        std::fs::rename(&self.path, &self.place)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        unfinished().retain(|path| *path != self.path);
        // One that is settled is not there any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Makes a folder with those above it; which of them were not there before, the outermost first.
///
/// # Errors
/// It cannot be made.
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
