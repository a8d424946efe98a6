//! `trace capture`: a program under Valgrind, if there is one; with `--syscalls`, a program under strace, which is
//! a script here but for one test.

#![cfg(unix)]

use crate::common::{Done, command, file, nandscape, refused};
use std::path::Path;
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
        assert!(done.stderr.contains("nothing was recorded of"), "{}", done.stderr);
        assert!(done.stderr.contains("(exit status: 127)"), "{}", done.stderr);
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

/// Says what it was called with, writes `$LOG` into the file of `-o`, and becomes the program.
const SCRIPT: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$0.args"
while [ "$1" != -- ]; do
    if [ "$1" = -o ]; then printf '%s' "$LOG" > "$2"; fi
    shift
done
shift
exec "$@"
"#;

/// 2 opens, 2 closes, 2 reads of 2097 bytes in all, 3 writes of 8201, a sync of each kind, 1 unknown call and
/// 1 that failed.
const LOG: &str = r#"7 100.000000 execve("/bin/x", [...], 0x7ff /* 3 vars */) = 0 <0.000300>
7 100.001000 openat(AT_FDCWD</srv>, "in", O_RDONLY) = 3</srv/in> <0.000010>
7 100.002000 openat(AT_FDCWD</srv>, "none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000010>
7 100.003000 openat(AT_FDCWD</srv>, "out", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 4</srv/out> <0.000010>
7 100.004000 read(3</srv/in>, ""..., 4096) = 2048 <0.000010>
7 100.005000 pread64(3</srv/in>, ""..., 49, 70000) = 49 <0.000010>
7 100.006000 write(4</srv/out>, ""..., 4096) = 4096 <0.000010>
7 100.007000 writev(4</srv/out>, [{iov_base=""..., iov_len=9}], 1) = 9 <0.000010>
7 100.008000 newcall(4</srv/out>) = 0 <0.000010>
7 100.009000 pwrite64(4</srv/out>, ""..., 4096, 8192) = 4096 <0.000010>
7 100.010000 fsync(4</srv/out>) = 0 <0.000900>
7 100.011000 fdatasync(4</srv/out>) = 0 <0.000900>
7 100.012000 close(3</srv/in>) = 0 <0.000010>
7 100.013000 close(4</srv/out>) = 0 <0.000010>
7 100.014000 +++ exited with 3 +++
"#;

/// Writes the script as the folder's `strace`. A shell does it: were the file open for writing here while a test beside
/// this one starts a process, that process would hold it open too, and the kernel refuses to execute it ("Text file
/// busy").
fn script(folder: &Path) {
    let write = r#"printf '%s' "$1" > "$0" && chmod 755 "$0""#;
    let written = Command::new("/bin/sh").args(["-c", write]).arg(folder.join("strace")).arg(SCRIPT).status();
    assert!(written.expect("a shell").success());
}

/// Captures into `t.strace` of the folder, with the script for strace.
fn captured(folder: &Path, log: &str, program: &[&str]) -> Done {
    script(folder);
    let out = folder.join("t.strace").display().to_string();
    let arguments = [&["trace", "capture", "--syscalls", "--out", &out, "--"], program].concat();
    let output = command(&arguments).env("PATH", folder).env("LOG", log).output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// Calls and bytes of each kind that a run of a recording has made.
fn replayed(workload: &str) -> Vec<(String, u64, u64)> {
    let result = nandscape(&["run", "pm9a3", "--workload", workload, "--json"]).well().json();
    let kinds = result["host"][0]["programs"][0]["requests"].as_object().expect("kinds").clone();
    let count = |value: &serde_json::Value| value.as_u64().expect("a count");
    kinds.iter().map(|(name, of)| (name.clone(), count(&of["requests"]), count(&of["bytes"]))).collect()
}

#[test]
fn a_recording_is_summed_up_and_its_replay_makes_these_calls() {
    let folder = tempfile::tempdir().unwrap();
    let done = captured(folder.path(), LOG, &["/bin/sh", "-c", "echo said; exit 3"]).well();
    assert_eq!(done.stdout, "said\n");
    let out = folder.path().join("t.strace").display().to_string();
    for said in [
        "`/bin/sh` ended: exit status: 3",
        "1 thread, 2 files; replayed calls: 2 read (2097B), 3 write (8201B), 2 sync, 4 other",
        "1 calls failed in the log: skipped",
        "1 calls of `newcall`: skipped (unknown=skip)",
        &format!("written to {out}"),
        &format!("nandscape run pm9a3 --workload strace:file={out},unknown=skip"),
    ] {
        assert!(done.stderr.contains(said), "no `{said}` in\n{}", done.stderr);
    }
    assert_eq!(std::fs::read_to_string(&out).unwrap(), LOG);
    let expected = [("other", 4, 0), ("read", 2, 2097), ("sync", 2, 0), ("write", 3, 8201)];
    let expected = expected.map(|(name, calls, bytes)| (name.to_owned(), calls, bytes));
    assert_eq!(replayed(&format!("strace:file={out},unknown=skip")), expected);
    refused(
        &["run", "pm9a3", "--workload", &format!("strace:file={out}")],
        &["unknown system call `newcall`", "t.strace:9:14", "unknown=skip"],
    );

    // What strace was told: how to write the log, and which calls need not be in it. Those that are read are not among
    // them.
    let told = std::fs::read_to_string(folder.path().join("strace.args")).unwrap();
    let told: Vec<&str> = told.lines().collect();
    for option in ["-f", "-ttt", "-T", "-y"] {
        assert!(told.contains(&option), "{told:?}");
    }
    let calls = told.iter().find_map(|word| word.strip_prefix("trace=!")).expect("calls");
    let without: Vec<&str> = calls.split(',').collect();
    assert!(without.contains(&"?brk") && without.contains(&"?mprotect"), "{without:?}");
    for read in ["?openat", "?pwrite64", "?mmap", "?futex", "?socket", "?getdents64", "?io_submit"] {
        assert!(!without.contains(&read), "{read}");
    }
    assert_eq!(told[told.len() - 4..], ["--", "/bin/sh", "-c", "echo said; exit 3"]);
}

#[test]
fn an_old_recording_is_replaced_and_a_killed_program_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let out = file(folder.path(), "t.strace", "old");
    let killed = captured(folder.path(), LOG, &["/bin/sh", "-c", "kill -9 $$"]);
    assert_eq!(killed.code, Some(1), "{}", killed.stderr);
    assert!(killed.stderr.contains("was killed (signal: 9"), "{}", killed.stderr);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), LOG);
}

#[test]
fn a_log_that_is_not_understood_is_kept_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let done =
        captured(folder.path(), "7 100.0 read(3, \"\", 8) = 8 <0.1>\nnonsense\n", &["/bin/sh", "-c", ":"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("error: ") && done.stderr.contains("t.strace:2:1"), "{}", done.stderr);
    assert!(folder.path().join("t.strace").is_file());
}

#[test]
fn what_cannot_be_recorded_leaves_no_recording() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.strace").display().to_string();
    // No strace.
    let arguments = ["trace", "capture", "--syscalls", "-o", &out, "--", "/bin/sh", "-c", ":"];
    let without = command(&arguments).env("PATH", folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&without.stderr);
    assert_eq!(without.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot start `strace`") && stderr.contains("apt install strace"), "{stderr}");
    assert_eq!(stderr.matches("error: ").count(), 1);
    // It starts, and writes nothing; or the program is not executed.
    let refused_by_kernel =
        "7 100.0 execve(\"/bin/sh\", [...], 0x7 /* 3 vars */) = -1 EACCES (Permission denied) <0.1>\n";
    for log in ["", refused_by_kernel] {
        let nothing = captured(folder.path(), log, &["/bin/sh", "-c", "exit 1"]);
        assert_eq!(nothing.code, Some(1), "{}", nothing.stderr);
        assert!(nothing.stderr.contains("nothing was recorded of"), "{}", nothing.stderr);
        assert!(nothing.stderr.contains("(exit status: 1)"), "{}", nothing.stderr);
        assert!(nothing.stderr.contains("ptrace"), "{}", nothing.stderr);
    }
    let absent = captured(folder.path(), LOG, &["nandscape-no-such-program"]);
    assert_eq!(absent.code, Some(2), "{}", absent.stderr);
    assert!(absent.stderr.contains("program `nandscape-no-such-program` not found"), "{}", absent.stderr);
    let mut left: Vec<_> =
        folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["strace", "strace.args"]);
    let below = folder.path().join("no/t.strace").display().to_string();
    refused(
        &["trace", "capture", "--syscalls", "--out", &below, "--", "/bin/sh"],
        &["cannot write", "create it first"],
    );
    let here = folder.path().display().to_string();
    refused(
        &["trace", "capture", "--syscalls", "--out", &here, "--", "/bin/sh"],
        &["is not a regular file", "--out"],
    );
    let limit = nandscape(&["trace", "capture", "--syscalls", "--limit", "5", "--", "/bin/sh"]);
    assert_eq!(limit.code, Some(2), "{}", limit.stderr);
}

/// The real one: what `dd` is told to do is in the log, and its replay does it.
#[test]
fn a_real_program_is_recorded_and_replayed() {
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: no strace");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (out, to) = (folder.path().join("dd.strace"), folder.path().join("out"));
    let (out, to) = (out.display().to_string(), format!("of={}", to.display()));
    let dd = ["dd", "if=/dev/zero", &to, "bs=64k", "count=20", "conv=fsync", "status=none"];
    let done = nandscape(&[&["trace", "capture", "--syscalls", "--out", &out, "--"], &dd[..]].concat());
    if done.stderr.contains("ptrace") {
        println!("skipped: strace may not trace here");
        return;
    }
    let done = done.well();
    assert!(done.stderr.contains("20 write (1.25MiB), 1 sync"), "{}", done.stderr);
    let replayed = replayed(&format!("strace:file={out}"));
    assert!(replayed.contains(&("write".to_owned(), 20, 20 << 16)), "{replayed:?}");
    assert!(replayed.contains(&("sync".to_owned(), 1, 0)), "{replayed:?}");
}
