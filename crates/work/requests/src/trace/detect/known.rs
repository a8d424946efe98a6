//! Files that are not traces of requests: which command reads them, or how to convert them to a trace.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::Path;

use config::{Diagnostic, Place};
use text::{Input, shown};

use crate::trace::{TraceOptions, inspect_read};

/// Number of bytes that identify a file.
const START: u64 = 64 << 10;

/// Description of a file, and what to do with it.
type Told<Help> = Option<(&'static str, Help)>;

/// Files that are not traces of requests but are read by crates above this one, identified by their beginning.
#[derive(Clone, Copy, Debug)]
pub struct OtherFiles {
    /// Identifies a file that a program takes by name and what to type, from the file's name and beginning. Called
    /// whatever format is requested for a trace.
    pub inputs: fn(&str, &[u8]) -> Told<String>,
    /// Identifies a file that is a workload of its own and what to do with it, from its beginning and whether that is
    /// all of it. Called when no format fits.
    pub recordings: fn(&[u8], bool) -> Told<&'static str>,
}

impl OtherFiles {
    /// No other files.
    pub const NONE: OtherFiles = OtherFiles { inputs: |_, _| None, recordings: |_, _| None };
}

/// Beginning of a kind of file, its description, and what to do with it.
type Magic = (&'static [u8], &'static str, &'static str);

const CSV: &str = "write its table as CSV with a header (format `csv`)";
const PLAIN: &str = "unpack it and name the trace in it";

const MAGIC: [Magic; 24] = [
    (b"PK\x03\x04", "a zip archive", PLAIN),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", PLAIN),
    (b"Rar!\x1a\x07", "a RAR archive", PLAIN),
    (b"\x1f\x8b", "gzip data inside the compressed data", "unpack it once"),
    (b"\xfd7zXZ\0", "xz data inside the compressed data", "unpack it once"),
    (b"\x28\xb5\x2f\xfd", "zstd data inside the compressed data", "unpack it once"),
    (b"\x04\x22\x4d\x18", "LZ4 data", "unpack it with `lz4 -d`; gzip, xz, bzip2 and zstd are read directly"),
    (b"PAR1", "a Parquet file", "write it as CSV with a header (format `csv`)"),
    (b"ARROW1", "an Arrow file", CSV),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        "write its table as CSV (format `csv`); for Nsight Systems, `nsys stats --report cuda_gpu_trace --format csv FILE` for `nandscape sample`",
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", CSV),
    (b"\x93NUMPY", "a NumPy array", CSV),
    (b"\xff\xfe", "UTF-16 text", "write it as UTF-8"),
    (b"\xfe\xff", "UTF-16 text", "write it as UTF-8"),
    (b"\x07\x74\x61\x65", "binary blktrace data", "print it with `blkparse -i FILE` and read that"),
    (b"PERFILE2", "binary data of perf", "print it with `perf script -i FILE` and read that"),
    (
        b"\x17\x08\x44tracing",
        "binary data of trace-cmd",
        "print it with `trace-cmd report FILE` and read that",
    ),
    (b"\x7fELF", "a program (ELF)", "`nandscape trace capture` records what a program accesses"),
    (b"%PDF", "a PDF document", "`list formats` shows the supported formats"),
    (b"\x89PNG", "a picture (PNG)", "`list formats` shows the supported formats"),
    (
        b"<?xml",
        "an XML file",
        "`nandscape import mqsim` reads a configuration of MQSim; a trace is named in its workload file",
    ),
    (b"<!DOCTYPE html", "a web page", "download the trace itself, not the page that offers it"),
    (b"<html", "a web page", "download the trace itself, not the page that offers it"),
    (b"version https://git-lfs", "a pointer of Git LFS", "`git lfs pull` fetches the file itself"),
];

/// Identifies a file of a well-known kind, and what to do with it.
fn magic(prefix: &[u8]) -> Option<(&'static str, &'static str)> {
    if let Some((_, what, help)) = MAGIC.iter().find(|(magic, ..)| prefix.starts_with(magic)) {
        return Some((what, help));
    }
    let tar = prefix.get(257..262).is_some_and(|magic| magic == b"ustar");
    tar.then_some((
        "a tar archive",
        "unpack it and name the trace in it; an archive of MacSim's traces runs on a system with a GPU",
    ))
}

/// Words at the beginning of a GPU profile, all of them present, as `nandscape sample` reads them.
const PROFILES: [&[&str]; 7] = [
    &["\"traceEvents\""],
    // Written by Kineto before the events.
    &["\"deviceProperties\""],
    &["\"schemaVersion\"", "\"distributedInfo\""],
    &["dur_us", "grid", "block"],
    &["Start (ns)", "Duration (ns)"],
    &["Kernel Name", "Metric Name"],
    &["Kernel Name", "gpu__time_duration"],
];

/// Words at the beginning of a list of requests to language models, all of them present.
const MODELS: [&[&str]; 6] = [
    &["\"input_length\"", "\"output_length\""],
    &["\"prompt_tokens\""],
    &["\"conversations\"", "\"from\""],
    &["num_prefill_tokens", "num_decode_tokens"],
    &["ContextTokens", "GeneratedTokens"],
    &["Request tokens", "Response tokens"],
];

/// Identifies a text without requests to storage, and where to get some.
fn untold(text: &str, first: &str) -> Option<(&'static str, &'static str)> {
    let has = |text: &str, words: &[&str]| words.iter().all(|word| text.contains(word));
    let begins = if text.starts_with(['{', '[']) { text } else { first };
    if MODELS.iter().any(|words| has(begins, words)) {
        return Some((
            "a list of requests to language models (the lengths of prompts and answers)",
            "it has no addresses or sizes on a drive; a KV cache's reads and writes are in a trace of MLPerf Storage \
             (format `kv-cache`), or in a table with the columns time_us,op,key,size (--columns)",
        ));
    }
    let snoops = |line: &str| {
        has(line, &["COMM", "PID", "LAT"])
            && !["SECTOR", "BLOCK", "BYTES"].iter().any(|word| line.contains(word))
    };
    if text.lines().take(4).any(snoops) {
        return Some((
            "the output of biosnoop.bt (bpftrace), which has neither addresses nor sizes",
            "BCC's biosnoop prints them (format `biosnoop`), as does `perf record -e block:block_rq_issue` with `perf script`",
        ));
    }
    let mut words = first.split_ascii_whitespace();
    let code =
        words.next().and_then(|word| word.strip_suffix(':')).is_some_and(|word| word.starts_with("0x"));
    let is_access = code
        && matches!(words.next(), Some("R" | "W"))
        && words.next().is_some_and(|word| word.starts_with("0x"));
    is_access.then_some((
        "a trace of memory accesses by a Pin tool (pinatrace)",
        "`awk '/R|W/ {print ($2 == \"R\" ? \"l\" : \"s\"), $3, 1}' FILE` writes it as a list of addresses, which a server runs (`list \
         formats`)",
    ))
}

/// Identifies a text that a different command reads, and that command.
fn door(prefix: &[u8], all: bool, others: &OtherFiles) -> Option<(&'static str, &'static str)> {
    let text = String::from_utf8_lossy(prefix);
    let text = text.trim_start();
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("==")).unwrap_or("");
    let begins = if text.starts_with(['{', '[']) { text } else { first };
    if PROFILES.iter().any(|words| words.iter().all(|word| begins.contains(word))) {
        return Some((
            "a profile of a GPU",
            "`nandscape sample FILE` chooses its kernels that are worth simulating",
        ));
    }
    if let Some(told) = untold(text, first) {
        return Some(told);
    }
    if text.starts_with('{') && text.contains("\"fio version\"") {
        return Some((
            "a result of fio",
            "`nandscape import fio-json` reads it; fio writes traces with --write_iolog",
        ));
    }
    if text.starts_with('{') && text.contains("\"nandscape.") {
        return Some(("a result of nandscape", "`nandscape report` and `diff` read it"));
    }
    if first.starts_with('[') && first.trim_end().ends_with(']') {
        return Some((
            "a job file of fio or a configuration",
            "`nandscape run SYSTEM --workload FILE.fio` runs a job file",
        ));
    }
    if text.starts_with(['{', '[']) {
        return Some((
            "JSON",
            "write its requests as CSV with a header (format `csv`); pass a PyTorch profile to `nandscape sample`",
        ));
    }
    (others.recordings)(prefix, all)
}

/// Refuses content that is known not to be a trace of requests, whatever format is requested.
pub(super) fn refuse_magic(source: &str, prefix: &[u8], others: &OtherFiles) -> Result<(), Diagnostic> {
    if let Some((what, help)) = (others.inputs)(source, prefix) {
        return Err(no_trace(source, prefix, what, &help));
    }
    magic(prefix).map_or(Ok(()), |(what, help)| Err(no_trace(source, prefix, what, help)))
}

/// Returns the diagnostic of content that fits no format but is otherwise known.
pub(super) fn wrong_door(source: &str, prefix: &[u8], all: bool, others: &OtherFiles) -> Option<Diagnostic> {
    door(prefix, all, others).map(|(what, help)| no_trace(source, prefix, what, help))
}

pub(super) fn no_trace(source: &str, prefix: &[u8], what: &str, help: &str) -> Diagnostic {
    let text = shown(&prefix[..prefix.len().min(32)], 32);
    let place = Place { source: source.to_owned(), line: 1, column: 0, text, key: String::new() };
    Diagnostic::new(format!("this is {what}, not a trace of requests")).at(place).help(help)
}

/// Identifies a file by its unpacked beginning and what to do with it, for commands that read other files: a trace of
/// requests, or another kind known here or to `others`. `None` for a pipe, whose bytes can be read only once.
pub fn what_is(path: &Path, others: OtherFiles) -> Option<(String, String)> {
    let mut start = Vec::new();
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    // The readable part of a damaged file identifies it.
    let _ = Input::new(file).ok()?.bytes.take(START).read_to_end(&mut start);
    if let Some((what, help)) = (others.inputs)(&path.display().to_string(), &start) {
        return Some((what.to_owned(), help));
    }
    let all = (start.len() as u64) < START;
    if let Some((what, help)) = magic(&start).or_else(|| door(&start, all, &others)) {
        return Some((what.to_owned(), help.to_owned()));
    }
    let whole = if all { start.len() } else { memchr::memrchr(b'\n', &start)? };
    let read = Cursor::new(start[..whole].to_vec());
    let options = TraceOptions { others, ..TraceOptions::default() };
    let format = inspect_read("", read, &options).ok()?.format;
    let help = "`nandscape trace inspect FILE` describes it, `nandscape run SYSTEM --workload FILE` runs it";
    Some((format!("a trace of requests (`{format}`)"), help.to_owned()))
}
