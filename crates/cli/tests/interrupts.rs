//! Control-C: before there is a result the command ends at once, then with the result of a part. Every test waits for what the
//! child does, however long that takes; none waits for a time to pass.

#![cfg(unix)]

mod common;

use common::{TINY, command, file};
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

/// Sends an interrupt; exit status, standard output and standard error.
fn interrupt(mut child: Child) -> (Option<i32>, String, String) {
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
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

/// A pipe that nobody writes into is a trace that is never read to its end.
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
    let endless = "fio:rw=randread,bs=4k,iodepth=8,time_based=1,runtime=100d";
    let mut arguments =
        vec!["run", "d16", "--json", "--workload", endless, "--out", &out_text, "--log", &log_text];
    arguments.extend(TINY);
    let mut child = start(&arguments);
    let incomplete = folder.path().join("x.log.incomplete");
    let has_begun = || std::fs::metadata(&incomplete).is_ok_and(|log| log.len() > 0);
    until(&mut child, "a request was logged", has_begun);
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

#[test]
fn a_sweep_ends_with_the_table_of_what_is_there() {
    let text = "system = \"d16\"\nseeds = [1, 2, 3]\nworkloads = [\"fio:rw=read,bs=4k,number_ios=10\"]\n\
        [set]\nprecondition = [\"none\", { zipf = { writes = 1000.0 } }]\n";
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "s.toml", text);
    let out = folder.path().join("out");
    let mut child = start(&["sweep", &path, "--jobs", "2", "--out", &out.display().to_string()]);
    let has_three = || files(&out.join("runs")).iter().filter(|name| !name.starts_with('.')).count() == 3;
    until(&mut child, "the short runs had ended", has_three);
    let (code, _, stderr) = interrupt(child);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("3 of 6 runs are well"), "{stderr}");
    let table = std::fs::read_to_string(out.join("summary.csv")).unwrap();
    assert_eq!(table.matches(",not run,").count(), 3, "{table}");
}
