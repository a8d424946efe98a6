//! The contract of the command line: keys of the result document, exit status, purity of standard output, determinism.

use crate::common::{TINY, command, file, leaves, nandscape, refused, run_tiny};
use serde_json::Value;
use std::collections::BTreeSet;

const JOB: &str = "fio:rw=randrw,bs=4k,iodepth=8,number_ios=6000,norandommap=1,thinktime=0";

/// Keys that every document of reads and writes has, those of `io.KIND` apart.
const KEYS: [&str; 61] = [
    "schema",
    "system",
    "spec",
    "spec_sha256",
    "seed",
    "version",
    "workload.0",
    "ok",
    "partial",
    "warnings",
    "simulated_ns",
    "run.wall_s",
    "run.cpu_s",
    "run.precondition_cpu_s",
    "run.events",
    "run.requests_per_cpu_s",
    "run.peak_rss_bytes",
    "io.flows.0.name",
    "io.flows.0.read.iops",
    "io.flows.0.active.from_ns",
    "io.flows.0.active.until_ns",
    "io.flows.0.active.iops",
    "io.flows.0.active.bandwidth_bytes_per_s",
    "io.series.0.requests",
    "breakdown_ns.read.array",
    "breakdown_ns.write.array",
    "checks.0.name",
    "checks.0.ok",
    "checks.0.detail",
    "flash.0.name",
    "flash.0.precondition.kind",
    "flash.0.precondition.mapped_share",
    "flash.0.precondition.invalid_share",
    "flash.0.capacity.physical_pages",
    "flash.0.capacity.logical_pages",
    "flash.0.capacity.reserved_pages",
    "flash.0.reads.host",
    "flash.0.reads.gc",
    "flash.0.reads.mapping",
    "flash.0.reads.rmw",
    "flash.0.host_programs",
    "flash.0.gc_programs",
    "flash.0.mapping_programs",
    "flash.0.wear_programs",
    "flash.0.erases",
    "flash.0.gc_runs",
    "flash.0.multi_plane",
    "flash.0.copy_backs",
    "flash.0.suspends",
    "flash.0.moves_dropped",
    "flash.0.unwritten_reads",
    "flash.0.write_amplification",
    "flash.0.flushed_write_amplification",
    "flash.0.buffered_bytes",
    "flash.0.ftl_write_amplification",
    "flash.0.free_blocks_min",
    "flash.0.erase_count.min",
    "flash.0.erase_count.mean",
    "flash.0.erase_count.max",
    "flash.0.utilisation.channel.0",
    "flash.0.utilisation.die.0",
];

#[test]
fn the_document_has_the_keys_of_the_contract() {
    let document = run_tiny(&["--workload", JOB, "--json"]).well().json();
    let has = |path: &str| {
        let found = path.split('.').try_fold(&document, |at, part| match at {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?),
            other => other.get(part),
        });
        assert!(found.is_some(), "no {path}");
    };
    for path in KEYS {
        has(path);
    }
    for kind in ["all", "read", "write"] {
        for key in ["requests", "bytes", "iops", "bandwidth_bytes_per_s", "queue_depth_mean"] {
            has(&format!("io.{kind}.{key}"));
        }
        for latency in ["latency_ns", "slat_ns", "clat_ns", "device_latency_ns"] {
            for figure in
                ["mean", "stddev", "min", "max", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999"]
            {
                has(&format!("io.{kind}.{latency}.{figure}"));
            }
        }
    }
    assert_eq!(document["schema"], "nandscape.result/2");
    assert_eq!(document["io"]["all"]["requests"], 6000);
    // N (1 - p) < 10 for 6,000 requests: p99.9 has fewer than ten above it.
    assert!(document["io"]["all"]["latency_ns"]["p99"].is_number());
    assert!(document["io"]["all"]["latency_ns"]["p99_9"].is_null());
    let milestones = document["breakdown_ns"]["write"].as_object().expect("a table");
    let sum: f64 = milestones.values().filter_map(Value::as_f64).sum();
    let mean = document["io"]["write"]["latency_ns"]["mean"].as_f64().expect("a mean");
    assert!((sum / mean - 1.0).abs() < 1e-9, "{sum} against {mean}");
}

/// The page that is written from the types has every field that a run writes.
#[test]
fn the_page_of_metrics_has_every_leaf_of_a_document() {
    let folder = tempfile::tempdir().unwrap();
    nandscape(&["gen-docs", &folder.path().display().to_string()]).well();
    let page = std::fs::read_to_string(folder.path().join("metrics.md")).unwrap();
    let job = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=400,fsync=16";
    let trim = "fio:name=t,rw=randtrim,bs=4k,number_ios=10";
    let run = run_tiny(&["--workload", job, "--workload", JOB, "--workload", trim, "--json"]).well();
    let kinds = ["all", "read", "write", "trim", "flush"];
    let figures = ["mean", "stddev", "min", "max", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "p99_999"];
    let mut seen = BTreeSet::new();
    for (path, _) in leaves(&run.json()) {
        let mut parts: Vec<&str> = path.split('.').collect();
        if parts[0] == "spec" {
            parts.truncate(1);
        }
        if parts[0] == "breakdown_ns" {
            assert!(page.contains(&format!("| `{}` |", parts[2])), "no milestone {}", parts[2]);
            (parts[1], parts[2]) = ("*", "*");
        }
        // What slow requests waited for: names of milestones and of holders, which the page tells of.
        if let Some(at) = parts.iter().position(|part| ["breakdown_ns", "blocked_ns"].contains(part))
            && at > 0
            && let Some(last) = parts.last_mut()
        {
            assert!(page.contains(&format!("`{last}`")), "nothing on {last}");
            *last = "*";
        }
        if parts.len() > 2
            && figures.contains(&parts[parts.len() - 1])
            && parts[parts.len() - 2].ends_with("_ns")
        {
            let figure = parts.pop().expect("a last part");
            assert!(page.contains(&format!("| `{figure}` |")), "no figure {figure}");
            parts.push("FIGURE");
        }
        let is_index = |part: &&str| part.parse::<u64>().is_ok();
        let io = parts[0] == "io";
        let parts: Vec<&str> = parts
            .iter()
            .enumerate()
            .map(|(at, part)| match part {
                part if is_index(part) => "*",
                part if io && kinds.contains(part) && (at == 1 || at == 3) => "KIND",
                part => part,
            })
            .collect();
        seen.insert(parts.join("."));
    }
    assert!(seen.len() > 60, "{}", seen.len());
    for key in seen {
        assert!(page.contains(&format!("| `{key}` |")), "docs/metrics.md has no {key}");
    }
}

/// The document without the cost of the run.
fn result_of(more: &[&str]) -> Value {
    let mut arguments = vec!["--workload", JOB, "--json"];
    arguments.extend(more);
    let mut document = run_tiny(&arguments).well().json();
    document["run"] = Value::Null;
    document
}

#[test]
fn a_run_repeats_bit_for_bit_observed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let [log, timeline] =
        ["log.csv", "timeline.json"].map(|name| folder.path().join(name).display().to_string());
    let plain = result_of(&[]);
    assert_eq!(plain, result_of(&[]));
    assert_eq!(plain, result_of(&["--log", &log]));
    assert_eq!(plain, result_of(&["--log", &log, "--timeline", &timeline]));
    assert_ne!(plain, result_of(&["--seed", "2"]));
    // Folding is a part of the spec, and must not be seen anywhere else.
    let mut unfolded = result_of(&["--set", "sim.fold=false"]);
    assert_ne!(plain, unfolded);
    for key in ["spec", "spec_sha256"] {
        unfolded[key] = plain[key].clone();
    }
    assert_eq!(plain, unfolded);
}

#[test]
fn the_log_has_a_line_for_each_request() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    let document =
        run_tiny(&["--workload", JOB, "--json", "--log", &log.display().to_string()]).well().json();
    let text = std::fs::read_to_string(log).unwrap();
    let lines: Vec<Vec<u64>> = text
        .lines()
        .map(|line| line.split(", ").map(|field| field.parse().expect("a number")).collect())
        .collect();
    assert_eq!(lines.len() as u64, document["io"]["all"]["requests"]);
    assert!(lines.iter().all(|line| line.len() == 7));
    for (kind, direction) in [("read", 0), ("write", 1)] {
        let of: Vec<&Vec<u64>> = lines.iter().filter(|line| line[2] == direction).collect();
        let io = &document["io"][kind];
        assert_eq!(of.len() as u64, io["requests"]);
        assert_eq!(of.iter().map(|line| line[3]).sum::<u64>(), io["bytes"]);
        // Values are cut to whole nanoseconds.
        let mean = of.iter().map(|line| line[1]).sum::<u64>() as f64 / of.len() as f64;
        let told = io["latency_ns"]["mean"].as_f64().unwrap();
        assert!(mean <= told && told - mean < 1.0, "{mean} against {told}");
    }
    for line in &lines {
        // Issue plus latency is the completion, of which the first field is the millisecond.
        assert!((line[6] + line[1]) / 1_000_000 - line[0] <= 1, "{line:?}");
    }
    assert!(lines.windows(2).all(|pair| pair[0][0] <= pair[1][0]), "in the order of completion");
}

/// The timeline and the document of a run of reads and writes that need garbage collection.
fn timeline_of(system: &[&str], number_ios: u64) -> (Value, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("timeline.json");
    let job =
        format!("fio:rw=randrw,rwmixread=20,bs=4k,iodepth=16,number_ios={number_ios},loops=9,norandommap=1");
    let path_text = path.display().to_string();
    let mut arguments = vec!["run"];
    arguments.extend(system);
    arguments.extend(["--workload", &job, "--json", "--timeline", &path_text]);
    let document = nandscape(&arguments).well().json();
    let timeline: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(timeline["otherData"]["events_left_out"], 0);
    (timeline, document)
}

/// Every die and channel of a drive is busy as its slices say, and never twice at once; every erase is a slice.
fn accounts_for_drive(timeline: &Value, document: &Value, drive: u64) {
    let events = timeline["traceEvents"].as_array().unwrap();
    let slices = |pid: u64| events.iter().filter(move |e| e["ph"] == "X" && e["pid"] == pid);
    let simulated_us = document["simulated_ns"].as_f64().unwrap() / 1e3;
    let flash = &document["flash"][drive as usize];
    for (pid, name) in [(2 + 2 * drive, "channel"), (3 + 2 * drive, "die")] {
        let shares: Vec<f64> =
            flash["utilisation"][name].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        for (track, share) in shares.iter().enumerate() {
            let of_track = || slices(pid).filter(|e| e["tid"] == track);
            let busy: f64 = of_track().filter_map(|e| e["dur"].as_f64()).sum();
            assert!((busy / simulated_us - share).abs() < 1e-6, "{name} {track}: {busy} us, {share}");
            let ends = |e: &Value| {
                let from = e["ts"].as_f64().unwrap();
                (from, from + e["dur"].as_f64().unwrap())
            };
            let mut ends: Vec<(f64, f64)> = of_track().map(ends).collect();
            ends.sort_by(|a, b| a.0.total_cmp(&b.0));
            let is_apart = ends.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-6);
            assert!(is_apart, "{name} {track} is used twice at once");
        }
    }
    // A command of several planes erases a block in each.
    let erases = slices(3 + 2 * drive).filter(|e| e["name"] == "erase");
    let erased: u64 = erases.filter_map(|e| e["args"]["planes"].as_u64()).sum();
    assert!(erased > 0);
    assert_eq!(erased, flash["erases"]);
}

/// The names of the timeline's processes, in their order.
fn processes(timeline: &Value) -> Vec<&str> {
    let events = timeline["traceEvents"].as_array().unwrap();
    let named = events.iter().filter(|e| e["name"] == "process_name");
    named.map(|e| e["args"]["name"].as_str().unwrap()).collect()
}

#[test]
fn the_timeline_accounts_for_every_busy_moment() {
    let small = ["--set", "flash.geometry.channels=2", "--set", "flash.geometry.ways=2"];
    let system = [&["d16"][..], &TINY, &small].concat();
    let (timeline, document) = timeline_of(&system, 9000);
    accounts_for_drive(&timeline, &document, 0);
    assert_eq!(processes(&timeline), ["requests", "channels", "dies"]);
    let begun = timeline["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "b").count();
    assert_eq!(begun as u64, document["io"]["all"]["requests"]);
}

#[test]
fn the_timeline_has_the_channels_and_dies_of_every_drive() {
    let folder = tempfile::tempdir().unwrap();
    let stripe = "inherits = \"d16\"
[flash]
count = 2
geometry = { channels = 2, ways = 1 }
[stripe]
drives = \"flash\"
chunk = \"8KiB\"
submit = \"0us\"
";
    let stripe = file(folder.path(), "stripe.toml", stripe);
    let system = [&[stripe.as_str()][..], &TINY].concat();
    let (timeline, document) = timeline_of(&system, 9000);
    for drive in [0, 1] {
        accounts_for_drive(&timeline, &document, drive);
    }
    let names = ["requests", "flash.0 channels", "flash.0 dies", "flash.1 channels", "flash.1 dies"];
    assert_eq!(processes(&timeline), names);
}

#[test]
fn a_folder_gets_the_result_and_the_spec_that_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a/b");
    let document =
        run_tiny(&["--workload", JOB, "--json", "--out", &out.display().to_string()]).well().json();
    let written: Value = serde_json::from_slice(&std::fs::read(out.join("result.json")).unwrap()).unwrap();
    assert_eq!(written, document);
    let spec = out.join("spec.toml").display().to_string();
    let again = nandscape(&["run", &spec, "--workload", JOB, "--json"]).well().json();
    assert_eq!(again["spec_sha256"], document["spec_sha256"]);
    assert_eq!(again["io"], document["io"]);
    assert_eq!(again["flash"][0]["precondition"]["kind"], "none");
}

/// A folder that cannot be made is told before the run, not after it.
#[test]
fn a_folder_that_cannot_be_written_costs_no_run() {
    let folder = tempfile::tempdir().unwrap();
    let taken = file(folder.path(), "taken", "");
    let endless = "fio:rw=randread,bs=4k,time_based=1,runtime=100d";
    let done = run_tiny(&["--workload", endless, "--out", &format!("{taken}/below")]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""));
    assert!(
        done.stderr.starts_with("error: cannot write") && done.stderr.contains("taken"),
        "{}",
        done.stderr
    );
}

#[test]
fn json_is_one_document_and_nothing_else() {
    let run =
        run_tiny(&["--workload", "fio:rw=randread,bs=4k,number_ios=50,gtod_reduce=1,filename=x", "--json"])
            .well();
    assert!(run.json().is_object());
    assert_eq!(run.stderr, "", "no progress bar without a terminal");
    let warnings = run.json()["warnings"].to_string();
    assert!(warnings.contains("gtod_reduce") && warnings.contains("filename"), "{warnings}");
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "t.csv", "0 0 0 8 1\n1000 0 8 8 0\n2000 0 16 8 1\n");
    assert!(nandscape(&["trace", "inspect", "--json", &trace]).well().json().is_array());
    let result = file(folder.path(), "result.json", run.stdout);
    assert!(nandscape(&["diff", "--json", &result, &result]).well().json().is_object());
    assert!(nandscape(&["schema"]).well().json().is_object());
}

#[test]
fn exit_status_and_streams() {
    assert_eq!(nandscape(&["--version"]).code, Some(0));
    for arguments in [
        vec!["run", "d17", "--workload", "randread"],
        vec!["run", "d16", "--workload", "randreed"],
        vec!["run", "d16"],
        vec!["frobnicate"],
        vec!["list", "victims"],
        vec!["explain", "gredy"],
        vec!["params", "flash.geometri"],
        vec!["diff", "nothing", "nothing"],
    ] {
        let done = nandscape(&arguments);
        assert_eq!(done.code, Some(2), "{arguments:?}");
        assert_eq!(done.stdout, "", "{arguments:?}");
        assert!(done.stderr.starts_with("error: "), "{arguments:?}: {}", done.stderr);
    }
}

/// A requested end does not make a run partial: the run is whole, and says what ended it.
#[test]
fn a_run_that_was_given_a_time_is_not_partial() {
    let job = "fio:rw=randread,bs=4k,iodepth=2,rate_iops=1000,number_ios=1000";
    let run = run_tiny(&["--set", "sim.until=20ms", "--workload", job, "--json"]).well();
    let document = run.json();
    assert_eq!((&document["partial"], &document["ok"]), (&Value::from(false), &Value::from(true)));
    assert_eq!(document["simulated_ns"], 20e6, "the next request would come later");
    assert!(document["warnings"].to_string().contains("`sim.until` ended the run"));
    let requests = document["io"]["all"]["requests"].as_u64().unwrap();
    assert!((19..=21).contains(&requests), "{requests} requests of one a millisecond");
}

/// An interrupt ends the run early: the document is printed, says so, and the exit status tells.
#[cfg(unix)]
#[test]
fn an_interrupted_run_is_partial() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut arguments = vec!["run".to_owned(), "d16".to_owned()];
    arguments.extend(TINY.map(str::to_owned));
    let job = "fio:rw=randwrite,bs=4k,iodepth=8,time_based=1,runtime=10d,norandommap=1";
    arguments.extend(["--json", "--log", &log.display().to_string(), "--workload", job].map(str::to_owned));
    let mut run = command(&arguments);
    run.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = run.spawn().unwrap();
    // Once something is logged it runs, and interrupts are caught.
    let under_way = folder.path().join("log.incomplete");
    let is_running = || std::fs::metadata(&under_way).is_ok_and(|m| m.len() > 0);
    while !is_running() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["partial"], true);
    assert_eq!(document["ok"], false, "work was left");
    let failed: Vec<&Value> =
        document["checks"].as_array().unwrap().iter().filter(|check| check["ok"] == false).collect();
    assert_eq!((failed.len(), &failed[0]["name"]), (1, &Value::from("no work is left")), "{failed:?}");
}

// `check` is asked what `run` is: the same words, without the run.

/// Options of a command, from its help.
fn options(command: &str) -> BTreeSet<String> {
    let help = nandscape(&[command, "--help"]).well().stdout;
    let words = help.lines().filter_map(|line| line.trim_start().strip_prefix("--"));
    words.filter_map(|rest| rest.split([' ', '=']).next()).map(str::to_owned).collect()
}

#[test]
fn check_has_every_option_of_run_that_changes_what_is_run() {
    let of_the_result =
        ["json", "output-format", "out", "log", "requests", "requests-keep", "timeline", "timeline-show"]
            .map(str::to_owned);
    // A run that takes a state finds what one that makes it finds.
    let of_states = ["save-state", "load-state", "state-cache"].map(str::to_owned);
    let (mut run, check) = (options("run"), options("check"));
    run.retain(|name| !of_the_result.contains(name) && !of_states.contains(name));
    assert!(run.contains("queue-depth") && run.contains("time-scale"), "{run:?}");
    assert_eq!(check, run);
}

/// 400 days are beyond the clock, and a replay at a queue depth does not use it.
#[test]
fn a_trace_beyond_the_clock_is_checked_at_a_queue_depth() {
    let folder = tempfile::tempdir().unwrap();
    let days = (0..=400_u64).map(|day| format!("7,W,{},4096,{}\n", day % 7 * 4096, day * 86_400_000_000));
    let trace = file(folder.path(), "long.csv", days.collect::<String>());
    let check = ["check", "d16", "--workload", &trace];
    refused(&check, &["lasts 1.1 years", "--queue-depth"]);
    nandscape(&[&check[..], &["--queue-depth", "4"]].concat()).well();
    refused(&[&check[..], &["--queue-depth", "0"]].concat(), &["--queue-depth 0", "give 1 or more"]);
    let both = ["--queue-depth", "4", "--time-scale", "1/2"];
    refused(&[&check[..], &both].concat(), &["--time-scale has no effect with --queue-depth"]);
    refused(&["check", "d16", "--queue-depth", "4"], &["--queue-depth applies to block traces only"]);
}

#[test]
fn the_state_of_the_device_is_checked_and_shown() {
    let shown = nandscape(&["check", "d16", "--precondition", "none"]).well().stdout;
    assert!(shown.contains("precondition = \"none\""), "{shown}");
    refused(&["check", "d16", "--precondition", "sequentail"], &["did you mean `sequential`"]);
    refused(&["check", "d16", "--warmup", "soon"], &["--warmup takes a number of requests or a time"]);
}
