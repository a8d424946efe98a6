//! Bad input: the fault, its place, and what is allowed; and its treatment by `lenient`.

use std::io::Read;

use requests::trace::{FaultKind, TraceOptions, TraceReader, inspect_read};

use super::{drain, format, read_with};

/// Checks the diagnostic of a bad line after a good one: column and part of the text.
fn refuses(name: &str, bad: &str, column: u64, part: &str) {
    let good = match name {
        "mqsim" => "1 0 0 8 1\n",
        "disksim" => "1.5 0 0 8 1\n",
        "msr" => "128166385295514663,hm,0,Write,9056014336,2048,2833\n",
        "cloudphysics" => "1,5633898,2a,512,42932745\n",
        "iolog3" => "fio version 3 iolog\n",
        "blkparse" => "8,0 1 1 0.5 697 D W 8 + 8 [x]\n",
        _ => "1538323200,4247200,128,1,1058\n",
    };
    let text = format!("{good}{bad}\n{good}");
    let error = read_with(&text, &format(name)).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains(part), "`{part}` not in\n{shown}");
    let place = error.place.unwrap();
    assert_eq!((place.source.as_str(), place.line, place.column), ("test", 2, column), "{shown}");
    assert!(bad.starts_with(&place.text) && place.text.len() >= bad.len().min(200));
}

#[test]
fn a_bad_field_is_named_with_its_place_and_what_is_allowed() {
    refuses("mqsim", "2 0 0 8 7", 9, "unknown type: `7`\n  --> test:2:9");
    refuses("mqsim", "2 0 0 8 7", 9, "allowed: 1 (read), 0 (write)");
    refuses("mqsim", "2 0 0 8 7", 9, "time device start_sector sectors type");
    refuses("mqsim", "2 0 0 8", 8, "the line ends before the type");
    refuses("mqsim", "2 0 0 8 1 9", 11, "more fields than `time device start_sector sectors type`: `9`");
    refuses("mqsim", "2.5 0 0 8 1", 1, "the time is not a number: `2.5`");
    refuses("mqsim", "--2 0 0 8 1", 1, "the time is not a number: `--2`");
    refuses("mqsim", "2 0 x 8 1", 5, "the start sector is not a number: `x`");
    refuses("mqsim", "2 0 99999999999999999999 8 1", 5, "too large");
    refuses("mqsim", "2 0 36028797018963967 8 1", 5, "too large");
    refuses("mqsim", "2 0 0 0 1", 7, "length zero");
    refuses("mqsim", "2 0 0 4194304 1", 7, "more than 1 GiB");
    refuses("disksim", "nan 0 0 8 1", 1, "the time is not a number");
    refuses("disksim", "2 0 0 8 zz", 9, "a hexadecimal number");
    refuses("msr", "128166385295514663,hm,0,write off,1,2,3", 25, "unknown type: `write off`");
    refuses("cloudphysics", "1,5633898,12,512,42932745", 11, "unknown SCSI opcode: `12`");
    refuses("iolog3", "5 f raed 0 512", 5, "unknown action: `raed`");
    refuses("iolog3", "5 f wait 0 512", 5, "version 3 has timestamps");
    refuses("iolog3", "5 f read", 9, "the line ends before the offset");
    refuses("blkparse", "8,0 1 2 0.6 697 D X 8 + 8 [x]", 19, "unknown RWBS: `X`");
    refuses("blkparse", "8,0 1 2 0.6 697 D W [x]", 24, "the line ends before the sectors");
    refuses("tencent", "1538323200,4247200,128,2,1058", 24, "0 (read), 1 (write)");
}

#[test]
fn a_long_name_is_refused() {
    let name = "f".repeat(256);
    refuses("iolog3", &format!("5 {name} read 0 512"), 3, "longer than 255 bytes");
}

#[test]
fn a_fio_log_needs_its_header() {
    let error = read_with("5 f read 0 512\n", &format("iolog3")).unwrap_err().to_string();
    assert!(error.contains("the first line is not the header `fio version 3 iolog`"), "{error}");
}

#[test]
fn a_late_issue_in_a_trace_taken_by_queueing_is_not_passed_over() {
    let queue: String =
        (0..2_000).map(|n| format!("8,0 1 {n} {n}.5 697 Q W 8 + 8 [some process name]\n")).collect();
    let text = format!("{queue}8,0 1 9 9999.5 697 D W 8 + 8 [x]\n");
    let error = read_with(&text, &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("--action Q or --action D"), "{error}");
}

#[test]
fn lenient_skips_and_counts_by_kind_with_the_first_line() {
    let text = "1 0 0 8 1\n2 0 0 0 1\n3 0 0 8\n4 0 0 8 5\n5 0 0 0 0\n6 0 0 8 0\n\u{1}\u{2}\n";
    let options = TraceOptions { lenient: true, ..format("mqsim") };
    let (requests, notes) = read_with(text, &options).unwrap();
    assert_eq!(requests.len(), 2);
    let seen = |kind| notes.skipped.get(&kind).map(|s| (s.count, s.first_line));
    assert_eq!(seen(FaultKind::ZeroLength), Some((2, 2)));
    assert_eq!(seen(FaultKind::MissingField), Some((1, 3)));
    assert_eq!(seen(FaultKind::UnknownOperation), Some((1, 4)));
    assert_eq!(seen(FaultKind::NotText), Some((1, 7)));
    assert_eq!(notes.lines, 7);
    let warnings = notes.warnings().join("\n");
    assert!(warnings.contains("2 lines skipped: zero length, first on line 2"), "{warnings}");
}

#[test]
fn inspection_counts_bad_lines_and_goes_on() {
    let text = "1 0 0 8 1\n2 0 0 8 1\n3 0 0 8\n4 0 0 8 1\n";
    let seen = inspect_read("t", text.as_bytes(), &format("mqsim")).unwrap();
    assert_eq!(seen.requests, 3);
    assert_eq!(seen.errors.get(&FaultKind::MissingField).map(|s| (s.count, s.first_line)), Some((1, 3)));
    assert!(seen.to_string().contains("missing field: 1 lines, first on line 3"), "{seen}");
}

#[test]
fn inspection_refuses_what_would_change_nothing() {
    let options = TraceOptions { start: Some(engine::Time::from_s(1).into()), ..TraceOptions::default() };
    let error = inspect_read("t", &b"1 0 0 8 1\n"[..], &options).unwrap_err().to_string();
    assert!(error.contains("--start has no effect on an inspection"), "{error}");
}

#[test]
fn nothing_is_not_a_trace() {
    for text in ["", "\n\n", "# only a comment\n"] {
        let error = read_with(text, &TraceOptions::default()).unwrap_err().to_string();
        assert!(error.contains("the trace is empty"), "{error}");
        let error = read_with(text, &format("mqsim")).unwrap_err().to_string();
        assert!(error.contains("no request in"), "{error}");
    }
    let only_opened = "fio version 3 iolog\n1 f add\n2 f open\n";
    let error = read_with(only_opened, &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("no request in 3 lines read as `iolog3`"), "{error}");
}

#[test]
fn prose_and_binary_are_refused() {
    let error =
        read_with("It was a dark and stormy night\n", &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("its first line has 7 fields separated by blanks: word, word"), "{error}");
    let error = read_with([0, 1, 2, 3], &TraceOptions::default()).unwrap_err().to_string();
    assert!(error.contains("binary data in an unknown format"), "{error}");
    // Binary data after a text start.
    let mut late = "1 0 0 8 1\n".repeat(20_000).into_bytes();
    late.extend([0, 159, 146, 150, b'\n']);
    let error = read_with(late, &format("mqsim")).unwrap_err();
    assert!(error.to_string().contains("control characters: this is not text"), "{error}");
    assert_eq!(error.place.unwrap().line, 20_001);
}

#[test]
fn terminal_escapes_in_a_trace_do_not_reach_the_terminal() {
    let error = read_with("1 0 0 8 \u{1b}[31mred\n", &format("mqsim")).unwrap_err().to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

#[test]
fn a_missing_file_and_a_folder_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let Err(error) = TraceReader::open(folder.path(), &TraceOptions::default()) else {
        panic!("a folder was opened");
    };
    assert!(error.to_string().contains("this is a folder"), "{error}");
    let Err(error) = TraceReader::open(folder.path().join("none.trace"), &TraceOptions::default()) else {
        panic!("a missing file was opened");
    };
    assert!(error.to_string().contains("cannot read the trace"), "{error}");
    assert!(error.to_string().contains("none.trace"), "{error}");
}

/// Set in the process that reads alone: tests beside it need memory of their own.
const ALONE: &str = "NANDSCAPE_READS_ALONE";

/// Whether this process runs one test only; otherwise it starts itself for the test, which must pass there.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let itself = std::env::current_exe().expect("a test has a path");
    let name = format!("trace::bad_input::{test}");
    let done = std::process::Command::new(itself).args(["--exact", &name]).env(ALONE, "1").output();
    let done = done.expect("a test can start itself");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && printed.contains("1 passed"), "{printed}");
    false
}

/// Returns the peak resident memory so far, in MiB; `None` if the system does not report it.
fn peak_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib / 1024)
}

#[test]
fn a_line_of_one_gigabyte_is_an_error_and_takes_no_memory() {
    let before = peak_mib();
    let head = b"1 0 0 8 1\n".repeat(3);
    let endless = || head.clone().into_iter().collect::<std::collections::VecDeque<u8>>();
    let content = || endless().chain(std::io::repeat(b'7').take(1 << 30)).chain(&b"\n2 0 0 8 1\n"[..]);
    let mut reader = TraceReader::from_read("t", content(), &format("mqsim")).unwrap();
    let error = drain(&mut reader).unwrap_err();
    assert!(error.to_string().contains("a line longer than 64 KiB"), "{error}");
    assert_eq!(error.place.unwrap().line, 4);
    assert_eq!(drain(&mut reader).unwrap().len(), 4, "reading on passes over the line");
    if let (Some(before), Some(after)) = (before, peak_mib()) {
        assert!(after < before + 256, "{before} MiB before, {after} MiB after");
    }
    let options = TraceOptions { lenient: true, ..format("mqsim") };
    let mut reader = TraceReader::from_read("t", content(), &options).unwrap();
    assert_eq!(drain(&mut reader).unwrap().len(), 4);
    assert_eq!(reader.notes().skipped[&FaultKind::LongLine].first_line, 4);
}

#[test]
fn line_lengths_around_the_limit() {
    let line = |length: usize| format!("1 0 0 8{}1\n", " ".repeat(length - 8));
    let limit = 64 << 10;
    let text = format!("{}{}", line(limit), line(10));
    assert_eq!(read_with(text, &format("mqsim")).unwrap().0.len(), 2);
    let text = format!("{}{}", line(limit + 1), line(10));
    let error = read_with(text, &format("mqsim")).unwrap_err();
    assert!(error.to_string().contains("longer than 64 KiB"), "{error}");
}

/// Lines of a trace generated on the fly.
struct Endless {
    line: Vec<u8>,
    n: u64,
    end: u64,
}

impl Read for Endless {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.line.is_empty() {
            if self.n == self.end {
                return Ok(0);
            }
            for _ in 0..256 {
                // Every eighth request is a little late.
                let at = self.n * 1000 - if self.n % 8 == 7 { 6_500 } else { 0 };
                self.line.extend(format!("{at} {} {} 8 1\n", self.n % 5, self.n % 100_000 * 8).bytes());
                self.n += 1;
            }
        }
        let n = buf.len().min(self.line.len());
        buf[..n].copy_from_slice(&self.line[..n]);
        self.line.drain(..n);
        Ok(n)
    }
}

#[test]
fn memory_does_not_grow_with_the_trace() {
    if !is_alone("memory_does_not_grow_with_the_trace") {
        return;
    }
    let lines = 256 * 6_000;
    let before = peak_mib();
    let trace = Endless { line: Vec::new(), n: 0, end: lines };
    let mut reader = TraceReader::from_read("t", trace, &format("mqsim")).unwrap();
    let mut count = 0;
    while reader.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, lines);
    assert_eq!(reader.notes().unsorted, lines / 8);
    // The text has 45 MiB, its requests 70 MiB.
    if let (Some(before), Some(after)) = (before, peak_mib()) {
        assert!(after < before + 16, "{before} MiB before, {after} MiB after");
    }
}
