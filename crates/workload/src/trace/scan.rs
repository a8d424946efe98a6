//! The requests of a file in the order of its lines, each line checked.

use std::io;
use std::io::Read;
use std::sync::Arc;

use config::{Diagnostic, Place};

use crate::trace::detect::{self, is_blank_or_comment};
use crate::trace::fault::{Fault, FaultKind, is_binary, shown};
use crate::trace::format::{Format, FormatInfo, LineParser};
use crate::trace::human;
use crate::trace::input::{Compression, Input, Meter};
use crate::trace::lines::{Line, Lines};
use crate::trace::notes::TraceNotes;
use crate::trace::options::TraceOptions;
use crate::trace::record::{RawRequest, Sheet};

/// Reads a file line by line.
pub(crate) struct Scan {
    source: String,
    lines: Lines,
    compression: Compression,
    meter: Arc<Meter>,
    format: &'static Format,
    parser: Box<dyn LineParser>,
    sheet: Sheet,
    lenient: bool,
}

impl Scan {
    /// Recognises the packing and the format of `input`; `source` is what diagnostics call it.
    pub(crate) fn new(
        source: &str,
        input: impl Read + Send + 'static,
        options: &TraceOptions,
    ) -> Result<Scan, Diagnostic> {
        options.check()?;
        let input = Input::new(input).map_err(|e| cannot_read(source, &e))?;
        let Input { bytes, compression, meter } = input;
        let mut lines = Lines::new(bytes);
        if let Err(e) = lines.prefix() {
            return Err(broken(source, compression, &meter, 0, &e));
        }
        let all = lines.prefix_is_all();
        let prefix = lines.prefix().map_err(|e| cannot_read(source, &e))?;
        let (format, detected) =
            detect::choose(source, prefix, all, options).map_err(|fault| unpacked(fault, compression))?;
        let parser = (format.parser)(&format.settings(options, prefix)?);
        let mut sheet = Sheet::default();
        describe(&mut sheet.notes, format, compression, detected);
        Ok(Scan {
            source: source.to_owned(),
            lines,
            compression,
            meter,
            format,
            parser,
            sheet,
            lenient: options.lenient,
        })
    }

    /// What is known of the format.
    pub(crate) fn info(&self) -> &'static FormatInfo {
        &self.format.info
    }

    /// What diagnostics call the input.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }
    /// Bytes taken from the file, packed as it is.
    pub(crate) fn bytes_taken(&self) -> u64 {
        self.meter.bytes()
    }
    /// What was noticed so far.
    pub(crate) fn notes(&self) -> &TraceNotes {
        &self.sheet.notes
    }
    /// What was noticed so far, to add to it.
    pub(crate) fn notes_mut(&mut self) -> &mut TraceNotes {
        &mut self.sheet.notes
    }

    /// The next request, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<RawRequest>, Diagnostic> {
        loop {
            if let Some(request) = self.sheet.take() {
                self.sheet.notes.requests += 1;
                return Ok(Some(request));
            }
            if !self.read_line()? {
                return Ok(None);
            }
        }
    }

    /// Puts the requests of the next line on the sheet; false at the end of the input.
    fn read_line(&mut self) -> Result<bool, Diagnostic> {
        let number = self.lines.number() + 1;
        let (line, fault) = match self.lines.next() {
            Err(e) => return Err(broken(&self.source, self.compression, &self.meter, number - 1, &e)),
            Ok(Line::End) => return Ok(false),
            Ok(Line::TooLong(start)) => {
                (start, Fault::line(FaultKind::LongLine, "line", "lines up to 64 KiB"))
            }
            Ok(Line::Text(line)) => {
                self.sheet.notes.lines += 1;
                if is_blank_or_comment(line) {
                    self.sheet.notes.other_lines += 1;
                    return Ok(true);
                }
                self.sheet.line = number;
                match self.parser.parse(line, &mut self.sheet) {
                    Ok(()) => {
                        self.sheet.notes.other_lines += u64::from(self.sheet.is_empty());
                        return Ok(true);
                    }
                    Err(_) if is_binary(line) => (line, Fault::line(FaultKind::NotText, "line", "")),
                    Err(fault) => (line, fault),
                }
            }
        };
        self.sheet.discard();
        if !self.lenient {
            let info = &self.format.info;
            return Err(fault.diagnostic(info.name, info.record, &self.source, number, line));
        }
        self.sheet.notes.skip(fault.kind, number);
        Ok(true)
    }

    /// The diagnostic of a file that holds no request at all, if it holds none.
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
        let place = Place { source: self.source.clone(), ..Place::default() };
        Some(Diagnostic::new(what).at(place).help(format!(
            "a line of `{}` is `{}`; --format chooses another format, --action another blkparse event",
            self.format.info.name, self.format.info.record
        )))
    }
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
    if format.info.whole_seconds {
        notes.remark("times are whole seconds: the requests of a second arrive at one instant".to_owned());
    }
}

/// A diagnostic about unpacked content: where a codec checks its data only at the end, damage looks like bad content.
fn unpacked(mut fault: Diagnostic, compression: Compression) -> Diagnostic {
    if compression != Compression::Plain {
        fault.what = format!("unpacked from {}, {}", compression.name(), fault.what);
    }
    fault
}

/// The diagnostic of an input that cannot be opened or read at all.
pub(crate) fn cannot_read(source: &str, error: &io::Error) -> Diagnostic {
    let place = Place { source: source.to_owned(), ..Place::default() };
    let help = match error.kind() {
        io::ErrorKind::NotFound => "is the path right? it is relative to the folder that the command runs in",
        io::ErrorKind::PermissionDenied => "the file must be readable by you",
        _ => "is it a file that can be read from start to end?",
    };
    Diagnostic::new(format!("cannot read the trace: {error}")).at(place).help(help)
}

/// The diagnostic of an input that fails after `line` whole lines.
fn broken(source: &str, compression: Compression, meter: &Meter, line: u64, error: &io::Error) -> Diagnostic {
    let detail = shown(error.to_string().as_bytes(), 200);
    let what = match compression {
        Compression::Plain => format!("reading fails: {detail}"),
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
    Diagnostic::new(what).at(place).help("fetch or pack the file again")
}
