//! Rows of a table, with the place of each for diagnostics.

use super::unreadable;
use crate::profile::Format;
use config::{Diagnostic, Place};
use csv::{ByteRecord, ErrorKind};
use std::io::{self, BufRead, Read};

/// Characters of a row that a diagnostic keeps.
const SHOWN: usize = 300;

pub(super) struct Rows<R> {
    reader: csv::Reader<Watched<R>>,
    record: ByteRecord,
    source: String,
    before: u64,
    /// The line of the row.
    line: u64,
    pub(super) format: Format,
}

/// Bytes of which is known whether quotes are closed and the last line is ended.
struct Watched<R> {
    inner: R,
    quotes: u64,
    last: u8,
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.quotes += memchr::memchr_iter(b'"', &buffer[..n]).count() as u64;
        self.last = buffer[..n].last().copied().unwrap_or(self.last);
        Ok(n)
    }
}

impl<R: BufRead> Rows<R> {
    /// Rows that follow `before` lines.
    pub(super) fn new(source: &str, before: u64, bytes: R, format: Format) -> Rows<R> {
        let watched = Watched { inner: bytes, quotes: 0, last: b'\n' };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(super::BUFFER)
            .from_reader(watched);
        Rows { reader, record: ByteRecord::new(), source: source.to_owned(), before, line: before, format }
    }

    /// Goes to the next row; false at the end. What profilers say between rows is no row.
    ///
    /// # Errors
    /// Bytes that cannot be read, and an end within quotes.
    pub(super) fn next(&mut self) -> Result<bool, Diagnostic> {
        loop {
            match self.reader.read_byte_record(&mut self.record) {
                Ok(true) => {}
                Ok(false) if self.reader.get_ref().quotes % 2 == 1 => {
                    let place = Place { source: self.source.clone(), line: self.line, ..Place::default() };
                    return Err(Diagnostic::new("the file is truncated: it ends within quotes")
                        .at(place)
                        .help("copy or record the profile again"));
                }
                Ok(false) => return Ok(false),
                Err(fault) => {
                    return Err(match fault.kind() {
                        ErrorKind::Io(fault) => unreadable(&self.source, fault),
                        _ => Diagnostic::new(format!("{} is no CSV: {fault}", self.source)),
                    });
                }
            }
            self.line = self.before + self.record.position().map_or(0, csv::Position::line);
            let is_remark = self.record.get(0).is_none_or(|first| first.starts_with(b"=="));
            if !is_remark {
                return Ok(true);
            }
        }
    }

    /// Whether the last line has its line feed; asked at the end.
    pub(super) fn is_ended(&self) -> bool {
        self.reader.get_ref().last == b'\n'
    }

    /// A field of the row.
    ///
    /// # Errors
    /// The row ends before it.
    pub(super) fn field(&self, column: usize, what: &str) -> Result<&[u8], Diagnostic> {
        self.record
            .get(column)
            .map(<[u8]>::trim_ascii)
            .ok_or_else(|| self.fault(&format!("the row ends before the {what}"), None, &[]))
    }

    /// A field that must be a text.
    ///
    /// # Errors
    /// The row ends before it, it is empty, or it is not UTF-8.
    pub(super) fn text(&self, column: usize, what: &str) -> Result<&str, Diagnostic> {
        let bytes = self.field(column, what)?;
        if bytes.is_empty() {
            return Err(self.fault(&format!("the {what} is missing"), Some(column), &[]));
        }
        str::from_utf8(bytes).map_err(|_| self.fault(&format!("the {what} is not UTF-8"), Some(column), &[]))
    }

    /// A diagnostic at a field of the row.
    pub(super) fn fault(&self, what: &str, column: Option<usize>, allowed: &[&str]) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(what);
        diagnostic.allowed = allowed.iter().map(|one| (*one).to_owned()).collect();
        self.placed(diagnostic, column)
    }

    /// Puts the row, and the field it is about, into a diagnostic.
    pub(super) fn placed(&self, diagnostic: Diagnostic, column: Option<usize>) -> Diagnostic {
        let shown = |field: &[u8]| {
            let text = String::from_utf8_lossy(field);
            if text.contains(',') { format!("\"{text}\"") } else { text.into_owned() }
        };
        let fields: Vec<String> = self.record.iter().map(shown).collect();
        let caret = column.filter(|column| *column < fields.len()).map_or(0, |column| {
            let before: usize = fields[..column].iter().map(|field| field.chars().count() + 1).sum();
            before as u64 + 1
        });
        let text: String = fields.join(",").chars().take(SHOWN).collect();
        let place =
            Place { source: self.source.clone(), line: self.line, column: caret, text, key: String::new() };
        let help = format!("the file is read as: {}", self.format);
        diagnostic.at(place).help(help)
    }
}
