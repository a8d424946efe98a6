//! Files that a command leaves: whole or not there, in folders that the user has named, and with a status that says so.

#![cfg(unix)]

use crate::common::{TINY, command, file, nandscape, refused, run_tiny};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::{Command, Stdio};

const JOB: &str = "fio:rw=randwrite,bs=4k,iodepth=8,number_ios=3000";

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Panics unless the two files name each other.
fn belong_together(folder: &Path) {
    let spec = std::fs::read_to_string(folder.join("spec.toml")).unwrap();
    let result = std::fs::read(folder.join("result.json")).unwrap();
    let document: Value = serde_json::from_slice(&result).unwrap();
    let digest: String = Sha256::digest(&result).iter().map(|byte| format!("{byte:02x}")).collect();
    let head: Vec<&str> = spec.lines().take(2).collect();
    assert!(head[0].starts_with("# ") && head[0].ends_with(&digest), "{head:?}");
    let named = document["spec_sha256"].as_str().unwrap();
    assert!(head[1].starts_with("# ") && head[1].ends_with(named), "{head:?}");
}

#[test]
fn spec_and_result_belong_together_whatever_kills_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let out_text = out.display().to_string();
    let run = |set: &str| run_tiny(&["--workload", JOB, "--out", &out_text, "--set", set]).well();
    run("flash.geometry.channels=2");
    belong_together(&out);
    let before = std::fs::read(out.join("spec.toml")).unwrap();
    // One with another spec that is killed while it runs leaves the old pair.
    let endless = "fio:rw=randread,bs=4k,time_based=1,runtime=100d";
    let log = folder.path().join("x.log");
    let log_text = log.display().to_string();
    let mut arguments = vec!["run", "d16", "--workload", endless, "--out", &out_text, "--log", &log_text];
    arguments.extend(TINY);
    let mut child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let incomplete = folder.path().join("x.log.incomplete");
    while !std::fs::metadata(&incomplete).is_ok_and(|log| log.len() > 0)
        && child.try_wait().unwrap().is_none()
    {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    // On Unix this is kill -9.
    child.kill().unwrap();
    child.wait().unwrap();
    belong_together(&out);
    assert_eq!(std::fs::read(out.join("spec.toml")).unwrap(), before);
    // Its log is marked.
    assert_eq!((log.exists(), incomplete.exists()), (false, true));
    // The next run replaces both.
    run("flash.geometry.channels=4");
    belong_together(&out);
    assert_ne!(std::fs::read(out.join("spec.toml")).unwrap(), before);
}

/// `ulimit -f` makes a file system with room for small files only.
fn without_room(kilobytes: u32, arguments: &[&str]) -> (Option<i32>, String, String) {
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_nandscape")])
        .args(arguments)
        .output()
        .expect("a shell");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_full_disk_leaves_nothing_half_written_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let [out, log, timeline] =
        ["out", "x.log", "t.json"].map(|name| folder.path().join(name).display().to_string());
    let mut arguments = vec!["run", "d16", "--workload", JOB];
    arguments.extend(TINY);
    arguments.extend(["--out", &out, "--log", &log, "--timeline", &timeline]);
    let (code, stdout, stderr) = without_room(4, &arguments);
    assert_eq!(code, Some(1), "{stderr}");
    // The run is told all the same.
    assert!(stdout.contains("3,000 requests"), "{stdout}");
    assert_eq!(stderr.matches("the disk is full").count(), 3, "{stderr}");
    for name in ["x.log", "t.json", "result.json"] {
        assert!(stderr.contains(name), "no {name} in {stderr}");
    }
    assert_eq!(files(folder.path()), Vec::<String>::new());
    // Room for all but the log of more requests: the rest is delivered.
    let many = JOB.replace("3000", "12000");
    arguments[3] = &many;
    let (code, _, stderr) = without_room(400, &arguments[..arguments.len() - 2]);
    assert_eq!(code, Some(1), "{stderr}");
    assert_eq!(files(folder.path()), ["out"]);
    belong_together(Path::new(&out));
}

#[test]
fn devices_without_room_have_one_status() {
    let run = |more: &[&str], stdout: &str| {
        let mut arguments = vec!["run", "d16", "--workload", JOB];
        arguments.extend(TINY);
        arguments.extend(more);
        let stdout = std::fs::File::options().write(true).open(stdout).unwrap();
        let output = command(&arguments).stdout(stdout).stderr(Stdio::piped()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    for (more, stdout) in [
        (&["--log", "/dev/full"][..], "/dev/null"),
        (&["--timeline", "/dev/full"][..], "/dev/null"),
        (&[][..], "/dev/full"),
        (&["--json"][..], "/dev/full"),
    ] {
        let (code, stderr) = run(more, stdout);
        assert_eq!(code, Some(1), "{more:?} {stderr}");
        assert!(stderr.contains("the disk is full"), "{more:?} {stderr}");
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "t.csv", "0 0 0 8 1\n1000 0 8 8 0\n2000 0 16 8 1\n");
    for arguments in [
        &["trace", "convert", "--to", "csv", &trace][..],
        &["trace", "convert", "--to", "csv", "--out", "/dev/full", &trace][..],
        &["list"][..],
        &["schema"][..],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?} {stderr}");
        assert!(stderr.contains("the disk is full"), "{arguments:?} {stderr}");
    }
}

#[test]
fn a_folder_that_nobody_made_is_not_made() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("no/such/x").display().to_string();
    let trace = file(folder.path(), "t.csv", "0 0 0 8 1\n1000 0 8 8 0\n2000 0 16 8 1\n");
    let endless = "fio:rw=randread,bs=4k,time_based=1,runtime=100d";
    for arguments in [
        &["run", "d16", "--workload", endless, "--log", &below][..],
        &["run", "d16", "--workload", endless, "--timeline", &below][..],
        &["trace", "convert", "--to", "csv", &trace, "--out", &below][..],
    ] {
        refused(arguments, &["cannot write", "no/such` does not exist: create it first"]);
    }
    assert_eq!(files(folder.path()), ["t.csv"]);
}

#[test]
fn two_runs_do_not_write_one_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("x.log").display().to_string();
    let other = std::fs::File::create(format!("{log}.incomplete")).unwrap();
    other.lock().unwrap();
    refused(&["run", "d16", "--workload", JOB, "--log", &log], &["another run is writing"]);
    drop(other);
    run_tiny(&["--workload", JOB, "--log", &log]).well();
    assert_eq!(files(folder.path()), ["x.log"]);
}

#[test]
fn a_run_that_is_refused_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [out, log] = ["a/b", "x.log"].map(|name| folder.path().join(name).display().to_string());
    let done = nandscape(&["run", "d16", "--workload", "fio:rw=randraed", "--out", &out, "--log", &log]);
    assert_eq!(done.code, Some(2));
    assert_eq!(files(folder.path()), Vec::<String>::new());
}

#[test]
fn a_recording_that_was_cut_has_a_status_of_its_own() {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: no valgrind");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.gz").display().to_string();
    let done = nandscape(&["trace", "capture", "--out", &out, "--", "/bin/sh", "-c", "kill -9 $$"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("was killed") && done.stderr.contains("the recording ends there"),
        "{}",
        done.stderr
    );
    assert_eq!(files(folder.path()), ["t.gz"]);
    let (code, _, stderr) =
        without_room(1, &["trace", "capture", "--out", &format!("{out}.2"), "--", "/bin/true"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("the disk is full"), "{stderr}");
    assert_eq!(files(folder.path()), ["t.gz"]);
}
