//! Conversion of a trace, or of a sample of it, to a different format.

use std::{collections::BTreeSet, fmt::Write as _, io::Write};

use config::Diagnostic;
use serde::Serialize;

use super::FlowNames;
use crate::trace::inspect::mix;
use crate::trace::reader::TraceReader;
use engine::Time;
use proto::{IoOp, IoRequest};

/// Options of a conversion.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvertOptions {
    /// Name of the output format ([`written_formats`]).
    pub to: String,
    /// Sample of requests to write; all if `None`.
    pub sample: Option<Sample>,
    /// True to skip and count requests that the format cannot express.
    pub lenient: bool,
}

/// Result of a conversion: requests written, and what was lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Converted {
    /// Number of requests written.
    pub written: u64,
    /// Number of requests outside the sample.
    pub not_sampled: u64,
    /// Number of requests skipped because the format cannot express them (`lenient`).
    pub unwritable: u64,
    /// Number of requests whose time was truncated to the unit of the format.
    pub times_cut: u64,
    /// Number of requests whose force unit access the format cannot express.
    pub fua_lost: u64,
    /// Streams with a different name in the output: old, new.
    pub renamed: Vec<(String, String)>,
}

/// Returns the formats that can be written.
pub fn written_formats() -> impl Iterator<Item = &'static str> {
    WRITERS.iter().map(|writer| writer.name)
}

/// Writes the requests of `reader` to `out`. Times start at zero; addresses are those of the reader.
///
/// # Errors
/// If the format cannot be written, cannot express a request, the sample is invalid, the reader fails, or the output
/// fails.
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
        match sampler.as_mut().map_or(Verdict::Keep, |sampler| sampler.judge(&request)) {
            Verdict::Keep => {}
            Verdict::LeaveOut => {
                converted.not_sampled += 1;
                continue;
            }
            Verdict::Stop => break,
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
                .help("`csv` can express every request; --lenient skips and counts the others"));
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

// Names of streams in a written trace.

/// Makes a name from a stream's name, its number, and the number of names that were already taken.
pub(crate) type Label = fn(name: &str, flow: u16, attempt: u32) -> String;

/// Gives each stream a unique name.
pub(crate) struct Labels {
    make: Label,
    by_flow: Vec<Option<String>>,
    used: BTreeSet<String>,
}

impl Labels {
    pub(crate) fn new(make: Label) -> Labels {
        Labels { make, by_flow: Vec::new(), used: BTreeSet::new() }
    }

    /// Returns the name of `flow`, and whether it is used for the first time.
    pub(crate) fn of(&mut self, flow: u16, flows: &FlowNames) -> (&str, bool) {
        let index = usize::from(flow);
        if self.by_flow.len() <= index {
            self.by_flow.resize(index + 1, None);
        }
        let is_new = self.by_flow[index].is_none();
        if is_new {
            let mut attempt = 0;
            let label = loop {
                let label = (self.make)(flows.name(flow), flow, attempt);
                if self.used.insert(label.clone()) {
                    break label;
                }
                attempt += 1;
            };
            self.by_flow[index] = Some(label);
        }
        (self.by_flow[index].as_deref().unwrap_or_default(), is_new)
    }

    /// Returns every name given, by stream number.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        self.by_flow.iter().flatten().map(String::as_str)
    }

    /// Returns the streams whose name changed: old, new.
    pub(crate) fn renamed(&self, flows: &FlowNames) -> Vec<(String, String)> {
        let named =
            self.by_flow.iter().enumerate().filter_map(|(n, label)| Some((n as u16, label.as_ref()?)));
        named
            .filter(|(flow, label)| flows.name(*flow) != label.as_str())
            .map(|(flow, label)| (flows.name(flow).to_owned(), label.clone()))
            .collect()
    }
}

/// Returns the name with every `forbidden` character replaced, and a number if it is taken.
pub(crate) fn without(name: &str, forbidden: fn(char) -> bool, attempt: u32) -> String {
    let clean = name.replace(forbidden, "_");
    if attempt == 0 { clean } else { format!("{clean}-{attempt}") }
}

// Samples of a trace.

/// Sample of requests to keep. Times and addresses stay unchanged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sample {
    /// The first `n`.
    First(u64),
    /// The first of every `k` requests.
    Every(u64),
    /// Requests from `start` up to but excluding `end`.
    Window {
        /// First time kept.
        start: Time,
        /// First time not kept.
        end: Time,
    },
    /// A pseudo-random share, drawn per request: the mix of kinds, sizes and streams stays.
    Share {
        /// Above 0, up to 1.
        share: f64,
        /// Seed of the sample.
        seed: u64,
    },
}

/// Decision on a request of a sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    Keep,
    LeaveOut,
    /// Drops this request and all later ones.
    Stop,
}

/// State of a sample.
pub(crate) struct Sampler {
    sample: Sample,
    seen: u64,
}

impl Sample {
    pub(crate) fn sampler(self) -> Result<Sampler, Diagnostic> {
        let refuse = |what: String| Err(Diagnostic::new(what));
        match self {
            Sample::First(0) => refuse("a sample of the first 0 requests".to_owned()),
            Sample::Every(0) => refuse("a sample of every 0th request".to_owned()),
            Sample::Window { start, end } if start >= end => {
                refuse(format!("the window from {start} to {end} is empty"))
            }
            Sample::Share { share, .. } if !(share > 0.0 && share <= 1.0) => {
                refuse(format!("a share of {share}: must be above 0 and at most 1"))
            }
            sample => Ok(Sampler { sample, seen: 0 }),
        }
    }
}

impl Sampler {
    pub(crate) fn judge(&mut self, request: &IoRequest) -> Verdict {
        let place = self.seen;
        self.seen += 1;
        let keep = match self.sample {
            Sample::First(n) if place >= n => return Verdict::Stop,
            Sample::First(_) => true,
            Sample::Every(k) => place.is_multiple_of(k),
            Sample::Window { end, .. } if request.at >= end => return Verdict::Stop,
            Sample::Window { start, .. } => request.at >= start,
            Sample::Share { share, seed } => {
                // An f64 in [0, 1) holds 53 bits.
                let draw = mix(mix(seed).wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))) >> 11;
                (draw as f64) < share * (1_u64 << 53) as f64
            }
        };
        if keep { Verdict::Keep } else { Verdict::LeaveOut }
    }
}

// Writers of one line, for each format that can be written.

/// Writer of a format.
pub(crate) struct Writer {
    pub(crate) name: &'static str,
    /// Text before the first request.
    pub(crate) header: &'static str,
    /// Function that names a stream.
    pub(crate) label: Label,
    /// Writes a request of the stream `label`, which `is_new` on first use; or says why it cannot.
    pub(crate) line: fn(&IoRequest, label: &str, is_new: bool, &mut Line) -> Result<(), &'static str>,
    /// Writes the text after the last request.
    pub(crate) end: fn(labels: &mut dyn Iterator<Item = &str>, &mut Line),
}

/// Text of a line, and what the format could not keep.
#[derive(Default)]
pub(crate) struct Line {
    pub(crate) text: Vec<u8>,
    pub(crate) times_cut: u64,
    pub(crate) fua_lost: u64,
    last_time: u64,
    scratch: String,
}

impl Line {
    /// Returns the time in units of `ps`, truncated.
    fn time(&mut self, request: &IoRequest, ps: u64) -> u64 {
        let at = request.at.ps();
        self.times_cut += u64::from(!at.is_multiple_of(ps));
        self.last_time = at / ps;
        self.last_time
    }
    fn drops_fua(&mut self, request: &IoRequest) {
        self.fua_lost += u64::from(request.fua);
    }
    fn push(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.scratch.clear();
        // Writing to a string does not fail.
        let _ = self.scratch.write_fmt(arguments);
        self.text.extend_from_slice(self.scratch.as_bytes());
    }
}

/// Writers of all formats that can be written.
pub(crate) static WRITERS: [Writer; 4] = [
    Writer { name: "mqsim", header: "", label: number, line: mqsim, end: |_, _| {} },
    Writer { name: "msr", header: "", label: host_and_disk, line: msr, end: |_, _| {} },
    Writer {
        name: "iolog3",
        header: "fio version 3 iolog\n",
        label: |name, _, attempt| without(name, char::is_whitespace, attempt),
        line: iolog3,
        end: iolog3_end,
    },
    Writer {
        name: "csv",
        header: "time_ps,flow,op,offset_bytes,size_bytes,fua\n",
        label: |name, _, attempt| without(name, |c| c == ',' || c.is_whitespace(), attempt),
        line: csv,
        end: |_, _| {},
    },
];

/// Returns the name if it is a number, otherwise the stream's own number, or the next free one.
fn number(name: &str, flow: u16, attempt: u32) -> String {
    let own = name.parse::<u32>().ok().filter(|n| n.to_string() == name).unwrap_or(u32::from(flow));
    own.wrapping_add(attempt).to_string()
}

fn mqsim(request: &IoRequest, label: &str, _: bool, line: &mut Line) -> Result<(), &'static str> {
    const SECTOR: u64 = 512;
    let kind = match request.op {
        IoOp::Read => 1,
        IoOp::Write => 0,
        _ => return Err("the format has only reads and writes"),
    };
    if !request.offset.is_multiple_of(SECTOR) || !request.bytes.is_multiple_of(SECTOR) {
        return Err("offset and length must be multiples of 512 B");
    }
    let ns = line.time(request, 1_000);
    line.drops_fua(request);
    line.push(format_args!("{ns} {label} {} {} {kind}\n", request.offset / SECTOR, request.bytes / SECTOR));
    Ok(())
}

/// Returns the name if it has the form `host,disk`, otherwise with disk 0.
fn host_and_disk(name: &str, _: u16, attempt: u32) -> String {
    let is_pair = name.split_once(',').is_some_and(|(host, disk)| {
        !host.is_empty() && !disk.is_empty() && disk.bytes().all(|b| b.is_ascii_digit()) && disk.len() < 19
    });
    match attempt {
        0 if is_pair && !name.contains(char::is_whitespace) => name.to_owned(),
        _ => format!("{},0", without(name, |c| c == ',' || c.is_whitespace(), attempt)),
    }
}

fn msr(request: &IoRequest, label: &str, _: bool, line: &mut Line) -> Result<(), &'static str> {
    const FILETIME_TICK_PS: u64 = 100_000;
    let kind = match request.op {
        IoOp::Read => "Read",
        IoOp::Write => "Write",
        _ => return Err("the format has only reads and writes"),
    };
    let ticks = line.time(request, FILETIME_TICK_PS);
    line.drops_fua(request);
    line.push(format_args!("{ticks},{label},{kind},{},{},0\n", request.offset, request.bytes));
    Ok(())
}

fn iolog3(request: &IoRequest, label: &str, is_new: bool, line: &mut Line) -> Result<(), &'static str> {
    let action = match request.op {
        IoOp::Read => "read",
        IoOp::Write => "write",
        IoOp::Trim => "trim",
        IoOp::Flush => "sync",
        IoOp::WriteZeroes => "",
    };
    let us = line.time(request, 1_000_000);
    if is_new {
        line.push(format_args!("{us} {label} add\n{us} {label} open\n"));
    }
    if action.is_empty() {
        return Err("the format cannot write zeroes");
    }
    line.drops_fua(request);
    line.push(format_args!("{us} {label} {action} {} {}\n", request.offset, request.bytes));
    Ok(())
}

fn iolog3_end(labels: &mut dyn Iterator<Item = &str>, line: &mut Line) {
    let us = line.last_time;
    for label in labels {
        line.push(format_args!("{us} {label} close\n"));
    }
}

fn csv(request: &IoRequest, label: &str, _: bool, line: &mut Line) -> Result<(), &'static str> {
    let op = match request.op {
        IoOp::Read => "R",
        IoOp::Write => "W",
        IoOp::Trim => "trim",
        IoOp::WriteZeroes => "zeroes",
        IoOp::Flush => "flush",
    };
    let (ps, fua) = (line.time(request, 1), u8::from(request.fua));
    line.push(format_args!("{ps},{label},{op},{},{},{fua}\n", request.offset, request.bytes));
    Ok(())
}

#[cfg(test)]
mod tests {
    use proto::IoOp;

    use super::*;

    fn kept(sample: Sample, n: u64) -> Vec<u64> {
        let mut sampler = sample.sampler().unwrap();
        let request = |at| IoRequest {
            at: Time::from_us(at),
            op: IoOp::Read,
            offset: 0,
            bytes: 512,
            flow: 0,
            fua: false,
        };
        let verdicts: Vec<Verdict> = (0..n).map(|at| sampler.judge(&request(at))).collect();
        let stop = verdicts.iter().position(|v| *v == Verdict::Stop).unwrap_or(verdicts.len());
        (0..stop as u64).filter(|at| verdicts[*at as usize] == Verdict::Keep).collect()
    }

    #[test]
    fn each_kind_keeps_what_it_says() {
        assert_eq!(kept(Sample::First(3), 10), [0, 1, 2]);
        assert_eq!(kept(Sample::Every(4), 10), [0, 4, 8]);
        assert_eq!(kept(Sample::Window { start: Time::from_us(2), end: Time::from_us(5) }, 10), [2, 3, 4]);
        assert_eq!(kept(Sample::Share { share: 1.0, seed: 1 }, 100).len(), 100);
    }

    #[test]
    fn a_share_is_binomial_and_its_seed_matters() {
        let n = 100_000;
        let one = kept(Sample::Share { share: 0.1, seed: 1 }, n);
        // Standard deviation sqrt(n p q) = 95.
        assert!((9_500..10_500).contains(&one.len()), "{}", one.len());
        let two = kept(Sample::Share { share: 0.1, seed: 2 }, n);
        let both = one.iter().filter(|at| two.binary_search(at).is_ok()).count();
        assert!((800..1_200).contains(&both), "{both}");
        assert_eq!(one, kept(Sample::Share { share: 0.1, seed: 1 }, n));
    }

    #[test]
    fn samples_that_mean_nothing_are_refused() {
        let window = Sample::Window { start: Time::from_us(2), end: Time::from_us(2) };
        let none = Sample::Share { share: 0.0, seed: 0 };
        let nan = Sample::Share { share: f64::NAN, seed: 0 };
        for sample in [Sample::First(0), Sample::Every(0), window, none, nan] {
            assert!(sample.sampler().is_err(), "{sample:?}");
        }
    }
}
