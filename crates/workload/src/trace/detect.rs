//! Which format a file is, from its first bytes.

use config::{Diagnostic, Place};
use serde::Serialize;

use crate::trace::fault::{is_binary, shown};
use crate::trace::format::{FORMATS, Format, Settings, formats, named};
use crate::trace::human;
use crate::trace::lines::MAX_LINE;
use crate::trace::options::TraceOptions;
use crate::trace::record::Sheet;

/// Lines that detection reads; enough to tell a number from a code.
const SAMPLE: usize = 2_048;

/// What the first bytes of a file say.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detected {
    /// The format it will be read as.
    pub format: &'static str,
    /// Every format that the content fits, the chosen one first.
    pub candidates: Vec<Reading>,
}

/// What the first lines mean if they are read as one format.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The format.
    pub format: &'static str,
    /// Lines that fit it.
    pub good_lines: u64,
    /// Lines that do not.
    pub bad_lines: u64,
    /// Requests on them.
    pub requests: u64,
    /// Time from the earliest to the latest, in seconds.
    pub span_s: f64,
    #[serde(skip)]
    span_ps: u128,
}

impl Detected {
    /// The sentence a user must see when more than one format fits.
    pub(crate) fn warning(&self) -> Option<String> {
        let (chosen, others) = self.candidates.split_first()?;
        if others.is_empty() {
            return None;
        }
        let others: Vec<String> = others.iter().map(Reading::meaning).collect();
        Some(format!(
            "the content fits several formats: read as {}; it could be {}; --format decides",
            chosen.meaning(),
            others.join(", or ")
        ))
    }
}

impl Reading {
    fn meaning(&self) -> String {
        let rate = match self.span_s {
            0.0 => "all at one instant".to_owned(),
            span => human::rate(self.requests as f64 / span),
        };
        format!(
            "`{}` (first {} requests: {}, {rate})",
            self.format,
            human::count(self.requests),
            human::span(self.span_ps)
        )
    }

    fn of(format: &Format, settings: &Settings<'_>, lines: &[&[u8]]) -> Reading {
        let mut parser = (format.parser)(settings);
        let mut sheet = Sheet::default();
        let mut reading = Reading {
            format: format.info.name,
            good_lines: 0,
            bad_lines: 0,
            requests: 0,
            span_s: 0.0,
            span_ps: 0,
        };
        let (mut first, mut last) = (u128::MAX, 0);
        for line in lines {
            let mut good = parser.parse(line, &mut sheet).is_ok();
            while let Some(request) = sheet.take() {
                good &= (format.plausible)(&request);
                if good {
                    reading.requests += 1;
                    first = first.min(request.at);
                    last = last.max(request.at);
                }
            }
            reading.good_lines += u64::from(good);
            reading.bad_lines += u64::from(!good);
        }
        reading.span_ps = last.saturating_sub(first);
        reading.span_s = reading.span_ps as f64 / 1e12;
        reading
    }
}

/// Recognises a format by the first bytes of the decompressed content (a whole number of lines is best).
///
/// # Errors
/// Content that is empty, not text or fits no format, with what was found instead.
pub fn detect(prefix: &[u8]) -> Result<Detected, Diagnostic> {
    detect_in("trace", prefix, true, &TraceOptions::default())
}

/// [`detect`] for a named source; `all` says that the prefix is the whole content.
pub(crate) fn detect_in(
    source: &str,
    prefix: &[u8],
    all: bool,
    options: &TraceOptions,
) -> Result<Detected, Diagnostic> {
    refuse_binary(source, prefix)?;
    let lines = sample(prefix, all);
    let Some(first) = lines.first() else {
        return Err(Diagnostic::new("the trace is empty")
            .at(place(source, b""))
            .help("a trace has a line for each request; `list formats` shows them"));
    };
    let mut readings = Vec::with_capacity(FORMATS.len());
    for format in FORMATS {
        // Options that do not apply to a format are refused when it is chosen, not here.
        let settings = format
            .settings(options, prefix)
            .or_else(|_| format.settings(&TraceOptions::default(), prefix))?;
        readings.push(Reading::of(format, &settings, &lines));
    }
    let whole = |r: &&Reading| r.bad_lines == 0 && r.requests > 0;
    let half = |r: &&Reading| r.good_lines >= r.bad_lines && r.requests > 0;
    let bare = |r: &&Reading| r.bad_lines == 0;
    let fit = |fits: &dyn Fn(&&Reading) -> bool| -> Vec<Reading> {
        readings.iter().filter(fits).cloned().collect()
    };
    let mut candidates = fit(&whole);
    if candidates.is_empty() {
        // A dirty trace is still a trace: the bad line gets its own diagnostic.
        candidates = fit(&half);
        candidates.sort_by_key(|r| r.bad_lines);
    }
    if candidates.is_empty() {
        candidates = fit(&bare);
    }
    match candidates.first() {
        Some(chosen) => Ok(Detected { format: chosen.format, candidates }),
        None => Err(fits_none(&readings, first).at(place(source, first))),
    }
}

fn fits_none(readings: &[Reading], first: &[u8]) -> Diagnostic {
    let best = readings.iter().filter(|r| r.requests > 0).min_by_key(|r| r.bad_lines);
    if let Some(Reading { format, good_lines, bad_lines, .. }) = best {
        let what = format!(
            "the content fits no trace format: `{format}` fits best, but only {} of the first {} lines",
            human::count(*good_lines),
            human::count(good_lines + bad_lines)
        );
        return Diagnostic::new(what).help(format!("--format {format} says what is wrong with the others"));
    }
    let is_header = first.contains(&b',')
        && !first.split(|b| *b == b',').any(|f| f.trim_ascii().iter().all(u8::is_ascii_digit));
    let help = match is_header {
        true => {
            "a header as `csv` reads it names the units: time_s,op,offset_bytes,size_bytes; `list formats` shows the records of the others"
        }
        false => {
            "`list formats` shows the record of each; --format names one; `csv` takes any columns with a header"
        }
    };
    Diagnostic::new(format!("the content fits no trace format: its first line has {}", shape(first)))
        .allowed("", formats().map(|info| info.name))
        .help(help)
}

/// The format that the options name, or the one that the content shows with a warning if it shows several.
pub(crate) fn choose(
    source: &str,
    prefix: &[u8],
    all: bool,
    options: &TraceOptions,
) -> Result<(&'static Format, Option<Detected>), Diagnostic> {
    if let Some(name) = &options.format {
        let format = named(name)?;
        refuse_known(source, prefix)?;
        return Ok((format, None));
    }
    let detected = detect_in(source, prefix, all, options)?;
    Ok((named(detected.format)?, Some(detected)))
}

fn place(source: &str, line: &[u8]) -> Place {
    Place { source: source.to_owned(), line: 1, column: 0, text: shown(line, 200), key: String::new() }
}

/// Lines with content, without the last one if it may be cut.
fn sample(prefix: &[u8], all: bool) -> Vec<&[u8]> {
    let whole = if all { prefix.len() } else { memchr::memrchr(b'\n', prefix).unwrap_or(prefix.len()) };
    prefix[..whole]
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !is_blank_or_comment(line) && line.len() <= MAX_LINE)
        .take(SAMPLE)
        .collect()
}

/// Lines that no format looks at.
pub(crate) fn is_blank_or_comment(line: &[u8]) -> bool {
    line.iter().find(|b| !b.is_ascii_whitespace()).is_none_or(|b| *b == b'#')
}

/// `5 fields separated by blanks: integer, integer, word …`
fn shape(line: &[u8]) -> String {
    let comma = line.contains(&b',');
    let kinds: Vec<&str> = line
        .split(|b| if comma { *b == b',' } else { b.is_ascii_whitespace() })
        .map(<[u8]>::trim_ascii)
        .filter(|field| comma || !field.is_empty())
        .map(|field| match field {
            [] => "nothing",
            f if f.iter().all(u8::is_ascii_digit) => "integer",
            f if f.iter().all(|b| b.is_ascii_digit() || *b == b'.') => "decimal",
            _ => "word",
        })
        .collect();
    let shown = kinds.iter().take(12).copied().collect::<Vec<_>>().join(", ");
    let more = if kinds.len() > 12 { ", …" } else { "" };
    let separator = if comma { "commas" } else { "blanks" };
    let fields = if kinds.len() == 1 { "field" } else { "fields" };
    format!("{} {fields} separated by {separator}: {shown}{more}", kinds.len())
}

/// Refuses content that is not text.
fn refuse_binary(source: &str, prefix: &[u8]) -> Result<(), Diagnostic> {
    refuse_known(source, prefix)?;
    // One stray byte makes a bad line, not a binary file.
    let controls = prefix.iter().filter(|b| is_binary(&[**b])).count();
    if controls * 100 > prefix.len() {
        return Err(not_text(
            source,
            prefix,
            "binary data",
            "traces in text are read; `list formats` shows them",
        ));
    }
    Ok(())
}

/// Says what a file is that everybody knows.
fn refuse_known(source: &str, prefix: &[u8]) -> Result<(), Diagnostic> {
    const KNOWN: [(&[u8], &str, &str); 11] = [
        (b"PK\x03\x04", "a zip archive", "unpack it"),
        (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "unpack it"),
        (b"\x1f\x8b", "gzip data inside the compressed data", "unpack it once"),
        (b"\xfd7zXZ\0", "xz data inside the compressed data", "unpack it once"),
        (b"\x28\xb5\x2f\xfd", "zstd data inside the compressed data", "unpack it once"),
        (
            b"\x04\x22\x4d\x18",
            "LZ4 data",
            "unpack it with `lz4 -d`; gzip, xz, bzip2 and zstd are read directly",
        ),
        (b"PAR1", "a Parquet file", "write it as CSV with a header (format `csv`)"),
        (b"SQLite format 3\0", "an SQLite database", "write its table as CSV with a header (format `csv`)"),
        (b"\xff\xfe", "UTF-16 text", "write it as UTF-8"),
        (b"\xfe\xff", "UTF-16 text", "write it as UTF-8"),
        (b"\x07\x74\x61\x65", "binary blktrace data", "print it with `blkparse -i FILE` and read that"),
    ];
    let tar = prefix.get(257..262).is_some_and(|magic| magic == b"ustar");
    match KNOWN.iter().find(|(magic, ..)| prefix.starts_with(magic)) {
        Some((_, what, help)) => Err(not_text(source, prefix, what, help)),
        None if tar => Err(not_text(source, prefix, "a tar archive", "unpack it")),
        None => Ok(()),
    }
}

fn not_text(source: &str, prefix: &[u8], what: &str, help: &str) -> Diagnostic {
    let start = &prefix[..prefix.len().min(32)];
    Diagnostic::new(format!("this is {what}, not a text trace")).at(place(source, start)).help(help)
}
