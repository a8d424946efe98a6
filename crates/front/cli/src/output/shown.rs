//! What a terminal is shown: lines without characters that would move its cursor or change its colours.

use std::io::{self, Write};

/// Bytes of a line that is shown before its end is known: *chosen*.
const LONGEST: usize = 64 << 10;

/// Passes on whole lines, or what there is of one when it is flushed.
pub(super) struct Shown<W> {
    inner: W,
    held: Vec<u8>,
}

impl<W: Write> Shown<W> {
    pub(super) fn on(inner: W) -> Shown<W> {
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
}
