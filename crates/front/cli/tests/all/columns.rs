//! Metrics of a sweep that its runs do not have: told once, before anything runs if that can be known.

use crate::common::{Done, file, nandscape};
use std::path::Path;

/// Two small runs with metrics, of a drive with two channels and then of one with four.
fn sweep(folder: &Path, metrics: &str, more: &str) -> Done {
    let text = format!(
        "system = \"d16\"\nworkloads = [\"fio:rw=randwrite,bs=4k,number_ios=100\"]\nmetrics = [\"simulated_ns\", \"{metrics}\"]\n\
         {more}\n[set]\nflash.precondition = \"none\"\n\
         flash.geometry = {{ blocks = 32, pages = 16, ways = 2{} }}\nflash.ftl.over_provisioning = \"25%\"\n\
         flash.ftl.gc = {{ start = 3, stop = 4, hard = 1 }}\n",
        if more.is_empty() { ", channels = [2, 4]" } else { ", channels = 2" }
    );
    let path = file(folder, "s.toml", text);
    nandscape(&["sweep", &path, "--jobs", "1", "--out", &folder.join("out").display().to_string()])
}

#[test]
fn what_no_run_can_have_is_refused_before_any() {
    let folder = tempfile::tempdir().unwrap();
    for (metric, said) in [
        ("flash.flash.erases", "did you mean `flash.0.erases`"),
        ("flash.*.erases", "did you mean `flash.0.erases`"),
        ("flash.0.erase", "did you mean `flash.0.erases`"),
        ("flash.1.erases", "the system has one `flash`, number 0"),
        ("flash.1.erases", "did you mean `flash.0.erases`"),
        ("gpu.0.ipc", "the system has no `gpu`"),
        ("accelerator.accelerator.makespan_ns", "did you mean `accelerator.0.makespan_ns`"),
    ] {
        let done = sweep(folder.path(), metric, "");
        assert_eq!((done.code, done.stdout.as_str()), (Some(2), ""), "{metric}\n{}", done.stderr);
        assert!(done.stderr.contains(said) && done.stderr.contains("s.toml:3:"), "{metric}\n{}", done.stderr);
        assert_eq!(done.stderr.matches("error: ").count(), 1, "{}", done.stderr);
        assert!(!folder.path().join("out").exists(), "{metric}");
    }
}

/// The fourth channel is there in the second run only; a fifth in none.
#[test]
fn what_no_run_has_had_is_told_when_all_have_ended() {
    let folder = tempfile::tempdir().unwrap();
    let rows = || std::fs::read_to_string(folder.path().join("out/summary.csv")).unwrap().lines().count();
    let done = sweep(folder.path(), "flash.0.utilisation.channel.3", "").well();
    assert!(
        done.stderr.contains("note: run 0 has no metric `flash.0.utilisation.channel.3`"),
        "{}",
        done.stderr
    );
    assert_eq!(rows(), 3);
    std::fs::remove_dir_all(folder.path().join("out")).unwrap();
    let done = sweep(folder.path(), "flash.0.utilisation.channel.4", "");
    assert_eq!((done.code, rows()), (Some(2), 3), "{}", done.stderr);
    for said in [
        "error: no run has the metric `flash.0.utilisation.channel.4`",
        "s.toml:3:",
        "did you mean `flash.0.util",
    ] {
        assert!(done.stderr.contains(said), "no {said} in {}", done.stderr);
    }
}

/// Runs that differ in their seeds alone lack the same: one tells.
#[test]
fn one_run_tells_what_runs_that_are_alike_lack() {
    let folder = tempfile::tempdir().unwrap();
    let documents = || std::fs::read_dir(folder.path().join("out/runs")).unwrap().count();
    let done = sweep(
        folder.path(),
        "breakdown_ns.write.arrray",
        &format!("seeds = {:?}", (1..=40).collect::<Vec<_>>()),
    );
    assert_eq!(done.code, Some(2), "{}", done.stderr);
    assert!(
        done.stderr.contains("error: no run has the metric `breakdown_ns.write.arrray`"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.contains("did you mean `breakdown_ns.write.array`"), "{}", done.stderr);
    assert!(documents() < 40, "{}", documents());
}
