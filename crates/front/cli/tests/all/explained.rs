//! Runs that explain themselves: requests in a file, what `explain-run` says, and what both refuse.

use crate::common::{TINY, file, nandscape, refused};
use serde_json::Value;

const JOB: &str = "fio:rw=randrw,bs=4k,iodepth=32,number_ios=20000,norandommap=1";

/// The rows of a file of requests, and the document of the run.
fn requests_of(keep: &[&str]) -> (Vec<Vec<String>>, Value) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.csv").display().to_string();
    let mut arguments = vec!["run", "d16"];
    arguments.extend(TINY);
    arguments.extend(["--workload", JOB, "--json", "--requests", &path]);
    arguments.extend(keep);
    let document = nandscape(&arguments).well().json();
    let text = std::fs::read_to_string(path).unwrap();
    (text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect(), document)
}

fn column(rows: &[Vec<String>], name: &str) -> usize {
    rows[0].iter().position(|column| column == name).unwrap_or_else(|| panic!("no column {name}"))
}

/// Nanoseconds with three decimals, as picoseconds.
fn ps(cell: &str) -> u64 {
    let (whole, part) = cell.split_once('.').expect("three decimals");
    whole.parse::<u64>().unwrap() * 1000 + part.parse::<u64>().unwrap()
}

#[test]
fn every_request_is_a_row_whose_parts_sum_to_its_latency() {
    let (rows, document) = requests_of(&[]);
    assert_eq!(rows.len() as u64 - 1, document["io"]["all"]["requests"].as_u64().unwrap());
    let [latency, first, last] = ["latency_ns", "submission_ns", "host_ns"].map(|name| column(&rows, name));
    let mut total = 0;
    for row in &rows[1..] {
        assert_eq!(row.len(), rows[0].len());
        let parts: u64 = row[first..=last].iter().map(|cell| ps(cell)).sum();
        assert_eq!(parts, ps(&row[latency]), "{row:?}");
        total += parts;
    }
    let mean = total as f64 / 1e3 / (rows.len() - 1) as f64;
    let told = document["io"]["all"]["latency_ns"]["mean"].as_f64().unwrap();
    assert!((mean / told - 1.0).abs() < 1e-9, "{mean} for {told}");
}

#[test]
fn what_is_kept_is_what_was_asked_for() {
    let (all, _) = requests_of(&[]);
    let [id, latency, completed] = ["id", "latency_ns", "completed_ns"].map(|name| column(&all, name));
    let (slowest, document) = requests_of(&["--requests-keep", "slowest=10"]);
    let mut sorted: Vec<u64> = all[1..].iter().map(|row| ps(&row[latency])).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut found: Vec<u64> = slowest[1..].iter().map(|row| ps(&row[latency])).collect();
    found.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(found, sorted[..10]);
    // The document has the same, of its own.
    let told = document["io"]["slowest"][0]["latency_ns"].as_f64().unwrap();
    assert!((told * 1e3 - sorted[0] as f64).abs() < 0.5);
    let (sample, _) = requests_of(&["--requests-keep", "sample=50"]);
    assert_eq!(sample.len(), 51);
    assert!(sample[1..].iter().all(|row| all[1..].contains(row)), "a sample changes no request");
    let (window, _) = requests_of(&["--requests-keep", "window=10ms..20ms"]);
    let within = |row: &&Vec<String>| (10_000_000_000..20_000_000_000).contains(&ps(&row[completed]));
    let expected: Vec<&String> = all[1..].iter().filter(within).map(|row| &row[id]).collect();
    assert!(!expected.is_empty());
    assert_eq!(window[1..].iter().map(|row| &row[id]).collect::<Vec<_>>(), expected);
}

#[test]
fn what_cannot_be_kept_or_written_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("r.csv").display().to_string();
    let odd = folder.path().join("r.xlsx").display().to_string();
    let run = |path: &str, keep: &str, said: &[&str]| {
        let workload = "fio:rw=randread,bs=4k,number_ios=10";
        refused(&["run", "d16", "--workload", workload, "--requests", path, "--requests-keep", keep], said);
    };
    run(&csv, "slowst=10", &["slowst", "did you mean `slowest`"]);
    run(&csv, "slowest", &["`slowest` takes a whole number"]);
    run(&csv, "sample=0", &["at least 1"]);
    run(&csv, "window=5ms", &["two times"]);
    run(&csv, "window=5ms..1ms", &["not after"]);
    run(&csv, "window=5..6ms", &["`5` is not a time"]);
    run(&odd, "all", &["r.xlsx", ".csv or .parquet"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_timeline_of_no_span_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.pftrace").display().to_string();
    let run = |show: &str, said: &[&str]| {
        let workload = "fio:rw=randread,bs=4k,number_ios=10";
        refused(&["run", "d16", "--workload", workload, "--timeline", &path, "--timeline-show", show], said);
    };
    run("slowst", &["--timeline-show", "did you mean `slowest`"]);
    run("slowest=3", &["`slowest` takes no value"]);
    run("window", &["two times"]);
    run("window=5ms..1ms", &["not after"]);
    run("everything", &["unknown value `everything`", "`all`"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A drive that collects behind every read: it is told that dies are waited for, behind whom, and that spare space is
/// worth a try.
#[test]
fn a_run_behind_collection_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "d16"];
    arguments.extend(&TINY[2..]);
    arguments.extend(["--precondition", "steady", "--workload", JOB, "--json"]);
    let result = file(folder.path(), "result.json", nandscape(&arguments).well().stdout);
    let told = nandscape(&["explain-run", &result]).well().stdout;
    for said in [
        "the slowest 0.1 % of reads",
        "waiting for dies",
        "GC programs",
        "times: ",
        "flash.ftl.over_provisioning (now 0.25, try 0.5)",
    ] {
        assert!(told.contains(said), "{said}:\n{told}");
    }
    let json = nandscape(&["explain-run", &result, "--json"]).well().json();
    assert!(json["findings"].as_array().is_some_and(|findings| findings.len() >= 4));
    let keys = json["keys"].as_array().expect("keys");
    assert!((1..=3).contains(&keys.len()));
    let other = file(folder.path(), "other.json", "{\"schema\": \"nandscape.diff/1\"}");
    refused(&["explain-run", &other], &["nandscape.diff/1"]);
    refused(&["explain-run", &folder.path().join("none.json").display().to_string()], &["none.json"]);
}

/// One request at a time on an idle drive: nothing limits it but itself.
#[test]
fn a_closed_loop_of_depth_one_is_limited_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let job = "fio:rw=randread,bs=4k,iodepth=1,number_ios=2000,norandommap=1";
    let run = ["run", "d16", "--precondition", "sequential", "--workload", job, "--json"];
    let result = file(folder.path(), "result.json", nandscape(&run).well().stdout);
    let told = nandscape(&["explain-run", &result]).well().stdout;
    assert!(told.contains("its own requests limit it: 1.0 are in flight"), "{told}");
    assert!(told.contains("in the array"), "{told}");
}

/// A machine of each kind with a short run.
const MACHINES: [(&str, &[&str]); 7] = [
    (
        "drive",
        &[
            "d16",
            "--workload",
            "fio:rw=randrw,bs=4k,iodepth=32,number_ios=4000,size=1%",
            "--precondition",
            "sequential:share=1%",
        ],
    ),
    (
        "host",
        &[
            "fastdrain",
            "--workload",
            "fio:rw=randrw,bs=4k,size=16m,number_ios=400,fsync=16,direct=0",
            "--precondition",
            "sequential:share=1%",
        ],
    ),
    ("GPU", &["ideal", "--workload", "back:n=1024", "--set", "gpu.sms=2"]),
    ("GPU over flash", &["zng", "--workload", "back:n=1024", "--set", "gpu.sms=4"]),
    (
        "server",
        &[
            "dram-only",
            "--workload",
            "tatp:size=64MiB",
            "--set",
            "cpu.load.jobs=400",
            "--set",
            "cpu.warmup.fixed.jobs=50",
        ],
    ),
    (
        "accelerator",
        &["flashabacus", "--workload", "atax:m=512,n=512,instances=3", "--set", "accelerator.sample=16384"],
    ),
    (
        "coprocessor",
        &[
            "flashabacus-simd",
            "--workload",
            "atax:m=512,n=512,instances=3",
            "--set",
            "coprocessor.sample=16384",
        ],
    ),
];

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|one| one.as_str().expect("a text")).collect()
}

/// Proposals change the machine of each kind, and do what they are proposed for: a run with the proposal, made by hand,
/// has the metric that was told, and that is better.
#[test]
fn what_is_proposed_moves_the_figure_of_every_kind_of_machine() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, arguments) in MACHINES {
        let run = |more: &[&str]| nandscape(&[&["run"], arguments, more, &["--json"]].concat()).well();
        let result = file(folder.path(), &format!("{kind}.json"), run(&[]).stdout);
        let told = nandscape(&["explain-run", &result, "--json"]).well().json();
        assert!(!told["findings"].as_array().expect("findings").is_empty(), "{kind}");
        let document: Value = serde_json::from_slice(&std::fs::read(&result).unwrap()).unwrap();
        for key in told["keys"].as_array().expect("keys") {
            assert_ne!(
                key["now"].as_str().map_or_else(|| key["now"].to_string(), str::to_owned),
                key["to"].as_str().unwrap(),
                "{kind}"
            );
            let place = format!("/spec/{}", key["key"].as_str().unwrap().replace('.', "/"));
            assert_eq!(document.pointer(&place), Some(&key["now"]), "{kind}: {place}");
        }
        let tried = nandscape(&["explain-run", &result, "--json", "--try"]).well().json();
        assert!(tried["trial"]["document"].is_null(), "{kind}: the run is not repeated: {tried}");
        let keys = tried["keys"].as_array().expect("keys");
        assert!((1..=3).contains(&keys.len()), "{kind}: {tried}");
        let figure = &tried["trial"]["figure"];
        let place = format!("/{}", figure["name"].as_str().unwrap().replace('.', "/"));
        let before = document.pointer(&place).and_then(Value::as_f64).expect("a figure");
        for (key, trial) in keys.iter().zip(tried["trial"]["tried"].as_array().expect("a list")) {
            assert_eq!(key["key"], trial["key"]);
            let set: Vec<&str> = texts(&key["set"]).into_iter().flat_map(|set| ["--set", set]).collect();
            let after = run(&set).json().pointer(&place).and_then(Value::as_f64).expect("a figure");
            assert_eq!(Some(after), trial["value"].as_f64(), "{kind}: {key}");
            let better = if figure["better"] == "less" { before / after } else { after / before };
            assert!(better > 1.005, "{kind}: {key} makes {before} {after}");
        }
        let human = nandscape(&["explain-run", &result, "--try"]).well().stdout;
        assert!(human.contains(keys[0]["key"].as_str().unwrap()) && human.contains("% better"), "{human}");
    }
}

/// A time that is zero cannot be shorter, and a scheduler that is set is not proposed, whatever its parameters; one
/// that is not set is.
#[test]
fn what_is_there_already_is_not_proposed() {
    let folder = tempfile::tempdir().unwrap();
    let file_of = |document: &Value| file(folder.path(), "d.json", document.to_string());
    let told = |document: &Value| nandscape(&["explain-run", &file_of(document), "--json"]).well().json();
    let proposed = |document: &Value, key: &str| {
        told(document)["keys"].as_array().expect("keys").iter().any(|told| told["key"] == key)
    };
    let mut arguments = vec!["run", "d16"];
    arguments.extend(TINY);
    arguments.extend(["--workload", "fio:rw=randread,bs=4k,number_ios=500", "--json"]);
    let mut document = nandscape(&arguments).well().json();
    // All of a read's time is the host's.
    document["breakdown_ns"]["read"] = serde_json::json!({"host": 1000.0});
    document["io"]["read"]["tail"] = serde_json::json!([]);
    for (now, is_proposed) in [("0ps", false), ("3us", true)] {
        document["spec"]["host"]["submit"] = now.into();
        assert_eq!(proposed(&document, "host.submit"), is_proposed, "{now}");
    }
    // All of it is behind programs.
    let behind = serde_json::json!({"die": {"host_program": 1000.0}, "channel": {}});
    let wait = serde_json::json!({"die_wait": 1000.0});
    document["breakdown_ns"]["read"] = wait.clone();
    document["io"]["read"]["tail"] = serde_json::json!([{"slowest": 0.01, "latency_ns_mean": 1000.0, "breakdown_ns": wait, "blocked_ns": behind}]);
    let schedulers = [
        (serde_json::json!("oldest"), true),
        (serde_json::json!("read_first"), false),
        (serde_json::json!({"read_first": {"max_wait": "5ms"}}), false),
        (serde_json::json!({"priority": {"max_wait": "5ms"}}), false),
    ];
    for (now, is_proposed) in schedulers {
        document["spec"]["flash"]["die"]["scheduler"] = now.clone();
        assert_eq!(proposed(&document, "flash.die.scheduler"), is_proposed, "{now}");
    }
    // Suspends that may never be are allowed with them.
    document["spec"]["flash"]["die"]["suspend"] =
        serde_json::json!({"program": false, "erase": false, "limit": 0});
    let page = told(&document);
    let key = page["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["key"] == "flash.die.suspend.program")
        .expect("a key");
    assert_eq!(texts(&key["set"]), ["flash.die.suspend.program=true", "flash.die.suspend.limit=8"]);
    // A drive of another name is meant by its own.
    let flash = document["spec"].as_object_mut().unwrap().remove("flash").unwrap();
    for name in ["left", "right"] {
        document["spec"][name] = flash.clone();
        document["spec"][name]["kind"] = "flash".into();
    }
    let page = told(&document);
    let key = page["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["key"] == "left.die.suspend.program")
        .expect("a key");
    assert!(texts(&key["set"]).contains(&"right.die.suspend.program=true"), "{key}");
}

#[test]
fn a_document_that_cannot_be_run_again_is_not_tried() {
    let folder = tempfile::tempdir().unwrap();
    let mut arguments = vec!["run", "d16"];
    arguments.extend(TINY);
    arguments.extend(["--workload", "fio:rw=randread,bs=4k,number_ios=100", "--json"]);
    let document = nandscape(&arguments).well().json();
    for (lost, said) in [("workload", "no `workload`"), ("spec", "no `spec`"), ("io", "no metric")] {
        let mut document = document.clone();
        document.as_object_mut().unwrap().remove(lost);
        let result = file(folder.path(), "lost.json", document.to_string());
        refused(&["explain-run", &result, "--try"], &[said]);
    }
}
