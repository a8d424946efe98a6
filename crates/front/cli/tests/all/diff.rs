//! `diff`: what differs between two results, and nothing else.

use crate::common::{file, nandscape, run_tiny};
use serde_json::Value;
use std::process::{Command, Output};

#[test]
fn differences_of_spec_and_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
    let job = "fio:rw=randwrite,bs=4k,iodepth=4,number_ios=500";
    run_tiny(&["--workload", job, "--out", &a]).well();
    run_tiny(&["--workload", job, "--out", &b, "--set", "flash.cell.program=[\"1200us\"]"]).well();
    let same = nandscape(&["diff", "--json", &a, &a]).well().json();
    assert_eq!((&same["spec"], &same["metrics"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    // A folder is its result.json.
    let diff = nandscape(&["diff", "--json", &a, &format!("{b}/result.json")]).well().json();
    let spec = diff["spec"].as_array().unwrap();
    assert_eq!(spec.len(), 1, "{spec:?}");
    assert_eq!(spec[0]["key"], "flash.cell.program.0");
    assert_eq!((&spec[0]["a"], &spec[0]["b"]), (&"600us".into(), &"1.2ms".into()));
    let metrics = diff["metrics"].as_array().unwrap();
    let of = |key: &str| metrics.iter().find(|m| m["key"] == key);
    let mean = of("breakdown_ns.write.array").expect("programs take longer");
    assert_eq!(
        (&mean["a"], &mean["b"], &mean["relative"]),
        (&600_000.0.into(), &1_200_000.0.into(), &1.0.into())
    );
    let iops = of("io.all.iops").expect("fewer requests a second");
    let [x, y] = ["a", "b"].map(|side| iops[side].as_f64().unwrap());
    assert!((iops["relative"].as_f64().unwrap() - (y - x) / x).abs() < 1e-12 && y < x);
    // Of the dies and channels the mean.
    let result = |side: &str| {
        let text = std::fs::read(format!("{side}/result.json")).unwrap();
        serde_json::from_slice::<Value>(&text).unwrap()["flash"][0]["utilisation"]["die"].clone()
    };
    let dies: Vec<f64> = result(&a).as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    let die = of("flash.0.utilisation.die.mean").expect("dies are busy for longer");
    assert_eq!((dies.len(), die["a"].as_f64()), (32, Some(dies.iter().sum::<f64>() / 32.0)));
    assert!(!metrics.iter().any(|m| m["key"] == "flash.0.utilisation.die.0"));
    assert!(of("io.all.requests").is_none(), "what is equal is left out");
    let is_apart =
        |m: &Value| m["key"].as_str().is_some_and(|k| k.starts_with("run.") || k.starts_with("io.series"));
    assert!(!metrics.iter().any(is_apart));
    let text = nandscape(&["diff", &a, &b]).well().stdout;
    assert!(text.contains("flash.cell.program.0") && text.contains("+100.00 %"), "{text}");
    // There are only writes, in one flow: each figure once, and none of them lost. Only a flow has a time of its own.
    assert_eq!(text.matches("latency_ns.p50 ").count(), 1, "{text}");
    let of_flows: Vec<&str> = text.lines().filter(|line| line.starts_with("io.flows")).collect();
    assert!(text.contains("io.all.latency_ns.p50 "), "{text}");
    assert!(of_flows.iter().all(|line| line.starts_with("io.flows.0.active.")), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("io.")).count();
    let all = metrics.iter().filter(|m| m["key"].as_str().is_some_and(|k| k.starts_with("io."))).count();
    assert!(text.contains(&format!("{} figures of parts", all - rows)), "{text}");
}

#[test]
fn a_figure_that_one_side_lacks_is_null() {
    let folder = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| folder.path().join(name).display().to_string());
    run_tiny(&["--workload", "fio:rw=randwrite,bs=4k,number_ios=50", "--out", &a]).well();
    run_tiny(&["--workload", "fio:rw=randread,bs=4k,number_ios=50", "--out", &b]).well();
    let diff = nandscape(&["diff", "--json", &a, &b]).well().json();
    let metrics = diff["metrics"].as_array().unwrap();
    let lost =
        metrics.iter().find(|m| m["key"] == "io.write.requests").expect("there are no writes any more");
    assert_eq!((&lost["a"], &lost["b"], lost.get("relative")), (&50.into(), &Value::Null, None));
}

#[test]
fn what_is_no_result_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("a.json", "{\"schema\":\"nandscape.diff/1\"}", "not a `nandscape.result/2`"),
        ("b.json", "[1, 2]", "is no result document"),
        ("c.json", "{", "is not JSON"),
    ];
    for (name, text, said) in cases {
        let path = file(folder.path(), name, text);
        let done = nandscape(&["diff", &path, &path]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{name}");
        assert!(done.stderr.contains(said) && done.stderr.contains(name), "{}", done.stderr);
        assert!(done.stderr.contains("`--out DIR` writes one"), "{}", done.stderr);
    }
}

// `nandscape reproduce` as a user meets it.

fn reproduce(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nandscape"));
    command.arg("reproduce").args(args).output().expect("the program runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn rows_as_json_have_the_fields_of_the_contract() {
    let output = reproduce(&["theory", "--only", "latency", "--json", "--jobs", "2"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("one JSON list and nothing else");
    assert!(rows.len() >= 6);
    for row in rows {
        assert!(row["id"].as_str().is_some_and(|id| id.starts_with("latency.")), "{row}");
        assert!(row["where"].is_string() && row["unit"].is_string() && row["note"].is_string(), "{row}");
        assert_eq!(
            (&row["within"], &row["evidence"], &row["kind"]),
            (&true.into(), &"clean".into(), &"measured".into())
        );
        assert_eq!(row["paper"], row["measured"]);
    }
}

#[test]
fn the_table_shows_both_values_and_the_notes() {
    let output = reproduce(&["theory", "--only", "latency.read.d16"]);
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    // 295 ns + 50 us + 50 ns + 5.12 us + 256 ns + 1 ns, in picoseconds.
    assert_eq!(shown.matches("55722000").count(), 2, "{shown}");
    assert!(shown.contains("command 295000 + tR 50000000") && shown.contains("1 of 1 rows"), "{shown}");
}

#[test]
fn rows_are_written_out_target_by_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("new").display().to_string();
    let output = reproduce(&["theory", "--only", "latency.read", "--out", &path, "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let written = std::fs::read(folder.path().join("new/theory.json")).expect("the rows");
    let rows: Value = serde_json::from_slice(&written).expect("JSON");
    assert_eq!(rows, serde_json::from_slice::<Value>(&output.stdout).expect("JSON"));
}

#[test]
fn points_of_curves_are_written_as_a_table_to_plot() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().display().to_string();
    let rows = ["--only", "mqms.curve.pm9a3.1", "--only", "mqms.curve.pm9a3.2"];
    let output = reproduce(&[&["mqms", "--json", "--out", &path][..], &rows].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines =
        rows.iter().zip([1, 2]).map(|(row, depth)| format!("{depth},{},{}\n", row["paper"], row["measured"]));
    let table = std::fs::read_to_string(folder.path().join("mqms.curve.csv")).expect("the table");
    assert_eq!(table, format!("x,pm9a3_reference,pm9a3\n{}", lines.collect::<String>()));
}

#[test]
fn what_cannot_be_reproduced_is_said_in_one_diagnostic() {
    for (args, parts) in [
        (
            &["flashabacs"][..],
            &["no target `flashabacs`", "did you mean `flashabacus`?", "theory", "zng"][..],
        ),
        (&["theroy"], &["did you mean `theory`?"]),
        (&["theory", "--only", "lattency"], &["did you mean `latency`?", "wa"]),
        (&["theory", "--only", "latency.raed"], &["did you mean `latency.read`?"]),
    ] {
        let output = reproduce(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = text(&output.stderr);
        assert!(output.stdout.is_empty() && parts.iter().all(|part| said.contains(part)), "{said}");
    }
}
