//! What is written: to standard output, and to files that appear whole or not at all.

mod closed;
mod overlap;

pub(crate) use overlap::Files;

use config::Diagnostic;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::{
    fmt,
    fs::File,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Why a command has not done what it was asked for.
#[derive(Debug)]
pub(crate) enum Fault {
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
    pub(crate) fn diagnostic(self) -> Diagnostic {
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

/// Writes the text and a line feed to standard output, without bytes that would move a terminal's cursor. A reader that has closed its end is not an error.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Fault> {
    refuse_closed()?;
    let text = config::plain(text);
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    match written {
        Err(fault) if fault.kind() != ErrorKind::BrokenPipe => Err(cannot_print(&fault)),
        _ => Ok(()),
    }
}

/// Refuses to write to a standard output that was closed: the runtime has opened `/dev/null` in its place.
fn refuse_closed() -> Result<(), Fault> {
    if closed::is_closed() { Err(cannot_print(&io::Error::other("it is closed"))) } else { Ok(()) }
}

fn cannot_print(fault: &io::Error) -> Fault {
    let what = Diagnostic::new(format!("cannot write to standard output: {fault}"));
    Fault::Undelivered(what.help(remedy(Path::new("standard output"), fault.kind())))
}

/// Writes a long text to standard output: a reader that has seen enough ends the program. A terminal gets no bytes that would move its cursor.
///
/// # Errors
/// Standard output cannot be written, and whatever `fill` refuses.
pub(crate) fn print_with<T>(fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>) -> Result<T, Fault> {
    refuse_closed()?;
    let inner: Box<dyn Write> =
        if io::stdout().is_terminal() { Box::new(Shown::on(Stdout)) } else { Box::new(Stdout) };
    let mut noting = Noting { inner: io::BufWriter::new(inner), fault: None };
    noting.filled(fill, cannot_print)
}

struct Stdout;

impl Write for Stdout {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        match io::stdout().write(text) {
            Err(fault) if fault.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            written => written,
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        match io::stdout().flush() {
            Err(fault) if fault.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            flushed => flushed,
        }
    }
}

/// Remembers that it could not write: whoever writes through it may tell that in words of his own.
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

    /// Fills it to the end; what could not be written is told by `cannot`.
    fn filled<T>(
        &mut self,
        fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>,
        cannot: impl Fn(&io::Error) -> Fault,
    ) -> Result<T, Fault> {
        let done = fill(self);
        let flushed = self.flush();
        match (self.fault.take(), flushed) {
            (Some(fault), _) | (None, Err(fault)) => Err(cannot(&fault)),
            (None, Ok(())) => Ok(done?),
        }
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

/// Writes a file beside its place and moves it there, so that nobody ever sees a part of it.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Fault> {
    write_whole_with(path, |file| file.write_all(content).map_err(|e| cannot_write(path, &e).diagnostic()))
}

/// As [`write_whole`], and the content is on the disk before the file has its name: neither a killed process nor a loss of
/// power leaves a part.
///
/// # Errors
/// As [`write_whole`].
pub(crate) fn write_durable(path: &Path, content: &[u8]) -> Result<(), Fault> {
    let cannot = |fault: io::Error| cannot_write(path, &fault);
    let (beside, mut file) = Beside::hidden(path).map_err(cannot)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(cannot)?;
    beside.settle().map_err(cannot)
}

/// As [`write_whole`], with what `fill` writes.
///
/// # Errors
/// As [`write_whole`], and whatever `fill` refuses.
pub(crate) fn write_whole_with<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>,
) -> Result<T, Fault> {
    let cannot = |fault: &io::Error| cannot_write(path, fault);
    // A device or a pipe cannot be replaced, only written to.
    if path.exists() && !path.is_file() {
        let file = std::fs::OpenOptions::new().write(true).open(path).map_err(|e| cannot(&e))?;
        return Noting { inner: file, fault: None }.filled(fill, cannot);
    }
    let (beside, file) = Beside::hidden(path).map_err(|e| cannot(&e))?;
    let done = Noting { inner: io::BufWriter::new(file), fault: None }.filled(fill, cannot)?;
    beside.settle().map_err(|e| cannot(&e))?;
    Ok(done)
}

/// Refuses a path where no file can be, before there is anything to write.
///
/// # Errors
/// Its folder is not there, or it is a folder.
pub(crate) fn refuse_no_place(path: &Path) -> Result<(), Fault> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() {
        return Err(cannot_write(path, &ErrorKind::IsADirectory.into()));
    }
    match folder {
        Some(folder) if !folder.is_dir() => Err(cannot_write(path, &ErrorKind::NotFound.into())),
        _ => Ok(()),
    }
}

/// A file that cannot be written. A path where no file can be is unusable input; anything else has come between a result and
/// its delivery.
pub(crate) fn cannot_write(path: &Path, fault: &io::Error) -> Fault {
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

fn remedy(path: &Path, fault: ErrorKind) -> String {
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

// What a terminal is shown: lines without characters that would move its cursor or change its colours.

/// Bytes of a line that is shown before its end is known: *chosen*.
const LONGEST: usize = 64 << 10;

/// Passes on whole lines, or what there is of one when it is flushed.
struct Shown<W> {
    inner: W,
    held: Vec<u8>,
}

impl<W: Write> Shown<W> {
    fn on(inner: W) -> Shown<W> {
        Shown { inner, held: Vec::new() }
    }

    fn show(&mut self, bytes: usize) -> io::Result<()> {
        let rest = self.held.split_off(bytes);
        let text = String::from_utf8_lossy(&self.held);
        let shown = self.inner.write_all(config::plain(&text).as_bytes());
        self.held = rest;
        shown
    }
}

impl<W: Write> Write for Shown<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.held.extend_from_slice(bytes);
        let end = self.held.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        if let Some(end) = end.or((self.held.len() > LONGEST).then_some(self.held.len())) {
            self.show(end)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.show(self.held.len())?;
        self.inner.flush()
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
pub(crate) fn remove_unfinished() {
    let all = unfinished();
    for path in all.iter() {
        // One that has just got its name is gone, and need not be removed.
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(all);
}

/// A file beside its place. It goes away unless it is settled.
#[derive(Debug)]
pub(crate) struct Beside {
    place: PathBuf,
    path: PathBuf,
}

impl Beside {
    /// Makes a file that nobody else has, under a name that hides it.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn hidden(place: &Path) -> io::Result<(Beside, File)> {
        let turn = TURN.fetch_add(1, Ordering::Relaxed);
        let name = format!(".{}.{}.{turn}", name_of(place), std::process::id());
        let path = place.with_file_name(name);
        Beside::made(place, path, |path| File::create(path))
    }

    /// Makes a file that grows for long under a name that says that it is not whole: what a killed process leaves is marked.
    ///
    /// # Errors
    /// It cannot be made, or another process is writing it.
    pub(crate) fn incomplete(place: &Path) -> io::Result<(Beside, File)> {
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
    #[cfg(unix)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves it into its place.
    ///
    /// # Errors
    /// It cannot be moved; it is removed then.
    pub(crate) fn settle(self) -> io::Result<()> {
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
pub(crate) fn make_folder(folder: &Path) -> io::Result<Vec<PathBuf>> {
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

    /// Characters that are cut between two writes stay whole, and a name brings no escapes.
    #[test]
    fn a_terminal_gets_lines_without_escapes() {
        let mut seen = Vec::new();
        let mut shown = Shown::on(&mut seen);
        for part in [&b"0,read,\x1b[31mred\x07\n1,\xc3"[..], b"\xa9\tb\n", b"last"] {
            shown.write_all(part).unwrap();
        }
        shown.flush().unwrap();
        let expected = "0,read,\u{fffd}[31mred\u{fffd}\n1,\u{e9}\tb\nlast";
        assert_eq!(String::from_utf8(seen).unwrap(), expected);
    }
}
