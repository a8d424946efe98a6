//! Outputs that would replace what a command reads, or each other.

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
