//! Running the binary, and what every test of it needs.

#![allow(dead_code, reason = "each test uses a part of it")]

use serde_json::Value;
use std::process::Command;
use std::{collections::BTreeSet, path::Path};

/// A device of 16 MiB that is ready at once.
pub(crate) const TINY: [&str; 14] = [
    "--precondition",
    "none",
    "--set",
    "flash.geometry.blocks=32",
    "--set",
    "flash.geometry.pages=16",
    "--set",
    "flash.ftl.gc.start=3",
    "--set",
    "flash.ftl.gc.stop=4",
    "--set",
    "flash.ftl.gc.hard=1",
    "--set",
    "flash.ftl.over_provisioning=25%",
];

/// What a run of the binary left.
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The one JSON document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| {
            panic!("stdout is not one JSON document: {e}\n{}\n{}", self.stdout, self.stderr)
        })
    }

    /// Panics unless the binary said that all is well.
    pub(crate) fn well(self) -> Done {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }
}

/// The binary with arguments.
pub(crate) fn command<S: AsRef<str>>(arguments: &[S]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.args(arguments.iter().map(AsRef::as_ref));
    command
}

/// Runs the binary to its end.
pub(crate) fn nandscape<S: AsRef<str>>(arguments: &[S]) -> Done {
    let output = command(arguments).output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// `run d16` on the tiny device.
pub(crate) fn run_tiny(more: &[&str]) -> Done {
    let mut arguments = vec!["run", "d16"];
    arguments.extend(TINY);
    arguments.extend(more);
    nandscape(&arguments)
}

/// Panics unless the arguments are refused in exactly one diagnostic that says all of `said`, and what to do about it.
pub(crate) fn refused(arguments: &[&str], said: &[&str]) {
    let stderr = refused_in_all(arguments, said);
    let faults = stderr.lines().filter(|line| line.starts_with("error: ")).count();
    assert_eq!(faults, 1, "{arguments:?}\n{stderr}");
}

/// As [`refused`], where a diagnostic may tell several faults; what it said.
pub(crate) fn refused_in_all(arguments: &[&str], said: &[&str]) -> String {
    let done = nandscape(arguments);
    assert_eq!(done.code, Some(2), "{arguments:?}\n{}\n{}", done.stdout, done.stderr);
    assert_eq!(done.stdout, "", "{arguments:?}");
    assert!(done.stderr.starts_with("error: "), "{arguments:?}\n{}", done.stderr);
    assert!(!done.stderr.contains("panicked"), "{arguments:?}\n{}", done.stderr);
    for text in said {
        assert!(done.stderr.contains(text), "{arguments:?}\nno `{text}` in\n{}", done.stderr);
    }
    let remedy = [
        "help: ",
        "allowed",
        "did you mean",
        "such as",
        "takes",
        "expected",
        "at least",
        "write `",
        " is read",
        "ends before the",
        "truncated",
        "promises",
        "twice",
    ];
    assert!(
        remedy.iter().any(|word| done.stderr.contains(word)),
        "{arguments:?}: no remedy in\n{}",
        done.stderr
    );
    done.stderr
}

/// Writes a file into a folder; its path.
pub(crate) fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a file can be written");
    path.display().to_string()
}

/// The paths of all leaves of a document, with their values.
pub(crate) fn leaves(document: &Value) -> Vec<(String, Value)> {
    fn walk(path: String, value: &Value, found: &mut Vec<(String, Value)>) {
        let join = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        match value {
            Value::Object(table) => table.iter().for_each(|(name, inner)| walk(join(name), inner, found)),
            Value::Array(items) => {
                items.iter().enumerate().for_each(|(at, inner)| walk(join(&at.to_string()), inner, found));
            }
            leaf => found.push((path, leaf.clone())),
        }
    }
    let mut found = Vec::new();
    walk(String::new(), document, &mut found);
    found
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
    // What is said is what works.
    let run = ["run", "pm9a3", "--workload", &format!("strace:file={log}"), "--json"];
    assert_eq!(nandscape(&run).code, Some(0));
}

// What packages ship beside the binary: completions, pages for `man`, schemas.

#[test]
fn completions_are_scripts_that_know_the_options() {
    let script = nandscape(&["completions", "bash"]).well().stdout;
    assert!(script.contains("--timeline-show") && script.contains("explain-run"), "{script}");
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "nandscape.bash", script);
    assert!(Command::new("bash").args(["-n", &path]).status().expect("a shell").success());
    for shell in ["zsh", "fish", "powershell", "elvish"] {
        assert!(nandscape(&["completions", shell]).well().stdout.contains("timeline-show"), "{shell}");
    }
    assert_eq!(nandscape(&["completions", "basj"]).code, Some(2));
}

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    nandscape(&["man", &path]).well();
    let page = |name: &str| std::fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(page("nandscape.1").contains("explain\\-run"));
    assert!(page("nandscape-run.1").contains("\\-\\-timeline\\-show"));
    assert!(page("nandscape-trace-inspect.1").contains("inspect"));
    refused(&["man", "/nowhere/at/all"], &["/nowhere/at/all"]);
}

#[test]
fn the_schema_of_a_result_knows_every_part_of_one() {
    let schema = nandscape(&["schema", "result"]).well().json();
    let job = "fio:rw=randread,bs=4k,number_ios=100";
    let document = run_tiny(&["--workload", job, "--json"]).well().json();
    for part in document.as_object().unwrap().keys() {
        assert!(schema["properties"][part].is_object(), "{part}");
    }
    for part in schema["required"].as_array().unwrap() {
        assert!(document.get(part.as_str().unwrap()).is_some(), "{part}");
    }
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
    refused(&check, &["goes on for 1.1 years", "--queue-depth"]);
    nandscape(&[&check[..], &["--queue-depth", "4"]].concat()).well();
    refused(&[&check[..], &["--queue-depth", "0"]].concat(), &["--queue-depth 0", "give 1 or more"]);
    let both = ["--queue-depth", "4", "--time-scale", "1/2"];
    refused(&[&check[..], &both].concat(), &["--time-scale with --queue-depth"]);
    refused(&["check", "d16", "--queue-depth", "4"], &["--queue-depth is for block traces"]);
}

#[test]
fn the_state_of_the_device_is_checked_and_shown() {
    let shown = nandscape(&["check", "d16", "--precondition", "none"]).well().stdout;
    assert!(shown.contains("precondition = \"none\""), "{shown}");
    refused(&["check", "d16", "--precondition", "sequentail"], &["did you mean `sequential`"]);
    refused(&["check", "d16", "--warmup", "soon"], &["--warmup takes a number of requests or a time"]);
}

// Machines with a GPU that run side by side in one process give what each gives alone.

const SWEEP: &str = r#"
system = "zng"
workloads = ["deg:scale=9", "gaus:n=64", "bfs1:scale=9"]
seeds = [1, 2]
metrics = ["gpu.0.ipc", "gpu.0.read_latency_ns.mean", "run.events"]

[set]
gpu.sms = [8, 16]
"#;

#[test]
fn a_sweep_is_the_same_for_any_number_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = file(folder.path(), "sweep.toml", SWEEP);
    let summary = |jobs: &str| {
        let out = folder.path().join(jobs);
        nandscape(&["sweep", &sweep, "--out", &out.display().to_string(), "--jobs", jobs]).well();
        std::fs::read_to_string(out.join("summary.csv")).unwrap()
    };
    let one = summary("1");
    // A row for each of three workloads, two seeds and two sizes, and the header.
    assert_eq!(one.lines().count(), 13, "{one}");
    assert_eq!(one, summary("4"));
}

/// A program that a table has the rows of, its own metrics among them; one that a server runs beside it.
#[test]
fn programs_of_gpus_and_servers_are_workloads_of_a_sweep() {
    const GPU: &str = "system = \"zng\"\nworkloads = [\"back:n=256\", [\"deg:scale=9\", \"gaus:n=64\"]]\n\
        metrics = [\"gpu.0.ipc\", \"gpu.0.applications.0.ipc\", \"gpu.0.applications.1.ipc\"]\n[set]\ngpu.sms = [8, 16]\n";
    const SERVER: &str = "system = \"dram-only\"\nworkloads = [\"tatp:size=1GiB\"]\nmetrics = [\"cpu.0.jobs\", \"cpu.0.ipc\"]\n\
        [set]\ncpu = { cores = 1, load.jobs = [4, 8], warmup.fixed.jobs = 0 }\n\
        fabric.mesh = { rows = 1, columns = 1 }\nl2.banks = 1\nmemory.dram.controllers = 1\n";
    let rows = |text: &str| -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        let path = file(folder.path(), "sweep.toml", text);
        let out = folder.path().join("out");
        nandscape(&["sweep", &path, "--out", &out.display().to_string()]).well();
        let summary = std::fs::read_to_string(out.join("summary.csv")).unwrap();
        let cells = |line: &str| line.split(",runs/").next().unwrap().split(',').map(str::to_owned).collect();
        summary.lines().skip(1).map(cells).collect()
    };
    // run, workload, gpu.sms, seed, state, metrics.
    let gpu = rows(GPU);
    assert_eq!(gpu.len(), 4);
    for (row, programs) in gpu.iter().zip([1, 1, 2, 2]) {
        let metrics = &row[row.len() - 3..];
        let there = metrics.iter().filter(|cell| cell.parse::<f64>().is_ok_and(|ipc| ipc > 0.0)).count();
        assert_eq!(there, 1 + programs, "{row:?}");
    }
    let jobs: Vec<String> = rows(SERVER).into_iter().map(|row| row[row.len() - 2].clone()).collect();
    assert_eq!(jobs, ["4", "8"]);
}

/// Two programs side by side.
#[test]
fn a_run_is_the_same_in_every_process() {
    let run = || {
        let arguments = ["run", "zng", "--json", "--workload", "bfs1:scale=9", "--workload", "gaus:n=64"];
        let mut document = nandscape(&arguments).well().json();
        document.as_object_mut().unwrap().remove("run");
        document
    };
    let first = run();
    assert_eq!(first["gpu"][0]["applications"].as_array().map(Vec::len), Some(2));
    assert_eq!(run(), first);
}

// Metrics of a sweep that its runs do not have: told once, before anything runs if that can be known.

/// Two small runs with metrics, of a drive with two channels and then of one with four.
fn sweep(folder: &Path, metrics: &str, more: &str) -> Done {
    let text = format!(
        "system = \"d16\"\nworkloads = [\"fio:rw=randwrite,bs=4k,number_ios=100\"]\nmetrics = [\"simulated_ns\", \"{metrics}\"]\n\
         {more}\n[set]\nflash.precondition = \"none\"\n\
         flash.geometry = {{ blocks = 32, pages = 16, ways = 2{} }}\nflash.ftl.over_provisioning = \"25%\"\n\
         flash.ftl.gc = {{ start = 3, stop = 4, hard = 1 }}\n",
        if more.is_empty() { ", channels = [2, 4]" } else { ", channels = 2" }
    );
    let path = file(folder, "s.toml", text);
    nandscape(&["sweep", &path, "--jobs", "1", "--out", &folder.join("out").display().to_string()])
}

#[test]
fn what_no_run_can_have_is_refused_before_any() {
    let folder = tempfile::tempdir().unwrap();
    for (metric, said) in [
        ("flash.flash.erases", "did you mean `flash.0.erases`"),
        ("flash.*.erases", "did you mean `flash.0.erases`"),
        ("flash.0.erase", "did you mean `flash.0.erases`"),
        ("flash.1.erases", "the system has one `flash`, number 0"),
        ("flash.1.erases", "did you mean `flash.0.erases`"),
        ("gpu.0.ipc", "the system has no `gpu`"),
        ("accelerator.accelerator.makespan_ns", "did you mean `accelerator.0.makespan_ns`"),
    ] {
        let done = sweep(folder.path(), metric, "");
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{metric}\n{}", done.stderr);
        assert!(done.stderr.contains(said) && done.stderr.contains("s.toml:3:"), "{metric}\n{}", done.stderr);
        assert_eq!(done.stderr.matches("error: ").count(), 1, "{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{metric}");
    }
}

/// The fourth channel is there in the second run only; a fifth in none.
#[test]
fn what_no_run_has_had_is_told_when_all_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let rows = || std::fs::read_to_string(folder.path().join("out/summary.csv")).unwrap().lines().count();
    let done = sweep(folder.path(), "flash.0.utilisation.channel.3", "").well();
    assert!(
        done.stderr.contains("note: run 0 has no metric `flash.0.utilisation.channel.3`"),
        "{}",
        done.stderr
    );
    assert_eq!(rows(), 3);
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    let done = sweep(folder.path(), "flash.0.utilisation.channel.4", "");
    assert_eq!((done.code, rows()), (Some(2), 3), "{}", done.stderr);
    for said in [
        "error: no run has the metric `flash.0.utilisation.channel.4`",
        "s.toml:3:",
        "did you mean `flash.0.util",
    ] {
        assert!(done.stderr.contains(said), "no {said} in {}", done.stderr);
    }
}

/// Runs that differ in their seeds alone lack the same: one tells.
#[test]
fn one_run_tells_what_runs_that_are_alike_lack() {
    let folder = tempfile::tempdir().unwrap();
    let documents = || std::fs::read_dir(folder.path().join("out/runs")).unwrap().count();
    let done = sweep(
        folder.path(),
        "breakdown_ns.write.arrray",
        &format!("seeds = {:?}", (1..=40).collect::<Vec<_>>()),
    );
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr.contains("error: no run has the metric `breakdown_ns.write.arrray`"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("did you mean `breakdown_ns.write.array`"), "{}", done.stderr);
    assert!(documents() < 40, "{}", documents());
}
