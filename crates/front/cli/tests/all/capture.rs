//! `trace capture`: a program under Valgrind, if there is one.

#![cfg(unix)]

use crate::common::{command, nandscape, refused};
use std::process::{Command, Stdio};

fn valgrind() -> bool {
    let there = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !there {
        println!("skipped: no valgrind");
    }
    there
}

/// The numbers of what was recorded: instructions, loads, stores, pages of data and of text.
fn counts(stderr: &str) -> Vec<u64> {
    let line =
        stderr.lines().find(|line| line.contains(" instructions, ")).unwrap_or_else(|| panic!("{stderr}"));
    let words = line.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter_map(|word| word.parse().ok()).take(5).collect()
}

#[test]
fn a_program_is_recorded_whole_and_keeps_its_output() {
    if !valgrind() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.gz").display().to_string();
    let done =
        nandscape(&["trace", "capture", "--out", &out, "--", "/bin/sh", "-c", "echo said; exit 3"]).well();
    assert_eq!(done.stdout, "said\n");
    assert!(done.stderr.contains("`/bin/sh` ended: exit status: 3"), "{}", done.stderr);
    let told = counts(&done.stderr);
    // Not even the dynamic linker comes by with less, and an instruction loads or stores not much more than once.
    assert!(
        told[0] > 10_000 && told[1] > 1000 && told[2] > 1000 && told[1] + told[2] < 2 * told[0],
        "{told:?}"
    );
    assert!(std::fs::metadata(&out).unwrap().len() < 8 * told[0]);
}

#[test]
fn what_is_recorded_is_what_lackey_counts() {
    if !valgrind() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, log) = (folder.path().join("t.gz"), folder.path().join("log"));
    let out = out.display().to_string();
    let told = counts(&nandscape(&["trace", "capture", "--out", &out, "--", "/bin/true"]).well().stderr);
    let log_file = format!("--log-file={}", log.display());
    let status = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes", "--basic-counts=no", &log_file, "/bin/true"])
        .status();
    assert!(status.unwrap().success());
    let log = std::fs::read_to_string(log).unwrap();
    let lines = |kinds: &str| {
        log.lines()
            .filter(|line| !line.starts_with('=') && line.trim().starts_with(|c| kinds.contains(c)))
            .count()
    };
    // The stack and its contents differ from run to run by the environment and by randomness, a little.
    for (told, lines) in [(told[0], lines("I")), (told[1], lines("LM")), (told[2], lines("SM"))] {
        assert!(told.abs_diff(lines as u64) * 100 <= lines as u64, "{told} of {lines}");
    }
}

#[test]
fn a_limit_ends_the_program() {
    if !valgrind() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.gz").display().to_string();
    // It would never end.
    let endless =
        ["trace", "capture", "--out", &out, "--limit", "5000", "--", "/bin/sh", "-c", "while :; do :; done"];
    let done = nandscape(&endless).well();
    assert!(done.stderr.contains("was ended after 5000 instructions"), "{}", done.stderr);
    assert_eq!(counts(&done.stderr)[0], 5000);
}

#[test]
fn what_cannot_be_recorded_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.gz");
    let arguments = ["trace", "capture", "--out", &out.display().to_string(), "--", "/bin/true"];
    let without = command(&arguments).env("PATH", folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&without.stderr);
    assert_eq!(without.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot start `valgrind`") && stderr.contains("install the package"), "{stderr}");
    if valgrind() {
        let absent = folder.path().join("absent").display().to_string();
        let done = nandscape(&["trace", "capture", "--out", &out.display().to_string(), "--", &absent]);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains("was recorded (exit status: 127)"), "{}", done.stderr);
        let below = folder.path().join("absent/t.gz");
        std::fs::write(folder.path().join("absent"), "no folder").unwrap();
        refused(
            &["trace", "capture", "--out", &below.display().to_string(), "--", "/bin/true"],
            &["cannot write", "help: "],
        );
        std::fs::remove_file(folder.path().join("absent")).unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
