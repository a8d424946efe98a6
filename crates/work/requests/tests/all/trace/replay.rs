//! Replay from the file to the simulator: order, clock, clip, device.

use std::io::{Cursor, Write};

use engine::Time;
use proto::IoOp::{Flush, Read, Trim};
use proto::{IoOp, IoRequest};
use requests::trace::{Remap, TimeScale, TraceOptions, TraceReader};

use super::{data, drain, format, read_with, request};

/// Reads a file of fields by splitting strings, sorts it stably by time and rebases it: the expected output of a
/// reader.
fn naively(text: &str, parse: impl Fn(&str) -> (u128, IoOp, u64, u64, String)) -> Vec<IoRequest> {
    let mut flows: Vec<String> = Vec::new();
    let mut all = Vec::new();
    for line in text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())) {
        let (ps, op, offset, bytes, name) = parse(line);
        let flow = flows.iter().position(|f| *f == name).unwrap_or_else(|| {
            flows.push(name);
            flows.len() - 1
        });
        all.push((ps, op, offset, bytes, flow as u16));
    }
    all.sort_by_key(|r| r.0);
    let first = all.first().map_or(0, |r| r.0);
    all.into_iter()
        .map(|(ps, op, o, b, flow)| request(u64::try_from(ps - first).unwrap(), op, o, b, flow))
        .collect()
}

fn unpacked(path: &std::path::Path) -> String {
    use std::io::Read as _;
    let file = std::fs::File::open(path).unwrap();
    let mut text = String::new();
    match path.extension().and_then(|e| e.to_str()) {
        Some("gz") => flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap(),
        Some("bz2") => bzip2::read::BzDecoder::new(file).read_to_string(&mut text).unwrap(),
        _ => std::io::BufReader::new(file).read_to_string(&mut text).unwrap(),
    };
    text
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap()
}

/// Reads `12.345` with up to `digits` decimals as an integer of 10^-digits.
fn fixed(text: &str, digits: usize) -> u128 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{fraction:0<digits$}").parse().unwrap()
}

fn check(file: &str, parse: impl Fn(&str) -> (u128, IoOp, u64, u64, String)) {
    let Some(path) = data(file) else { return };
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    let requests = drain(&mut reader).unwrap();
    let expected = naively(&unpacked(&path), parse);
    assert_eq!(requests.len(), expected.len());
    let wrong = requests.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(
        wrong,
        None,
        "{file}: {:?} is not {:?}",
        wrong.map(|n| requests[n]),
        wrong.map(|n| expected[n])
    );
}

fn read_if(is_read: bool) -> IoOp {
    if is_read { Read } else { IoOp::Write }
}

#[test]
fn recorded_traces_replay_as_a_naive_reader_has_them() {
    check("mqsim/tpcc-small.trace", |line| {
        let f: Vec<&str> = line.split_whitespace().collect();
        let ps = u128::from(number(f[0])) * 1000;
        (ps, read_if(f[4] == "1"), number(f[2]) * 512, number(f[3]) * 512, f[1].to_owned())
    });
    check("disksim/ascii.trace", |line| {
        let f: Vec<&str> = line.split_whitespace().collect();
        (fixed(f[0], 9), read_if(f[4] == "1"), number(f[2]) * 512, number(f[3]) * 512, f[1].to_owned())
    });
    check("msr/wdev_1.csv", |line| {
        let f: Vec<&str> = line.split(',').collect();
        let ps = u128::from(number(f[0])) * 100_000;
        (ps, read_if(f[3] == "Read"), number(f[4]), number(f[5]), f[1..3].join(","))
    });
    check("systor17/systor17-traces-sample.csv.gz", |line| {
        let f: Vec<&str> = line.split(',').collect();
        (fixed(f[0], 12), read_if(f[2] == "R"), number(f[4]), number(f[5]), f[3].to_owned())
    });
    check("tencent/tencent_cbs-sample.bz2", |line| {
        let f: Vec<&str> = line.split(',').collect();
        let ps = u128::from(number(f[0])) * 1_000_000_000_000;
        (ps, read_if(f[3] == "0"), number(f[1]) * 512, number(f[2]) * 512, f[4].to_owned())
    });
    check("cloudphysics/cloudPhysicsIO.csv", |line| {
        let f: Vec<&str> = line.split(',').collect();
        let ps = u128::from(number(f[1])) * 1_000_000_000_000;
        (ps, read_if(f[2] == "28"), number(f[4]) * 512, number(f[3]), String::new())
    });
}

#[test]
fn an_unsorted_trace_is_put_in_order_and_it_is_said() {
    let Some(path) = data("systor17/systor17-traces-sample.csv.gz") else { return };
    let mut reader = TraceReader::open(&path, &TraceOptions::default()).unwrap();
    drain(&mut reader).unwrap();
    // Counted by a different program: the latest request comes 67.603 ms after one that is later.
    assert_eq!(reader.notes().lateness_ps / 1_000_000, 67_603);
    let warnings = reader.notes().warnings().join("\n");
    assert!(warnings.contains("requests are out of order, by up to 67.6 ms"), "{warnings}");
}

/// Times 10, 20, 30, 40, then 5: the last must pass four.
const LATE: &str = "10 0 0 8 1\n20 0 8 8 1\n30 0 16 8 1\n40 0 24 8 1\n5 0 32 8 1\n";

#[test]
fn more_disorder_than_the_window_is_an_error_that_names_the_window_that_does() {
    let options = |sort_window| TraceOptions { sort_window, ..format("mqsim") };
    let error = read_with(LATE, &options(2)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("--sort-window 4 is enough"), "{text}");
    // With two held back, 10 and 20 are gone when 5 comes.
    assert!(text.contains("is 15 ns earlier") && text.contains("sort window of 2 requests"), "{text}");
    assert_eq!(error.place.unwrap().line, 5);
    let (requests, notes) = read_with(LATE, &options(4)).unwrap();
    assert_eq!(requests[0], request(0, Read, 32 * 512, 4096, 0));
    assert_eq!((notes.unsorted, notes.lateness_ps, notes.sort_window_needed), (1, 35_000, 4));
    assert!(read_with(LATE, &options(3)).is_err());
}

#[test]
fn the_window_named_looks_at_the_whole_trace() {
    // The first late request needs two; a later one needs six.
    let text = "1 0 0 8 1\n8 0 0 8 1\n9 0 0 8 1\n2 0 0 8 1\n20 0 0 8 1\n21 0 0 8 1\n22 0 0 8 1\n23 0 0 8 1\n3 0 0 8 1\n";
    let options = |sort_window| TraceOptions { sort_window, ..format("mqsim") };
    let error = read_with(text, &options(0)).unwrap_err();
    assert_eq!(error.place.as_ref().map(|p| p.line), Some(4));
    let help = error.help.unwrap();
    let told: usize = help.split_whitespace().nth(1).unwrap().parse().unwrap();
    // Six is the minimum; the reader may report a little more.
    assert!((6..=8).contains(&told), "{help}");
    assert!(read_with(text, &options(told)).is_ok());
    assert!(read_with(text, &options(5)).is_err());
}

#[test]
fn lenient_moves_late_requests_and_counts_them() {
    let options = TraceOptions { sort_window: 0, lenient: true, ..format("mqsim") };
    let (requests, notes) = read_with(LATE, &options).unwrap();
    let times: Vec<u64> = requests.iter().map(|r| r.at.ns()).collect();
    assert_eq!(times, [0, 10, 20, 30, 30]);
    assert_eq!((notes.clamped, notes.unsorted), (1, 1));
    assert!(notes.warnings().iter().any(|w| w.starts_with("1 requests were later than the sort window")));
}

#[test]
fn requests_of_one_second_keep_the_order_of_the_file() {
    let text = "11,5,8,0,1\n10,4,8,0,1\n11,3,8,0,1\n10,2,8,0,1\n11,1,8,0,1\n";
    let (requests, notes) = read_with(text, &format("tencent")).unwrap();
    let sectors: Vec<u64> = requests.iter().map(|r| r.offset / 512).collect();
    assert_eq!(sectors, [4, 2, 5, 3, 1]);
    assert!(notes.warnings().iter().any(|w| w.contains("whole seconds")));
}

#[test]
fn a_clip_counts_from_the_first_request_and_its_start_is_time_zero() {
    let text: String = (0..10).map(|n| format!("{} 0 {n} 8 1\n", 5_000 + n * 1_000)).collect();
    let options = TraceOptions {
        start: Some(Time::from_us(2).into()),
        end: Some(Time::from_us(5).into()),
        ..format("mqsim")
    };
    let (requests, notes) = read_with(&text, &options).unwrap();
    let seen: Vec<(u64, u64)> = requests.iter().map(|r| (r.at.ns(), r.offset / 512)).collect();
    assert_eq!(seen, [(0, 2), (1000, 3), (2000, 4)]);
    assert_eq!((notes.clipped, notes.delivered), (2, 3));

    let options = TraceOptions { max_requests: Some(4), ..format("mqsim") };
    assert_eq!(read_with(&text, &options).unwrap().0.len(), 4);

    let options = TraceOptions { start: Some(Time::from_s(1).into()), ..format("mqsim") };
    let (requests, notes) = read_with(&text, &options).unwrap();
    assert_eq!(requests.len(), 0);
    assert!(notes.warnings().iter().any(|w| w == "no request is inside the clip"));

    let options = TraceOptions {
        start: Some(Time::from_s(1).into()),
        end: Some(Time::from_s(1).into()),
        ..format("mqsim")
    };
    assert!(read_with(&text, &options).is_err());
}

#[test]
fn a_time_scale_is_an_exact_ratio() {
    let text = "0 0 0 8 1\n7 0 0 8 1\n";
    let at = |scale: &str| {
        let options = TraceOptions { time_scale: scale.parse().unwrap(), ..format("mqsim") };
        read_with(text, &options).unwrap().0[1].at.ps()
    };
    assert_eq!((at("2"), at("0.5"), at("1/3"), at("1.25")), (14_000, 3_500, 2_333, 8_750));
    for bad in ["0", "-1", "1/0", "x", "", "1e3", "."] {
        assert!(bad.parse::<TimeScale>().is_err(), "{bad}");
    }
}

#[test]
fn a_span_beyond_the_clock_is_an_error_and_a_scale_or_clip_mends_it() {
    // 300 days in seconds; the clock has 213.5.
    let text = "0,0,8,0,1\n25920000,0,8,0,1\n";
    let error = read_with(text, &format("tencent")).unwrap_err();
    let shown = error.to_string();
    assert!(
        shown.contains("is 300 days after the start, but the simulator's clock ends at 214 days"),
        "{shown}"
    );
    assert!(shown.contains("--time-unit"), "{shown}");
    assert_eq!(error.place.unwrap().line, 2);
    let scaled = TraceOptions { time_scale: TimeScale::new(1, 2).unwrap(), ..format("tencent") };
    assert_eq!(read_with(text, &scaled).unwrap().0[1].at, Time::from_s(12_960_000));
    let clipped = TraceOptions { end: Some(Time::from_s(1).into()), ..format("tencent") };
    assert_eq!(read_with(text, &clipped).unwrap().0.len(), 1);
    // The time of day does not matter: only the span counts.
    let late = format!("{},0,8,0,1\n", u64::MAX);
    assert_eq!(read_with(late, &format("tencent")).unwrap().0[0].at, Time::ZERO);
}

fn on(capacity: u64, remap: Remap) -> TraceOptions {
    TraceOptions { capacity: Some(capacity), remap, ..format("csv") }
}

const MIB: u64 = 1 << 20;

fn csv(rows: &[(u64, &str, &str, u64, u64)]) -> String {
    let lines = rows.iter().map(|(at, flow, op, offset, size)| format!("{at},{flow},{op},{offset},{size}\n"));
    format!("time_us,flow,op,offset_bytes,size_bytes\n{}", lines.collect::<String>())
}

#[test]
fn a_request_beyond_the_device_is_an_error_that_names_remap() {
    let text = csv(&[(0, "a", "R", 0, 4096), (1, "a", "W", 8 * MIB - 512, 1024)]);
    let error = read_with(&text, &on(8 * MIB, Remap::Error)).unwrap_err();
    let shown = error.to_string();
    assert!(shown.contains("the request ends beyond the device of 8 MiB"), "{shown}");
    assert!(shown.contains("--remap wrap"), "{shown}");
    assert_eq!(error.place.unwrap().line, 3);
    assert!(read_with(&text, &on(8 * MIB + 512, Remap::Error)).is_ok());
    let lenient = TraceOptions { lenient: true, ..on(8 * MIB, Remap::Error) };
    let (requests, notes) = read_with(&text, &lenient).unwrap();
    assert_eq!((requests.len(), notes.beyond_device), (1, 1));
}

#[test]
fn wrap_counts_what_it_moves_and_stays_on_the_device() {
    let text = csv(&[
        (0, "a", "R", 4096, 4096),
        (1, "a", "R", 8 * MIB + 4096, 4096),
        (2, "b", "W", 16 * MIB - 512, 4096),
        (3, "b", "flush", 0, 0),
    ]);
    let (requests, notes) = read_with(&text, &on(8 * MIB, Remap::Wrap)).unwrap();
    let offsets: Vec<u64> = requests.iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [4096, 4096, 8 * MIB - 4096, 0]);
    assert_eq!(notes.remapped, 2);
    let warnings = notes.warnings().join("\n");
    assert!(warnings.contains("2 requests moved to fit the device"), "{warnings}");
    assert!(warnings.contains("2 streams, each with its own addresses, share"), "{warnings}");
}

#[test]
fn compact_packs_and_splits_and_drops_trims_of_nothing() {
    let text = csv(&[
        (0, "a", "W", 900 * MIB, 4096),
        (1, "b", "W", 900 * MIB, 4096),
        (2, "a", "W", 899 * MIB, 2 * MIB),
        (3, "a", "trim", 0, 1 << 50),
        (4, "c", "trim", 0, 1 << 50),
    ]);
    let (requests, notes) = read_with(&text, &on(8 * MIB, Remap::Compact)).unwrap();
    let seen: Vec<(u64, IoOp, u64, u64)> =
        requests.iter().map(|r| (r.at.ns(), r.op, r.offset, r.bytes)).collect();
    let expected = [
        (0, IoOp::Write, 0, 4096),
        (1000, IoOp::Write, MIB, 4096),
        (2000, IoOp::Write, 2 * MIB, MIB),
        (2000, IoOp::Write, 0, MIB),
        (3000, Trim, 2 * MIB, MIB),
        (3000, Trim, 0, MIB),
    ];
    assert_eq!(seen, expected);
    assert_eq!((notes.delivered, notes.split, notes.trims_of_nothing), (5, 2, 1));
    let error = read_with(&text, &on(2 * MIB, Remap::Compact)).unwrap_err().to_string();
    assert!(error.contains("touches more regions of 1 MiB than the device of 2 MiB"), "{error}");
}

#[test]
fn a_remap_without_a_device_is_refused() {
    let options = TraceOptions { remap: Remap::Wrap, ..TraceOptions::default() };
    assert!(
        read_with("1 0 0 8 1\n", &options).unwrap_err().to_string().contains("needs the device capacity")
    );
    assert_eq!("compat".parse::<Remap>().unwrap_err().nearest.as_deref(), Some("compact"));
}

#[test]
fn a_file_can_be_read_again_and_a_stream_cannot() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"5 0 0 8 1\n9 0 8 8 0\n").unwrap();
    let mut reader = TraceReader::open(file.path(), &format("mqsim")).unwrap();
    let first = drain(&mut reader).unwrap();
    let mut again = reader.reopen().unwrap();
    assert_eq!(drain(&mut again).unwrap(), first);
    assert_eq!(first.len(), 2);
    let stream =
        TraceReader::from_read("pipe", Cursor::new(b"5 0 0 8 1\n".to_vec()), &format("mqsim")).unwrap();
    assert!(stream.reopen().is_err());
}

#[test]
fn flushes_pass_every_remap() {
    let text = csv(&[(0, "a", "flush", 0, 0), (1, "a", "R", 0, 512)]);
    for remap in [Remap::Error, Remap::Wrap, Remap::Compact] {
        let (requests, _) = read_with(&text, &on(MIB, remap)).unwrap();
        assert_eq!(requests[0], request(0, Flush, 0, 0, 0));
    }
}
