//! `nandscape sample`: what it prints and writes, and how it refuses what cannot be sampled.

use crate::common::{file, nandscape, refused};
use flate2::Compression;
use flate2::write::GzEncoder;
use sampling::Selection;
use std::io::Write;

const HEADER: &str = "id,start_us,dur_us,device,stream,grid,block,regs,shmem,est_occ_pct,name\n";

/// Thirty kinds of 40 kernels, some of them in two modes, one that took no time.
fn profile() -> String {
    let row = |kernel: u32| {
        let kind = kernel % 30;
        let us = match kind {
            0 => 0.0,
            1..10 => f64::from(10 * kind + kernel / 30 % 3),
            _ => f64::from(100 * kind) * if (kernel / 30).is_multiple_of(4) { 8.0 } else { 1.0 },
        };
        format!("{kernel},{},{us},0,7,{}x1x1,128x1x1,32,0,27,\"kind<{kind}, 2>\"\n", kernel * 10, kind + 1)
    };
    HEADER.to_owned() + &(0..1200).map(row).collect::<String>()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn the_table_has_the_largest_groups_and_the_sums() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "p.csv.gz", gzip(profile().as_bytes()));
    let text = nandscape(&["sample", &path, "--error", "5%"]).well().stdout;
    for said in [
        "1200 kernels (kernel CSV)",
        "40 kernels have a duration of zero",
        "bound 5 % at a confidence of 95 %, rule allegro, seed 1",
        "30 by name, grid and block; 50 after splitting",
        "smaller groups; --json has all",
        "times fewer",
        "inside the bound",
    ] {
        assert!(text.contains(said), "no `{said}` in\n{text}");
    }
    // The largest is the slow mode of the last kind: ten kernels of 23.2 ms.
    let first = text.lines().skip_while(|line| !line.contains("name")).nth(1).unwrap();
    let words: Vec<&str> = first.split_whitespace().collect();
    assert_eq!((words[0], words[1], words[3], words[5]), ("10", "1", "23200.000", "30x1x1"), "{first}");
    assert_eq!(text.lines().filter(|line| line.contains("kind<")).count(), 20);
}

#[test]
fn the_document_and_the_selection_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "p.csv", profile());
    let out = folder.path().join("kernels.toml").display().to_string();
    for rule in ["allegro", "fewest", "neyman"] {
        let document = nandscape(&["sample", &path, "--rule", rule, "--json", "--out", &out, "--seed", "7"])
            .well()
            .json();
        let selection = Selection::from_toml("out", &std::fs::read_to_string(&out).unwrap()).unwrap();
        assert_eq!(document["schema"], "nandscape.sample/1");
        assert_eq!((selection.kernels, selection.seed, selection.rule.name()), (1200, 7, rule));
        assert_eq!(document["simulated"], selection.samples());
        assert_eq!(document["groups"].as_array().unwrap().len(), selection.groups.len());
        // From the text of the profile alone: the duration of each sample, and the sum of all.
        let text = profile();
        let us: Vec<f64> =
            text.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse().unwrap()).collect();
        let predicted = selection.total_ns(|kernel| 1e3 * us[kernel as usize]);
        let actual = 1e3 * us.iter().sum::<f64>();
        let figure = |name: &str| document[name].as_f64().unwrap();
        assert!((figure("predicted_ns") - predicted).abs() < 1e-6 * actual, "{rule}");
        assert!((figure("actual_ns") - actual).abs() < 1e-6 * actual);
        assert!((figure("actual_error") - (predicted - actual) / actual).abs() < 1e-9);
        assert!((figure("speedup_kernels") - 1200.0 / selection.samples() as f64).abs() < 1e-9);
        for group in &selection.groups {
            let rows = text.lines().skip(1).collect::<Vec<_>>();
            assert!(group.samples.iter().all(|kernel| rows[*kernel as usize].contains(&group.name)));
        }
    }
}

#[test]
fn a_seed_repeats_and_another_differs() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "p.csv", profile());
    let of = |seed| nandscape(&["sample", &path, "--json", "--error", "1%", "--seed", seed]).well().json();
    // All but what the run took.
    let [mut a, mut b] = [of("3"), of("3")];
    for document in [&mut a, &mut b] {
        let run = document.as_object_mut().unwrap().remove("run").unwrap();
        assert!(run["cpu_s"].is_number() && run["peak_rss_bytes"].as_u64() > Some(0));
    }
    assert_eq!(a, b);
    assert_ne!(of("3")["predicted_ns"], of("4")["predicted_ns"]);
}

#[test]
fn profiles_that_cannot_be_sampled() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |name: &str, content: &[u8], said: &[&str]| {
        let path = file(folder.path(), name, content);
        refused(&["sample", &path, "--error", "5%"], &[said, &[name]].concat());
        refused(&["sample", &path, "--json", "--out", &format!("{path}.toml")], said);
        assert!(!std::path::Path::new(&format!("{path}.toml")).exists());
    };
    let row =
        |from: &str, to: &str| (HEADER.to_owned() + "0,0.0,3.136,0,7,4x1x1,128x1x1,,,,k\n").replace(from, to);
    bad("none.csv", row("start_us,dur_us,", "start_us,").as_bytes(), &["no column `dur_us`"]);
    bad("blank.csv", row("3.136", "").as_bytes(), &["the duration is missing", "blank.csv:2:7"]);
    bad(
        "minus.csv",
        row("3.136", "-3.136").as_bytes(),
        &["negative", "minus.csv:2:7", "allowed: 0 to 1e15 ns"],
    );
    bad("word.csv", row("3.136", "n/a").as_bytes(), &["not a number: `n/a`", "word.csv:2:7"]);
    bad("nan.csv", row("3.136", "nan").as_bytes(), &["not a number", "nan.csv:2:7"]);
    bad("short.csv", row(",,,,k", "").as_bytes(), &["the row ends before", "short.csv:2"]);
    bad("grid.csv", row("4x1x1", "4x1").as_bytes(), &["the grid cannot be `4x1`", "such as 564x1x1"]);
    bad("head.csv", HEADER.as_bytes(), &["no kernels in"]);
    let packed = gzip(profile().as_bytes());
    bad("cut.csv.gz", &packed[..packed.len() - 9], &["truncated", "gzip"]);
    let event =
        r#"{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": {"grid": [1, 1, 1]}}"#;
    let json = |events: &str| format!("{{\"traceEvents\": [\n{events}\n]}}\n");
    let cut = json(event);
    bad("cut.json", &cut.as_bytes()[..cut.len() - 20], &["the JSON is truncated", "cut.json:2"]);
    bad("cut.json.gz", &gzip(&cut.as_bytes()[..60]), &["the JSON is truncated"]);
    bad(
        "minus.json",
        json(&event.replace("2, \"args", "-2, \"args")).as_bytes(),
        &["negative", "minus.json:2"],
    );
    bad(
        "none.json",
        json(&event.replace("\"dur\": 2, ", "")).as_bytes(),
        &["has no duration", "none.json:2"],
    );
    bad("empty.json", json("").as_bytes(), &["no kernels in"]);
    bad("other.json", b"{\"schema\": \"nandscape.result/1\"}", &["a result of nandscape"]);
    bad("other.txt", b"0 0 8 8 1\n1000 0 8 8 1\n", &["a trace of requests (`mqsim`)", "trace inspect"]);
    bad("empty.csv", b"", &["empty"]);
}

#[test]
fn options_that_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "p.csv", profile());
    for (option, value, said) in [
        ("--error", "0%", "an error bound of 0 % cannot be"),
        ("--error", "200%", "an error bound of 200 % cannot be"),
        ("--error", "100%", "above 0 % and below 100 %"),
        ("--error", "5", "the integer 5 may mean"),
        ("--error", "-5%", "is not a share"),
        ("--error", "small", "is not a share"),
        ("--confidence", "100%", "a confidence of 100 % cannot be"),
        ("--confidence", "10%", "50 % and more"),
        ("--rule", "alegro", "did you mean `allegro`"),
    ] {
        let assigned = format!("{option}={value}");
        refused(&["sample", &path, &assigned], &[said, &format!("--> {option}")]);
    }
    refused(&["sample", "no/such.json"], &["cannot read no/such.json", "help: "]);
    refused(&["sample", &path, "--out", &format!("{path}/kernels.toml")], &["kernels.toml"]);
    let usage = nandscape(&["sample", &path, "--seed", "-1"]);
    assert_eq!(usage.code, Some(2));
}

#[test]
fn packed_profiles_are_read_and_what_is_none_names_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let plain = file(folder.path(), "p.csv", profile());
    let packed = folder.path().join("p.csv.xz").display().to_string();
    let xz = std::process::Command::new("xz").args(["-k", "-c", &plain]).output();
    // Machines without xz have nothing to pack with.
    if let Ok(done) = xz {
        std::fs::write(&packed, done.stdout).unwrap();
        let count = |path: &str| nandscape(&["sample", path, "--json"]).well().json()["simulated"].clone();
        assert_eq!(count(&packed), count(&plain));
    }
    let trace = file(folder.path(), "t.csv", "128166385295514663,hm,0,Write,9056014336,2048,2833\n");
    crate::common::refused(&["sample", &trace], &["a trace of requests (`msr`)", "nandscape trace inspect"]);
    let archive = file(folder.path(), "z.zip", b"PK\x03\x04\x14\0");
    crate::common::refused(&["sample", &archive], &["a zip archive", "unpack it"]);
}
