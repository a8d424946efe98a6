//! Traces side by side, parts of one trace, and traces longer than the simulator's clock.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use engine::Time;
use proto::IoRequest;
use requests::trace::{Align, Remap, TraceOptions, TraceReader, Volumes, inspect, open_together};

use super::{drain, format};

const DAY_S: u64 = 86_400;

/// Writes a file of the Alibaba format: volume, R or W, offset, length, time in microseconds.
fn volume(folder: &Path, name: &str, requests: &[(u64, u64)]) -> PathBuf {
    let line = |(at_s, offset): &(u64, u64)| format!("7,W,{offset},4096,{}\n", at_s * 1_000_000);
    let path = folder.join(name);
    std::fs::write(&path, requests.iter().map(line).collect::<String>()).expect("a file");
    path
}

fn on(capacity: u64) -> TraceOptions {
    TraceOptions { capacity: Some(capacity), remap: Remap::Fit, ..format("alibaba") }
}

fn all(readers: Vec<TraceReader>) -> Vec<Vec<IoRequest>> {
    readers.into_iter().map(|mut reader| drain(&mut reader).expect("requests")).collect()
}

fn times(requests: &[IoRequest]) -> Vec<u64> {
    requests.iter().map(|request| request.at.ps() / 1_000_000_000_000).collect()
}

/// Returns the bytes that requests touch, by sector.
fn sectors(requests: &[IoRequest]) -> BTreeSet<u64> {
    requests.iter().flat_map(|r| r.offset / 512..(r.offset + r.bytes) / 512).collect()
}

#[test]
fn volumes_keep_their_distance_in_time_and_their_addresses_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = volume(folder.path(), "a", &[(1_000_000, 0), (1_000_060, 8192)]);
    let b = volume(folder.path(), "b", &[(1_000_000 + 30 * DAY_S, 0), (1_000_001 + 30 * DAY_S, 8192)]);
    // The order of names does not matter for the clock.
    let readers = open_together(&[&b, &a], &on(1 << 30)).expect("traces");
    let mut readers = all(readers);
    let (of_a, of_b) = (readers.pop().expect("two"), readers.pop().expect("two"));
    assert_eq!((times(&of_a), times(&of_b)), (vec![0, 60], vec![30 * DAY_S, 30 * DAY_S + 1]));
    assert!(sectors(&of_a).is_disjoint(&sectors(&of_b)));

    let mut readers = open_together(&[&a, &b], &on(1 << 30)).expect("traces");
    let said = readers[1].notes().warnings().join("; ");
    assert!(
        said.contains("begins 30 days after the first request of all") && said.contains("--align start"),
        "{said}"
    );
    assert!(readers[0].notes().warnings().is_empty());
    drain(&mut readers[1]).expect("requests");

    let start = TraceOptions { align: Align::Start, ..on(1 << 30) };
    let readers = all(open_together(&[&a, &b], &start).expect("traces"));
    assert_eq!((times(&readers[0]), times(&readers[1])), (vec![0, 60], vec![0, 1]));

    let one = TraceOptions { volumes: Volumes::One, ..on(1 << 30) };
    let readers = all(open_together(&[&a, &b], &one).expect("traces"));
    let offsets = |requests: &[IoRequest]| requests.iter().map(|r| r.offset).collect::<Vec<_>>();
    assert_eq!((offsets(&readers[0]), offsets(&readers[1])), (vec![0, 8192], vec![0, 8192]));
    assert_eq!(times(&readers[1]), [30 * DAY_S, 30 * DAY_S + 1]);

    // A clip counts from the first request of all.
    let end = TraceOptions { end: Some("1d".parse().expect("a time")), ..on(1 << 30) };
    let readers = all(open_together(&[&a, &b], &end).expect("traces"));
    assert_eq!((readers[0].len(), readers[1].len()), (2, 0));
}

/// Two volumes packed into one device share no byte, whatever the order in which they are read; declared as one, an
/// address is the same byte in both.
#[test]
fn packed_volumes_share_a_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let far = |n: u64| (n, (1 << 40) + n % 5 * (1 << 20));
    let a = volume(folder.path(), "a", &(0..40).map(far).collect::<Vec<_>>());
    let b = volume(
        folder.path(),
        "b",
        &(0..40)
            .map(|n| far(39 - n))
            .collect::<Vec<_>>()
            .iter()
            .enumerate()
            .map(|(n, r)| (n as u64, r.1))
            .collect::<Vec<_>>(),
    );
    for (volumes, regions) in [(Volumes::Apart, 10), (Volumes::One, 5)] {
        let options = TraceOptions { volumes, ..on(64 << 20) };
        let mut readers = open_together(&[&a, &b], &options).expect("traces");
        let mut placed = [BTreeSet::new(), BTreeSet::new()];
        // In turn, as in a run.
        for n in 0..80 {
            let request = readers[n % 2].next().expect("a good line").expect("a request");
            placed[n % 2].insert(request.offset >> 20);
        }
        let both: BTreeSet<u64> = placed[0].union(&placed[1]).copied().collect();
        assert_eq!(both.into_iter().collect::<Vec<_>>(), (0..regions).collect::<Vec<_>>(), "{volumes:?}");
        assert_eq!(placed[0].is_disjoint(&placed[1]), volumes == Volumes::Apart);
        // Too small for two volumes, and large enough for one.
        let small = TraceOptions { volumes, ..on(7 << 20) };
        let last =
            open_together(&[&a, &b], &small).expect("traces").into_iter().map(|mut r| drain(&mut r)).last();
        assert_eq!(last.expect("two").is_err(), volumes == Volumes::Apart);
    }
}

#[test]
fn clocks_that_cannot_be_compared_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = volume(folder.path(), "a", &[(5, 0), (6, 8192)]);
    let b = folder.path().join("b");
    std::fs::write(&b, "128166372003061629,hm,0,Read,9056014336,2048,2833\n").expect("a file");
    let any = TraceOptions { format: None, ..on(1 << 40) };
    let Err(refused) = open_together(&[&a, &b], &any) else { panic!("no common clock") };
    let text = refused.to_string();
    assert!(
        text.contains("times of `alibaba`") && text.contains("`msr`") && text.contains("--align start"),
        "{text}"
    );
    for options in
        [TraceOptions { align: Align::Start, ..any.clone() }, TraceOptions { timed: false, ..any.clone() }]
    {
        let readers = all(open_together(&[&a, &b], &options).expect("traces"));
        assert_eq!((readers[0][0].at, readers[1][0].at), (Time::ZERO, Time::ZERO));
    }
}

/// A trace cut anywhere between lines, its parts compressed or not, reads like the whole.
#[test]
fn parts_read_as_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let lines: Vec<String> = (0..500_u64)
        .map(|n| {
            format!(
                "{},{},{},4096,{}\n",
                n % 3,
                if n.is_multiple_of(4) { 'W' } else { 'R' },
                n * 7919 % 1000 * 4096,
                5_000_000 + n * 10
            )
        })
        .collect();
    std::fs::write(at("whole"), lines.concat()).expect("a file");
    std::fs::write(at("a"), lines[..100].concat()).expect("a file");
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(lines[100..101].concat().as_bytes()).expect("memory");
    std::fs::write(at("b.gz"), packed.finish().expect("memory")).expect("a file");
    std::fs::write(at("c"), lines[101..].concat()).expect("a file");
    std::fs::write(at("list"), "a\nb.gz\n\n# the rest\nc\n").expect("a file");
    let path = |name: &str| at(name).display().to_string();
    let joined = format!("{}+{}+{}", path("a"), path("b.gz"), path("c"));
    let mut whole = TraceReader::open(at("whole"), &on(1 << 30)).expect("a trace");
    let expected = drain(&mut whole).expect("requests");
    assert_eq!(expected.len(), 500);
    for name in [joined.clone(), format!("@{}", path("list"))] {
        let mut reader = TraceReader::open(&name, &on(1 << 30)).expect("a trace");
        assert_eq!(drain(&mut reader).expect("requests"), expected, "{name}");
        assert_eq!(
            (reader.notes().requests, reader.notes().flows.names()),
            (500, whole.notes().flows.names())
        );
        assert_eq!(drain(&mut reader.reopen().expect("files")).expect("requests"), expected);
    }
    let (one, parts) = (inspect(at("whole"), &format("alibaba")), inspect(&joined, &format("alibaba")));
    let (one, mut parts) = (one.expect("a trace"), parts.expect("a trace"));
    assert_eq!(parts.source, joined);
    parts.source = one.source.clone();
    assert_eq!(parts, one);

    // A bad line is reported with its part.
    std::fs::write(at("c"), "0,R,0,4096,6000000\n0,R,nothing,4096,6000001\n").expect("a file");
    let mut reader = TraceReader::open(&joined, &format("alibaba")).expect("a trace");
    let place = drain(&mut reader).expect_err("a bad line").place.expect("a place");
    assert_eq!((place.source, place.line), (path("c"), 2));
}

#[test]
fn parts_in_the_wrong_order_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let a = volume(folder.path(), "a", &[(100, 0), (200, 4096)]);
    let b = volume(folder.path(), "b", &[(200, 0), (300, 4096)]);
    let c = volume(folder.path(), "c", &[(250, 0), (400, 4096)]);
    let joined = |parts: [&PathBuf; 2]| format!("{}+{}", parts[0].display(), parts[1].display());
    let read = |name: &str, options: &TraceOptions| drain(&mut TraceReader::open(name, options)?);
    assert_eq!(times(&read(&joined([&a, &b]), &on(1 << 30)).expect("in order")), [0, 100, 100, 200]);
    let refused = read(&joined([&b, &a]), &on(1 << 30)).expect_err("the wrong order");
    let text = refused.to_string();
    assert!(text.contains("begins 3.33 minutes before the previous part ends"), "{text}");
    assert_eq!(refused.place.expect("a place").source, a.display().to_string());
    // Overlapping parts are sorted if the user asks for it, and never matter if times are not used.
    assert!(read(&joined([&b, &c]), &on(1 << 30)).is_err());
    let lenient = TraceOptions { lenient: true, ..on(1 << 30) };
    assert_eq!(times(&read(&joined([&b, &c]), &lenient).expect("put in order")), [0, 50, 100, 200]);
    let untimed = TraceOptions { timed: false, ..on(1 << 30) };
    assert_eq!(read(&joined([&b, &a]), &untimed).expect("no time is used").len(), 4);
}

/// 400 days; the clock has 213.5.
fn long(folder: &Path) -> PathBuf {
    volume(folder, "long", &(0..=400).map(|day| (day * DAY_S, day % 7 * 4096)).collect::<Vec<_>>())
}

#[test]
fn a_trace_beyond_the_clock_is_told_at_once_and_each_remedy_mends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = long(folder.path());
    for remap in [Remap::Fit, Remap::Error, Remap::Wrap, Remap::Compact] {
        let options = TraceOptions { remap, ..on(1 << 30) };
        let Err(refused) = TraceReader::open(&path, &options) else { panic!("it is too long") };
        let text = refused.to_string();
        assert!(text.contains("lasts 1.1 years: the simulator's clock ends at 214 days"), "{text}");
        for word in ["--time-scale 1/2 ", "--end 213d ", "--queue-depth", "--time-unit"] {
            assert!(text.contains(word), "no {word} in {text}");
        }
    }
    let span = |text: &str| Some(text.parse().expect("a time"));
    let scaled = TraceOptions { time_scale: "1/2".parse().expect("a scale"), ..on(1 << 30) };
    let mended = [
        (scaled, 0..=400, 2),
        (TraceOptions { end: span("213d"), ..on(1 << 30) }, 0..=212, 1),
        (TraceOptions { start: span("300d"), end: span("310d"), ..on(1 << 30) }, 300..=309, 1),
        (TraceOptions { start: span("250d"), ..on(1 << 30) }, 250..=400, 1),
        (TraceOptions { max_requests: Some(200), ..on(1 << 30) }, 0..=199, 1),
        (TraceOptions { timed: false, ..on(1 << 30) }, 0..=400, 0),
    ];
    for (options, days, slow) in mended {
        let mut reader = TraceReader::open(&path, &options).expect("short enough");
        let found = drain(&mut reader).expect("short enough");
        let first = *days.start();
        let at = |day: u64| ((day - first) * DAY_S).checked_div(slow).unwrap_or(0);
        assert_eq!(times(&found), days.clone().map(at).collect::<Vec<_>>());
        // All fit, so each stays in place.
        assert_eq!(
            found.iter().map(|r| r.offset).collect::<Vec<_>>(),
            days.map(|day| day % 7 * 4096).collect::<Vec<_>>()
        );
        assert_eq!(reader.notes().remapped, 0);
    }
    let warnings = inspect(&path, &format("alibaba")).expect("a trace").warnings.join("; ");
    assert!(warnings.contains("the simulator's clock ends at 214 days: --time-scale 1/2"), "{warnings}");
    // Two files of 150 days each exceed the clock together, if they are far apart.
    let a = volume(folder.path(), "a", &[(0, 0), (150 * DAY_S, 0)]);
    let b = volume(folder.path(), "b", &[(100 * DAY_S, 0), (250 * DAY_S, 0)]);
    assert!(open_together(&[&a, &b], &on(1 << 30)).is_err());
    let start = TraceOptions { align: Align::Start, ..on(1 << 30) };
    assert!(open_together(&[&a, &b], &start).is_ok());
}

/// Without times, requests too late for the sort window keep their place.
#[test]
fn no_disorder_is_too_much_where_no_time_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = volume(folder.path(), "late", &[(10, 0), (20, 4096), (30, 8192), (5, 12_288)]);
    let options = TraceOptions { sort_window: 0, ..on(1 << 30) };
    assert!(drain(&mut TraceReader::open(&path, &options).expect("a trace")).is_err());
    let mut reader = TraceReader::open(&path, &TraceOptions { timed: false, ..options }).expect("a trace");
    let offsets: Vec<u64> = drain(&mut reader).expect("requests").iter().map(|r| r.offset).collect();
    assert_eq!(offsets, [0, 4096, 8192, 12_288]);
    assert_eq!((reader.notes().taken_late, reader.notes().clamped), (1, 0));
    assert!(reader.notes().warnings().join("; ").contains("they keep their place, as no times are used"));
}
