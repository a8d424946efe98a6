//! Reads profiles, plain or gzip, with the format detected from the content.

mod chrome;
mod ncu;
mod tables;

use crate::profile::{Dims, Format, Profile};
use config::{Diagnostic, Place};
use ncu::Rows;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use tables::{Header, Layout};

/// Bytes needed to distinguish JSON from lines.
const HEAD: u64 = 4096;
/// Bytes read at a time.
const BUFFER: usize = 1 << 18;
/// Maximum length of a header line.
const LONGEST_HEADER: u64 = 1 << 20;
/// Maximum number of lines that a profiler or the profiled program may print before the header.
const PREAMBLE: u64 = 100_000;

/// Formats that are read, for diagnostics.
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

/// Reads a table whose header may follow other lines.
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
            Header::Table(columns) => tables::read_table(rows, &columns),
            Header::Metrics(columns) => ncu::metrics(rows, &columns),
            Header::Raw(columns) => ncu::raw(rows, &columns),
        };
    }
    let what = match first {
        None => Diagnostic::new(format!("{source} is empty")),
        Some((number, line)) => {
            Diagnostic::new(format!("{source} is not a known profile")).at(place(source, number, &line))
        }
    };
    let mut diagnostic = what.help("a profile has one row or event for each kernel, with its duration");
    diagnostic.allowed = FORMATS.map(str::to_owned).to_vec();
    Err(diagnostic)
}

fn place(source: &str, number: u64, line: &[u8]) -> Place {
    let text = String::from_utf8_lossy(&line[..line.len().min(400)]).trim_end().to_owned();
    Place { source: source.to_owned(), line: number, column: 0, text, key: String::new() }
}

/// Explains why the bytes of a file cannot be read.
pub(crate) fn unreadable(source: &str, fault: &io::Error) -> Diagnostic {
    match fault.kind() {
        ErrorKind::UnexpectedEof => {
            Diagnostic::new(format!("{source} is truncated: the gzip, xz, bzip2 or zstd stream has no end"))
                .help("copy or record the profile again")
        }
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            Diagnostic::new(format!("{source} is a damaged compressed file: {fault}"))
                .help("copy or record the profile again")
        }
        ErrorKind::NotFound => Diagnostic::new(format!("cannot read {source}: {fault}"))
            .help("check the path: it is relative to the current folder"),
        ErrorKind::IsADirectory => {
            Diagnostic::new(format!("cannot read {source}: {fault}")).help("give one of the files in it")
        }
        _ => Diagnostic::new(format!("cannot read {source}: {fault}"))
            .help("check the permissions of the file"),
    }
}

/// Empty profile of a format.
fn profile(format: Format) -> Profile {
    Profile::new(format)
}

// Fields: sizes, times, numbers.

/// Nanoseconds per unit of time, as profilers abbreviate it.
fn unit_ns(name: &str) -> Option<f64> {
    Some(match name {
        "ns" | "nsec" | "nsecond" | "nanosecond" | "nanoseconds" => 1.0,
        "us" | "usec" | "usecond" | "µs" | "μs" | "microsecond" | "microseconds" => 1e3,
        "ms" | "msec" | "msecond" | "millisecond" | "milliseconds" => 1e6,
        "s" | "sec" | "second" | "seconds" => 1e9,
        _ => return None,
    })
}

/// Units that are accepted.
const UNITS: [&str; 8] = ["ns", "us", "ms", "s", "nsecond", "usecond", "msecond", "second"];

/// Parses three sizes: `564x1x1`, `(564, 1, 1)` or `564 1 1`; an empty field is `Ok(None)`.
fn dims(text: &[u8]) -> Result<Option<Dims>, ()> {
    let mut sides = [0_u32; 3];
    let mut found = 0;
    let is_between = |byte: &u8| matches!(byte, b'x' | b',' | b'(' | b')' | b' ' | b'\t');
    for side in text.split(is_between).filter(|side| !side.is_empty()) {
        let parsed = size(side).ok_or(())?;
        *sides.get_mut(found).ok_or(())? = parsed;
        found += 1;
    }
    match found {
        0 => Ok(None),
        3 => Ok(Some(Dims(sides))),
        _ => Err(()),
    }
}

/// Parses a size in blocks or threads: a whole number from one.
fn size(digits: &[u8]) -> Option<u32> {
    let mut value = 0_u32;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u32::from(digit - b'0'))?;
    }
    (value > 0).then_some(value)
}

/// Parses a real number.
fn number(text: &[u8]) -> Option<f64> {
    str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Parses a real number that may have commas between thousands, as Nsight Compute prints them: `1,234.5`.
fn grouped(text: &[u8]) -> Option<f64> {
    let text = str::from_utf8(text).ok()?.trim();
    if !text.contains(',') {
        return text.parse().ok();
    }
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let mut groups = whole.split(',');
    let digits = |group: &str| group.bytes().all(|byte| byte.is_ascii_digit());
    let first = groups.next()?;
    if !(1..=3).contains(&first.len()) || !digits(first) || !digits(part) {
        return None;
    }
    if !groups.all(|group| group.len() == 3 && digits(group)) {
        return None;
    }
    text.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_in_three_spellings() {
        for text in ["564x2x1", "(564, 2, 1)", "  564    2    1", "564,2,1"] {
            assert_eq!(dims(text.as_bytes()), Ok(Some(Dims([564, 2, 1]))), "{text}");
        }
        assert_eq!(dims(b""), Ok(None));
        for text in ["564", "1x1x1x1", "0x1x1", "-1x1x1", "1x1x5000000000", "axbxc", "1.0x1x1"] {
            assert_eq!(dims(text.as_bytes()), Err(()), "{text}");
        }
    }

    #[test]
    fn commas_stand_between_thousands_only() {
        for (text, value) in
            [("1,234.5", 1234.5), ("152,192", 152_192.0), ("12.40", 12.4), ("1,000,000", 1e6)]
        {
            assert_eq!(grouped(text.as_bytes()), Some(value), "{text}");
        }
        for text in ["9,00", "1,234,5", ",123", "1234,567", "1,23a.0", "1.234,50"] {
            assert_eq!(grouped(text.as_bytes()), None, "{text}");
        }
    }
}
