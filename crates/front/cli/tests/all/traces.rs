//! `trace inspect`, `convert` and `sample`, and the replay of what they write.

use crate::common::{file, nandscape, run_tiny};
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;

/// 100 requests a millisecond apart, every fourth a write, in MQSim's format.
fn trace() -> String {
    (0..100).map(|n| format!("{} 0 {} 8 {}\n", n * 1_000_000, n % 50 * 8, u8::from(n % 4 != 0))).collect()
}

fn inspected(path: &str) -> Value {
    nandscape(&["trace", "inspect", "--json", path]).well().json()[0].clone()
}

#[test]
fn an_inspection_counts_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.trace", trace());
    let found = inspected(&path);
    assert_eq!(
        (&found["requests"], &found["reads"], &found["writes"]),
        (&100.into(), &75.into(), &25.into())
    );
    assert_eq!(found["span_s"], 0.099);
    assert_eq!(found["footprint_bytes"], 50 * 4096);
    let both = nandscape(&["trace", "inspect", &path, &path]).well().stdout;
    assert_eq!(both.matches("t.trace: mqsim").count(), 2, "{both}");
}

#[test]
fn a_converted_trace_replays_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.trace", trace());
    let of = |path: &str| run_tiny(&["--workload", path, "--json"]).well().json()["io"]["all"].clone();
    for format in ["csv", "msr", "iolog3", "mqsim"] {
        let out = folder.path().join(format!("t.{format}")).display().to_string();
        let done = nandscape(&["trace", "convert", &path, "--to", format, "-o", &out]).well();
        assert_eq!(done.stdout, "");
        assert!(done.stderr.contains("100 requests written"), "{}", done.stderr);
        assert_eq!(inspected(&out)["format"], format);
        assert_eq!(of(&out), of(&path), "{format}");
    }
    let printed = nandscape(&["trace", "convert", &path, "--to", "mqsim"]).well().stdout;
    assert_eq!(printed, trace());
    let done = nandscape(&["trace", "convert", &path, "--to", "spc"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("allowed: mqsim, msr"), "{}", done.stderr);
}

#[test]
fn a_sample_is_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.trace", trace());
    let all: Vec<String> = trace().lines().map(str::to_owned).collect();
    let sample = |how: &[&str]| {
        let printed = nandscape(&[&["trace", "sample", &path][..], how].concat()).well().stdout;
        printed.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(sample(&["--first", "3"]), all[..3]);
    assert_eq!(sample(&["--every", "30"]), [0, 30, 60, 90].map(|n| all[n].clone()));
    assert_eq!(sample(&["--window", "10ms..12ms"]), all[10..12]);
    let half = sample(&["--share", "50%", "--seed", "3"]);
    assert!((30..70).contains(&half.len()) && half.iter().all(|line| all.contains(line)), "{}", half.len());
    for (how, said) in [
        (&["--window", "10ms"][..], "two times"),
        (&["--share", "150%"], "share"),
        (&["--first", "0"], "first 0 requests"),
        (&["--first", "1", "--every", "2"], "cannot be used with"),
        (&[], "required"),
    ] {
        let done = nandscape(&[&["trace", "sample", &path][..], how].concat());
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{how:?}");
        assert!(done.stderr.contains(said), "{how:?}: {}", done.stderr);
    }
}

/// A format that is read but not written must be replaced by one that the user names.
#[test]
fn a_sample_needs_a_format_that_can_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let spc = file(
        folder.path(),
        "f.spc",
        "0,303567,3584,w,0.000000\n1,55590,3072,w,0.000000\n0,303574,3584,w,0.026214\n",
    );
    let done = nandscape(&["trace", "sample", &spc, "--first", "2"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("choose --to from") && done.stderr.contains("csv"), "{}", done.stderr);
    let out = folder.path().join("out.csv").display().to_string();
    nandscape(&["trace", "sample", &spc, "--first", "2", "--to", "csv", "--out", &out]).well();
    assert_eq!(inspected(&out)["requests"], 2);
}

/// A conversion that fails leaves nothing behind.
#[test]
fn a_failed_conversion_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.trace", format!("{}cut\n", trace()));
    let out = folder.path().join("out.csv");
    let done = nandscape(&["trace", "convert", &path, "--to", "csv", "-o", &out.display().to_string()]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("t.trace:101"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// A burst that no queue holds waits in the trace: every request is served, none is early, and the result says for how
/// long the queue was full.
#[test]
fn a_trace_that_outruns_the_device_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let burst: String = (0..500).map(|n| format!("1000 0 {} 8 0\n", n * 8)).collect();
    let path = file(folder.path(), "burst.trace", burst);
    let run = |depth: &str| {
        let set = format!("flash.host.nvme.depth={depth}");
        let more = ["--workload", &path, "--format", "mqsim", "--json", "--set", &set];
        run_tiny(&more).well().json()
    };
    let (narrow, wide) = (run("8"), run("500"));
    assert_eq!(
        (&narrow["io"]["all"]["requests"], &wide["io"]["all"]["requests"]),
        (&500.into(), &500.into())
    );
    let lag = |document: &Value| document["io"]["lag_max_ns"].as_f64().unwrap();
    let said =
        |document: &Value| document["warnings"].to_string().contains("saturated: requests waited up to");
    assert!(lag(&narrow) > 0.0 && said(&narrow), "{}", narrow["warnings"]);
    // What fits into the queue lags inside the device.
    assert!(lag(&wide) > 0.0 && !said(&wide), "{}", wide["warnings"]);
    assert!(wide["warnings"].to_string().contains("overloaded: the 500 requests"), "{}", wide["warnings"]);
    // The last request has waited for nearly the whole run, and its latency knows.
    let latency = narrow["io"]["all"]["latency_ns"]["max"].as_f64().unwrap();
    assert!(latency > lag(&narrow) && latency <= narrow["simulated_ns"].as_f64().unwrap());
    // At most eight at once: by Little's law no more than that on average in the device.
    let device = narrow["io"]["all"]["device_latency_ns"]["mean"].as_f64().unwrap();
    let in_device = device * narrow["io"]["all"]["iops"].as_f64().unwrap() / 1e9;
    assert!(in_device <= 8.0 + 1e-9, "{in_device}");
}

/// Returns the requests that `compact` cuts, and their fragments. By its definition, each new region of 1 MiB goes
/// behind the others, and a request is cut where its regions do not lie side by side.
fn cut(requests: &[(u64, u64)]) -> (u64, u64) {
    const REGION: u64 = 1 << 20;
    let mut places: Vec<u64> = Vec::new();
    let (mut split, mut fragments) = (0, 0);
    for (offset, bytes) in requests {
        let mut runs = 1;
        let mut before = None;
        for region in offset / REGION..=(offset + bytes - 1) / REGION {
            if !places.contains(&region) {
                places.push(region);
            }
            let place = places.iter().position(|known| *known == region);
            runs += u64::from(before.is_some_and(|before: usize| Some(before + 1) != place));
            before = place;
        }
        split += u64::from(runs > 1);
        fragments += if runs > 1 { runs } else { 0 };
    }
    (split, fragments)
}

/// A request that `compact` cuts stays one request: counts, rates, percentiles and the log are those of the trace's
/// records, at their own times and at a queue depth.
#[test]
fn a_request_in_fragments_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut x = 7_u64;
    let requests: Vec<(u64, u64)> = (0..400)
        .map(|_| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Around the borders of eight regions of a disk of 1 TiB, 4 to 128 KiB.
            let border = (900_000 + (x >> 33) % 8) << 20;
            (border - 4096 * ((x >> 40) % 16), 4096 * (1 + (x >> 50) % 32))
        })
        .collect();
    let (split, fragments) = cut(&requests);
    assert!(split > 50 && fragments > 2 * split - 1, "{split} {fragments}");
    let line = |(n, (offset, bytes)): (usize, &(u64, u64))| {
        format!("{} 0 {} {} {}\n", n * 2_000_000, offset / 512, bytes / 512, n % 2)
    };
    let text: String = requests.iter().enumerate().map(line).collect();
    let path = file(folder.path(), "split.trace", text);
    let log = folder.path().join("log").display().to_string();
    for depth in [&[][..], &["--queue-depth", "1"], &["--queue-depth", "8"]] {
        let more = ["--workload", &path, "--format", "mqsim", "--log", &log, "--json"];
        let document = run_tiny(&[&more[..], depth].concat()).well().json();
        let io = &document["io"];
        assert_eq!((&io["all"]["requests"], &io["read"]["requests"]), (&400.into(), &200.into()));
        assert_eq!(io["all"]["bytes"], requests.iter().map(|(_, bytes)| bytes).sum::<u64>());
        assert_eq!(
            (&io["fragments"]["requests"], &io["fragments"]["fragments"]),
            (&split.into(), &fragments.into())
        );
        let logged = std::fs::read_to_string(&log).unwrap();
        assert_eq!(logged.lines().count(), 400);
        // A line of the log and the document name the same latest completion and longest latency.
        let longest =
            logged.lines().map(|l| l.split(", ").nth(1).unwrap().parse::<f64>().unwrap()).fold(0.0, f64::max);
        let of = |value: &Value| value.as_f64().unwrap();
        assert!((longest - of(&io["all"]["latency_ns"]["max"])).abs() <= 1.0, "{longest}");
        let iops = 400.0 / (of(&document["simulated_ns"]) / 1e9);
        assert!((of(&io["all"]["iops"]) / iops - 1.0).abs() < 0.01, "{iops}");
        // Its parts sum to the mean latency of the commands: 400 requests, of which some are several.
        let waits: f64 = document["breakdown_ns"]["read"].as_object().unwrap().values().map(of).sum();
        assert!(waits > 0.0 && waits <= of(&io["read"]["latency_ns"]["max"]), "{waits}");
        if depth.is_empty() {
            // 2 ms apart, none waits for another: one alone is slower than its fragments on average.
            assert!(of(&io["fragments"]["latency_ns"]["mean"]) < of(&io["all"]["latency_ns"]["max"]));
        }
        if depth == ["--queue-depth", "1"] {
            // By Little's law one request is in flight, whatever the fragments.
            assert!((of(&io["all"]["queue_depth_mean"]) - 1.0).abs() < 1e-6);
        }
    }
}

/// Latency is broken down by command: the requests that were not cut, and the fragments of those that were.
/// Their mean latency comes from the log of requests and from that of fragments.
#[test]
fn what_commands_wait_for_sums_to_their_latency() {
    let folder = tempfile::tempdir().unwrap();
    // Every third, 2 ms behind the one before, lies across a border whose upper side had its place on the device before
    // the lower.
    let offsets = [(900_001 << 20) + 65_536, 900_005 << 20, (900_001 << 20) - 8192];
    let requests: Vec<(u64, u64)> = (0..60).map(|n| (offsets[n % 3], 16_384)).collect();
    assert_eq!(cut(&requests), (20, 40));
    let line = |(n, (offset, bytes)): (usize, &(u64, u64))| {
        format!("{} 0 {} {} 1\n", n * 2_000_000, offset / 512, bytes / 512)
    };
    let path = file(folder.path(), "s.trace", requests.iter().enumerate().map(line).collect::<String>());
    let log = folder.path().join("log").display().to_string();
    let arguments = ["--workload", &path, "--format", "mqsim"];
    let document = run_tiny(&[&arguments[..], &["--json", "--log", &log]].concat()).well().json();
    let logged = std::fs::read_to_string(&log).unwrap();
    let mut issued: Vec<(f64, f64)> = logged
        .lines()
        .map(|line| {
            let fields: Vec<f64> = line.split(", ").map(|field| field.parse().unwrap()).collect();
            (fields[fields.len() - 1], fields[1])
        })
        .collect();
    issued.sort_by(|a, b| a.0.total_cmp(&b.0));
    let uncut = |(n, (_, latency)): (usize, &(f64, f64))| (n % 3 != 2).then_some(*latency);
    let uncut: f64 = issued.iter().enumerate().filter_map(uncut).sum();
    let of = |value: &Value| value.as_f64().unwrap();
    let of_fragments = 40.0 * of(&document["io"]["fragments"]["latency_ns"]["mean"]);
    let expected = (uncut + of_fragments) / 80.0;
    let waits: f64 = document["breakdown_ns"]["read"].as_object().unwrap().values().map(of).sum();
    assert!((waits - expected).abs() < 1.0, "{waits} and {expected}");
    assert!(waits < of(&document["io"]["read"]["latency_ns"]["mean"]));
    let page = run_tiny(&arguments).well().stdout;
    assert!(page.contains("a read, by fragment, waits for:"), "{page}");
    let whole = run_tiny(&["--workload", "fio:rw=randread,bs=4k,number_ios=50"]).well().stdout;
    assert!(whole.contains("a read waits for:"), "{whole}");
}

/// 400 days, a request a day.
fn long() -> String {
    (0..=400_u64).map(|day| format!("7,W,{},4096,{}\n", day % 7 * 4096, day * 86_400_000_000)).collect()
}

#[test]
fn a_trace_longer_than_the_clock_is_refused_with_what_mends_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "long.csv", long());
    let run = |more: &[&str]| {
        run_tiny(&[&["--workload", &path, "--format", "alibaba", "--json"][..], more].concat())
    };
    let refused = run(&[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    for word in ["lasts 1.1 years", "--time-scale 1/2", "--end 213d", "--queue-depth"] {
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
    for (more, requests) in [
        (&["--queue-depth", "4"][..], 401),
        (&["--time-scale", "1/2"], 401),
        (&["--end", "213d"], 213),
        (&["--start", "300d", "--end", "310d"], 10),
    ] {
        let document = run(more).well().json();
        assert_eq!(document["io"]["all"]["requests"], requests, "{more:?}");
        let warnings = document["warnings"].to_string();
        assert!(!warnings.contains("moved"), "{warnings}");
    }
    let told = nandscape(&["trace", "inspect", &path]).well().stdout;
    assert!(told.contains("warning: the simulator's clock ends at 214 days"), "{told}");
    for option in ["--align", "--volumes"] {
        let value = if option == "--align" { "start" } else { "one" };
        let refused = nandscape(&["trace", "inspect", &path, option, value]);
        assert!(refused.code == Some(2) && refused.stderr.contains(option), "{}", refused.stderr);
        let refused = nandscape(&["trace", "convert", &path, "--to", "csv", option, value]);
        assert!(refused.code == Some(2) && refused.stderr.contains(option), "{}", refused.stderr);
    }
}

/// Two volumes of a recording, one 30 days behind the other; and one trace in parts.
#[test]
fn several_traces_have_one_clock_and_parts_are_one_trace() {
    let folder = tempfile::tempdir().unwrap();
    let lines = |day: u64| -> String {
        (0..20).map(|n| format!("7,W,{},4096,{}\n", n * 4096, day * 86_400_000_000 + n * 1000)).collect()
    };
    let (a, b) = (file(folder.path(), "a.csv", lines(3)), file(folder.path(), "b.csv", lines(33)));
    let run = |workloads: &[&str], more: &[&str]| {
        let mut arguments = vec!["--format", "alibaba", "--json"];
        workloads.iter().for_each(|workload| arguments.extend(["--workload", workload]));
        arguments.extend(more);
        run_tiny(&arguments).well().json()
    };
    let days = |document: &Value| (document["simulated_ns"].as_f64().unwrap() / 86_400e9).round();
    let programmed = |document: &Value| document["flash"][0]["host_programs"].as_u64().unwrap();
    let apart = run(&[&a, &b], &[]);
    assert_eq!((days(&apart), &apart["io"]["all"]["requests"]), (30.0, &40.into()));
    assert!(apart["warnings"].to_string().contains("b.csv: begins 30 days after"), "{}", apart["warnings"]);
    let start = run(&[&a, &b], &["--align", "start"]);
    assert_eq!((days(&start), programmed(&start)), (0.0, programmed(&apart)));
    let joined = format!("{a}+{b}");
    let parts = run(&[&joined], &[]);
    assert_eq!((days(&parts), parts["io"]["flows"].as_array().unwrap().len()), (30.0, 1));
    assert_eq!(parts["io"]["flows"][0]["name"], "a.csv+b.csv/7");
    assert_eq!(
        (&parts["io"]["all"]["requests"], &parts["workload"][0]),
        (&40.into(), &joined.as_str().into())
    );
    let wrong = run_tiny(&["--format", "alibaba", "--workload", &format!("{b}+{a}")]);
    assert!(
        wrong.code == Some(2) && wrong.stderr.contains("before the previous part ends"),
        "{}",
        wrong.stderr
    );
    // As one trace in another file.
    let out = folder.path().join("joined.csv").display().to_string();
    nandscape(&["trace", "convert", &joined, "--to", "csv", "-o", &out]).well();
    assert_eq!(inspected(&out)["requests"], 40);
}

/// Returns the output of the binary when `content` comes through a pipe.
fn piped(arguments: &[&str], content: &[u8]) -> (Option<i32>, String, String) {
    let mut child = crate::common::command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    // What stops reading early closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(content);
    let done = child.wait_with_output().expect("the binary ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn a_pipe_is_read_once_by_every_command_that_reads_traces() {
    let content = trace().into_bytes();
    for name in ["-", "/dev/stdin"] {
        let (code, stdout, stderr) = piped(&["trace", "inspect", name], &content);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.contains("100 in 100 lines"), "{stdout}");
        let (_, stdout, stderr) = piped(&["trace", "convert", name, "--to", "mqsim"], &content);
        assert_eq!(stdout, trace(), "{stderr}");
        let (_, stdout, _) = piped(&["trace", "sample", name, "--first", "3"], &content);
        assert_eq!(stdout.lines().count(), 3);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.trace", trace());
    let run = |name| {
        [&["run", "d16"][..], &crate::common::TINY, &["--json", "--remap", "wrap", "--workload", name]]
            .concat()
    };
    let of = |text: &str| serde_json::from_str::<Value>(text).expect("a document")["io"]["all"].clone();
    let (code, stdout, stderr) = piped(&run("-"), &content);
    assert_eq!(code, Some(0), "{stderr}");
    assert_eq!(of(&stdout), of(&nandscape(&run(&path)).well().stdout));
    let twice = [&run("-")[..], &["--workload", "-"]].concat();
    let (code, _, stderr) = piped(&twice, &content);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(
        stderr.contains("the pipe was already read") && stderr.contains("help: write the trace to a file")
    );
}

#[test]
fn recorded_response_times_stand_beside_the_simulated_ones() {
    // 20 reads of 100 us, and 20 writes of which every other has no time.
    let line = |n: u64| {
        let (kind, took) = if n.is_multiple_of(2) { ("Read", 1000) } else { ("Write", 5000 * (n % 4 / 2)) };
        format!("{},h,0,{kind},{},4096,{took}\n", n * 10_000, n * 4096)
    };
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.csv", (0..40).map(line).collect::<String>());
    let document = run_tiny(&["--workload", &path, "--json"]).well().json();
    let recorded = &document["io"]["recorded"];
    assert_eq!((&recorded["reads"], &recorded["writes"]), (&20.into(), &10.into()));
    assert_eq!(recorded["read_latency_ns"]["mean"], 100_000.0);
    assert_eq!(recorded["write_latency_ns"]["max"], 500_000.0);
    let page = run_tiny(&["--workload", &path]).well().stdout;
    assert!(page.contains("recorded reads, 20: mean 100.00 us (simulated "), "{page}");
    let none = file(folder.path(), "t.trace", trace());
    assert!(run_tiny(&["--workload", &none, "--json"]).well().json()["io"].get("recorded").is_none());
    assert_eq!(inspected(&path)["recorded_read_ns"]["mean"], 100_000.0);
}

#[test]
fn an_order_without_times_runs_at_a_queue_depth_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "t.lis", "1 8 0 0\n64 8 0 1\n");
    let refused = run_tiny(&["--workload", &path]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--queue-depth"), "{}", refused.stderr);
    let done = run_tiny(&["--workload", &path, "--queue-depth", "2", "--json"]).well().json();
    assert_eq!(done["io"]["all"]["requests"], 2);
}

/// A file that no system runs says what it is, also where requests have no drive to go to.
#[test]
fn a_file_that_is_no_workload_says_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let pin = file(folder.path(), "pinatrace.out", "0x401000: R 0x7fff1234\n0x401004: W 0x7fff1238\n");
    let prose = file(folder.path(), "notes.txt", "It was a dark and stormy night\n");
    let requests = file(folder.path(), "t.trace", trace());
    for (system, path, said) in [
        ("dram-only", &pin, "by a Pin tool"),
        ("d16", &pin, "by a Pin tool"),
        ("dram-only", &prose, "not a known workload"),
        ("dram-only", &requests, "consists of block requests"),
    ] {
        let done = nandscape(&["run", system, "--workload", path]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{}", done.stderr);
        assert!(done.stderr.contains(said), "{said} not in {}", done.stderr);
        assert_eq!(done.stderr.contains("consists of block requests"), path == &requests, "{}", done.stderr);
    }
    // What its help says makes a program of it.
    let list = file(folder.path(), "list", "l 0x7fff1234 1\ns 0x7fff1238 1\n".repeat(50));
    nandscape(&["check", "dram-only", "--workload", &list]).well();
}

/// A table whose header names its columns runs as they say, and the page says what was guessed.
#[test]
fn a_table_runs_as_its_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..100).map(|n| format!("{},7,READ,{},4096\n", n * 10, n % 50 * 4096)).collect();
    let path = file(folder.path(), "t.csv", format!("timestamp,process_id,type,address,size\n{rows}"));
    let found = inspected(&path);
    assert_eq!(
        (&found["format"], &found["span_s"], &found["stream_count"]),
        (&"csv".into(), &0.00099.into(), &1.into())
    );
    let document = run_tiny(&["--workload", &path, "--json"]).well().json();
    assert_eq!(
        (&document["io"]["all"]["requests"], &document["io"]["all"]["bytes"]),
        (&100.into(), &409_600.into())
    );
    assert!(
        document["warnings"].to_string().contains("the unit of `timestamp`: assuming us"),
        "{}",
        document["warnings"]
    );
}
