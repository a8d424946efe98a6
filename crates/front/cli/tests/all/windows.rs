//! What counts and over which time: the boundary of the warm-up, rates of flows, backlogs, and options that would do nothing.

use crate::common::{TINY, file, nandscape, refused, run_tiny};
use serde_json::Value;

/// A line of the log.
struct Logged {
    issued_ns: u64,
    latency_ns: u64,
    write: bool,
    bytes: u64,
}

impl Logged {
    fn completed_ns(&self) -> u64 {
        self.issued_ns + self.latency_ns
    }
}

/// The result of a run, and every request of it in the order of completion, warm-up included.
fn logged(more: &[&str]) -> (Value, Vec<Logged>) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log").display().to_string();
    let document = run_tiny(&[more, &["--json", "--log", &log]].concat()).well().json();
    let read = |line: &str| {
        let field = |n: usize| line.split(", ").nth(n).and_then(|f| f.parse().ok()).expect("a number");
        Logged { issued_ns: field(6), latency_ns: field(1), write: field(2) == 1, bytes: field(3) }
    };
    (document, std::fs::read_to_string(log).unwrap().lines().map(read).collect())
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Equal but for what the log cuts off: whole nanoseconds.
fn close(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-4, "{a} against {b}");
}

const JOB: &str = "fio:rw=randrw,bs=4k,iodepth=8,number_ios=1000,norandommap=1";

/// The window begins with the completion of the last request that is left out: what is left is counted in the log, line by line.
#[test]
fn a_warm_up_leaves_out_exactly_its_requests() {
    for warmup in [0, 1, 500, 990, 999] {
        let (document, lines) = logged(&["--workload", JOB, "--warmup", &warmup.to_string()]);
        assert_eq!(lines.len(), 1000);
        let rest = &lines[warmup..];
        for (kind, write) in [("read", false), ("write", true)] {
            let of: Vec<&Logged> = rest.iter().filter(|line| line.write == write).collect();
            let told = &document["io"][kind];
            assert_eq!(told["requests"].as_u64().unwrap_or(0), of.len() as u64, "{kind} after {warmup}");
            assert_eq!(told["bytes"].as_u64().unwrap_or(0), of.iter().map(|line| line.bytes).sum::<u64>());
        }
        let from = warmup.checked_sub(1).map_or(0, |last| lines[last].completed_ns());
        let seconds = (lines[999].completed_ns() - from) as f64 / 1e9;
        if warmup < 990 {
            close(number(&document["io"]["all"]["iops"]), rest.len() as f64 / seconds);
        }
    }
}

#[test]
fn a_warm_up_in_time_begins_at_that_time() {
    let (document, lines) = logged(&["--workload", JOB, "--warmup", "3ms"]);
    let rest: Vec<&Logged> = lines.iter().filter(|line| line.completed_ns() >= 3_000_000).collect();
    assert!((100..990).contains(&rest.len()), "{}", rest.len());
    assert_eq!(document["io"]["all"]["requests"], rest.len());
    let seconds = (lines[999].completed_ns() - 3_000_000) as f64 / 1e9;
    close(number(&document["io"]["all"]["iops"]), rest.len() as f64 / seconds);
}

/// The length of a run is known only at its end: the document is printed, and a check of it fails.
#[test]
fn a_warm_up_that_leaves_nothing_is_a_failed_check() {
    for (warmup, said) in [
        ("5000", "a warm-up of 5000 requests, and the run had 1000 requests and lasted"),
        ("1000", "a warm-up of 1000 requests, and the run had 1000 requests and lasted"),
        ("10s", "a warm-up of 10s, and the run had 1000 requests and lasted"),
    ] {
        let done = run_tiny(&["--workload", JOB, "--warmup", warmup, "--json"]);
        assert_eq!(done.code, Some(1), "{warmup}");
        let document = done.json();
        let failed: Vec<&Value> =
            document["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!(failed[0]["name"], "the warm-up leaves something to measure");
        assert!(failed[0]["detail"].as_str().unwrap().starts_with(said), "{}", failed[0]["detail"]);
    }
    // Of a server's jobs it is known before.
    let jobs = ["--set", "cpu.load.jobs=100", "--set", "cpu.warmup.fixed.jobs=100"];
    let said = ["a warm-up of 100 jobs leaves none of the run's 100 jobs"];
    refused(&[&["run", "dram-only", "--workload", "tatp:size=16MiB"][..], &jobs].concat(), &said);
}

/// A flow that works for a part of the run has two rates, and each says over which time.
#[test]
fn a_flow_has_its_rates_over_the_run_and_over_its_own_time() {
    let late = "fio:name=late,rw=randwrite,bs=4k,iodepth=4,number_ios=300,startdelay=50ms";
    let (document, lines) =
        logged(&["--workload", "fio:name=early,rw=randread,bs=4k,number_ios=200", "--workload", late]);
    let end = lines.iter().map(Logged::completed_ns).max().unwrap();
    for (flow, write) in [(0, false), (1, true)] {
        let of: Vec<&Logged> = lines.iter().filter(|line| line.write == write).collect();
        let told = &document["io"]["flows"][flow];
        let from = of.iter().map(|line| line.issued_ns).min().unwrap();
        let until = of.iter().map(|line| line.completed_ns()).max().unwrap();
        close(number(&told["all"]["iops"]), of.len() as f64 / (end as f64 / 1e9));
        close(number(&told["active"]["iops"]), of.len() as f64 / ((until - from) as f64 / 1e9));
        let bytes = 4096.0 * number(&told["active"]["iops"]);
        close(number(&told["active"]["bandwidth_bytes_per_s"]), bytes);
        assert!((number(&told["active"]["from_ns"]) - from as f64).abs() < 1.0);
        assert!((number(&told["active"]["until_ns"]) - until as f64).abs() < 2.0);
        assert!(told["active"]["offered_iops"].is_null(), "a closed loop");
    }
    let active = number(&document["io"]["flows"][1]["active"]["iops"]);
    assert!(active > 2.0 * number(&document["io"]["flows"][1]["all"]["iops"]));
}

/// A queue that holds every request hides a backlog from the host, not from the result.
#[test]
fn an_overload_inside_the_device_is_measured_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let run = |gap: u64| {
        let text: String = (0..500).map(|n| format!("{} 0 {} 8 0\n", n * gap, n * 8)).collect();
        let path = file(folder.path(), "t.trace", text);
        logged(&["--workload", &path, "--format", "mqsim", "--set", "flash.host.nvme.depth=500"])
    };
    for (gap, overloaded) in [(1_000, true), (1_000_000, false)] {
        let (document, lines) = run(gap);
        let latencies = || lines.iter().map(|line| line.latency_ns);
        let lag = latencies().max().unwrap() - latencies().min().unwrap();
        assert!((number(&document["io"]["lag_max_ns"]) - lag as f64).abs() <= 1.0, "{gap}");
        let warnings = document["warnings"].to_string();
        assert_eq!(warnings.contains("overloaded: the 500 requests of `t.trace/"), overloaded, "{warnings}");
        assert!(!warnings.contains("saturated"), "{warnings}");
        // 499 gaps between 500 arrivals.
        close(number(&document["io"]["flows"][0]["active"]["offered_iops"]), 1e9 / gap as f64);
    }
}

#[test]
fn options_that_would_do_nothing_are_refused() {
    let with = |more: &[&str]| [&["run", "d16"][..], &TINY, more].concat().join("\u{0}");
    let refuse = |more: &[&str], said: &[&str]| {
        let line = with(more);
        refused(&line.split('\u{0}').collect::<Vec<_>>(), said);
    };
    for option in [
        &["--queue-depth", "4"][..],
        &["--format", "csv"],
        &["--time-unit", "us"],
        &["--sector", "4096"],
        &["--time-scale", "0.5"],
        &["--start", "1ms"],
        &["--end", "1s"],
        &["--max-requests", "5"],
        &["--lenient"],
        &["--remap", "wrap"],
        &["--action", "Q"],
        &["--sort-window", "10"],
    ] {
        let more = [&["--workload", JOB][..], option].concat();
        refuse(&more, &[option[0], "applies to block traces only, and no workload here is one"]);
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "t.trace", "0 0 0 8 1\n1000 0 8 8 0\n2000 0 16 8 1\n");
    let format = ["--workload", &trace, "--format", "mqsim"];
    refuse(
        &[&format[..], &["--queue-depth", "0"]].concat(),
        &["--queue-depth 0: no request could ever be issued"],
    );
    let both = ["--queue-depth", "2", "--time-scale", "2"];
    refuse(&[&format[..], &both].concat(), &["--time-scale has no effect with --queue-depth"]);
    // Beside a job they are the trace's.
    let beside = [&format[..], &["--queue-depth", "2", "--workload", JOB, "--json"]].concat();
    assert_eq!(run_tiny(&beside).well().json()["io"]["all"]["requests"], 1003);
    let check = nandscape(&["check", "d16", "--workload", JOB, "--format", "csv"]);
    assert_eq!(check.code, Some(2), "{}", check.stderr);
}
