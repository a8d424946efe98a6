//! Scan of a file: its requests in the order of lines, each line checked.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::{Diagnostic, Place};
use text::{Compression, Input, Line, Lines, Meter, shown};

use super::Clock;
use crate::trace::detect::{self, Translation, is_blank_or_comment};
use crate::trace::format::{Format, FormatInfo, Framing, LineParser, Settings};
use crate::trace::human;
use crate::trace::options::TraceOptions;
use crate::trace::record::{Fault, FaultKind, RawRequest, Sheet, TraceNotes, ZERO, is_binary};

/// Reads a file line by line, or the parts of a trace one after another.
pub(crate) struct Scan {
    /// Parts that have been opened, the current one last.
    sources: Vec<String>,
    /// Parts still to come.
    to_come: VecDeque<PathBuf>,
    part: Part,
    /// Bytes of the earlier parts.
    taken: u64,
    format: &'static Format,
    sheet: Sheet,
    options: TraceOptions,
    /// Clock of the recorder.
    clock: Clock,
    /// Earliest and latest time so far.
    earliest: u128,
    latest: u128,
    /// True if no request of the current part has been seen.
    fresh: bool,
}

/// A file being read.
struct Part {
    lines: Lines,
    compression: Compression,
    meter: Arc<Meter>,
    parser: Box<dyn LineParser>,
    framing: Framing,
    /// Separator of the fields, if it differs from the format's, and a line rewritten with the format's.
    translation: Option<Translation>,
    translated: Vec<u8>,
}

impl Part {
    /// Detects the compression and the format of `input`.
    fn new(
        source: &str,
        input: impl Read + Send + 'static,
        options: &TraceOptions,
    ) -> Result<(Part, &'static Format, Option<detect::Detected>), Diagnostic> {
        let input = Input::new(input).map_err(|e| cannot_read(source, &e))?;
        let Input { bytes, compression, meter } = input;
        let mut lines = Lines::new(bytes);
        if let Err(e) = lines.prefix() {
            return Err(broken(source, compression, &meter, 0, &e));
        }
        let all = lines.prefix_is_all();
        let prefix = lines.prefix().map_err(|e| cannot_read(source, &e))?;
        let (format, detected, translation) =
            detect::choose(source, prefix, all, options).map_err(|fault| unpacked(fault, compression))?;
        let settings = Settings { translation, ..format.settings(options, prefix)? };
        let parser = (format.parser)(&settings);
        let framing = format.framing;
        let translated = Vec::new();
        let part = Part { lines, compression, meter, parser, framing, translation, translated };
        Ok((part, format, detected))
    }
}

impl Scan {
    /// Detects the compression and the format of `input`; `source` is its name in diagnostics.
    pub(crate) fn new(
        source: &str,
        input: impl Read + Send + 'static,
        options: &TraceOptions,
    ) -> Result<Scan, Diagnostic> {
        options.check()?;
        let (part, format, detected) = Part::new(source, input, options)?;
        let mut sheet = Sheet::default();
        describe(&mut sheet.notes, format, part.compression, detected);
        if let Some(translation) = part.translation {
            sheet.notes.remark(translation.remark());
        }
        Ok(Scan {
            sources: vec![source.to_owned()],
            to_come: VecDeque::new(),
            part,
            taken: 0,
            format,
            sheet,
            options: options.clone(),
            clock: Clock::default(),
            earliest: u128::MAX,
            latest: 0,
            fresh: false,
        })
    }

    /// Opens the first of `parts`; the others follow in the same format.
    pub(crate) fn open(parts: &[PathBuf], options: &TraceOptions) -> Result<Scan, Diagnostic> {
        let (first, others) = parts.split_first().ok_or_else(|| Diagnostic::new("the trace has no parts"))?;
        let mut scan = Scan::new(&first.display().to_string(), open_file(first)?, options)?;
        scan.to_come = others.iter().cloned().collect();
        scan.options.format = Some(scan.format.info.name.to_owned());
        Ok(scan)
    }

    /// Returns the description of the format.
    pub(crate) fn info(&self) -> &'static FormatInfo {
        &self.format.info
    }

    /// Returns the name of the current part in diagnostics.
    pub(crate) fn source(&self) -> &str {
        self.sources.last().map_or("", String::as_str)
    }
    /// Returns the name of a part in diagnostics, counted from zero.
    pub(crate) fn source_of(&self, part: u16) -> &str {
        self.sources.get(usize::from(part)).map_or("", String::as_str)
    }
    /// Returns the bytes taken from the files, as packed.
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.taken + self.part.meter.bytes()
    }
    /// Returns the time from the earliest to the latest request so far.
    pub(crate) fn span(&self) -> u128 {
        self.latest.saturating_sub(self.earliest)
    }
    /// Returns the notes so far.
    pub(crate) fn notes(&self) -> &TraceNotes {
        &self.sheet.notes
    }
    /// Returns the notes so far, to add to them.
    pub(crate) fn notes_mut(&mut self) -> &mut TraceNotes {
        &mut self.sheet.notes
    }

    /// Returns the next request, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RawRequest>, Diagnostic> {
        loop {
            if let Some(mut request) = self.sheet.take() {
                if let Some(at) = request.at.checked_sub(ZERO) {
                    request.at = ZERO + self.clock.time(at);
                    self.sheet.notes.wraps = self.clock.turns();
                    self.sheet.notes.wraps_after_ps = self.clock.period();
                }
                if self.fresh {
                    self.fresh = false;
                    self.check_order(&request)?;
                }
                self.earliest = self.earliest.min(request.at);
                self.latest = self.latest.max(request.at);
                self.sheet.notes.requests += 1;
                return Ok(Some(request));
            }
            if !self.read_line()? && !self.next_part()? {
                return Ok(None);
            }
        }
    }

    /// Continues with the next part; false at the end.
    fn next_part(&mut self) -> Result<bool, Diagnostic> {
        let Some(path) = self.to_come.pop_front() else { return Ok(false) };
        let source = path.display().to_string();
        let (part, ..) = Part::new(&source, open_file(&path)?, &self.options)?;
        self.taken += self.part.meter.bytes();
        self.part = part;
        self.sources.push(source);
        self.sheet.part = u16::try_from(self.sources.len() - 1)
            .map_err(|_| Diagnostic::new("the trace has more than 65,536 parts"))?;
        self.fresh = true;
        Ok(true)
    }

    /// Checks that a part does not begin before the earlier ones end.
    fn check_order(&mut self, first: &RawRequest) -> Result<(), Diagnostic> {
        if first.at >= self.latest || !self.options.timed {
            return Ok(());
        }
        let before = self.source_of(self.sheet.part.saturating_sub(1));
        let what = format!(
            "the part begins {} before the previous part ends: {before}",
            human::span(self.latest - first.at)
        );
        if self.options.lenient {
            let what = format!("{}: {what}", self.source());
            self.notes_mut().remark(what);
            return Ok(());
        }
        let place = Place { source: self.source().to_owned(), line: first.line, ..Place::default() };
        Err(Diagnostic::new(what).at(place).help(
            "list parts in order of time; give a trace recorded at the same time its own --workload (--volumes one if it is \
             the same volume); --lenient sorts overlapping parts within the sort window",
        ))
    }

    /// Puts the requests of the next line or record on the sheet; false at the end of the part.
    fn read_line(&mut self) -> Result<bool, Diagnostic> {
        let Part { lines, parser, framing, translation, translated, .. } = &mut self.part;
        let number = lines.number() + 1;
        let binary = matches!(framing, Framing::Records(_));
        let mut cut_off = false;
        let next = match framing {
            Framing::Lines => lines.next(),
            Framing::Records(length) => lines.next_record(*length).map(|record| match record {
                None => Line::End,
                Some((record, whole)) => {
                    cut_off = !whole;
                    Line::Text(record)
                }
            }),
        };
        let (line, fault) = match next {
            Err(e) => {
                return Err(broken(self.source(), self.part.compression, &self.part.meter, number - 1, &e));
            }
            Ok(Line::End) => return Ok(false),
            Ok(Line::TooLong(start)) => {
                (start, Fault::line(FaultKind::LongLine, "line", "lines up to 64 KiB"))
            }
            Ok(Line::Text(start)) if cut_off => (start, Fault::line(FaultKind::CutOff, "record", "")),
            Ok(Line::Text(line)) => {
                self.sheet.notes.lines += 1;
                if !binary && is_blank_or_comment(line) {
                    self.sheet.notes.other_lines += 1;
                    return Ok(true);
                }
                self.sheet.line = number;
                let parsed = match translation {
                    None => parser.parse(line, &mut self.sheet),
                    Some(translation) => {
                        translated.clear();
                        translated.extend_from_slice(line);
                        translation.apply(translated);
                        parser.parse(translated, &mut self.sheet)
                    }
                };
                match parsed {
                    Ok(()) => {
                        self.sheet.notes.other_lines += u64::from(self.sheet.is_empty());
                        return Ok(true);
                    }
                    Err(_) if !binary && is_binary(line) => {
                        (line, Fault::line(FaultKind::NotText, "line", ""))
                    }
                    Err(fault) => (line, fault),
                }
            }
        };
        self.sheet.discard();
        let lenient = self.options.lenient;
        if lenient {
            self.sheet.notes.skip(fault.kind, number);
            if self.sheet.notes.bad_lines.len() == EXAMPLES {
                return Ok(true);
            }
        }
        let info = &self.format.info;
        let source = self.sources.last().map_or("", String::as_str);
        let diagnostic = if binary {
            let (fault, text) = fault.in_hex(line);
            fault.diagnostic(info.name, info.record, source, number, text.as_bytes())
        } else {
            fault.diagnostic(info.name, info.record, source, number, line)
        };
        if lenient {
            self.sheet.notes.bad_lines.push(reason(number, &diagnostic));
            return Ok(true);
        }
        Err(diagnostic)
    }

    /// Returns the diagnostic of a file without any request, if it has none.
    pub(crate) fn nothing_found(&self) -> Option<Diagnostic> {
        let notes = self.notes();
        if notes.requests > 0 {
            return None;
        }
        let skipped: u64 = notes.skipped.values().map(|s| s.count).sum();
        let what = format!(
            "no request in {} lines read as `{}` ({} of them bad)",
            human::count(notes.lines),
            self.format.info.name,
            human::count(skipped)
        );
        let place = Place { source: self.source().to_owned(), ..Place::default() };
        let reasons: String = notes.bad_lines.iter().map(|reason| format!("{reason}; ")).collect();
        Some(Diagnostic::new(what).at(place).help(format!(
            "{reasons}a line of `{}` is `{}`; --format chooses a different format, --action a different blkparse event",
            self.format.info.name, self.format.info.record
        )))
    }
}

/// Number of bad lines of which `lenient` keeps the reason: *chosen*, to fit a page.
const EXAMPLES: usize = 5;

/// Returns the reason why a line is bad, on one line.
fn reason(number: u64, diagnostic: &Diagnostic) -> String {
    let allowed = match diagnostic.allowed.as_slice() {
        [] => String::new(),
        allowed => format!(" (allowed: {})", allowed.join(", ")),
    };
    format!("line {number}: {}{allowed}", diagnostic.what)
}

fn describe(
    notes: &mut TraceNotes,
    format: &Format,
    compression: Compression,
    detected: Option<detect::Detected>,
) {
    notes.format = format.info.name;
    notes.compression = compression.name();
    if let Some(detected) = detected {
        notes.also_fits = detected.candidates.iter().skip(1).map(|reading| reading.format).collect();
        notes.remarks.extend(detected.warning());
    }
    if format.info.untimed {
        notes.remark("no times are recorded: requests have only an order".to_owned());
    }
    if format.info.whole_seconds {
        notes.remark("times are whole seconds: the requests of a second arrive at one instant".to_owned());
    }
}

/// Returns a diagnostic about unpacked content: where a codec checks its data only at the end, damage looks like bad
/// content.
fn unpacked(mut fault: Diagnostic, compression: Compression) -> Diagnostic {
    if compression != Compression::Plain {
        fault.what = format!("unpacked from {}, {}", compression.name(), fault.what);
    }
    fault
}

/// Opens a file.
fn open_file(path: &Path) -> Result<File, Diagnostic> {
    let source = path.display().to_string();
    if path.is_dir() {
        let what = Diagnostic::new("this is a folder, not a trace").at(Place { source, ..Place::default() });
        return Err(what.help("name one of the files in it"));
    }
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        read_once(path, &source)?;
    }
    File::open(path).map_err(|e| cannot_read(&source, &e))
}

/// Refuses to read a pipe a second time: its bytes are gone, and opening it again may wait for ever.
fn read_once(path: &Path, source: &str) -> Result<(), Diagnostic> {
    static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if read.insert(path.to_owned()) {
        return Ok(());
    }
    let what = Diagnostic::new("the pipe was already read and cannot be read again");
    Err(what.at(Place { source: source.to_owned(), ..Place::default() }).help(
        "write the trace to a file if it is read more than once: by several workloads, seeds or points of a sweep, or in several passes",
    ))
}

/// Returns the diagnostic of an input that cannot be opened or read at all.
pub(crate) fn cannot_read(source: &str, error: &io::Error) -> Diagnostic {
    let place = Place { source: source.to_owned(), ..Place::default() };
    let help = match error.kind() {
        io::ErrorKind::NotFound => "check the path: it is relative to the folder that the command runs in",
        io::ErrorKind::PermissionDenied => "check that you have permission to read the file",
        _ => "give a file that can be read from start to end",
    };
    Diagnostic::new(format!("cannot read the trace: {error}")).at(place).help(help)
}

/// Returns the diagnostic of an input that fails after `line` whole lines.
fn broken(source: &str, compression: Compression, meter: &Meter, line: u64, error: &io::Error) -> Diagnostic {
    let detail = shown(error.to_string().as_bytes(), 200);
    let what = match compression {
        Compression::Plain => format!("read error: {detail}"),
        _ if meter.at_end() => {
            format!("the {} data ends early: the file is cut off or damaged", compression.name())
        }
        _ => format!("the {} data is damaged ({detail})", compression.name()),
    };
    let text = format!(
        "{} bytes of the file and {} whole lines were read",
        human::count(meter.bytes()),
        human::count(line)
    );
    let place = Place { source: source.to_owned(), line: line + 1, column: 0, text, key: String::new() };
    Diagnostic::new(what).at(place).help("download or compress the file again")
}
