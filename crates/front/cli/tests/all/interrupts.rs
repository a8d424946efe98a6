//! Signals to end, Control-C first: before there is a result the command ends at once, then with the result of a part.
//! Every test waits for what the child does, however long that takes; none waits for a time to pass.

#![cfg(unix)]

use crate::common::{TINY, command, file};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A child that is not over by then never will be.
const EMERGENCY: Duration = Duration::from_secs(240);

fn start<S: AsRef<str>>(arguments: &[S]) -> Child {
    command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
}

fn until(child: &mut Child, what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        if begun.elapsed() > EMERGENCY {
            child.kill().unwrap();
            panic!("never {what}");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Sends an interrupt; exit status, standard output and standard error.
fn interrupt(child: Child) -> (Option<i32>, String, String) {
    send("-INT", &child);
    end(child)
}

/// Waits for the end; exit status, standard output and standard error.
fn end(mut child: Child) -> (Option<i32>, String, String) {
    let begun = Instant::now();
    // What it prints fits a pipe or is read at once.
    let emergency = std::thread::spawn({
        let id = child.id().to_string();
        move || {
            while begun.elapsed() < EMERGENCY {
                std::thread::sleep(Duration::from_millis(20));
                if Command::new("kill")
                    .args(["-0", &id])
                    .stderr(Stdio::null())
                    .status()
                    .is_ok_and(|s| !s.success())
                {
                    return;
                }
            }
            let _ = Command::new("kill").args(["-KILL", &id]).status();
        }
    });
    let mut text = (String::new(), String::new());
    use std::io::Read;
    child.stdout.take().unwrap().read_to_string(&mut text.0).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut text.1).unwrap();
    let status = child.wait().unwrap();
    emergency.join().unwrap();
    (status.code(), text.0, text.1)
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A thousand drive writes of 16 GiB take an hour.
#[test]
fn preconditioning_ends_at_once_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("out"), folder.path().join("x.log"));
    let mut child = start(&[
        "run",
        "d16",
        "--precondition",
        "zipf:writes=1000",
        "--workload",
        "randread",
        "--out",
        &out.display().to_string(),
        "--log",
        &log.display().to_string(),
    ]);
    until(&mut child, "the log was made", || files(folder.path()).contains(&"x.log.incomplete".to_owned()));
    let (code, stdout, stderr) = interrupt(child);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert!(stderr.contains("interrupted before there was a result"), "{stderr}");
    assert_eq!((files(folder.path()), files(&out)), (vec!["out".to_owned()], vec![]));
}

/// A pipe without a writer is a trace that is never read to its end.
#[test]
fn reading_ends_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, log) = (folder.path().join("trace"), folder.path().join("x.log"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (pipe, log) = (pipe.display().to_string(), log.display().to_string());
    let mut child = start(&["run", "d16", "--workload", &pipe, "--log", &log]);
    until(&mut child, "the log was made", || files(folder.path()).contains(&"x.log.incomplete".to_owned()));
    let (code, stdout, stderr) = interrupt(child);
    assert_eq!((code, stdout.as_str()), (Some(1), ""), "{stderr}");
    assert_eq!(files(folder.path()), ["trace"]);
}

#[test]
fn a_run_under_way_ends_with_the_result_of_a_part() {
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("out"), folder.path().join("x.log"));
    let (out_text, log_text) = (out.display().to_string(), log.display().to_string());
    let mut arguments =
        vec!["run", "d16", "--json", "--workload", ENDLESS, "--out", &out_text, "--log", &log_text];
    arguments.extend(TINY);
    let mut child = start(&arguments);
    is_under_way(&mut child, folder.path());
    let (code, stdout, stderr) = interrupt(child);
    assert_eq!(code, Some(1), "{stderr}");
    let document: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&document["partial"], &document["ok"]), (&Value::Bool(true), &Value::Bool(false)));
    // A line for each request of the part, and the files are in their places.
    let lines = std::fs::read_to_string(&log).unwrap().lines().count();
    assert_eq!(document["io"]["all"]["requests"], lines);
    assert!(lines > 0);
    assert_eq!(
        (files(folder.path()), files(&out)),
        (vec!["out".to_owned(), "x.log".to_owned()], vec!["result.json".to_owned(), "spec.toml".to_owned()])
    );
}

const ENDLESS: &str = "fio:rw=randread,bs=4k,iodepth=8,time_based=1,runtime=100d";

/// Waits until a run that never ends has logged a request.
fn is_under_way(child: &mut Child, folder: &Path) {
    let incomplete = folder.join("x.log.incomplete");
    until(child, "a request was logged", || std::fs::metadata(&incomplete).is_ok_and(|log| log.len() > 0));
}

/// A batch system's time limit, and a terminal that goes away.
#[test]
fn a_termination_and_a_hang_up_are_as_an_interrupt() {
    // Whoever runs the tests so that they outlive a terminal has children that do.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    let hears_hang_ups = ignored.is_some_and(|mask| u64::from_str_radix(mask, 16).unwrap() & 1 == 0);
    let signals = [("-TERM", "terminated"), ("-HUP", "hung up")];
    for (signal, said) in &signals[..if hears_hang_ups { 2 } else { 1 }] {
        let folder = tempfile::tempdir().unwrap();
        let (out, log) = (folder.path().join("out"), folder.path().join("x.log"));
        let (out, log) = (out.display().to_string(), log.display().to_string());
        let fixed = ["run", "d16", "--json", "--workload", ENDLESS, "--out", &out, "--log", &log];
        let mut child = start(&[&fixed[..], &TINY].concat());
        is_under_way(&mut child, folder.path());
        send(signal, &child);
        let (code, stdout, stderr) = end(child);
        assert_eq!(code, Some(1), "{signal}: {stderr}");
        assert!(stderr.contains(&format!("{said}: finishing with a partial result")), "{signal}: {stderr}");
        let document: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!((&document["partial"], &document["ok"]), (&Value::Bool(true), &Value::Bool(false)));
        assert_eq!(files(Path::new(&out)), ["result.json", "spec.toml"]);
    }
}

/// Under `nohup` a hang-up is none of the two signals that end a command without a result. A shell that ignores it
/// stands for it.
#[test]
fn what_is_to_outlive_its_terminal_does() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log").display().to_string();
    let fixed = ["run", "d16", "--json", "--workload", ENDLESS, "--log", &log];
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_nandscape")]);
    shell.args([&fixed[..], &TINY].concat()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = shell.spawn().unwrap();
    is_under_way(&mut child, folder.path());
    send("-HUP", &child);
    send("-TERM", &child);
    let (code, stdout, stderr) = end(child);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(serde_json::from_str::<Value>(&stdout).unwrap()["partial"], Value::Bool(true));
}

/// Two of one kind that wait for a stopped process are one; two kinds come in either order.
#[test]
fn the_second_signal_ends_at_once_with_the_status_of_a_shell() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log").display().to_string();
    let fixed = ["run", "d16", "--json", "--workload", ENDLESS, "--log", &log];
    let mut child = start(&[&fixed[..], &TINY].concat());
    is_under_way(&mut child, folder.path());
    // Stopped, it meets both when it goes on, before it can have come to an end.
    ["-STOP", "-INT", "-TERM", "-CONT"].iter().for_each(|signal| send(signal, &child));
    let (code, stdout, stderr) = end(child);
    assert!([Some(130), Some(143)].contains(&code), "{code:?} {stderr}");
    assert_eq!((stdout.as_str(), files(folder.path())), ("", vec![]));
}

#[test]
fn a_sweep_ends_with_the_table_of_what_is_there() {
    let text = "system = \"d16\"\nseeds = [1, 2, 3]\nworkloads = [\"fio:rw=read,bs=4k,number_ios=10\"]\n\
        [set]\nflash.precondition = [\"none\", { zipf = { writes = 1000.0 } }]\n";
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", text);
    let out = folder.path().join("out");
    let mut child = start(&["sweep", &path, "--jobs", "2", "--out", &out.display().to_string()]);
    let has_three = || files(&out.join("runs")).iter().filter(|name| !name.starts_with('.')).count() == 3;
    until(&mut child, "the short runs had ended", has_three);
    let (code, _, stderr) = interrupt(child);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("3 of 6 runs succeeded"), "{stderr}");
    let table = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    assert_eq!(table.matches(",not run,").count(), 3, "{table}");
}

/// Rows of a target are in the folder when the next one begins; of a target that has none nothing is written, so that
/// what lay there stays.
#[test]
fn rows_that_are_there_outlive_an_interrupt() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let old = ["fastdrain.json", "flashabacus.json"].map(|name| file(folder.path(), name, "of another day"));
    let rows = ["--only", "latency.read.d16", "--only", "fastdrain", "--only", "flashabacus"];
    let mut child = start(&[&["reproduce", "all", "--out", &out, "--json"], &rows[..]].concat());
    until(&mut child, "theory was written", || files(folder.path()).contains(&"theory.json".to_owned()));
    let (code, stdout, stderr) = interrupt(child);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("interrupted: rows are missing"), "{stderr}");
    let ids = |text: &str| -> Vec<String> {
        let rows: Vec<Value> = serde_json::from_str(text).expect("JSON");
        rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
    };
    let written = std::fs::read_to_string(folder.path().join("theory.json")).unwrap();
    assert_eq!(ids(&written), ["latency.read.d16"]);
    assert_eq!(ids(&stdout), ["latency.read.d16"]);
    for path in old {
        assert_eq!(std::fs::read_to_string(path).unwrap(), "of another day");
    }
}
