//! `nandscape reproduce` as a user meets it.

use serde_json::Value;
use std::process::{Command, Output};

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
