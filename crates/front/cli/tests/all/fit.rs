//! `fit`: drives whose values are known, and results that cannot be used.

use crate::common::{file, nandscape};
use serde_json::{Value, json};

/// A drive unlike the one that the fit begins with: `flash.cell.read` and `flash.host.controller.command` are to be found.
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

#[test]
fn a_drive_that_was_simulated_is_found_again() {
    let folder = tempfile::tempdir().unwrap();
    let results: Vec<String> = (0..)
        .zip(JOBS)
        .map(|(n, job)| {
            let arguments = [&["run", "pm9a3", "--workload", job, "--format", "fio"], &HIDDEN[..]].concat();
            file(folder.path(), &format!("{n}.json"), &nandscape(&arguments).well().stdout)
        })
        .collect();
    let out = folder.path().join("found.toml").display().to_string();
    let mut arguments = vec!["fit", "--like", "pm9a3", "--json", "--jobs", "2", "-o", &out];
    arguments.extend(results.iter().map(String::as_str));
    let fit = nandscape(&arguments).well().json();
    let (read, command) =
        (us(&value(&fit, "flash.cell.read")), us(&value(&fit, "flash.host.controller.command")));
    assert!((read / 50.0 - 1.0).abs() < 0.01 && (command / 12.0 - 1.0).abs() < 0.01, "{read} {command}");
    // The third job chose nothing, and is predicted.
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
    // What was written runs, and is that drive.
    let run = nandscape(&["run", &out, "--workload", JOBS[0], "--json"]).well().json();
    let theirs: Value = serde_json::from_str(&std::fs::read_to_string(&results[0]).unwrap()).unwrap();
    let (ours, theirs) =
        (&run["io"]["read"]["latency_ns"]["mean"], &theirs["jobs"][0]["read"]["lat_ns"]["mean"]);
    assert!((ours.as_f64().unwrap() / theirs.as_f64().unwrap() - 1.0).abs() < 0.01, "{ours} {theirs}");
}

/// A drive whose link sleeps between single requests. With a point of two in flight the exit latency is found, and more in flight are
/// predicted; without one they are inside the range that the fit states, for something may sleep.
#[test]
fn a_link_that_sleeps_is_found_by_two_points() {
    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, job: &str| {
        let sleeps = ["--set", "flash.host.sleep.exit=20us", "--format", "fio"];
        let run = nandscape(&[&["run", "pm9a3", "--workload", job], &sleeps[..], &HIDDEN[..]].concat());
        file(folder.path(), name, &run.well().stdout)
    };
    let two = put("two.json", "fio:rw=randread,bs=4k,iodepth=2,number_ios=12000");
    let [one, many, some] = [0, 1, 2].map(|n| put(&format!("{n}.json"), JOBS[n]));
    let fit = |results: &[&str]| {
        nandscape(&[&["fit", "--like", "pm9a3", "--json", "--jobs", "2"], results].concat())
    };
    let found = fit(&[&one, &two, &many, &some]).well().json();
    let exit = us(&value(&found, "flash.host.sleep.exit"));
    assert!((exit / 20.0 - 1.0).abs() < 0.05, "{exit}");
    let row = |fit: &Value| {
        let rows = fit["points"].as_array().unwrap();
        rows.iter()
            .find(|row| row["job"] == "randread.4k.depth8" && row["measure"] == "mean")
            .unwrap()
            .clone()
    };
    let at = |row: &Value, key: &str| row[key].as_f64().unwrap();
    let known = row(&found);
    assert!((at(&known, "simulated") / at(&known, "measured") - 1.0).abs() < 0.02, "{known}");
    let open = row(&fit(&[&one, &many, "--check", &by_hand(&some)]).well().json());
    assert!(at(&open, "simulated") > 1.1 * at(&open, "measured"), "{open}");
    assert!(
        at(&open, "low") <= at(&open, "measured") && at(&open, "measured") <= at(&open, "high"),
        "{open}"
    );
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
        (&[&one, &other], "of 2 drives"),
        (&[&one, &namesake], "that is not one drive in one state"),
        (&[&arm], "that is no SSD"),
        (&[&no_size], "block size"),
        (&[&no_depth], "depth"),
        (&[&paced], "nothing to fit to"),
        (&[&text], "is not JSON"),
        (&[], "nothing to fit to"),
        (&["--point", "rw=randread,bs=4k,iodepth=1,clat=80"], "is no time"),
        (&["--point", "rw=randread,bs=4k,iodepth=16,iops=9k"], "no point of a random read at depth 1"),
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
