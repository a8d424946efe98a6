//! Sweeps: every combination once, the same for any number of jobs, resumed without running again, failures apart.

mod common;

use common::{Done, file, nandscape};
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = r#"
system = "d16"
workloads = ["fio:rw=randwrite,bs=4k,iodepth=8,number_ios=3000", "small.csv"]
seeds = [1, 2]
metrics = ["io.all.iops", "io.write.latency_ns.mean", "flash.0.erases"]

[set]
precondition = "none"
flash.geometry = { blocks = 32, pages = 16, channels = [1, 2] }
flash.ftl.over_provisioning = "25%"
flash.ftl.gc.hard = 1

[[zip]]
"flash.ftl.gc.start" = [3, 4]
"flash.ftl.gc.stop" = [4, 6]
"#;

/// Requests of two streams, a CSV trace with its header.
const TRACE: &str = "0 0 0 8 0\n1000 0 8 8 0\n2000 0 0 8 1\n";

fn sweep(file: &str, out: &Path, more: &[&str]) -> Done {
    let out = out.display().to_string();
    let mut arguments = vec!["sweep", file, "--out", &out];
    arguments.extend(more);
    nandscape(&arguments)
}

/// The rows of summary.csv by column.
fn rows(out: &Path) -> Vec<BTreeMap<String, String>> {
    let text = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    let mut records = text.lines().map(split);
    let header = records.next().unwrap();
    records.map(|record| header.iter().cloned().zip(record).collect()).collect()
}

/// Fields, some of them in quotes.
fn split(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

#[test]
fn every_combination_once_and_the_same_for_any_number_of_jobs() {
    let folder = tempfile::tempdir().unwrap();
    file(folder.path(), "small.csv", TRACE);
    let path = file(folder.path(), "s.toml", FILE);
    let [one, three] = ["one", "three"].map(|name| folder.path().join(name));
    let printed = sweep(&path, &one, &["--jobs", "1"]).well().stdout;
    assert_eq!(printed, sweep(&path, &three, &["--jobs", "3"]).well().stdout);
    let [a, b] = [&one, &three].map(|out| std::fs::read_to_string(out.join("summary.csv")).unwrap());
    assert_eq!(a, b);
    let rows = rows(&one);
    // 2 workloads, 2 channels, 2 steps of the zip, 2 seeds.
    assert_eq!(rows.len(), 16);
    let mut points: Vec<Vec<&str>> = rows
        .iter()
        .map(|row| {
            ["workload", "seed", "flash.geometry.channels", "flash.ftl.gc.start"]
                .map(|c| row[c].as_str())
                .to_vec()
        })
        .collect();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points.len(), 16);
    for row in &rows {
        assert_eq!(row["state"], "ok");
        let stop = if row["flash.ftl.gc.start"] == "3" { "4" } else { "6" };
        assert_eq!(row["flash.ftl.gc.stop"], stop, "zipped keys step together");
        // The table says what the document says.
        let document = std::fs::read(one.join(&row["result"])).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(row["io.all.iops"], document["io"]["all"]["iops"].to_string());
        assert_eq!(row["seed"], document["seed"].to_string());
        assert_eq!(
            row["flash.geometry.channels"],
            document["spec"]["flash"]["geometry"]["channels"].to_string()
        );
    }
}

#[test]
fn a_point_is_what_run_gives() {
    let folder = tempfile::tempdir().unwrap();
    let job = "fio:rw=randwrite,bs=4k,iodepth=8,number_ios=3000";
    let text = format!(
        "system = \"d16\"\nworkloads = [\"{job}\"]\nseeds = [7]\nwarmup = \"100\"\n[set]\nprecondition = \"none\"\n\
         flash.geometry = {{ blocks = 300 }}\n"
    );
    let path = file(folder.path(), "s.toml", text);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    let row = rows(&out).remove(0);
    let document = std::fs::read(out.join(&row["result"])).unwrap();
    let mut swept: serde_json::Value = serde_json::from_slice(&document).unwrap();
    let set =
        ["--set", "flash.geometry.blocks=300", "--precondition", "none", "--warmup", "100", "--seed", "7"];
    let mut run = nandscape(&[&["run", "d16", "--json", "--workload", job][..], &set].concat()).well().json();
    for document in [&mut swept, &mut run] {
        document["run"] = serde_json::Value::Null;
        document["precondition"]["seconds"] = serde_json::Value::Null;
    }
    assert_eq!(swept, run);
}

#[test]
fn what_is_in_the_store_is_not_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "small.csv", TRACE);
    let path = file(folder.path(), "s.toml", FILE);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    let summary = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    // A mark in every document shows which were made anew.
    let mark = |n: usize| {
        let documents = std::fs::read_dir(out.join("runs")).unwrap();
        let marked = documents.map(|entry| {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let is_old = text.contains("\"marked\"");
            std::fs::write(&path, text.replacen('{', "{\"marked\":1,", usize::from(!is_old))).unwrap();
            is_old
        });
        assert_eq!(marked.filter(|is_old| *is_old).count(), n);
    };
    mark(0);
    sweep(&path, &out, &["--resume"]).well();
    assert_eq!(std::fs::read_to_string(out.join("summary.csv")).unwrap(), summary);
    mark(16);
    // Another content of the trace under the same name is another run.
    file(folder.path(), "small.csv", format!("{TRACE}3000 0 64 8 0\n"));
    sweep(&path, &out, &["--resume"]).well();
    assert_eq!(std::fs::read_dir(out.join("runs")).unwrap().count(), 24);
    mark(16);
    // A document that was cut is made again.
    let cut = out.join(&rows(&out)[0]["result"]);
    std::fs::write(&cut, "{\"schema\":").unwrap();
    sweep(&path, &out, &["--resume"]).well();
    assert!(std::fs::read_to_string(cut).unwrap().contains("\"checks\""));
    // Without --resume everything runs.
    std::fs::remove_file(trace).unwrap();
    let done = sweep(&path, &out, &[]);
    assert_eq!(done.code, Some(1), "the trace is gone: its runs fail, the others do not");
    let states: Vec<String> = rows(&out).into_iter().map(|mut row| row.remove("state").unwrap()).collect();
    assert_eq!(states.iter().filter(|state| *state == "ok").count(), 8);
    assert_eq!(states.iter().filter(|state| *state == "failed").count(), 8);
    assert_eq!(done.stderr.matches("error: ").count(), 1, "one cause is told once: {}", done.stderr);
}

#[test]
fn a_run_that_cannot_be_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let text = "system = \"d16\"\nworkloads = [\"fio:rw=randread,bs=4k,number_ios=100\"]\n[set]\nprecondition = \"none\"\n\
                flash.geometry.blocks = 64\nflash.ftl.over_provisioning = [\"50%\", \"1%\", \"60%\"]\n";
    let path = file(folder.path(), "s.toml", text);
    let out = folder.path().join("out");
    let done = sweep(&path, &out, &["--jobs", "2"]);
    assert_eq!(done.code, Some(1));
    let states: Vec<String> = rows(&out).into_iter().map(|mut row| row.remove("state").unwrap()).collect();
    assert_eq!(states, ["ok", "failed", "ok"]);
    assert!(rows(&out)[1]["message"].contains("no spare space"));
    assert!(done.stderr.contains("no spare space") && done.stderr.contains("in run 1"), "{}", done.stderr);
}

#[test]
fn files_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let head = "system = \"d16\"\nworkloads = [\"randread\"]\n";
    let cases = [
        ("[set]\nflash.ftl.gc.victm = [1]", "did you mean `flash.ftl.gc.victim`", "s.toml:4:"),
        ("[sett]\na = [1]", "unknown key `sett`", "s.toml:3:"),
        ("[set]\nflash.geometry.channels = []", "has no values", "s.toml:4:"),
        (
            "[[zip]]\nflash.geometry.channels = [1, 2]\nflash.geometry.ways = [1]",
            "step together",
            "s.toml:3:",
        ),
        (
            "[set]\nflash.geometry.ways = [1]\n[[zip]]\nflash.geometry.ways = [1]",
            "varies already",
            "s.toml:6:",
        ),
        ("metrics = [\"io.all.iop\"]", "did you mean `io.all.iops`", "s.toml:3:"),
        ("warmup = \"soon\"", "--warmup takes", "s.toml:3:"),
        ("seeds = []", "nothing to run", "s.toml:3:"),
        ("seeds = [-1]", "out of range", "s.toml:3:"),
        ("[trace]\nremap = \"fold\"", "allowed: fit, error, wrap, compact", "s.toml:3:"),
    ];
    for (text, said, place) in cases {
        let path = file(folder.path(), "s.toml", format!("{head}{text}\n"));
        let done = sweep(&path, &folder.path().join("out"), &[]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{text}\n{}", done.stderr);
        assert!(done.stderr.contains(said) && done.stderr.contains(place), "{text}\n{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{text}");
    }
    let done = sweep("no-such-file", folder.path(), &[]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("no-such-file"), "{}", done.stderr);
}
