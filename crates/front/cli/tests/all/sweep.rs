//! Sweeps: every combination once, the same for any number of jobs, resumed without running again, failures apart.

use crate::common::{Done, command, file, nandscape};
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = r#"
system = "d16"
workloads = ["fio:rw=randwrite,bs=4k,iodepth=8,number_ios=3000", "small.csv"]
seeds = [1, 2]
metrics = ["io.all.iops", "io.write.latency_ns.mean", "flash.0.erases"]

[set]
flash.precondition = "none"
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

/// The documents, and when each was made.
fn made(out: &Path) -> BTreeMap<std::path::PathBuf, std::time::SystemTime> {
    let paths = std::fs::read_dir(out.join("runs")).into_iter().flatten().map(|entry| entry.unwrap().path());
    let documents = paths.filter(|path| path.extension().is_some_and(|e| e == "json"));
    documents.map(|path| (path.clone(), path.metadata().unwrap().modified().unwrap())).collect()
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
        "system = \"d16\"\nworkloads = [\"{job}\"]\nseeds = [7]\nwarmup = \"100\"\n[set]\nflash.precondition = \"none\"\n\
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
    let first = made(&out);
    sweep(&path, &out, &["--resume"]).well();
    assert_eq!(std::fs::read_to_string(out.join("summary.csv")).unwrap(), summary);
    assert_eq!((made(&out) == first, first.len()), (true, 16));
    // Another content of the trace under the same name is another run.
    file(folder.path(), "small.csv", format!("{TRACE}3000 0 64 8 0\n"));
    sweep(&path, &out, &["--resume"]).well();
    let second = made(&out);
    assert_eq!((second.len(), first.iter().all(|(path, when)| second[path] == *when)), (24, true));
    // A document that was cut is made again.
    let cut = out.join(&rows(&out)[0]["result"]);
    std::fs::write(&cut, "{\"schema\":").unwrap();
    sweep(&path, &out, &["--resume"]).well();
    assert!(std::fs::read_to_string(cut).unwrap().contains("\"checks\""));
    // A file that is gone is told before anything runs, and costs nothing that was found.
    std::fs::remove_file(trace).unwrap();
    let before = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    let done = sweep(&path, &out, &[]);
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(done.stderr.contains("small.csv") && done.stderr.contains("s.toml:3:"), "{}", done.stderr);
    assert_eq!(std::fs::read_to_string(out.join("summary.csv")).unwrap(), before);
    assert_eq!(std::fs::read_dir(out.join("runs")).unwrap().count(), 24);
}

/// Three devices, the faster the more channels they have.
const THREE: &str = r#"
system = "d16"
workloads = ["fio:rw=write,bs=4k,iodepth=32,number_ios=2000"]
metrics = ["io.all.iops"]
[set]
flash.precondition = "none"
flash.geometry = { blocks = 64, pages = 16, channels = [1, 2, 4] }
flash.ftl.over_provisioning = "50%"
"#;

#[test]
fn what_is_only_found_by_running_does_not_stop_the_others() {
    // A folder in the place of a document: the one run whose document cannot be kept fails, the others do not.
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    let document = out.join(&rows(&out)[1]["result"]);
    std::fs::remove_file(&document).unwrap();
    std::fs::create_dir(&document).unwrap();
    std::fs::write(document.join("in the way"), "").unwrap();
    let done = sweep(&path, &out, &["--resume", "--jobs", "2"]);
    assert_eq!(done.code, Some(1));
    let rows = rows(&out);
    let states: Vec<&str> = rows.iter().map(|row| row["state"].as_str()).collect();
    assert_eq!(states, ["ok", "failed", "ok"]);
    assert!(rows[1]["message"].contains("cannot write") && rows[1]["io.all.iops"].is_empty());
    assert!(done.stderr.contains("cannot write") && done.stderr.contains("in run 1"), "{}", done.stderr);
    // The config is reported all the same.
    let config: serde_json::Value = serde_json::from_str(&unquoted(&out, 1)).unwrap();
    assert_eq!(config["flash"]["geometry"]["channels"], 2);
}

/// The last column of a row of summary.csv, the resolved spec: its quotes are doubled.
fn unquoted(out: &Path, row: usize) -> String {
    let text = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    let line = text.lines().nth(row + 1).unwrap();
    let begin = line.find(",\"{").unwrap() + 2;
    line[begin..line.len() - 1].replace("\"\"", "\"")
}

#[test]
fn a_row_has_its_resolved_spec() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    for (row, channels) in [1, 2, 4].into_iter().enumerate() {
        let document = std::fs::read(out.join(&rows(&out)[row]["result"])).unwrap();
        let document: serde_json::Value = serde_json::from_slice(&document).unwrap();
        let config: serde_json::Value = serde_json::from_str(&unquoted(&out, row)).unwrap();
        assert_eq!(config, document["spec"]);
        // What the file sets, and what it leaves to the system.
        assert_eq!(config["flash"]["geometry"]["channels"], channels);
        assert_eq!(config["flash"]["cell"]["read"][0], "50us");
    }
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_was() {
    const RUNS: usize = 24;
    let seeds: Vec<usize> = (1..=RUNS / 3).collect();
    let text = THREE.replace("[set]", &format!("seeds = {seeds:?}\n[set]")).replace("=2000", "=20000");
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", text);
    let [killed, whole] = ["killed", "whole"].map(|name| folder.path().join(name));
    let is_document = |path: &Path| path.extension().is_some_and(|e| e == "json");
    let documents = |out: &Path| {
        let entries = std::fs::read_dir(out.join("runs")).into_iter().flatten();
        entries.filter(|entry| is_document(&entry.as_ref().unwrap().path())).count()
    };
    let mut child = command(&["sweep", &path, "--jobs", "2", "--out", &killed.display().to_string()])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while documents(&killed) < 3 && child.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // On Unix this is kill -9.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!killed.join("summary.csv").exists(), "it was killed before its end");
    let found = made(&killed);
    assert!((3..RUNS).contains(&found.len()), "{} of {RUNS}", found.len());
    // What is there is whole.
    for document in found.keys() {
        let _: serde_json::Value = serde_json::from_slice(&std::fs::read(document).unwrap()).unwrap();
    }
    // What another killed run has left half written.
    std::fs::write(killed.join("runs/.0123.json.1.0"), "{\"schema\":").unwrap();
    sweep(&path, &killed, &["--resume"]).well();
    let now = made(&killed);
    assert!(found.iter().all(|(path, when)| now[path] == *when), "none is made again");
    assert_eq!((now.len(), killed.join("runs/.0123.json.1.0").exists()), (RUNS, false));
    sweep(&path, &whole, &[]).well();
    let summary = |out: &Path| std::fs::read(out.join("summary.csv")).unwrap();
    assert_eq!(summary(&killed), summary(&whole));
}

#[test]
fn a_terminal_shows_a_line_for_each_run_above_a_bar_and_nothing_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out").display().to_string();
    let quiet = nandscape(&["sweep", &path, "--out", &out]).well();
    assert_eq!(quiet.stderr.lines().count(), 1, "{}", quiet.stderr);
    std::fs::remove_dir_all(&out).unwrap();
    let shell =
        format!("'{}' sweep '{path}' --out '{out}' --jobs 1 >/dev/null", env!("CARGO_BIN_EXE_nandscape"));
    let Ok(shown) = std::process::Command::new("script").args(["-qec", &shell, "/dev/null"]).output() else {
        println!("skipped: no `script` to make a terminal");
        return;
    };
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let parts: Vec<&str> = text.split(['\r', '\n']).collect();
    let is_at = |what: &str| parts.iter().position(|part| part.contains(what));
    let header = is_at("geometry.channels").expect("a header");
    let lines: Vec<usize> = rows(Path::new(&out))
        .iter()
        .map(|row| {
            let figure = report::shown_as("io.all.iops", row["io.all.iops"].parse().unwrap());
            parts.iter().position(|part| part.contains(&figure)).expect("the run's metric")
        })
        .collect();
    assert!(header < lines[0] && lines[0] < lines[1] && lines[1] < lines[2], "{text}");
    assert!(is_at("1/3 runs").is_some() && is_at(" left]").is_some(), "{text}");
}

#[test]
#[cfg(not(feature = "parquet"))]
fn parquet_that_is_not_built_is_refused_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out");
    for format in ["parquet", "both"] {
        let done = sweep(&path, &out, &["--format", format]);
        assert_eq!(done.code, Some(2));
        assert!(done.stderr.contains("--features parquet"), "{}", done.stderr);
        assert!(!out.exists());
    }
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
            "already varies",
            "s.toml:6:",
        ),
        ("metrics = [\"io.all.iop\"]", "did you mean `io.all.iops`", "s.toml:3:"),
        ("warmup = \"soon\"", "--warmup takes", "s.toml:3:"),
        (
            "[set]\nflash.ftl.mapping = [\"table\"]\n[[zip]]\nflash.ftl.mapping.demand.capacity = [\"1MiB\"]",
            "already varies, with `flash.ftl.mapping`",
            "s.toml:6:",
        ),
        // Values that the key refuses, alone or beside others, at the value.
        ("[set]\nflash.ftl.over_provisioning = [\"7%\", \"-1%\"]", "is not a share", "s.toml:4:38"),
        ("[set]\nflash.ftl.gc.victim = [\"greedy\", \"gredy\"]", "did you mean `greedy`", "s.toml:4:34"),
        ("[set]\nflash.cell.read = [\"20us\", \"40us\"]", "its axis is an array of arrays", "s.toml:4:20"),
        (
            "[set]\nflash.geometry.blocks = 64\n[[zip]]\nflash.ftl.over_provisioning = [\"50%\", \"1%\"]\nflash.ftl.gc.hard = [1, 1]",
            "too little over-provisioning",
            "s.toml:6:39",
        ),
        ("seeds = []", "at least one seed", "s.toml:3:"),
        ("seeds = [-1]", "a seed is a whole number from 0", "s.toml:3:"),
        ("[trace]\nremap = \"fold\"", "allowed: fit, error, wrap, compact", "s.toml:3:"),
    ];
    for (text, said, place) in cases {
        let path = file(folder.path(), "s.toml", format!("{head}{text}\n"));
        let done = sweep(&path, &folder.path().join("out"), &[]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{text}\n{}", done.stderr);
        assert!(done.stderr.contains(said) && done.stderr.contains(place), "{text}\n{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{text}");
    }
    for (workload, said) in [
        ("fio:rw=randraed,bs=4k", "did you mean `randread`"),
        ("none.csv", "none.csv"),
        ("fio:rw=randread,bs=4k,size=100T", "fio:rw=randread,bs=4k,size=100T"),
    ] {
        let text = format!("system = \"d16\"\nworkloads = [\"randread\", \"{workload}\"]\n");
        let done = sweep(&file(folder.path(), "s.toml", text), &folder.path().join("out"), &[]);
        assert_eq!(done.code, Some(2), "{workload}\n{}", done.stderr);
        assert!(
            done.stderr.contains(said) && done.stderr.contains("s.toml:2:"),
            "{workload}\n{}",
            done.stderr
        );
        assert!(!folder.path().join("out").exists(), "{workload}");
    }
    let done = sweep("no-such-file", folder.path(), &[]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("no-such-file"), "{}", done.stderr);
}

#[test]
fn a_folder_with_results_is_not_swept_again_unasked() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    let first = made(&out);
    let again = sweep(&path, &out, &[]);
    assert_eq!((again.code, again.stdout.as_str()), (Some(2), ""));
    assert!(again.stderr.contains("already has the results of 3 runs"), "{}", again.stderr);
    assert!(again.stderr.contains("help: give --resume to reuse them"), "{}", again.stderr);
    assert_eq!(made(&out), first);
}

#[test]
fn a_folder_that_another_sweep_works_in_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    let lock = std::fs::File::options().read(true).write(true).open(out.join("sweep.lock")).unwrap();
    lock.lock().unwrap();
    let refused = sweep(&path, &out, &["--resume"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("another sweep is using"), "{}", refused.stderr);
    drop(lock);
    sweep(&path, &out, &["--resume"]).well();
}

#[test]
fn a_document_that_was_changed_is_refused_with_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", THREE);
    let out = folder.path().join("out");
    sweep(&path, &out, &[]).well();
    let summary = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    let document = out.join(&rows(&out)[1]["result"]);
    let text = std::fs::read_to_string(&document).unwrap();
    let mut changed: serde_json::Value = serde_json::from_str(&text).unwrap();
    changed["io"]["all"]["iops"] = 1e6.into();
    changed["simulated_ns"] = 1.into();
    std::fs::write(&document, changed.to_string()).unwrap();
    let refused = sweep(&path, &out, &["--resume"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(2), ""));
    let name = document.file_name().unwrap().to_str().unwrap();
    for said in [name, "(differs in `io`, `simulated_ns`)", "help: remove them to make them again"] {
        assert!(refused.stderr.contains(said), "no {said} in {}", refused.stderr);
    }
    // As it was, it is taken; removed, it is made again.
    std::fs::write(&document, text).unwrap();
    sweep(&path, &out, &["--resume"]).well();
    std::fs::remove_file(&document).unwrap();
    sweep(&path, &out, &["--resume"]).well();
    assert_eq!(std::fs::read_to_string(out.join("summary.csv")).unwrap(), summary);
}
