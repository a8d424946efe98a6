//! CSV output of Nsight Compute.

use super::tables::{DURATION, Metrics, Raw, joined};
use super::{UNITS, grouped, unit_ns, unreadable};
use crate::profile::{Dims, Format, Profile, check};
use config::{Diagnostic, Place};
use csv::{ByteRecord, ErrorKind};
use std::io::{self, BufRead, Read};

/// Name of the duration in the section `GPU Speed Of Light Throughput`.
const IN_SECTION: &str = "Duration";

/// Kernel whose rows are being read.
struct Open {
    id: Vec<u8>,
    process: Vec<u8>,
    name: String,
    grid: Option<Dims>,
    block: Option<Dims>,
    duration_ns: Option<f64>,
}

/// Reads one row per metric; the rows of a kernel follow each other.
pub(super) fn metrics<R: BufRead>(mut rows: Rows<R>, columns: &Metrics) -> Result<Profile, Diagnostic> {
    let mut profile = super::profile(rows.format);
    let mut open: Option<Open> = None;
    while rows.next()? {
        let id = rows.text(columns.id, "ID")?.as_bytes();
        let process = columns.process.map_or(Ok(&b""[..]), |column| rows.field(column, "process"))?;
        if !open.as_ref().is_some_and(|open| open.id == id && open.process == process) {
            let next = Open {
                id: id.to_vec(),
                process: process.to_vec(),
                name: rows.text(columns.name, "name of the kernel")?.to_owned(),
                grid: joined(&rows, columns.grid, "grid")?,
                block: joined(&rows, columns.block, "block")?,
                duration_ns: None,
            };
            if let Some(done) = open.replace(next) {
                close(&mut profile, done).map_err(|fault| rows.placed(fault, None))?;
            }
        }
        let metric = rows.field(columns.metric, "name of the metric")?;
        if metric != DURATION.as_bytes() && metric != IN_SECTION.as_bytes() {
            continue;
        }
        let unit = rows.text(columns.unit, "unit of the duration")?;
        let unit_ns = unit_ns(unit).ok_or_else(|| no_unit(&rows, unit, columns.unit))?;
        let duration_ns = duration(&rows, columns.value, unit_ns)?;
        if let Some(open) = &mut open {
            open.duration_ns.get_or_insert(duration_ns);
        }
    }
    if let Some(done) = open {
        close(&mut profile, done).map_err(|fault| rows.placed(fault, None))?;
    }
    Ok(profile)
}

fn close(profile: &mut Profile, done: Open) -> Result<(), Diagnostic> {
    let Some(duration_ns) = done.duration_ns else {
        let what = format!(
            "the kernel of ID {} (`{}`) has no duration: no row `{DURATION}` or `{IN_SECTION}` ends before the next kernel",
            String::from_utf8_lossy(&done.id),
            done.name
        );
        return Err(Diagnostic::new(what));
    };
    profile.push(&done.name, done.grid, done.block, duration_ns)
}

/// Reads one row per kernel, after a row of units.
pub(super) fn raw<R: BufRead>(mut rows: Rows<R>, columns: &Raw) -> Result<Profile, Diagnostic> {
    let mut profile = super::profile(rows.format);
    if !rows.next()? {
        return Ok(profile);
    }
    let unit = rows.field(columns.duration, "unit of the duration")?;
    let unit = String::from_utf8_lossy(unit).into_owned();
    let Some(unit_ns) = unit_ns(&unit).filter(|_| rows.field(columns.id, "ID").is_ok_and(<[u8]>::is_empty))
    else {
        return Err(no_unit(&rows, &unit, columns.duration));
    };
    while rows.next()? {
        let name = rows.text(columns.name, "name of the kernel")?;
        let (grid, block) = (joined(&rows, columns.grid, "grid")?, joined(&rows, columns.block, "block")?);
        let duration_ns = duration(&rows, columns.duration, unit_ns)?;
        profile.push(name, grid, block, duration_ns)?;
    }
    Ok(profile)
}

fn duration<R: BufRead>(rows: &Rows<R>, column: usize, unit_ns: f64) -> Result<f64, Diagnostic> {
    let field = rows.field(column, "duration")?;
    if field.is_empty() {
        return Err(rows.fault("the duration is missing", Some(column), &["a real number"]));
    }
    let value = grouped(field).ok_or_else(|| {
        let what = format!("the duration is not a number: `{}`", String::from_utf8_lossy(field));
        rows.fault(
            &what,
            Some(column),
            &["a real number such as 1234.5 or 1,234.5: LC_ALL=C makes ncu print these"],
        )
    })?;
    let duration_ns = value * unit_ns;
    check(duration_ns).map_err(|fault| rows.placed(fault, Some(column)))?;
    Ok(duration_ns)
}

fn no_unit<R: BufRead>(rows: &Rows<R>, unit: &str, column: usize) -> Diagnostic {
    let fault = Diagnostic::new(format!("the unit of the duration is `{unit}`, not a unit of time"))
        .allowed(unit, UNITS);
    rows.placed(fault, Some(column))
}

// Rows of a table, with the place of each for diagnostics.

/// Maximum length of a row in a diagnostic, in characters.
const SHOWN: usize = 300;

pub(super) struct Rows<R> {
    reader: csv::Reader<Watched<R>>,
    record: ByteRecord,
    source: String,
    before: u64,
    /// Line number of the row.
    line: u64,
    pub(super) format: Format,
}

/// Reader that tracks whether quotes are closed and the last line is terminated.
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
    /// Creates rows that follow `before` lines.
    pub(super) fn new(source: &str, before: u64, bytes: R, format: Format) -> Rows<R> {
        let watched = Watched { inner: bytes, quotes: 0, last: b'\n' };
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .buffer_capacity(super::BUFFER)
            .from_reader(watched);
        Rows { reader, record: ByteRecord::new(), source: source.to_owned(), before, line: before, format }
    }

    /// Moves to the next row; returns false at the end. Remarks of profilers between rows are skipped.
    ///
    /// # Errors
    /// The bytes cannot be read, or end within quotes.
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
                        _ => Diagnostic::new(format!("{} is not CSV: {fault}", self.source)),
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

    /// Returns whether the last line has its line feed; valid at the end.
    pub(super) fn is_ended(&self) -> bool {
        self.reader.get_ref().last == b'\n'
    }

    /// Field of the row.
    ///
    /// # Errors
    /// The row ends before it.
    pub(super) fn field(&self, column: usize, what: &str) -> Result<&[u8], Diagnostic> {
        self.record
            .get(column)
            .map(<[u8]>::trim_ascii)
            .ok_or_else(|| self.fault(&format!("the row ends before the {what}"), None, &[]))
    }

    /// Non-empty text field of the row.
    ///
    /// # Errors
    /// The row ends before the field, or the field is empty or not UTF-8.
    pub(super) fn text(&self, column: usize, what: &str) -> Result<&str, Diagnostic> {
        let bytes = self.field(column, what)?;
        if bytes.is_empty() {
            return Err(self.fault(&format!("the {what} is missing"), Some(column), &[]));
        }
        str::from_utf8(bytes).map_err(|_| self.fault(&format!("the {what} is not UTF-8"), Some(column), &[]))
    }

    /// Creates a diagnostic at a field of the row.
    pub(super) fn fault(&self, what: &str, column: Option<usize>, allowed: &[&str]) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(what);
        diagnostic.allowed = allowed.iter().map(|one| (*one).to_owned()).collect();
        self.placed(diagnostic, column)
    }

    /// Adds the row, and the field at fault, to a diagnostic.
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
