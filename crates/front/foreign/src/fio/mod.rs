//! fio: its output as a result document, and a result document in its output format.

mod measured;
mod print;
mod read;

pub use measured::{Measured, measured};
pub use print::print;
pub use read::read;

use serde_json::{Map, Value};

/// Percentiles that fio prints by default.
const PERCENTILES: [f64; 17] =
    [1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];

/// Percentiles of a document, by name.
const NAMED: [(&str, f64); 7] = [
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
    ("p99_999", 99.999),
];

// Helpers for JSON.

/// Number of a key; `None` for any other value.
fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key)?.as_f64().filter(|number| number.is_finite())
}

/// Whole number of a key; zero for any other value.
fn whole(value: &Value, key: &str) -> u64 {
    let of =
        |value: &Value| value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0).map(|n| n as u64));
    value.get(key).and_then(of).unwrap_or_default()
}

/// Text of a key; empty for any other value.
fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Table of these entries, in this order or sorted, depending on the JSON library.
fn table<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Object(entries.collect::<Map<_, _>>())
}

/// Rounds a number to six decimals, as fio prints it.
fn rounded(number: f64) -> Value {
    (libm::round(number * 1e6) / 1e6).into()
}

// Job options, as fio repeats them beside its results.

/// Job with its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Name of the job.
    pub name: String,
    /// Options, in file order; an option without a value has an empty one.
    pub options: Vec<(String, String)>,
}

/// Options of an inline job, `fio:rw=randread,bs=4k`. A piece without `=` belongs to the value before it, if there is
/// one.
pub fn job_of_inline(text: &str) -> Job {
    let mut job = Job { name: "job".to_owned(), options: Vec::new() };
    for piece in text.strip_prefix("fio:").unwrap_or(text).split(',') {
        match (piece.split_once('='), job.options.last_mut()) {
            (Some((key, value)), _) if key.trim() == "name" => job.name = value.trim().to_owned(),
            (Some((key, value)), _) => job.options.push((key.trim().to_owned(), value.trim().to_owned())),
            (None, Some((_, value))) if piece.starts_with(|c: char| c.is_ascii_digit()) => {
                value.push(',');
                value.push_str(piece.trim());
            }
            (None, _) => job.options.push((piece.trim().to_owned(), String::new())),
        }
    }
    job
}

/// Jobs of a job file, each with the options of the `[global]` sections before it.
pub fn jobs_of_file(text: &str) -> Vec<Job> {
    let (mut global, mut jobs): (Vec<(String, String)>, Vec<Job>) = (Vec::new(), Vec::new());
    let mut in_global = true;
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            in_global = title == "global";
            if !in_global {
                jobs.push(Job { name: title.to_owned(), options: global.clone() });
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        let option = (key.trim().to_owned(), value.trim().to_owned());
        let options = match jobs.last_mut() {
            Some(job) if !in_global => &mut job.options,
            _ => &mut global,
        };
        options.retain(|(known, _)| *known != option.0);
        options.push(option);
    }
    jobs
}

#[cfg(test)]
mod tests {
    // Small made-up results in fio's form, and documents in its output form.
    use super::*;
    use serde_json::{Value, json};

    /// One direction with these latencies, as fio would print it.
    fn direction(values: &[u64], is_plus: bool) -> Value {
        let n = values.len() as f64;
        let mean = values.iter().sum::<u64>() as f64 / n;
        let spread = (values.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
        let (min, max) = (values.iter().min(), values.iter().max());
        let mut clat = json!({ "min": min, "max": max, "mean": mean, "stddev": spread, "N": values.len() });
        let lat = clat.clone();
        clat["percentile"] = json!({ "50.000000": 7, "99.000000": 9 });
        if is_plus {
            let mut bins = serde_json::Map::new();
            for value in values {
                let count = bins.get(&value.to_string()).and_then(Value::as_u64).unwrap_or(0);
                bins.insert(value.to_string(), (count + 1).into());
            }
            clat["bins"] = bins.into();
        }
        json!({ "io_bytes": 4096 * values.len(), "bw_bytes": 4096 * values.len(), "bw": 4 * values.len(), "iops": n, "runtime": 1000, "total_ios": values.len(),
            "slat_ns": { "min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": values.len() }, "clat_ns": clat, "lat_ns": lat })
    }

    fn none() -> Value {
        json!({ "io_bytes": 0, "bw_bytes": 0, "iops": 0.0, "runtime": 0, "total_ios": 0, "clat_ns": { "N": 0 }, "lat_ns": { "N": 0 }, "slat_ns": { "N": 0 } })
    }

    fn fio(jobs: &[Value]) -> Vec<u8> {
        json!({ "fio version": "fio-3.33", "time": "now", "global options": { "bs": "4k", "filename": "/dev/x" }, "jobs": jobs }).to_string().into_bytes()
    }

    #[test]
    fn a_result_becomes_a_document_and_what_is_not_measured_is_null() {
        let values: Vec<u64> = (1..=3000).collect();
        let job = json!({ "jobname": "a", "groupid": 0, "error": 0, "job options": { "rw": "randread" }, "read": direction(&values, false), "write": none(), "trim": none() });
        let text = [b"fio: a note before\n".to_vec(), fio(&[job])].concat();
        let found = read("dir/drive.json", &text).unwrap();
        assert_eq!(found["schema"], "nandscape.result/2");
        assert_eq!(
            (&found["system"], &found["measured"]["tool"]),
            (&json!("measured: drive"), &json!("fio-3.33"))
        );
        assert_eq!(found["workload"], json!(["fio:bs=4k,rw=randread"]));
        let read = &found["io"]["read"];
        assert_eq!(
            (&read["requests"], &read["iops"], &read["bytes"]),
            (&json!(3000), &json!(3000.0), &json!(3000 * 4096))
        );
        assert_eq!(
            (&read["clat_ns"]["p50"], &read["clat_ns"]["p99"], &read["clat_ns"]["p99_9"]),
            (&json!(7.0), &json!(9.0), &Value::Null)
        );
        assert_eq!((&read["latency_ns"]["mean"], &read["latency_ns"]["p50"]), (&json!(1500.5), &Value::Null));
        // 3,000 a second for 1.5 us each.
        assert_eq!(read["queue_depth_mean"], json!(0.004502));
        assert!(found["io"].get("write").is_none() && read.get("histogram_ns").is_none());
        assert_eq!(found["warnings"].as_array().unwrap().len(), 2, "{}", found["warnings"]);
    }

    #[test]
    fn several_jobs_are_put_together_as_all_of_their_requests() {
        let (a, b): (Vec<u64>, Vec<u64>) =
            ((0..2000).map(|n| 100 + n % 700).collect(), (0..1000).map(|n| 5000 + n).collect());
        let job = |name: &str, group: u64, values: &[u64]| json!({ "jobname": name, "groupid": group, "error": 0, "read": none(), "write": direction(values, true), "trim": none() });
        let found = read("x.json", &fio(&[job("a", 0, &a), job("b", 0, &b)])).unwrap();
        let write = &found["io"]["write"];
        let mut all = [a.clone(), b.clone()].concat();
        all.sort_unstable();
        let mean = all.iter().sum::<u64>() as f64 / 3000.0;
        let spread = (all.iter().map(|v| (*v as f64 - mean).powi(2)).sum::<f64>() / 2999.0).sqrt();
        let close = |key: &str, expected: f64| {
            let value = write["clat_ns"][key].as_f64().unwrap();
            assert!((value - expected).abs() < 1e-3, "{key}: {value} {expected}");
        };
        close("mean", mean);
        close("stddev", spread);
        // By rank, of the bins: what was printed of one job is not that of both.
        close("p50", all[1499] as f64);
        close("p99", all[2969] as f64);
        assert_eq!(
            (&write["iops"], write["histogram_ns"]["requests"].as_array().unwrap().len()),
            (&json!(3000.0), 1700)
        );
        assert_eq!(found["io"]["flows"][1]["write"]["clat_ns"]["p50"], json!(7.0));
        // One after the other: 3,000 requests in two seconds.
        let parted = read("x.json", &fio(&[job("a", 0, &a), job("b", 1, &b)])).unwrap();
        assert_eq!((&parted["io"]["all"]["iops"], &parted["simulated_ns"]), (&json!(1500.0), &json!(2e9)));
    }

    #[test]
    fn results_before_version_3_are_in_microseconds_and_kilobytes() {
        let old = json!({ "jobname": "a", "groupid": 0, "error": 0, "read": { "io_bytes": 4, "bw": 8, "iops": 2.0, "runtime": 500, "total_ios": 2, "clat": { "min": 10, "max": 30, "mean": 20.0, "stddev": 1.0 },
                      "lat": { "min": 11, "max": 31, "mean": 21.0, "stddev": 1.0 } } });
        let read = read("x.json", &fio(&[old])).unwrap()["io"]["read"].clone();
        assert_eq!(
            (&read["bytes"], &read["bandwidth_bytes_per_s"], &read["latency_ns"]["mean"]),
            (&json!(4096), &json!(8192.0), &json!(21_000.0))
        );
    }

    #[test]
    fn what_is_no_result_of_fio_is_told() {
        for (text, part) in [
            ("", "is empty"),
            ("{", "is not JSON"),
            ("[]", "not a result of fio"),
            ("{\"jobs\": []}", "not a result of fio"),
            ("{\"jobs\": [{\"jobname\": \"a\"}]}", "not a result of fio"),
            ("{\"schema\": \"nandscape.result/2\"}", "`diff`, `report` and Python read it directly"),
        ] {
            let told = read("x.json", text.as_bytes()).unwrap_err().to_string();
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        let values: Vec<u64> = (1..=4000).map(|n| 1000 + 3 * n).collect();
        let job = json!({ "jobname": "a", "groupid": 0, "error": 0, "read": direction(&values, true), "write": none(), "trim": none() });
        let mut document = read("x.json", &fio(&[job])).unwrap();
        // As a simulated one has them: of the whole latency, without a submission.
        document["io"]["read"]["clat_ns"]["p50"] = json!(7000.0);
        let options = job_of_inline("fio:name=a,rw=randread,rate_iops=5,10,direct");
        let printed = print(&document, &[options]);
        let read_of = &printed["jobs"][0]["read"];
        assert_eq!(
            printed["jobs"][0]["job options"],
            json!({ "name": "a", "rw": "randread", "rate_iops": "5,10", "direct": "" })
        );
        assert_eq!(
            (&read_of["total_ios"], &read_of["runtime"], &read_of["io_kbytes"]),
            (&json!(4000), &json!(1000), &json!(16_000))
        );
        assert_eq!(
            (&read_of["clat_ns"]["percentile"]["50.000000"], read_of["clat_ns"]["bins"]["1003"].as_u64()),
            (&json!(7000), Some(1))
        );
        assert_eq!(read_of["clat_ns"]["percentile"].as_object().unwrap().len(), PERCENTILES.len());
        // All of 1 to 13 us.
        let shares: f64 =
            printed["jobs"][0]["latency_us"].as_object().unwrap().values().filter_map(Value::as_f64).sum();
        assert_eq!(shares, 100.0);
        let back = read("y.json", printed.to_string().as_bytes()).unwrap();
        for key in ["requests", "bytes", "iops", "latency_ns"] {
            assert_eq!(back["io"]["read"][key], document["io"]["read"][key], "{key}");
        }
        assert_eq!(back["io"]["read"]["histogram_ns"], document["io"]["read"]["histogram_ns"]);
    }

    #[test]
    fn jobs_of_a_file_have_what_is_global_before_them() {
        let jobs = jobs_of_file(
            "[global]\nbs=4k\niodepth=1\n[a]\nrw=read\n; no\n[global]\nbs=8k\n[b]\niodepth=9\ndirect\n",
        );
        let of = |n: usize, key: &str| {
            jobs[n].options.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
        };
        assert_eq!(
            (jobs.len(), jobs[0].name.as_str(), of(0, "bs"), of(0, "iodepth")),
            (2, "a", Some("4k"), Some("1"))
        );
        assert_eq!(
            (of(1, "bs"), of(1, "iodepth"), of(1, "direct"), of(1, "rw")),
            (Some("8k"), Some("9"), Some(""), None)
        );
    }
}
