//! Detection of a file's format from its first bytes.

mod known;
mod reading;

use config::{Diagnostic, Place};
use serde::Serialize;
use text::{MAX_LINE, shown};

use crate::trace::detect::known::{no_trace, refuse_magic, wrong_door};
use crate::trace::format::{FORMATS, Format, Framing, Settings, columns, formats, is_header, named};
use crate::trace::human;
use crate::trace::options::TraceOptions;
use crate::trace::record::is_binary;

pub use known::{OtherFiles, what_is};
pub use reading::Reading;
pub(crate) use reading::Translation;

/// Number of lines that detection reads; enough to tell a number from a code.
const SAMPLE: usize = 2_048;

/// Result of detection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Detected {
    /// Format as which the file will be read.
    pub format: &'static str,
    /// Every format that the content fits, the chosen one first.
    pub candidates: Vec<Reading>,
}

impl Detected {
    /// Returns the warning that the user must see when more than one format fits.
    pub(crate) fn warning(&self) -> Option<String> {
        let (chosen, others) = self.candidates.split_first()?;
        if others.is_empty() {
            let doubtful = !chosen.implausible.is_empty();
            return doubtful.then(|| {
                format!("read as {}; if that is wrong, set --format or --columns", chosen.meaning())
            });
        }
        let others: Vec<String> = others.iter().map(Reading::meaning).collect();
        Some(format!(
            "the content fits several formats: read as {}; it could also be {}; set --format to choose",
            chosen.meaning(),
            others.join(", or ")
        ))
    }
    /// Returns the separation of fields in the chosen format.
    pub(crate) fn translation(&self) -> Option<Translation> {
        self.candidates.first().and_then(|chosen| chosen.translation)
    }
}

/// Detects a format from the first bytes of the decompressed content (preferably a whole number of lines).
///
/// # Errors
/// If the content is empty, not text or fits no format, with what was found instead.
pub fn detect(prefix: &[u8]) -> Result<Detected, Diagnostic> {
    detect_in("trace", prefix, true, &TraceOptions::default())
}

/// Runs [`detect`] for a named source; `all` says that the prefix is the whole content.
pub(crate) fn detect_in(
    source: &str,
    prefix: &[u8],
    all: bool,
    options: &TraceOptions,
) -> Result<Detected, Diagnostic> {
    refuse_magic(source, prefix, &options.others)?;
    // One stray byte makes a bad line, not a binary file.
    let controls = prefix.iter().filter(|b| is_binary(&[**b])).count();
    let binary = controls * 100 > prefix.len();
    let is_framed = |format: &&&Format| matches!(format.framing, Framing::Records(_)) == binary;
    let lines = if binary { Vec::new() } else { sample(prefix, all) };
    if !binary && lines.is_empty() {
        return Err(Diagnostic::new("the trace is empty")
            .at(place(source, b""))
            .help("a trace has a line per request; `list formats` shows the formats"));
    }
    let plain = TraceOptions::default();
    let mut readings = Vec::with_capacity(FORMATS.len());
    for format in FORMATS.iter().filter(is_framed) {
        // Options that do not apply to a format are refused when it is chosen, not here.
        let settings = format.settings(options, prefix).or_else(|_| format.settings(&plain, prefix))?;
        readings.push(match format.framing {
            Framing::Lines => Reading::of(format, &settings, lines.iter().copied(), None, options.capacity),
            Framing::Records(length) => {
                let records = records(prefix, all, length);
                Reading::of(format, &settings, records.into_iter(), None, options.capacity)
            }
        });
    }
    let whole = |r: &&Reading| r.bad_lines == 0 && r.requests > 0;
    let half = |r: &&Reading| r.good_lines >= r.bad_lines && r.requests > 0;
    let fit = |readings: &[Reading], fits: &dyn Fn(&&Reading) -> bool| -> Vec<Reading> {
        readings.iter().filter(fits).cloned().collect()
    };
    let mut candidates = by_header(fit(&readings, &whole), prefix, &lines, options)?;
    if candidates.is_empty() && !binary {
        // The same tables with a different character between their fields.
        candidates = by_header(fit(&translated(&lines, prefix, options)?, &whole), prefix, &lines, options)?;
    }
    // Properties that no real trace has decide between formats that fit; equals keep the order of the list.
    candidates.sort_by_key(|reading| reading.doubts());
    if candidates.is_empty() {
        if let Some(refused) = wrong_door(source, prefix, all, &options.others) {
            return Err(refused);
        }
        let first = lines.first().copied().unwrap_or_default();
        let known = FORMATS.iter().any(|format| is_header(first, format.info.record));
        if let Some(refused) = bad_header(prefix, options)?.filter(|_| !known) {
            return Err(refused.at(place(source, first)));
        }
        // A dirty trace is still a trace: the bad line gets its own diagnostic.
        candidates = by_header(fit(&readings, &half), prefix, &lines, options)?;
        candidates.sort_by_key(|r| (r.bad_lines, r.doubts()));
    }
    if candidates.is_empty() && !binary {
        candidates = by_header(fit(&translated(&lines, prefix, options)?, &half), prefix, &lines, options)?;
        candidates.sort_by_key(|r| (r.bad_lines, r.doubts()));
    }
    if candidates.is_empty() && !binary {
        candidates = fit(&readings, &|r: &&Reading| r.bad_lines == 0);
    }
    match (candidates.first(), lines.first()) {
        (Some(chosen), _) => Ok(Detected { format: chosen.format, candidates }),
        (None, Some(first)) => Err(fits_none(&readings, first).at(place(source, first))),
        (None, None) => {
            let help = "binary formats are libCacheSim (oracleGeneral), vscsiStats and HP Labs (SRT); all others are text: see `list formats`";
            Err(no_trace(source, prefix, "binary data in an unknown format", help))
        }
    }
}

/// Reads lines whose fields are separated by a different character than the format's.
fn translated(lines: &[&[u8]], prefix: &[u8], options: &TraceOptions) -> Result<Vec<Reading>, Diagnostic> {
    let mut readings = Vec::new();
    for format in FORMATS.iter().filter(|format| format.separator.is_some()) {
        let all = translated_as(format, lines, prefix, options)?;
        // If several separators work, take the first: where fields are quoted, most do.
        readings.extend(all.into_iter().min_by_key(|reading| (reading.requests == 0, reading.bad_lines)));
    }
    Ok(readings)
}

/// Reads lines of one format like [`translated`].
fn translated_as(
    format: &'static Format,
    lines: &[&[u8]],
    prefix: &[u8],
    options: &TraceOptions,
) -> Result<Vec<Reading>, Diagnostic> {
    let plain = TraceOptions::default();
    let settings = format.settings(options, prefix).or_else(|_| format.settings(&plain, prefix))?;
    let all = Translation::all(format).filter(|translation| translation.changes(lines));
    Ok(all
        .map(|translation| {
            let settings = Settings { translation: Some(translation), ..settings };
            let lines: Vec<Vec<u8>> = lines.iter().map(|line| translation.applied(line)).collect();
            let lines = lines.iter().map(Vec::as_slice);
            Reading::of(format, &settings, lines, Some(translation), options.capacity)
        })
        .collect())
}

/// Keeps the readings that a header allows among those that fit: a format's own header, or else the table that the
/// header names.
///
/// A header in a comment fits every format, but still decides.
fn by_header(
    mut candidates: Vec<Reading>,
    prefix: &[u8],
    lines: &[&[u8]],
    options: &TraceOptions,
) -> Result<Vec<Reading>, Diagnostic> {
    let table = columns::FORMAT.info.name;
    let known = candidates.iter().position(|reading| reading.format == table);
    let found = match known {
        Some(at) => Some(candidates.remove(at)),
        None if prefix.contains(&b'#') => translated_as(&columns::FORMAT, lines, prefix, options)?
            .into_iter()
            .find(|reading| reading.bad_lines == 0 && reading.requests > 0),
        None => None,
    };
    let Some(found) = found else { return Ok(candidates) };
    let settings = Settings { translation: found.translation, ..Settings::of_prefix(prefix) };
    let comment = columns::comment(&settings);
    let is_own = |reading: &Reading| {
        let record = named(reading.format).map_or("", |format| format.info.record);
        match &comment {
            Some(comment) => is_header(comment, record),
            // A header of a different format is a bad line.
            None => reading.bad_lines <= found.bad_lines,
        }
    };
    Ok(if candidates.iter().any(is_own) { candidates } else { vec![found] })
}

/// Returns the diagnostic of a table whose header names columns, but no requests.
fn bad_header(prefix: &[u8], options: &TraceOptions) -> Result<Option<Diagnostic>, Diagnostic> {
    let plain = TraceOptions::default();
    let format = &columns::FORMAT;
    let settings = format.settings(options, prefix).or_else(|_| format.settings(&plain, prefix))?;
    let mut all = std::iter::once(None).chain(Translation::all(format).map(Some));
    Ok(all.find_map(|translation| columns::explain(&Settings { translation, ..settings })))
}

fn fits_none(readings: &[Reading], first: &[u8]) -> Diagnostic {
    let best = readings.iter().filter(|r| r.requests > 0).min_by_key(|r| r.bad_lines);
    if let Some(Reading { format, good_lines, bad_lines, .. }) = best {
        let what = format!(
            "the content fits no trace format: `{format}` fits best, but only {} of the first {} lines",
            human::count(*good_lines),
            human::count(good_lines + bad_lines)
        );
        return Diagnostic::new(what)
            .help(format!("--format {format} reports what is wrong with the others"));
    }
    let is_header = first.contains(&b',')
        && !first.split(|b| *b == b',').any(|f| f.trim_ascii().iter().all(u8::is_ascii_digit));
    let help = match is_header {
        true => {
            "add a `csv` header with units (time_s,op,offset_bytes,size_bytes) or name the columns with --columns time_us,op,offset,size; `list formats` shows the other formats"
        }
        false => {
            "`list formats` shows the record of each; --format names one; `csv` takes any columns with a header, or with --columns"
        }
    };
    Diagnostic::new(format!("the content fits no trace format: its first line has {}", shape(first)))
        .allowed("", formats().map(|info| info.name))
        .help(help)
}

/// Returns the format that the options name, or the detected one with a warning if several fit; and the separator of
/// its fields, if it differs from the format's.
pub(crate) fn choose(
    source: &str,
    prefix: &[u8],
    all: bool,
    options: &TraceOptions,
) -> Result<(&'static Format, Option<Detected>, Option<Translation>), Diagnostic> {
    let table = options.columns.as_ref().map(|_| "csv");
    if let Some(name) = options.format.as_deref().or(table) {
        let format = named(name)?;
        refuse_magic(source, prefix, &options.others)?;
        let translation = separator_of(format, &sample(prefix, all), prefix, options)?;
        return Ok((format, None, translation));
    }
    let detected = detect_in(source, prefix, all, options)?;
    let translation = detected.translation();
    Ok((named(detected.format)?, Some(detected), translation))
}

/// Returns the separator of fields in a file of a named format: the format's own, unless no line fits with it and one
/// does with a different one.
fn separator_of(
    format: &'static Format,
    lines: &[&[u8]],
    prefix: &[u8],
    options: &TraceOptions,
) -> Result<Option<Translation>, Diagnostic> {
    let settings = format.settings(options, prefix)?;
    let requests = |translation: Option<Translation>| {
        let lines: Vec<Vec<u8>> = lines
            .iter()
            .map(|line| translation.map_or_else(|| line.to_vec(), |other| other.applied(line)))
            .collect();
        let lines = lines.iter().map(Vec::as_slice);
        let settings = Settings { translation, ..settings };
        Reading::of(format, &settings, lines, translation, None).requests
    };
    if format.separator.is_none() || requests(None) > 0 {
        return Ok(None);
    }
    let others = Translation::all(format).filter(|translation| translation.changes(lines));
    Ok(others.filter(|other| requests(Some(*other)) > 0).max_by_key(|other| requests(Some(*other))))
}

fn place(source: &str, line: &[u8]) -> Place {
    Place { source: source.to_owned(), line: 1, column: 0, text: shown(line, 200), key: String::new() }
}

/// Returns the lines with content, without the last one if it may be cut.
fn sample(prefix: &[u8], all: bool) -> Vec<&[u8]> {
    let whole = if all { prefix.len() } else { memchr::memrchr(b'\n', prefix).unwrap_or(prefix.len()) };
    prefix[..whole]
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !is_blank_or_comment(line) && line.len() <= MAX_LINE)
        .take(SAMPLE)
        .collect()
}

/// Returns the binary records, without the last one if it may be cut.
fn records(prefix: &[u8], all: bool, length: fn(&[u8]) -> usize) -> Vec<&[u8]> {
    let (mut rest, mut records) = (prefix, Vec::new());
    while !rest.is_empty() && records.len() < SAMPLE {
        let length = length(rest).max(1);
        if length > rest.len() && !all && !records.is_empty() {
            break;
        }
        let (record, behind) = rest.split_at(length.min(rest.len()));
        records.push(record);
        rest = behind;
    }
    records
}

/// Returns true for lines that no format looks at.
pub(crate) fn is_blank_or_comment(line: &[u8]) -> bool {
    line.iter().find(|b| !b.is_ascii_whitespace()).is_none_or(|b| *b == b'#')
}

/// Describes a line: `5 fields separated by blanks: integer, integer, word …`
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
