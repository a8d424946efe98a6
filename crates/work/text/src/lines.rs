//! Lines of bounded length from a stream of unbounded length.

use std::io::{self, Read};

use crate::input::Bytes;

/// The longest line: no format comes near, and a file without line breaks must not be held in memory.
pub const MAX_LINE: usize = 64 << 10;
/// What format detection sees of a file.
pub const PREFIX: usize = 64 << 10;
const BUFFER: usize = 256 << 10;

/// What [`Lines::next`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line without its end (`\n` or `\r\n`).
    Text(&'a [u8]),
    /// A line longer than [`MAX_LINE`]: its start. The rest is passed over.
    TooLong(&'a [u8]),
    /// No more lines.
    End,
}

/// Splits a stream into lines in a fixed buffer.
pub struct Lines {
    source: Bytes,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    at_end: bool,
    failed: Option<io::Error>,
    number: u64,
}

impl Lines {
    /// The lines of an input.
    pub fn new(source: Bytes) -> Lines {
        let buffer = vec![0; BUFFER].into_boxed_slice();
        Lines { source, buffer, start: 0, end: 0, at_end: false, failed: None, number: 0 }
    }

    /// The number of the line last returned, counted from one.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The first [`PREFIX`] bytes, or fewer if there are fewer; takes nothing.
    ///
    /// A read error waits until the lines before it are taken, unless there are none.
    pub fn prefix(&mut self) -> io::Result<&[u8]> {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        while self.end - self.start < PREFIX && self.fill() {}
        // In binary data the same bytes may begin a number.
        let there = &self.buffer[self.start..self.end];
        if self.number == 0 && there.starts_with(BOM) && !there[..there.len().min(64)].contains(&0) {
            self.start += BOM.len();
        }
        if self.start == self.end
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + PREFIX)])
    }

    /// Whether [`Lines::prefix`] is the whole input.
    pub fn prefix_is_all(&self) -> bool {
        self.at_end && self.failed.is_none() && self.end - self.start <= PREFIX
    }

    /// The next line.
    #[allow(clippy::should_implement_trait, reason = "a line lends the buffer")]
    pub fn next(&mut self) -> io::Result<Line<'_>> {
        let mut searched = 0;
        loop {
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[self.start + searched..self.end]) {
                let from = self.start;
                let to = from + searched + n;
                self.start = to + 1;
                self.number += 1;
                return Ok(self.whole(from, to));
            }
            searched = self.end - self.start;
            if searched > MAX_LINE {
                return self.pass_over();
            }
            if !self.fill() {
                if let Some(error) = self.failed.take() {
                    return Err(error);
                }
                if searched == 0 {
                    return Ok(Line::End);
                }
                let (from, to) = (self.start, self.end);
                self.start = to;
                self.number += 1;
                return Ok(self.whole(from, to));
            }
        }
    }

    /// The next record of bytes and whether it is whole, `None` at the end; `length` says how long the one is that begins what it is
    /// given.
    pub fn next_record(&mut self, length: fn(&[u8]) -> usize) -> io::Result<Option<(&[u8], bool)>> {
        while self.end - self.start < MAX_LINE && self.fill() {}
        if self.start == self.end {
            return self.failed.take().map_or(Ok(None), Err);
        }
        let there = &self.buffer[self.start..self.end];
        let length = length(there).max(1);
        if length > there.len()
            && let Some(error) = self.failed.take()
        {
            return Err(error);
        }
        self.number += 1;
        let from = self.start;
        self.start = (from + length).min(self.end);
        let record = &self.buffer[from..self.start];
        Ok(Some((record, length == record.len())))
    }

    fn whole(&self, from: usize, to: usize) -> Line<'_> {
        let text = &self.buffer[from..to];
        if text.len() > MAX_LINE {
            return Line::TooLong(&text[..MAX_LINE]);
        }
        Line::Text(text.strip_suffix(b"\r").unwrap_or(text))
    }

    /// Takes the rest of a line that does not fit, and keeps its start.
    fn pass_over(&mut self) -> io::Result<Line<'_>> {
        self.number += 1;
        self.buffer.copy_within(self.start..self.start + MAX_LINE, 0);
        loop {
            self.start = MAX_LINE;
            self.end = MAX_LINE;
            if !self.fill_tail() {
                break;
            }
            if let Some(n) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += n + 1;
                break;
            }
        }
        Ok(Line::TooLong(&self.buffer[..MAX_LINE]))
    }

    /// Reads more behind what is there; false at the end of the input or after an error.
    fn fill(&mut self) -> bool {
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        self.fill_tail()
    }

    fn fill_tail(&mut self) -> bool {
        while !self.at_end && self.end < self.buffer.len() {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => {
                    self.end += n;
                    return true;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => {
                    self.at_end = true;
                    self.failed = Some(e);
                }
            }
        }
        false
    }
}
