//! Reading profiles: gzip or plain, the format by the content.

mod chrome;
mod field;
mod header;
mod ncu;
mod rows;
mod table;

use crate::profile::{Format, Profile};
use config::{Diagnostic, Place};
use header::{Header, Layout};
use rows::Rows;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

/// Bytes that are enough to tell JSON from lines.
const HEAD: u64 = 4096;
/// Bytes read at a time.
const BUFFER: usize = 1 << 18;
/// The longest line that may be a header.
const LONGEST_HEADER: u64 = 1 << 20;
/// Lines that a profiler or the profiled program may print before the header.
const PREAMBLE: u64 = 100_000;

/// What is read, as a person would look for it.
const FORMATS: [&str; 5] = [
    "kernel CSV (id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name)",
    "Chrome trace of PyTorch's profiler (JSON with traceEvents)",
    "`nsys stats --report cuda_gpu_trace --format csv`",
    "`nsys stats --report cuda_kern_exec_trace --format csv`",
    "`ncu --csv` with gpu__time_duration.sum (--page raw or details)",
];

pub(crate) fn file(path: &Path) -> Result<Profile, Diagnostic> {
    let shown = path.display().to_string();
    let file = File::open(path).map_err(|fault| unreadable(&shown, &fault))?;
    stream(&shown, file)
}

pub(crate) fn stream(source: &str, mut bytes: impl Read) -> Result<Profile, Diagnostic> {
    let fault = |fault: io::Error| unreadable(source, &fault);
    let mut magic = Vec::new();
    bytes.by_ref().take(2).read_to_end(&mut magic).map_err(fault)?;
    let is_gzip = magic == *b"\x1f\x8b";
    let bytes = Cursor::new(magic).chain(bytes);
    if is_gzip { plain(source, flate2::read::MultiGzDecoder::new(bytes)) } else { plain(source, bytes) }
}

fn plain(source: &str, mut bytes: impl Read) -> Result<Profile, Diagnostic> {
    let mut head = Vec::new();
    bytes.by_ref().take(HEAD).read_to_end(&mut head).map_err(|fault| unreadable(source, &fault))?;
    if head.starts_with("\u{feff}".as_bytes()) {
        head.drain(..3);
    }
    let mut start = head.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
    // A line of a profiler may start with `[1/5]`; an array of events does not.
    let is_json = match start.next() {
        Some(b'{') => true,
        Some(b'[') => matches!(start.next(), Some(b'{' | b']') | None),
        _ => false,
    };
    let bytes = BufReader::with_capacity(BUFFER, Cursor::new(head).chain(bytes));
    let mut profile = if is_json { chrome::read(source, bytes)? } else { lines(source, bytes)? };
    if profile.is_empty() {
        let mut what = format!("no kernels in {source} (read as: {})", profile.format());
        for remark in profile.remarks() {
            what.push_str(&format!("; {remark}"));
        }
        return Err(Diagnostic::new(what).help(
            "record GPU activity: ProfilerActivity.CUDA in PyTorch, `nsys profile --trace cuda`, `ncu --metrics gpu__time_duration.sum`",
        ));
    }
    profile.finish();
    Ok(profile)
}

/// A table behind a header that may come after other lines.
fn lines(source: &str, mut bytes: impl BufRead) -> Result<Profile, Diagnostic> {
    let (mut line, mut number, mut first) = (Vec::new(), 0, None);
    while number < PREAMBLE {
        line.clear();
        let read = bytes.by_ref().take(LONGEST_HEADER).read_until(b'\n', &mut line);
        if read.map_err(|fault| unreadable(source, &fault))? == 0 {
            break;
        }
        number += 1;
        let Some(layout) = Layout::recognise(&line) else {
            if first.is_none() && !line.trim_ascii().is_empty() {
                first = Some((number, line.clone()));
            }
            continue;
        };
        let place = place(source, number, &line);
        let header = layout.header(&line).map_err(|fault| fault.at(place))?;
        let rows = Rows::new(source, number, bytes, header.format);
        return match header.layout {
            Header::Table(columns) => table::read(rows, &columns),
            Header::Metrics(columns) => ncu::metrics(rows, &columns),
            Header::Raw(columns) => ncu::raw(rows, &columns),
        };
    }
    let what = match first {
        None => Diagnostic::new(format!("{source} is empty")),
        Some((number, line)) => Diagnostic::new(format!("{source} is no profile that can be read"))
            .at(place(source, number, &line)),
    };
    let mut diagnostic = what.help("a profile has one row or event for each kernel, with its duration");
    diagnostic.allowed = FORMATS.map(str::to_owned).to_vec();
    Err(diagnostic)
}

fn place(source: &str, number: u64, line: &[u8]) -> Place {
    let text = String::from_utf8_lossy(&line[..line.len().min(400)]).trim_end().to_owned();
    Place { source: source.to_owned(), line: number, column: 0, text, key: String::new() }
}

/// Why the bytes of a file end before their time.
pub(crate) fn unreadable(source: &str, fault: &io::Error) -> Diagnostic {
    match fault.kind() {
        ErrorKind::UnexpectedEof => {
            Diagnostic::new(format!("{source} is truncated: the gzip, xz, bzip2 or zstd stream has no end"))
                .help("copy or record the profile again")
        }
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            Diagnostic::new(format!("{source} is a damaged packed file: {fault}"))
                .help("copy or record the profile again")
        }
        ErrorKind::NotFound => Diagnostic::new(format!("cannot read {source}: {fault}"))
            .help("is the path right? it is relative to the folder that the command runs in"),
        ErrorKind::IsADirectory => {
            Diagnostic::new(format!("cannot read {source}: {fault}")).help("name one of the files in it")
        }
        _ => {
            Diagnostic::new(format!("cannot read {source}: {fault}")).help("the file must be readable by you")
        }
    }
}

/// A fresh profile of a format.
fn profile(format: Format) -> Profile {
    Profile::new(format)
}
