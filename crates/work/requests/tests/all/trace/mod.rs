//! Block traces, from bytes to requests.

// A diagnostic ends a test: its size costs nothing.
#![allow(clippy::result_large_err)]

mod bad_input;
mod data;
mod detection;
mod formats;
mod more_formats;
mod properties;
mod replay;
mod together;

use config::Diagnostic;
use engine::Time;
use proto::{IoOp, IoRequest};
use requests::trace::{
    ConvertOptions, Converted, Sample, TraceNotes, TraceOptions, TraceReader, convert, written_formats,
};
use std::{io::Cursor, path::PathBuf};

// Helpers shared by the tests.

/// Reads a text to its end.
pub(crate) fn read_with(
    content: impl AsRef<[u8]>,
    options: &TraceOptions,
) -> Result<(Vec<IoRequest>, TraceNotes), Diagnostic> {
    let mut reader = TraceReader::from_read("test", Cursor::new(content.as_ref().to_vec()), options)?;
    let requests = drain(&mut reader)?;
    Ok((requests, reader.notes().clone()))
}

/// Returns every remaining request.
pub(crate) fn drain(reader: &mut TraceReader) -> Result<Vec<IoRequest>, Diagnostic> {
    let mut all = Vec::new();
    while let Some(request) = reader.next()? {
        all.push(request);
    }
    Ok(all)
}

/// Returns options that name a format.
pub(crate) fn format(name: &str) -> TraceOptions {
    TraceOptions { format: Some(name.to_owned()), ..TraceOptions::default() }
}

/// Reads a text in a named format.
pub(crate) fn read(name: &str, content: &str) -> Vec<IoRequest> {
    read_with(content, &format(name)).unwrap_or_else(|e| panic!("{e}")).0
}

/// Returns a request without force unit access.
pub(crate) fn request(ps: u64, op: IoOp, offset: u64, bytes: u64, flow: u16) -> IoRequest {
    IoRequest { at: Time::from_ps(ps), op, offset, bytes, flow, fua: false }
}

/// Returns a file of the shared data, or `None` with a message on stdout.
pub(crate) fn data(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("NANDSCAPE_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/data"),
        PathBuf::from,
    );
    let path = root.join("block_io").join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: no data ({name})");
    None
}

// Writing traces, whole and sampled.

fn to(name: &str) -> ConvertOptions {
    ConvertOptions { to: name.to_owned(), sample: None, lenient: false }
}

fn converted(text: &str, from: &str, options: &ConvertOptions) -> (String, Converted) {
    let mut reader = TraceReader::from_read("test", Cursor::new(text.to_owned()), &format(from)).unwrap();
    let mut out = Vec::new();
    let done = convert(&mut reader, options, &mut out).unwrap_or_else(|e| panic!("{e}"));
    (String::from_utf8(out).unwrap(), done)
}

#[test]
fn each_format_is_written_by_its_definition() {
    let text = "5000 4 16 8 0\n6001234 7 264719034 16 1\n";
    assert_eq!(converted(text, "mqsim", &to("mqsim")).0, "0 4 16 8 0\n5996234 7 264719034 16 1\n");
    let (msr, done) = converted(text, "mqsim", &to("msr"));
    // 5,996,234 ns are 59,962 ticks of 100 ns and a rest.
    assert_eq!(msr, "0,4,0,Write,8192,4096,0\n59962,7,0,Read,135536145408,8192,0\n");
    assert_eq!((done.written, done.times_cut), (2, 1));
    assert_eq!(done.renamed, [("4".to_owned(), "4,0".to_owned()), ("7".to_owned(), "7,0".to_owned())]);
    let iolog = "fio version 3 iolog\n0 4 add\n0 4 open\n0 4 write 8192 4096\n5996 7 add\n5996 7 open\n\
                 5996 7 read 135536145408 8192\n5996 4 close\n5996 7 close\n";
    assert_eq!(converted(text, "mqsim", &to("iolog3")).0, iolog);
    let csv = "time_ps,flow,op,offset_bytes,size_bytes,fua\n0,4,W,8192,4096,0\n5996234000,7,R,135536145408,8192,0\n";
    assert_eq!(converted(text, "mqsim", &to("csv")).0, csv);
}

#[test]
fn recorded_traces_survive_a_round_trip() {
    for (file, formats) in [
        ("mqsim/tpcc-small.trace", &["mqsim", "csv"][..]),
        ("msr/msr_hm0_sample1k.csv", &["msr", "csv"]),
        ("systor17/systor17-traces-sample.csv.gz", &["mqsim", "csv"]),
        ("tencent/tencent_cbs-sample.bz2", &["mqsim", "msr", "iolog3", "csv"]),
    ] {
        let Some(path) = data(file) else { return };
        let mut original = TraceReader::open(&path, &TraceOptions::default()).unwrap();
        let expected = drain(&mut original).unwrap();
        for name in formats {
            let mut out = Vec::new();
            let done = convert(&mut original.reopen().unwrap(), &to(name), &mut out).unwrap();
            assert_eq!((done.written, done.times_cut), (expected.len() as u64, 0), "{file} as {name}");
            let (requests, notes) = read_with(out, &format(name)).unwrap();
            // Streams are numbered by first appearance in time order on the way back.
            assert_eq!(requests.len(), expected.len());
            let same = requests
                .iter()
                .zip(&expected)
                .all(|(a, b)| (a.at, a.op, a.offset, a.bytes) == (b.at, b.op, b.offset, b.bytes));
            assert!(same, "{file} as {name}");
            assert_eq!(notes.flows.names().len(), original.notes().flows.names().len());
        }
    }
}

#[test]
fn what_a_format_cannot_say_is_an_error_or_counted() {
    let text = "time_us,flow,op,offset_bytes,size_bytes,fua\n0,a,W,0,512,1\n1,a,trim,0,512,0\n2,a,zeroes,0,512,0\n\
                3,a,flush,0,0,0\n4,a,R,100,28,0\n";
    let refused = |name: &str| {
        let mut reader = TraceReader::from_read("t", Cursor::new(text), &format("csv")).unwrap();
        convert(&mut reader, &to(name), &mut Vec::new()).unwrap_err().to_string()
    };
    assert!(refused("mqsim").contains("only reads and writes"));
    assert!(refused("msr").contains("`csv` can express every request"));
    assert!(refused("iolog3").contains("cannot write zeroes"));
    let lenient = |name: &str| {
        let done = converted(text, "csv", &ConvertOptions { lenient: true, ..to(name) }).1;
        (done.written, done.unwritable, done.fua_lost)
    };
    assert_eq!(lenient("mqsim"), (1, 4, 1));
    assert_eq!(lenient("msr"), (2, 3, 1));
    assert_eq!(lenient("iolog3"), (4, 1, 1));
    assert_eq!(lenient("csv"), (5, 0, 0));
    assert_eq!(converted(text, "csv", &to("csv")).0.replace("time_ps", ""), {
        let ps = text.replace("time_us", "");
        ["1,a", "2,a", "3,a", "4,a"]
            .iter()
            .fold(ps, |t, s| t.replace(&format!("\n{s}"), &format!("\n{}000000,a", &s[..1])))
    });
}

#[test]
fn streams_stay_apart_whatever_they_are_called() {
    // `x` is the second stream: number 1 would be taken by the third.
    let text =
        "time_us,flow,op,offset_bytes,size_bytes\n0,0,R,0,512\n1,x,R,0,512\n2,1,R,0,512\n3,x,R,0,512\n";
    let (out, done) = converted(text, "csv", &to("mqsim"));
    let devices: Vec<&str> = out.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
    assert_eq!(devices, ["0", "1", "2", "1"]);
    assert_eq!(done.renamed, [("x".to_owned(), "1".to_owned()), ("1".to_owned(), "2".to_owned())]);
}

#[test]
fn a_sample_keeps_times_and_says_what_it_left_out() {
    let text: String = (0..10).map(|n| format!("{} 0 {n} 8 1\n", n * 1_000)).collect();
    let times = |sample: Sample| {
        let (out, done) = converted(&text, "mqsim", &ConvertOptions { sample: Some(sample), ..to("mqsim") });
        let times: Vec<u64> = out.lines().map(|l| l.split(' ').next().unwrap().parse().unwrap()).collect();
        (times, done.not_sampled)
    };
    assert_eq!(times(Sample::Every(4)), (vec![0, 4000, 8000], 7));
    let window = Sample::Window { start: Time::from_us(2), end: Time::from_us(4) };
    assert_eq!(times(window), (vec![2000, 3000], 2));
    assert_eq!(times(Sample::First(2)).0, [0, 1000]);
}

#[test]
fn an_unknown_target_gets_the_nearest_and_what_there_is() {
    let mut reader = TraceReader::from_read("t", Cursor::new("1 0 0 8 1\n"), &format("mqsim")).unwrap();
    let error = convert(&mut reader, &to("iolog"), &mut Vec::new()).unwrap_err();
    assert_eq!(error.nearest.as_deref(), Some("iolog3"));
    assert_eq!(error.allowed, written_formats().collect::<Vec<_>>());
}

#[test]
fn a_full_disk_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut reader = TraceReader::from_read("t", Cursor::new("1 0 0 8 1\n"), &format("mqsim")).unwrap();
    assert!(convert(&mut reader, &to("csv"), &mut Full).unwrap_err().to_string().contains("cannot write"));
}
