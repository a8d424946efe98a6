//! Every bad input gets one readable diagnostic: exit status 2, place and remedy on standard error, nothing on standard
//! output.

use crate::common::{TINY, file, nandscape, refused, refused_in_all, run_tiny};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Ten requests a microsecond apart, in MQSim's format: time (ns), device, sector, sectors, 1 for a read.
fn good_lines(n: u64) -> String {
    (0..n).map(|at| format!("{} 0 {} 8 {}\n", at * 1_000, at * 8, at % 2)).collect()
}

/// A run of a trace on the tiny device is refused.
fn trace_refused(path: &str, more: &[&str], said: &[&str]) {
    let mut arguments = vec!["run", "d16", "--json", "--workload", path];
    arguments.extend(TINY);
    arguments.extend(more);
    refused(&arguments, said);
}

/// Checks that `run` and `check` refuse a spec, from the command line and from a file.
fn spec_refused(folder: &Path, key: &str, value: &str, said: &[&str]) {
    let set = format!("{key}={value}");
    let place = format!("(key `{key}`)");
    let mut said = said.to_vec();
    said.push(&place);
    for command in ["run", "check"] {
        let mut arguments = vec![command, "d16", "--workload", "randread", "--set", &set];
        if command == "run" {
            arguments.push("--json");
        }
        refused(&arguments, &[&said[..], &["--> --set"]].concat());
    }
    let system = file(folder, "system.toml", format!("inherits = \"d16\"\n\n{key} = {value}\n"));
    refused(&["check", &system], &[&said[..], &["system.toml:3:"]].concat());
}

#[test]
fn values_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &str, &[&str]); 12] = [
        ("flash.cell.erase", "\"3MB\"", &["is a size, not a duration", "allowed: ps, ns, us"]),
        ("flash.cell.erase", "3", &["65us"]),
        ("flash.geometry.page_size", "\"-4KiB\"", &["-4KiB"]),
        ("flash.geometry.channels", "-8", &["-8"]),
        ("flash.geometry.channels", "0", &["is 0, but must be at least 1"]),
        ("sim.until", "\"0ms\"", &["the duration is zero"]),
        ("flash.ftl.gc.start", "30", &["the thresholds cross", "hard 2 <= start 30 < stop 26"]),
        ("flash.ftl.gc.victim", "\"gredy\"", &["did you mean `greedy`", "allowed: greedy, cost_benefit"]),
        ("flash.geometry.chanels", "8", &["unknown key `chanels`", "did you mean `channels`"]),
        ("flash.ftl.over_provisioning", "1", &["the integer 1 may mean per cent or a fraction"]),
        ("flash.ftl.over_provisioning", "\"100%\"", &["leaves the host no capacity", "7% to 28% is usual"]),
        ("flash.ftl.stripe", "\"CWDD\"", &["is not an order of C, W, D and P", "such as \"CWDP\""]),
    ];
    for (key, value, said) in cases {
        spec_refused(folder.path(), key, value, said);
    }
}

#[test]
fn spare_that_leaves_no_free_block() {
    let folder = tempfile::tempdir().unwrap();
    let said = [
        "too little over-provisioning",
        "too many",
        "help: raise flash.ftl.over_provisioning or lower flash.ftl.gc.start",
    ];
    spec_refused(folder.path(), "flash.ftl.over_provisioning", "\"1%\"", &said);
}

#[test]
fn every_fault_of_a_file_is_told_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        "inherits = \"d16\"\n[flash.geometry]\nchanels = 8\nways = -1\n[flash.cell]\nerase = \"3MB\"\n";
    let system = file(folder.path(), "three.toml", text);
    refused_in_all(&["check", &system], &["three.toml:3:1", "three.toml:4:8", "three.toml:6:9"]);
}

#[test]
fn files_that_are_no_specs() {
    let folder = tempfile::tempdir().unwrap();
    let cut = file(folder.path(), "cut.toml", "inherits = \"d16\"\n[flash.geometry\n");
    refused(&["check", &cut], &["not valid TOML", "cut.toml:2:"]);
    let binary = file(folder.path(), "binary.toml", [0x7f, b'E', b'L', b'F', 0xff, 0xfe]);
    refused(&["check", &binary], &["is not UTF-8 text (byte 4)"]);
    refused(&["check", "no/such.toml"], &["cannot read `no/such.toml`"]);
    refused(&["check", "d61"], &["unknown system `d61`", "did you mean `d16`"]);
}

/// Sparse files of 1 GB where a system or a job is expected are refused by their size.
#[test]
fn files_that_are_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let hole = |name: &str| {
        let path = folder.path().join(name);
        File::create(&path).unwrap().set_len(1 << 30).unwrap();
        path.display().to_string()
    };
    let said = ["is larger than 16 MiB", "help: expected a hand-written file"];
    refused(&["check", &hole("large.toml")], &said);
    refused(&["sweep", &hole("sweep.toml")], &said);
    trace_refused(&hole("large.fio"), &[], &said);
}

#[test]
fn a_job_file_of_any_name_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let job = file(folder.path(), "job.txt", "; four reads\n\n[four]\nrw=read\nbs=4k\nnumber_ios=4\n");
    let done = run_tiny(&["--json", "--workload", &job]).well();
    assert_eq!(done.json()["io"]["flows"][0]["name"], "four");
    assert_eq!(done.json()["io"]["all"]["requests"], 4);
}

#[test]
fn jobs_that_cannot_be() {
    let run = |job: &str, said: &[&str]| trace_refused(job, &[], said);
    run("fio:rw=randread,bs=4k,offset=1t", &["offset"]);
    run("fio:rw=randread,bs=4k,iodepht=8", &["iodepht", "did you mean `iodepth`", "--> --workload"]);
    run("fio:rw=randread,bs=4k,verify=crc32c", &["verify", "shadow"]);
    run("fio:rw=randread,bs=4kx", &["4kx"]);
    run("fio:", &["the inline job is empty", "for example fio:rw=randread"]);
    let folder = tempfile::tempdir().unwrap();
    let file = file(folder.path(), "two.fio", "[global]\nrw=read\n[a]\nbs=4k\nsise=1m\n");
    trace_refused(&file, &[], &["two.fio:5", "sise", "did you mean `size`"]);
    refused(&["check", "d16", "--workload", &file], &["two.fio:5"]);
}

#[test]
fn options_that_cannot_be() {
    let job = "fio:rw=randread,bs=4k,number_ios=10";
    trace_refused(job, &["--warmup", "soon"], &["soon", "--warmup takes a number of requests or a time"]);
    refused(&["run", "d16", "--workload", job, "--precondition", "stady"], &["did you mean `steady`"]);
    trace_refused(job, &["--set", "flash.geometry"], &["key.path=value"]);
    trace_refused(job, &["--log", "/"], &["cannot write /"]);
}

#[test]
fn an_offset_beyond_the_device() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "far.trace", format!("{}11000 0 99999999999 8 1\n", good_lines(10)));
    let said = ["far.trace:11", "beyond", "help: --remap wrap folds", "--remap compact packs"];
    trace_refused(&trace, &["--remap", "error"], &said);
    // By default it is packed, and the result says so.
    let done = run_tiny(&["--workload", &trace, "--json"]).well();
    assert!(
        done.json()["warnings"].to_string().contains("requests moved to fit the device"),
        "{}",
        done.stdout
    );
}

#[test]
fn an_unsorted_trace() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines: Vec<String> = good_lines(10).lines().map(str::to_owned).collect();
    lines.swap(3, 6);
    let trace = file(folder.path(), "unsorted.trace", lines.join("\n"));
    let done = run_tiny(&["--workload", &trace, "--json"]).well();
    let warnings = done.json()["warnings"].to_string();
    assert!(warnings.contains("out of order") && warnings.contains("a sort window of 3"), "{warnings}");
    assert_eq!(done.json()["io"]["all"]["requests"], 10);
    let said =
        ["unsorted.trace:", "more out of order than a sort window of 1", "help: --sort-window 3 is enough"];
    trace_refused(&trace, &["--sort-window", "1"], &said);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn xz(text: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
}

type Pack = fn(&[u8]) -> Vec<u8>;

/// Cut in the middle and right behind the first bytes, damaged in the middle, and followed by something else: for each
/// packing, with the name of the file and the line that was reached. `--lenient` mends lines, not files.
#[test]
fn a_truncated_or_damaged_pack() {
    let folder = tempfile::tempdir().unwrap();
    let packs: [(&str, Pack); 4] = [("gzip", gzip), ("xz", xz), ("bzip2", bzip2), ("zstd", zstd)];
    let text = good_lines(20_000);
    for (name, pack) in packs {
        let whole = pack(text.as_bytes());
        let path = file(folder.path(), "whole", &whole);
        let shown = nandscape(&["trace", "inspect", "--json", &path]).well().json();
        assert_eq!((&shown[0]["requests"], &shown[0]["compression"]), (&20_000.into(), &name.into()));
        let ends = format!("the {name} data ends early: the file is cut off or damaged");
        for length in [whole.len() / 2, whole.len() - 1, 11] {
            let path = file(folder.path(), "cut", &whole[..length]);
            let said = [ends.as_str(), "--> ", "cut:", "help: download or compress the file again"];
            refused(&["trace", "inspect", &path], &said);
            trace_refused(&path, &[], &said);
            trace_refused(&path, &["--lenient"], &said);
        }
        let path = file(folder.path(), "more", [&whole[..], b"and more"].concat());
        trace_refused(&path, &[], &["more:", name]);
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 64].iter_mut().for_each(|byte| *byte ^= 0x5a);
        let path = file(folder.path(), "damaged", &damaged);
        trace_refused(&path, &[], &["damaged:"]);
    }
}

#[test]
fn binary_given_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    let path = file(folder.path(), "binary.trace", bytes);
    trace_refused(&path, &[], &["binary.trace:1", "this is binary data", "see `list formats`"]);
    let path =
        file(folder.path(), "late.trace", [good_lines(100).as_bytes(), b"\x00\x01\x02\xff\n"].concat());
    trace_refused(&path, &[], &["late.trace:101"]);
}

#[test]
fn a_line_with_a_missing_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "short.trace", format!("{}11000 0 88 8\n", good_lines(10)));
    trace_refused(
        &path,
        &[],
        &["short.trace:11:13", "the line ends before the type", "time device start_sector sectors type"],
    );
    let done = run_tiny(&["--workload", &path, "--lenient", "--json"]).well();
    assert!(done.json()["warnings"].to_string().contains("first on line 11"), "{}", done.stdout);
}

/// 1 GB without a line feed, once on disk (sparse, of zeroes) and once as text in a gzip of many members. Neither takes
/// memory.
#[test]
fn one_line_of_a_gigabyte() {
    const MEMBER: usize = 8 << 20;
    let folder = tempfile::tempdir().unwrap();
    let member = gzip(&vec![b'7'; MEMBER]);
    let mut content = gzip(good_lines(10).as_bytes());
    (0..(1 << 30) / MEMBER).for_each(|_| content.extend_from_slice(&member));
    let path = file(folder.path(), "long.gz", content);
    trace_refused(&path, &[], &["long.gz:11", "a line longer than 64 KiB", "--lenient skips"]);
    let done = run_tiny(&["--workload", &path, "--lenient", "--json"]).well();
    let document = done.json();
    assert_eq!(document["io"]["all"]["requests"], 10);
    assert!(document["warnings"].to_string().contains("1 lines skipped: line too long, first on line 11"));
    let peak = document["run"]["peak_rss_bytes"].as_u64().unwrap();
    assert!(peak < 64 << 20, "{peak} bytes in memory");
    let path = folder.path().join("hole.trace");
    let mut hole = File::create(&path).unwrap();
    hole.write_all(good_lines(10).as_bytes()).unwrap();
    hole.set_len(1 << 30).unwrap();
    trace_refused(&path.display().to_string(), &[], &["hole.trace:1", "this is binary data"]);
}

/// Text as other systems write it is accepted.
#[test]
fn line_ends_and_byte_order_marks() {
    let folder = tempfile::tempdir().unwrap();
    let plain = file(folder.path(), "lf.trace", good_lines(50));
    let expected = run_tiny(&["--workload", &plain, "--json"]).well().json()["io"]["all"].clone();
    assert_eq!(expected["requests"], 50);
    let crlf = good_lines(50).replace('\n', "\r\n");
    for (name, text) in [
        ("crlf.trace", crlf.clone()),
        ("bom.trace", format!("\u{feff}{}", good_lines(50))),
        ("open.trace", good_lines(50).trim_end().to_owned()),
        (
            "blank.trace",
            format!("\n# {crlf}\n{crlf}\n \n", crlf = crlf.replace("0 0 0 8 0\r\n", "0 0 0 8 0\n")),
        ),
    ] {
        let path = file(folder.path(), name, text);
        let found = run_tiny(&["--workload", &path, "--json"]).well().json()["io"]["all"].clone();
        if name != "blank.trace" {
            assert_eq!(found, expected, "{name}");
        }
    }
    let system = file(folder.path(), "crlf.toml", "inherits = \"d16\"\r\n\r\nflash.geometry.ways = 2\r\n");
    nandscape(&["check", &system]).well();
}

/// Bytes that are not UTF-8 are named and shown as far as they can be, and never reach the terminal raw.
#[test]
fn bytes_that_are_no_text() {
    let folder = tempfile::tempdir().unwrap();
    let latin = [good_lines(100).as_bytes(), b"100000 0 \xff\xfe 8 1\n"].concat();
    let path = file(folder.path(), "latin.trace", latin);
    trace_refused(&path, &[], &["latin.trace:101:10", "is not a number", "--lenient skips and counts"]);
    let escape = [good_lines(100).as_bytes(), b"100000 0 \x1b[31m 8 1\n"].concat();
    let path = file(folder.path(), "escape.trace", escape);
    let done = run_tiny(&["--json", "--workload", &path]);
    assert!(done.code == Some(2) && !done.stderr.contains('\u{1b}'), "{}", done.stderr);
    let job = file(folder.path(), "latin.fio", b"[job]\nrw=read\nname=\xff\n");
    trace_refused(&job, &[], &["latin.fio", "UTF-8"]);
}

/// A bad line is refused with the file, the line, the column and what is allowed. `--lenient` skips it, counts it by
/// kind, and says so in the result.
#[test]
fn a_line_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("10000 0 -8 8 1", 9, "the start sector is not a number: `-8`", "a whole number", "not a number"),
        (
            "10000 0 8 -8 1",
            11,
            "the number of sectors is not a number: `-8`",
            "a whole number",
            "not a number",
        ),
        ("10000 0 8 0 1", 11, "a request of length zero", "", "zero length"),
        ("10000 0 8 8 2", 13, "unknown type: `2`", "1 (read), 0 (write)", "unknown operation"),
        ("10000 0 99999999999999999999 8 1", 9, "is too large", "below 2^64", "number too large"),
        ("10000 0 8 4294967296 1", 11, "more than 1 GiB", "", "implausible length"),
        ("10000 0 8 8", 12, "the line ends before the type", "", "missing field"),
        ("10000 0 8 8 1 1", 15, "more fields than", "", "extra field"),
    ];
    for (line, column, what, allowed, kind) in cases {
        let text = format!("{}{line}\n11000 0 8 8 1\n{line}\n", good_lines(10));
        let path = file(folder.path(), "bad.trace", text);
        let place = format!("bad.trace:11:{column}\n   11 | {line}");
        let said = [what, place.as_str(), allowed, "`time device start_sector sectors type`", "--lenient"];
        trace_refused(&path, &["--format", "mqsim"], &said);
        let done = run_tiny(&["--workload", &path, "--format", "mqsim", "--lenient", "--json"]).well();
        let document = done.json();
        assert_eq!(document["io"]["all"]["requests"], 11, "{line}");
        let counted = format!("2 lines skipped: {kind}, first on line 11");
        assert!(document["warnings"].to_string().contains(&counted), "{line}: {}", document["warnings"]);
    }
}

/// A file of which more lines are bad than good is told by the format that fits best.
#[test]
fn a_file_that_is_mostly_bad() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "mostly.trace", "0 0 0 8 1\n1000 0\n2000 0\n");
    let said = ["`mqsim` fits best, but only 1 of the first 3 lines", "--format mqsim reports what is wrong"];
    trace_refused(&path, &[], &said);
    trace_refused(
        &path,
        &["--format", "mqsim"],
        &["mostly.trace:2:7", "the line ends before the start sector"],
    );
}

#[test]
fn traces_that_are_none() {
    let folder = tempfile::tempdir().unwrap();
    let empty = file(folder.path(), "empty.trace", "");
    trace_refused(&empty, &[], &["the trace is empty", "empty.trace:1", "`list formats`"]);
    let blank = file(folder.path(), "blank.trace", "\n# nothing\n\n");
    trace_refused(&blank, &[], &["the trace is empty", "blank.trace:1"]);
    let prose = file(folder.path(), "prose.trace", "It was the best of times,\nit was the worst of times.\n");
    trace_refused(&prose, &[], &["prose.trace"]);
    trace_refused("no/such.trace", &[], &["No such file", "--> no/such.trace", "check the path"]);
    trace_refused(
        &folder.path().display().to_string(),
        &[],
        &["this is a folder", "name one of the files in it"],
    );
    let good = file(folder.path(), "good.trace", good_lines(10));
    trace_refused(&good, &["--format", "msrc"], &["did you mean `msr`"]);
    trace_refused(&good, &["--time-unit", "ks"], &["allowed: s, ms, us"]);
    trace_refused(&good, &["--start", "2ms", "--end", "1ms"], &["--start must be earlier than --end"]);
}

/// Several files are inspected even if one is bad; the bad one is told.
#[test]
fn one_bad_file_of_several() {
    let folder = tempfile::tempdir().unwrap();
    let good = file(folder.path(), "good.trace", good_lines(10));
    let bad = file(folder.path(), "bad.trace", "no trace\n");
    let done = nandscape(&["trace", "inspect", "--json", &bad, &good]);
    assert_eq!(done.code, Some(2));
    assert_eq!(done.json()[0]["requests"], 10);
    assert!(done.stderr.contains("bad.trace"), "{}", done.stderr);
}

// Files that a program takes by its name, given as if they were traces: what they are, and what to type.

const LOG: &str = "7 1700000000.000000 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.000010>\n7 1700000000.001000 close(3) = 0 <0.000010>\n";

/// The first bytes of a model: version 8 and a graph that begins with a node.
const MODEL: &str = "\u{8}\u{8}:\u{5}\n\u{3}\n\u{1}x";

#[test]
fn a_model_and_a_log_are_named_with_what_to_type() {
    let folder = tempfile::tempdir().unwrap();
    let log = file(folder.path(), "t.strace", LOG);
    let model = file(folder.path(), "m.onnx", MODEL);
    for system in ["pm9a3", "zng"] {
        refused(
            &["run", system, "--workload", &log],
            &["a log of strace", &format!("`--workload strace:file={log}`"), "drive behind a host"],
        );
        refused(
            &["run", system, "--workload", &model],
            &["an ONNX model", &format!("`--workload onnx:file={model}`"), "system with a GPU"],
        );
    }
    refused(&["trace", "inspect", &log], &["a log of strace", "strace:file="]);
    refused(&["explain", &model], &["an ONNX model", "onnx:file="]);
    // The proposed command works.
    let run = ["run", "pm9a3", "--workload", &format!("strace:file={log}"), "--json"];
    assert_eq!(nandscape(&run).code, Some(0));
}
