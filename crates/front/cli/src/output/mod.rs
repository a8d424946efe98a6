//! Output: to standard output, to files that appear whole or not at all, and to terminals, without control characters.

mod closed;
mod overlap;

pub(crate) use outside::{
    Beside, Fault, cannot_write, make_folder, remove_unfinished, write_durable, write_whole, write_whole_with,
};
pub(crate) use overlap::Files;

use config::Diagnostic;
use outside::{filled, remedy};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::Path;

/// Writes the text and a line feed to standard output, without terminal escapes. A reader that has closed its end is
/// not an error.
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

/// Columns of standard output: the terminal's, else those of the variable `COLUMNS`. `None` in a file or a pipe, whose lines are not broken.
fn columns_if_any() -> Option<usize> {
    let of_terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    let named = || std::env::var("COLUMNS").ok()?.parse().ok();
    of_terminal.or_else(named).map(|columns: usize| columns.max(40))
}

/// Columns for tables; 80 in a file or a pipe.
pub(crate) fn columns() -> usize {
    columns_if_any().unwrap_or(80)
}

/// The text with lines broken between words where standard output has columns. What continues a line is indented by two more.
pub(crate) fn wrapped(text: &str) -> String {
    let Some(columns) = columns_if_any() else { return text.to_owned() };
    text.lines().map(|line| wrapped_line(line, columns)).collect::<Vec<_>>().join("\n")
}

/// Breaks a line between words; a per cent sign stays with its number.
fn wrapped_line(line: &str, columns: usize) -> String {
    if line.chars().count() <= columns {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let line = line.replace(" %", "\u{a0}%");
    let (mut out, mut used, mut blanks) = (String::new(), 0, 0);
    for word in line.split(' ') {
        if word.is_empty() {
            blanks += 1;
            continue;
        }
        let length = word.chars().count();
        if used > indent && used + blanks + length > columns {
            out.push('\n');
            blanks = indent + 2;
            used = 0;
        }
        out.push_str(&" ".repeat(blanks));
        out.push_str(word);
        used += blanks + length;
        // The blank between this word and the next.
        blanks = 1;
    }
    out.replace('\u{a0}', " ")
}

/// Refuses to write to a standard output that was closed: the runtime has opened `/dev/null` in its place.
fn refuse_closed() -> Result<(), Fault> {
    if closed::is_closed() { Err(cannot_print(&io::Error::other("it is closed"))) } else { Ok(()) }
}

fn cannot_print(fault: &io::Error) -> Fault {
    let what = Diagnostic::new(format!("cannot write to standard output: {fault}"));
    Fault::Undelivered(what.help(remedy(Path::new("standard output"), fault.kind())))
}

/// Writes a long text to standard output, without escapes if it is a terminal. A reader that closes its end ends the
/// program.
///
/// # Errors
/// Standard output cannot be written, or `fill` fails.
pub(crate) fn print_with<T>(fill: impl FnOnce(&mut dyn Write) -> Result<T, Diagnostic>) -> Result<T, Fault> {
    refuse_closed()?;
    let inner: Box<dyn Write> =
        if io::stdout().is_terminal() { Box::new(Shown::on(Stdout)) } else { Box::new(Stdout) };
    filled(io::BufWriter::new(inner), fill, cannot_print)
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

/// Refuses a path that cannot be a file, before any work.
///
/// # Errors
/// The folder does not exist, or the path is a folder.
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

/// Bytes of a line that are shown before its end is known: *chosen*.
const LONGEST: usize = 64 << 10;

/// Writer that passes on whole lines, and a partial line when flushed.
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

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn long_lines_are_broken_between_words_and_indented() {
        let line = "  a read waits for: array 45.21 us (2 %), die_wait 1.90 ms (97 %)";
        assert_eq!(
            super::wrapped_line(line, 40),
            "  a read waits for: array 45.21 us\n    (2 %), die_wait 1.90 ms (97 %)"
        );
        assert_eq!(super::wrapped_line(line, 80), line);
        let word = "x".repeat(50);
        assert_eq!(super::wrapped_line(&word, 40), word);
    }
}
