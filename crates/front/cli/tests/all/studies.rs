//! The studies as a user meets them: `fit`, `reproduce` and `sample`, and how they refuse what cannot be used.

use crate::common::{file, nandscape, refused};
use flate2::Compression;
use flate2::write::GzEncoder;
use sampling::Selection;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Output};

/// A drive unlike the one that the fit begins with: `flash.cell.read` and `flash.host.controller.command` are to be
/// found.
const HIDDEN: [&str; 4] = [
    "--set",
    "flash.cell.read=[\"50us\", \"75us\", \"50us\"]",
    "--set",
    "flash.host.controller.command=12us",
];
const JOBS: [&str; 3] = [
    "fio:rw=randread,bs=4k,iodepth=1,number_ios=12000",
    "fio:rw=randread,bs=4k,iodepth=64,numjobs=4,number_ios=5000",
    "fio:rw=randread,bs=4k,iodepth=8,number_ios=12000",
];

fn value(fit: &Value, key: &str) -> String {
    let values = fit["values"].as_array().unwrap();
    let found =
        values.iter().find(|value| value["key"] == key).unwrap_or_else(|| panic!("{key}: {values:?}"));
    found["value"].as_str().unwrap().to_owned()
}

/// Microseconds of the first time in a text.
fn us(text: &str) -> f64 {
    let time = text.split('"').nth(1).unwrap();
    time.strip_suffix("us").unwrap().parse().unwrap()
}

/// A drive whose link sleeps between single requests. With a point of two in flight its values are found, and more in
/// flight are predicted.
#[test]
fn a_drive_that_was_simulated_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let [one, many, some] = sleeping(folder.path(), JOBS);
    let [two] = sleeping(folder.path(), ["fio:rw=randread,bs=4k,iodepth=2,number_ios=12000"]);
    let out = folder.path().join("found.toml").display().to_string();
    let results = [one.as_str(), &two, &many, &some];
    let fit =
        nandscape(&[&["fit", "--like", "pm9a3", "--json", "--jobs", "2", "-o", &out], &results[..]].concat())
            .well()
            .json();
    let found = ["flash.cell.read", "flash.host.controller.command", "flash.host.sleep.exit"]
        .map(|key| us(&value(&fit, key)));
    for (found, (hidden, within)) in found.into_iter().zip([(50.0, 0.01), (12.0, 0.01), (20.0, 0.05)]) {
        assert!((found / hidden - 1.0).abs() < within, "{found} for {hidden}");
    }
    let known = depth_8(&fit);
    assert!((known.simulated / known.measured - 1.0).abs() < 0.02, "{known:?}");
    let errors = fit["errors"].as_array().unwrap();
    assert!(!errors.is_empty());
    for error in errors.iter().filter(|error| !error["axis"].as_str().unwrap().contains("percentile")) {
        assert!(error["mean"].as_f64().unwrap() < 0.02, "{error}");
    }
    // Other readings are apart where nothing was measured.
    let predictions = fit["predictions"].as_array().unwrap();
    assert!(
        predictions
            .iter()
            .all(|p| p["low"].as_f64() <= p["value"].as_f64() && p["value"].as_f64() <= p["high"].as_f64())
    );
    assert!(
        predictions.iter().any(|p| p["high"].as_f64().unwrap() > 1.02 * p["low"].as_f64().unwrap()),
        "{predictions:?}"
    );
    // The spec that was written runs, and is that drive.
    let run = nandscape(&["run", &out, "--workload", JOBS[0], "--json"]).well().json();
    let theirs: Value = serde_json::from_str(&std::fs::read_to_string(&one).unwrap()).unwrap();
    let (ours, theirs) =
        (&run["io"]["read"]["latency_ns"]["mean"], &theirs["jobs"][0]["read"]["lat_ns"]["mean"]);
    assert!((ours.as_f64().unwrap() / theirs.as_f64().unwrap() - 1.0).abs() < 0.01, "{ours} {theirs}");
}

/// Without a point of two in flight, more in flight are inside the range that the fit states, for something may sleep.
#[test]
#[ignore = "140 runs take half a minute: `cargo xtask soak` runs it"]
fn a_sleep_that_no_point_shows_widens_the_range() {
    let folder = tempfile::tempdir().unwrap();
    let [one, many, some] = sleeping(folder.path(), JOBS);
    let arguments =
        ["fit", "--like", "pm9a3", "--json", "--jobs", "2", &one, &many, "--check", &by_hand(&some)];
    let open = depth_8(&nandscape(&arguments).well().json());
    assert!(open.simulated > 1.1 * open.measured, "{open:?}");
    assert!(open.low <= open.measured && open.measured <= open.high, "{open:?}");
}

/// Results of jobs, as fio writes them, on the hidden drive with a link that sleeps; their files.
fn sleeping<const N: usize>(folder: &std::path::Path, jobs: [&str; N]) -> [String; N] {
    jobs.map(|job| {
        let sleeps = ["--set", "flash.host.sleep.exit=20us", "--format", "fio"];
        let run = nandscape(&[&["run", "pm9a3", "--workload", job], &sleeps[..], &HIDDEN[..]].concat());
        let depth = job.split(',').find_map(|word| word.strip_prefix("iodepth=")).unwrap();
        file(folder, &format!("{depth}.json"), &run.well().stdout)
    })
}

/// Means of eight requests in flight, microseconds.
#[derive(Debug)]
struct Depth8 {
    measured: f64,
    simulated: f64,
    low: f64,
    high: f64,
}

fn depth_8(fit: &Value) -> Depth8 {
    let rows = fit["points"].as_array().unwrap();
    let row = rows.iter().find(|row| row["job"] == "randread.4k.depth8" && row["measure"] == "mean").unwrap();
    let [measured, simulated, low, high] =
        ["measured", "simulated", "low", "high"].map(|key| row[key].as_f64().unwrap_or(f64::NAN));
    Depth8 { measured, simulated, low, high }
}

/// A point by hand of eight in flight, with the mean of a result of fio's.
fn by_hand(result: &str) -> String {
    let text = std::fs::read_to_string(result).unwrap();
    let theirs: Value = serde_json::from_str(&text).unwrap();
    let mean = theirs["jobs"][0]["read"]["clat_ns"]["mean"].as_f64().unwrap();
    format!("rw=randread,bs=4k,iodepth=8,clat={mean:.1}ns")
}

#[test]
fn a_figure_that_no_value_meets_is_said() {
    // One die of this flash senses 20,000 pages a second.
    let points = [
        "--point",
        "rw=randread,bs=4k,iodepth=1,clat=80us",
        "--point",
        "rw=randread,bs=4k,iodepth=64,iops=900k",
    ];
    let one = ["--set", "flash.geometry.channels=1", "--set", "flash.geometry.ways=1", "--jobs", "2"];
    let done = nandscape(&[&["fit", "--like", "pm9a3"], &points[..], &one[..]].concat());
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stdout.contains("not met: with flash.host.controller.command = "), "{}", done.stdout);
}

fn fio(options: &Value, us: f64) -> String {
    let job = json!({
        "jobname": "a", "groupid": 0, "error": 0, "job options": options,
        "read": { "total_ios": 5000, "iops": 9e3, "clat_ns": { "mean": us * 1e3, "N": 5000 } }, "write": { "total_ios": 0 },
    });
    json!({ "fio version": "fio-3.33", "jobs": [job] }).to_string()
}

#[test]
fn what_cannot_be_fitted_is_one_diagnostic() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, options: &Value, us: f64| file(folder.path(), name, fio(options, us));
    let on = |device: &str| json!({ "rw": "randread", "bs": "4k", "iodepth": "1", "filename": device });
    let one = put("one.json", &on("/dev/nvme0n1"), 80.0);
    let other = put("other.json", &on("/dev/nvme1n1"), 80.0);
    // Another host's drive of the same name.
    let namesake = put("namesake.json", &on("/dev/nvme0n1"), 130.0);
    let arm = put("arm.json", &on("/dev/sda"), 9_000.0);
    let no_size = put("size.json", &json!({ "rw": "randread", "iodepth": "1" }), 80.0);
    let no_depth = put("depth.json", &json!({ "rw": "randread", "bs": "4k" }), 80.0);
    let paced =
        put("paced.json", &json!({ "rw": "randread", "bs": "4k", "iodepth": "1", "rate_iops": "50" }), 80.0);
    let text = file(folder.path(), "text.json", "fio-3.33\n");
    let cases: [(&[&str], &str); 11] = [
        (&[&one, &other], "from 2 drives"),
        (&[&one, &namesake], "these are not from one drive in one state"),
        (&[&arm], "that is not an SSD"),
        (&[&no_size], "block size"),
        (&[&no_depth], "depth"),
        (&[&paced], "nothing to fit"),
        (&[&text], "is not JSON"),
        (&[], "nothing to fit"),
        (&["--point", "rw=randread,bs=4k,iodepth=1,clat=80"], "is not a time"),
        (&["--point", "rw=randread,bs=4k,iodepth=16,iops=9k"], "needs a point of a random read at depth 1"),
        (&[&one, "--set", "flash.cell.raed=[\"1us\"]"], "did you mean `read`"),
    ];
    let like = |system: &'static str, arguments: &[&str]| {
        nandscape(&[&["fit", "--like", system], arguments].concat())
    };
    for (arguments, part) in cases {
        let done = like("pm9a3", arguments);
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{arguments:?}: {}", done.stderr);
        assert!(done.stderr.contains(part), "{arguments:?}: {}", done.stderr);
        assert_eq!(done.stderr.matches("error: ").count(), 1, "{}", done.stderr);
    }
    for (system, part) in [("zng", "no flash device that a host reaches"), ("pm9a33", "pm9a3")] {
        let done = like(system, &[&one]);
        assert_eq!(done.code, Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(part), "{}", done.stderr);
    }
}

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
            &["unknown target `flashabacs`", "did you mean `flashabacus`?", "theory", "zng"][..],
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
        ("--error", "0%", "the error bound of 0 % is out of range"),
        ("--error", "200%", "the error bound of 200 % is out of range"),
        ("--error", "100%", "above 0 % and below 100 %"),
        ("--error", "5", "the integer 5 may mean"),
        ("--error", "-5%", "is not a share"),
        ("--error", "small", "is not a share"),
        ("--confidence", "100%", "the confidence of 100 % is out of range"),
        ("--confidence", "10%", "at least 50 %"),
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
