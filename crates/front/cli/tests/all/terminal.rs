//! What reaches a terminal, and what does not reach anybody.

use crate::common::{TINY, file, nandscape};

/// A name may hold any byte; none of them moves the cursor of a terminal that shows a result or a diagnostic.
#[test]
fn names_bring_no_escapes() {
    let folder = tempfile::tempdir().unwrap();
    let name = "\u{1b}[31mred\u{7}";
    let jobs = format!("[{name}]\nrw=randread\nbs=4k\nnumber_ios=20\n");
    let jobs = file(folder.path(), &format!("{name}.fio"), jobs);
    let trace = file(folder.path(), &format!("{name}.trace"), "0 0 0 8 1\n");
    let csv = file(folder.path(), "t.csv", format!("time_ns,op,offset,bytes,stream\n0,read,0,4096,{name}\n"));
    let bad =
        file(folder.path(), "bad.toml", format!("inherits = \"{name}\"\n").replace('\u{1b}', "\\u001b"));
    let runs = [
        vec!["run", "d16", "--workload", &jobs],
        vec!["run", "d16", "--workload", &trace],
        vec!["run", "d16", "--workload", &csv],
    ];
    for mut arguments in runs {
        arguments.extend(TINY);
        let done = nandscape(&arguments);
        for text in [&done.stdout, &done.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{arguments:?}: {text:?}");
        }
    }
    let missing = format!("{name}.json");
    for arguments in [
        &["trace", "inspect", &trace][..],
        &["trace", "inspect", &csv],
        &["check", &bad],
        &["diff", &missing, &missing],
        &["explain", name],
        &["report", &missing, "-o", "x.html"],
    ] {
        let done = nandscape(arguments);
        for text in [&done.stdout, &done.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{7}']), "{arguments:?}: {text:?}");
        }
    }
}

/// Messages about the arguments themselves quote them. On a terminal, or with `CLICOLOR_FORCE`, they have colours.
#[test]
fn messages_about_arguments_bring_no_escapes() {
    let name = "\u{1b}[31mred\u{7}";
    for arguments in [
        &[name][..],
        &["run", "d16", "--workload", "idle", name, name],
        &["run", "d16", "--seed", name],
        &["sweep", "d16", "--jobs", name],
        &[&format!("--{name}")],
        &["list", &format!("systems{name}")],
    ] {
        let binary = env!("CARGO_BIN_EXE_nandscape");
        let done = std::process::Command::new(binary).args(arguments).env("CLICOLOR_FORCE", "1").output();
        let done = done.expect("the binary");
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {told}");
        assert!(told.contains("red") && !told.contains(['\u{1b}', '\u{7}']), "{arguments:?}: {told:?}");
    }
}

/// `>&-` leaves no standard output: what should have been printed is lost, and that is a failure.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_standard_output_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let trace = file(folder.path(), "t.trace", "0 0 0 8 1\n");
    let binary = env!("CARGO_BIN_EXE_nandscape");
    let closed = |arguments: &str, to: &str| {
        let shell =
            std::process::Command::new("sh").arg("-c").arg(format!("'{binary}' {arguments} {to}")).output();
        let output = shell.expect("a shell");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let tiny = TINY.join(" ");
    let run = format!("run d16 {tiny} --workload fio:rw=randread,bs=4k,number_ios=20");
    for arguments in [
        run.clone(),
        format!("{run} --json"),
        format!("{run} --format fio"),
        "list systems".to_owned(),
        "check d16".to_owned(),
        "explain greedy".to_owned(),
        "params flash.geometry".to_owned(),
        "schema".to_owned(),
        format!("trace inspect {trace}"),
        format!("trace convert {trace} --to csv"),
        "completions bash".to_owned(),
    ] {
        let (code, told) = closed(&arguments, ">&-");
        assert_eq!(code, Some(1), "{arguments}: {told}");
        assert!(told.contains("cannot write to standard output"), "{arguments}: {told}");
        // A null device is one: nothing is lost that was wanted.
        let (code, told) = closed(&arguments, ">/dev/null");
        assert_eq!(code, Some(0), "{arguments}: {told}");
    }
}

#[test]
fn the_manual_names_the_folder_that_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("man").display().to_string();
    let done = nandscape(&["man", &missing]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains(&format!("the folder `{missing}` is not there")), "{}", done.stderr);
    let taken = file(folder.path(), "taken", "");
    let done = nandscape(&["man", &taken]);
    assert!(done.code == Some(2) && done.stderr.contains("is a file"), "{}", done.stderr);
}
