//! What is written: to standard output, and to files that appear whole or not at all.

use config::Diagnostic;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers the files that are not yet in their place.
static TURN: AtomicU64 = AtomicU64::new(0);

/// Writes the text and a line feed to standard output. A reader that has seen enough is no error.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn print(text: &str) -> Result<(), Diagnostic> {
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
    match written {
        Err(fault) if fault.kind() != ErrorKind::BrokenPipe => {
            Err(Diagnostic::new(format!("cannot write to standard output: {fault}")))
        }
        _ => Ok(()),
    }
}

/// Standard output for a long text: a reader that has seen enough ends the program.
pub(crate) struct Stdout;

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

/// Writes a file beside its place and moves it there, so that nobody ever sees a part of it.
///
/// # Errors
/// The folder cannot be made or written.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
    write_whole_with(path, |file| file.write_all(content).map_err(|fault| cannot_write(path, &fault)))
}

/// As [`write_whole`], and the content is on the disk before the file has its name: neither a killed process nor a loss of
/// power leaves a part.
///
/// # Errors
/// As [`write_whole`].
pub(crate) fn write_durable(path: &Path, content: &[u8]) -> Result<(), Diagnostic> {
    let fill = |file: &mut dyn Write| file.write_all(content).map_err(|fault| cannot_write(path, &fault));
    write_and_move(path, true, fill)
}

/// As [`write_whole`], with what `fill` writes.
///
/// # Errors
/// As [`write_whole`], and whatever `fill` refuses.
pub(crate) fn write_whole_with<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    write_and_move(path, false, fill)
}

fn write_and_move<T>(
    path: &Path,
    durable: bool,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    let fault = |fault: &io::Error| cannot_write(path, fault);
    if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|e| fault(&e))?;
    }
    // A device or a pipe cannot be replaced, only written to.
    if path.exists() && !path.is_file() {
        let mut file = std::fs::OpenOptions::new().write(true).open(path).map_err(|e| fault(&e))?;
        return fill(&mut file);
    }
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    // Two threads may write the same file.
    let turn = TURN.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_file_name(format!(".{name}.{}.{turn}", std::process::id()));
    let file = std::fs::File::create(&beside).map_err(|e| fault(&e))?;
    let mut buffered = io::BufWriter::new(file);
    let filled = fill(&mut buffered).and_then(|done| {
        buffered.flush().map_err(|e| fault(&e))?;
        if durable {
            buffered.get_ref().sync_all().map_err(|e| fault(&e))?;
        }
        std::fs::rename(&beside, path).map_err(|e| fault(&e))?;
        Ok(done)
    });
    if filled.is_err() {
        // The first fault is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    filled
}

/// A file that cannot be written.
pub(crate) fn cannot_write(path: &Path, fault: &io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot write {}: {fault}", path.display()))
        .help("a path that can be written must be given: a file in a folder of yours")
}
