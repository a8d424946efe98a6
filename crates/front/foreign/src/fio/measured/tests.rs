//! Results of our own making, as fio would print them.

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
    assert!(fault(&two).contains("of 2 drives: nvme0n1 (f.json), nvme1n1 (g.json)"), "{}", fault(&two));
    assert!(fault(&[of("/dev/sda:/dev/sdb")]).contains("of 2 drives"));
    assert!(fault(&[of("/dev/nullb0")]).contains("`nullb0`, which is no drive"));
    let below = file("f.json", &[job("a", &on("/mnt/x/file"), 1e3, 80.0)], &["md0", "nvme0n1", "nvme1n1"]);
    assert!(fault(&[below]).contains("`md0`, which is no drive"));
    let same = [of("/dev/sda1"), of("/dev/sda2"), of("/dev/sda")];
    assert!(measured(&same).is_ok());
}

#[test]
fn a_job_that_hides_its_depth_or_block_size_is_named() {
    let (name, bytes) = file("f.json", &[job("quiet", &json!({ "rw": "read" }), 1e3, 80.0)], &[]);
    let fault = measured(&[(name, bytes)]).unwrap_err();
    assert_eq!(fault.what, "f.json: quiet does not say its depth (`iodepth`)");
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
