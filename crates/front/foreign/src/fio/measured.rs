//! fio measurements of one drive, job by job, as a fit of the drive needs them.

use super::read::{Kind, jobs_of, options_of};
use super::{number, text, whole};
use config::Diagnostic;
use serde_json::Value;
use std::collections::BTreeMap;

/// Measurement of one direction of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// File and name of the job.
    pub place: String,
    /// Options that define the job, as fio repeats them, with the names that the user wrote.
    pub options: Vec<(String, String)>,
    /// True if the direction is write; otherwise read.
    pub write: bool,
    /// Number of completed requests.
    pub requests: u64,
    /// Requests per second of all threads.
    pub iops: f64,
    /// Mean of fio's clat, from submission, or else of lat, in microseconds.
    pub mean: Option<f64>,
    /// Percentiles of clat, or else of lat, in microseconds: 99, 99.9, 99.999.
    pub percentiles: [Option<f64>; 3],
    /// Share of a core used by each thread.
    pub busy: Option<f64>,
}

/// Prefixes of block devices that are not drives, with their meaning.
const NO_DRIVES: [(&str, &str); 8] = [
    ("nullb", "the null block driver"),
    ("zram", "compressed memory"),
    ("ram", "a disk in memory"),
    ("loop", "a file as a disk"),
    ("pmem", "memory"),
    ("nbd", "a disk over a network"),
    ("md", "several drives as one"),
    ("dm-", "one or several drives behind the device mapper"),
];
/// Engines with one request in flight, whatever the depth.
const BLOCKING: [&str; 6] = ["sync", "psync", "vsync", "pvsync", "pvsync2", "mmap"];
/// Help on options that are missing in fio's output.
const REPEATED: &str = "fio repeats options in its JSON, those of a job under `job options`, common ones under `global options`: set them explicitly in the job, defaults too";

/// Reads fio's JSON from one or more files, all of one drive. Threads of a job are merged, and so are its repetitions
/// in a group.
///
/// # Errors
/// A file that [`read`](super::read) refuses; a job without block size or depth; jobs of several drives; a device that
/// is not a drive.
pub fn measured(files: &[(String, Vec<u8>)]) -> Result<Vec<Measured>, Diagnostic> {
    let mut all = Vec::new();
    let mut drives: BTreeMap<String, String> = BTreeMap::new();
    for (name, bytes) in files {
        let (found, jobs) = jobs_of(name, bytes)?;
        for drive in drives_of(&found, &jobs) {
            drives.entry(drive).or_insert_with(|| name.clone());
        }
        all.extend(of_file(name, &found, &jobs)?);
    }
    refuse_drives(&drives)?;
    Ok(all)
}

/// Drives that a result covers; empty if jobs name files and fio did not record the disks below.
fn drives_of(found: &Value, jobs: &[Value]) -> Vec<String> {
    let said = jobs.iter().flat_map(|job| {
        let options = options_of(found, job);
        let names = options.into_iter().filter(|(key, _)| key == "filename").map(|(_, value)| value);
        names.flat_map(|names| names.split(':').map(str::to_owned).collect::<Vec<_>>())
    });
    let devices = said.filter_map(|name| Some(drive_of(name.strip_prefix("/dev/")?).to_owned()));
    let mut drives: Vec<String> = devices.collect();
    if drives.is_empty() {
        let used = found.get("disk_util").and_then(Value::as_array).into_iter().flatten();
        drives.extend(used.map(|disk| drive_of(text(disk, "name")).to_owned()));
    }
    drives
}

/// Drive of a partition: `nvme0n1` for `nvme0n1p2`, `sda` for `sda1`.
fn drive_of(device: &str) -> &str {
    let stem = device.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_numbered = |name: &str| name.ends_with(|c: char| c.is_ascii_digit());
    match stem.strip_suffix('p') {
        Some(drive) if is_numbered(drive) => drive,
        _ if device.starts_with("sd") || device.starts_with("vd") || device.starts_with("hd") => stem,
        _ => device,
    }
}

fn refuse_drives(drives: &BTreeMap<String, String>) -> Result<(), Diagnostic> {
    for (drive, file) in drives {
        if let Some((_, what)) = NO_DRIVES.iter().find(|(begin, _)| drive.starts_with(begin)) {
            return Err(Diagnostic::new(format!(
                "{file} was measured on `{drive}`, which is not a drive: {what}"
            ))
            .help("a fit needs measurements of one drive, without the page cache (`direct=1`)"));
        }
    }
    if drives.len() > 1 {
        let named: Vec<String> = drives.iter().map(|(drive, file)| format!("{drive} ({file})")).collect();
        let what = format!("these results are from {} drives: {}", drives.len(), named.join(", "));
        return Err(
            Diagnostic::new(what).help("fit one drive at a time; partitions of one drive count as one")
        );
    }
    Ok(())
}

fn of_file(name: &str, found: &Value, jobs: &[Value]) -> Result<Vec<Measured>, Diagnostic> {
    // Threads of a job that were reported separately share a name and a group.
    let mut threads: BTreeMap<(u64, &str), Vec<&Value>> = BTreeMap::new();
    for job in jobs {
        threads.entry((whole(job, "groupid"), text(job, "jobname"))).or_default().push(job);
    }
    let mut all = Vec::new();
    for ((_, job), threads) in threads {
        let Some(first) = threads.first() else { continue };
        let options = options_of(found, first);
        let place = format!("{name}: {job}");
        if let Some(error) = threads.iter().map(|job| whole(job, "error")).find(|error| *error != 0) {
            return Err(Diagnostic::new(format!(
                "{place} ended with error {error}: its measurements are unusable"
            )));
        }
        refuse_silence(&place, &options)?;
        for (key, write) in [("read", false), ("write", true)] {
            let kinds = threads.iter().filter_map(|job| job.get(key)).map(Kind::read);
            let one = kinds.fold(Kind::default(), |mut one, kind| {
                one.merge(&kind);
                one
            });
            if one.requests > 0 {
                let busy = busy(&threads);
                all.push(Measured { write, busy, ..of_kind(&one, &place, &options) });
            }
        }
    }
    Ok(all)
}

fn of_kind(kind: &Kind, place: &str, options: &[(String, String)]) -> Measured {
    let (lat, clat) = (kind.lat.summary(), kind.clat.summary());
    let us = |of: &Value, key: &str| number(of, key).map(|ns| ns / 1e3);
    let of = |key: &str| us(&clat, key).or_else(|| us(&lat, key));
    Measured {
        place: place.to_owned(),
        options: options.to_vec(),
        write: false,
        requests: kind.requests,
        iops: kind.iops,
        mean: of("mean"),
        percentiles: ["p99", "p99_9", "p99_999"].map(of),
        busy: None,
    }
}

/// Mean over the threads, where fio reports it.
fn busy(threads: &[&Value]) -> Option<f64> {
    let of = |job: &&Value| Some((number(job, "usr_cpu")? + number(job, "sys_cpu")?) / 100.0);
    let shares: Vec<f64> = threads.iter().filter_map(of).collect();
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    // Simulated results use no processor time.
    (mean > 0.0).then_some(mean)
}

/// Refuses a job without a known block size, depth or pattern.
fn refuse_silence(place: &str, options: &[(String, String)]) -> Result<(), Diagnostic> {
    let said = |names: &[&str]| options.iter().any(|(key, _)| names.contains(&key.as_str()));
    let engine = options.iter().find(|(key, _)| key == "ioengine").map(|(_, value)| value.as_str());
    let is_blocking = engine.is_some_and(|engine| BLOCKING.contains(&engine));
    let lacking = [
        (!said(&["bs", "blocksize", "bsrange", "bssplit"])).then_some("block size (`bs`)"),
        (!said(&["iodepth"]) && !is_blocking).then_some("depth (`iodepth`)"),
        (!said(&["rw", "readwrite"])).then_some("pattern (`rw`)"),
    ];
    let lacking: Vec<&str> = lacking.into_iter().flatten().collect();
    if lacking.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::new(format!("{place} does not state its {}", lacking.join(", nor its "))).help(REPEATED))
}

#[cfg(test)]
mod tests {
    // Results made up in fio's form.
    use super::*;
    use serde_json::json;

    fn job(name: &str, options: &Value, iops: f64, us: f64) -> Value {
        let clat = json!({ "mean": us * 1e3, "N": 5000, "percentile": { "99.000000": 2e3 * us } });
        json!({
            "jobname": name, "groupid": 0, "error": 0, "job options": options, "usr_cpu": 20.0, "sys_cpu": 30.0,
            "read": { "total_ios": 5000, "iops": iops, "clat_ns": clat, "lat_ns": { "mean": us * 1e3 + 2e3, "N": 5000 } },
            "write": { "total_ios": 0 },
        })
    }

    fn file(name: &str, jobs: &[Value], disks: &[&str]) -> (String, Vec<u8>) {
        let disks: Vec<Value> = disks.iter().map(|name| json!({ "name": name })).collect();
        let all = json!({ "fio version": "fio-3.33", "global options": { "bs": "4k" }, "jobs": jobs, "disk_util": disks });
        (name.to_owned(), all.to_string().into_bytes())
    }

    /// Options of a job on a device.
    fn on(device: &str) -> Value {
        json!({ "rw": "randread", "iodepth": "4", "filename": device })
    }

    #[test]
    fn latency_is_from_submission_and_threads_of_a_job_are_one() {
        let threads =
            [job("a", &on("/dev/nvme0n1p1"), 1_000.0, 80.0), job("a", &on("/dev/nvme0n1p2"), 3_000.0, 100.0)];
        let found = measured(&[file("f.json", &threads, &[])]).unwrap();
        let [one] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((one.iops, one.requests, one.write, one.busy), (4_000.0, 10_000, false, Some(0.5)));
        // The mean of both, and no percentile: of two threads none is known.
        assert_eq!((one.mean, one.percentiles[0]), (Some(90.0), None));
        let [alone] = measured(&[file("f.json", &threads[..1], &[])]).unwrap().try_into().unwrap();
        assert_eq!((alone.mean, alone.percentiles), (Some(80.0), [Some(160.0), None, None]));
        assert!(alone.options.contains(&("bs".to_owned(), "4k".to_owned())));
    }

    #[test]
    fn what_cannot_be_of_one_drive_is_one_diagnostic() {
        let fault = |files: &[(String, Vec<u8>)]| measured(files).unwrap_err().one_line();
        let of = |device: &str| file("f.json", &[job("a", &on(device), 1e3, 80.0)], &[]);
        let two = [of("/dev/nvme0n1"), ("g.json".to_owned(), of("/dev/nvme1n1").1)];
        assert!(fault(&two).contains("from 2 drives: nvme0n1 (f.json), nvme1n1 (g.json)"), "{}", fault(&two));
        assert!(fault(&[of("/dev/sda:/dev/sdb")]).contains("from 2 drives"));
        assert!(fault(&[of("/dev/nullb0")]).contains("`nullb0`, which is not a drive"));
        let below =
            file("f.json", &[job("a", &on("/mnt/x/file"), 1e3, 80.0)], &["md0", "nvme0n1", "nvme1n1"]);
        assert!(fault(&[below]).contains("`md0`, which is not a drive"));
        let same = [of("/dev/sda1"), of("/dev/sda2"), of("/dev/sda")];
        assert!(measured(&same).is_ok());
    }

    #[test]
    fn a_job_that_hides_its_depth_or_block_size_is_named() {
        let (name, bytes) = file("f.json", &[job("quiet", &json!({ "rw": "read" }), 1e3, 80.0)], &[]);
        let fault = measured(&[(name, bytes)]).unwrap_err();
        assert_eq!(fault.what, "f.json: quiet does not state its depth (`iodepth`)");
        let blocking = json!({ "rw": "read", "ioengine": "psync" });
        assert!(measured(&[file("f.json", &[job("a", &blocking, 1e3, 80.0)], &[])]).is_ok());
        let no_size = json!({ "jobs": [job("a", &on("/dev/sda"), 1e3, 80.0)] }).to_string().into_bytes();
        assert!(measured(&[("g".to_owned(), no_size)]).unwrap_err().what.ends_with("its block size (`bs`)"));
    }

    #[test]
    fn partitions_are_of_their_drive() {
        let names = [
            ("nvme0n1p12", "nvme0n1"),
            ("nvme0n1", "nvme0n1"),
            ("sdb3", "sdb"),
            ("sdb", "sdb"),
            ("mmcblk0p1", "mmcblk0"),
            ("md0", "md0"),
        ];
        for (device, drive) in names {
            assert_eq!(drive_of(device), drive);
        }
    }
}
