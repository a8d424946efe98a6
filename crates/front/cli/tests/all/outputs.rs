//! What a command writes: never over what it reads or over another output, and nothing that moves the cursor of a
//! terminal.

use crate::common::{TINY, file, nandscape, refused};
use std::path::Path;

/// Arguments of a short run on the tiny device.
fn run<'a>(system: &'a str, workload: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["run", system, "--workload", workload];
    arguments.extend(TINY);
    arguments.extend(more);
    arguments
}

const JOB: &str = "fio:rw=randread,bs=4k,number_ios=20";

#[test]
fn a_run_writes_over_nothing_that_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let trace = file(folder.path(), "t.trace", "0 0 0 8 1\n1000 0 64 8 1\n");
    let spec = file(folder.path(), "spec.toml", "inherits = \"base.toml\"\n");
    let base = file(folder.path(), "base.toml", "inherits = \"d16\"\n");
    let jobs = file(folder.path(), "jobs.fio", "[a]\nrw=randread\nbs=4k\nnumber_ios=20\n");
    std::fs::create_dir(at("in")).unwrap();
    std::fs::hard_link(&trace, at("hard")).unwrap();
    let mut same = vec![trace.clone(), at("in/../t.trace"), at("./t.trace"), at("hard")];
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&trace, at("soft")).unwrap();
        same.push(at("soft"));
    }
    for option in ["--log", "--requests", "--timeline", "--save-state"] {
        for path in &same {
            let csv = format!("{path}.csv");
            let path = if option == "--requests" { &csv } else { path };
            if option == "--requests" {
                continue;
            }
            refused(
                &run("d16", &trace, &[option, path]),
                &[&format!("{option} would replace"), "--workload"],
            );
        }
    }
    for path in [&spec, &base] {
        refused(&run(&spec, JOB, &["--log", path]), &["--log would replace", "of SYSTEM"]);
    }
    refused(&run("d16", &jobs, &["--log", &jobs]), &["--log would replace", "of --workload"]);
    let here = folder.path().display().to_string();
    refused(&run(&spec, JOB, &["--out", &here]), &["--out would replace", "spec.toml"]);
    for path in [&trace, &spec, &base, &jobs] {
        assert!(std::fs::metadata(path).unwrap().len() > 0, "{path}");
    }
    nandscape(&run("d16", &trace, &["--log", &at("a.log"), "--out", &at("o")])).well();
    nandscape(&run("d16", &trace, &["--log", &at("a.log"), "--out", &at("o")])).well();
}

#[test]
fn two_outputs_are_two_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (out, result, spec) = (at("o"), at("o/result.json"), at("p/../o/./spec.toml"));
    refused(&run("d16", JOB, &["--log", &result, "--out", &out]), &["would write the same file"]);
    refused(&run("d16", JOB, &["--timeline", &spec, "--out", &out]), &["would write the same file"]);
    refused(
        &run("d16", JOB, &["--log", &at("a"), "--save-state", &at("./a")]),
        &["would write the same file"],
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    nandscape(&run("d16", JOB, &["--log", "/dev/null", "--timeline", "/dev/null"])).well();
}

#[test]
fn no_other_command_writes_over_what_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let out = at("o");
    nandscape(&run("d16", JOB, &["--out", &out])).well();
    let result = at("o/result.json");
    let before = std::fs::read(&result).unwrap();
    refused(&["report", &result, "-o", &result], &["--output would replace", "of RESULT"]);
    refused(&["report", &out, "-o", &result], &["--output would replace", "of RESULT"]);
    let trace = file(folder.path(), "t.trace", "0 0 0 8 1\n1000 0 64 8 1\n");
    let text = std::fs::read(&trace).unwrap();
    refused(&["trace", "convert", &trace, "--to", "csv", "-o", &trace], &["--out would replace"]);
    refused(&["trace", "sample", &trace, "--first", "1", "-o", &trace], &["--out would replace"]);
    let xml = "<Execution_Parameter_Set></Execution_Parameter_Set>";
    let xml = file(folder.path(), "ssd.xml", xml);
    refused(&["import", "mqsim", &xml, "-o", &xml], &["--out would replace"]);
    let flow = "<MQSim_IO_Scenarios><IO_Scenario><IO_Flow_Parameter_Set_Synthetic><Total_Requests_To_Generate>9</Total_Requests_To_Generate></IO_Flow_Parameter_Set_Synthetic></IO_Scenario></MQSim_IO_Scenarios>";
    let flow = file(folder.path(), "my.scenario-1.fio", flow);
    refused(&["import", "mqsim", &xml, &flow, "-o", &at("my.toml")], &["for scenario 1, would replace"]);
    refused(&["import", "fio-json", &result, "-o", &result], &["--out would replace"]);
    let sweep = "system = \"d16\"\nworkloads = [\"randread\"]\nseeds = [1]\nmetrics = [\"io.all.iops\"]\n";
    std::fs::create_dir(at("s")).unwrap();
    let sweep = file(Path::new(&at("s")), "summary.csv", sweep);
    refused(&["sweep", &sweep, "--out", &at("s")], &["--out would replace"]);
    assert_eq!((std::fs::read(&result).unwrap(), std::fs::read(&trace).unwrap()), (before, text));
}

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
    assert!(done.stderr.contains(&format!("the folder `{missing}` does not exist")), "{}", done.stderr);
    let taken = file(folder.path(), "taken", "");
    let done = nandscape(&["man", &taken]);
    assert!(done.code == Some(2) && done.stderr.contains("is a file"), "{}", done.stderr);
}
