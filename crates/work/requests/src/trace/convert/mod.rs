//! Writing a trace in another format, whole or a sample of it.

mod labels;
mod sample;
mod write;

use std::io::Write;

use config::Diagnostic;
use serde::Serialize;

pub use crate::trace::convert::sample::Sample;

use crate::trace::convert::labels::Labels;
use crate::trace::convert::write::{Line, WRITERS, Writer};
use crate::trace::reader::TraceReader;

/// What to write.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertOptions {
    /// Name of the format ([`written_formats`]).
    pub to: String,
    /// The requests to write; all if `None`.
    pub sample: Option<Sample>,
    /// Requests that the format cannot say are left out and counted.
    pub lenient: bool,
}

/// What was written, and what was lost on the way.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Converted {
    /// Requests written.
    pub written: u64,
    /// Requests that the sample leaves out.
    pub not_sampled: u64,
    /// Requests left out because the format cannot say them (`lenient`).
    pub unwritable: u64,
    /// Requests whose time was cut to the unit of the format.
    pub times_cut: u64,
    /// Requests whose force unit access the format cannot say.
    pub fua_lost: u64,
    /// Streams that have another name in the output: old, new.
    pub renamed: Vec<(String, String)>,
}

/// The formats that can be written.
pub fn written_formats() -> impl Iterator<Item = &'static str> {
    WRITERS.iter().map(|writer| writer.name)
}

/// Writes the requests of `reader` to `out`. Times start at zero, addresses are those the reader gives.
///
/// # Errors
/// A format that cannot be written, a request that it cannot say, a sample that means nothing, whatever the reader
/// refuses, and a failing output.
pub fn convert(
    reader: &mut TraceReader,
    options: &ConvertOptions,
    out: &mut impl Write,
) -> Result<Converted, Diagnostic> {
    let writer = named(&options.to)?;
    let mut sampler = options.sample.map(Sample::sampler).transpose()?;
    let mut labels = Labels::new(writer.label);
    let mut converted = Converted::default();
    let mut line = Line::default();
    line.text.extend_from_slice(writer.header.as_bytes());
    while let Some(request) = reader.next()? {
        match sampler.as_mut().map_or(sample::Verdict::Keep, |sampler| sampler.judge(&request)) {
            sample::Verdict::Keep => {}
            sample::Verdict::LeaveOut => {
                converted.not_sampled += 1;
                continue;
            }
            sample::Verdict::Stop => break,
        }
        let (label, is_new) = labels.of(request.flow, &reader.notes().flows);
        match (writer.line)(&request, label, is_new, &mut line) {
            Ok(()) => converted.written += 1,
            Err(_) if options.lenient => converted.unwritable += 1,
            Err(why) => {
                return Err(Diagnostic::new(format!(
                    "a request cannot be written as `{}`: {why}",
                    writer.name
                ))
                .help("`csv` can say everything; --lenient leaves such requests out and counts them"));
            }
        }
        flush_to(out, &mut line)?;
    }
    (writer.end)(&mut labels.all(), &mut line);
    flush_to(out, &mut line)?;
    out.flush().map_err(|e| cannot_write(&e))?;
    converted.times_cut = line.times_cut;
    converted.fua_lost = line.fua_lost;
    converted.renamed = labels.renamed(&reader.notes().flows);
    Ok(converted)
}

fn named(name: &str) -> Result<&'static Writer, Diagnostic> {
    WRITERS.iter().find(|writer| writer.name == name).ok_or_else(|| {
        Diagnostic::new(format!("traces cannot be written as `{name}`")).allowed(name, written_formats())
    })
}

fn flush_to(out: &mut impl Write, line: &mut Line) -> Result<(), Diagnostic> {
    let written = out.write_all(&line.text).map_err(|e| cannot_write(&e));
    line.text.clear();
    written
}

fn cannot_write(error: &std::io::Error) -> Diagnostic {
    Diagnostic::new(format!("cannot write the trace: {error}"))
}
