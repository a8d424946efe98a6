//! The page cache and write-back against a real kernel: all jobs of `tests/calibration/pagecache/uml-6.1.toml`, on a drive with the law of the one that
//! was measured. `cargo test -p nandscape-linux --test calibration -- --nocapture` prints the comparison.

mod document;
mod fio;
mod gaps;
mod run;

use document::Job;
use gaps::{GAPS, Gap};

/// How far a figure may be off.
const WITHIN: f64 = 0.15;
/// How far a gap may be from what is written down of it.
const STEADY: f64 = 0.1;
/// Of what there are fewer is chance, and not compared: pages, requests, calls, pauses.
const FEW: f64 = 100.0;
/// A call that takes less than the latency of the drive does not wait for it: it says how fast the guest's core is.
const WAITS_NS: f64 = 200_000.0;

/// A figure of a job, if the measurement has it and it says something.
fn measured(job: &Job, figure: &str, model: f64) -> Option<f64> {
    let real = job.figure(figure).filter(|real| *real > 0.0)?;
    let count = |name: &str| job.figure(name).unwrap_or(0.0);
    let (of, what) = figure.rsplit_once('.').unwrap_or(("", figure));
    let enough = match what {
        "disk_writes" | "disk_write_mean_bytes" => count("disk_writes") >= FEW,
        "disk_reads" | "disk_read_mean_bytes" => count("disk_reads") >= FEW,
        "pauses" | "pause_total_ms" | "pause_p50_ns" => count(&format!("{of}.pauses")) >= FEW,
        "dirtied_steady_bytes_per_s" | "written_steady_bytes_per_s" => count("written_pages") >= FEW,
        // The hundredth part of fewer is the longest one.
        _ if what.ends_with("_p99_ns") && count(&figure.replace("p99_ns", "calls")) < FEW => false,
        _ if what.ends_with("_ns") => real.max(model) >= WAITS_NS,
        _ if what.ends_with("_bytes_per_s") => true,
        _ => real >= FEW,
    };
    enough.then_some(real)
}

fn is_within(ratio: f64) -> bool {
    (1.0 - WITHIN..=1.0 + WITHIN).contains(&ratio)
}

/// What is wrong with a ratio, if something is.
fn judge(ratio: f64, gap: Option<&Gap>) -> Result<(), String> {
    match gap {
        None if is_within(ratio) => Ok(()),
        None => Err(format!("is {ratio:.3}")),
        Some(_) if is_within(ratio) => Err(format!("is {ratio:.3}: no gap any more")),
        Some(gap) if (ratio - gap.ratio).abs() <= STEADY * gap.ratio + 0.01 => Ok(()),
        Some(gap) => Err(format!("is {ratio:.3}, and the gap {:.3}", gap.ratio)),
    }
}

#[test]
fn jobs_are_as_measured() {
    let (mut jobs, mut compared, mut wrong) = (0, 0, Vec::new());
    let mut open: Vec<&Gap> = GAPS.iter().collect();
    for job in document::jobs() {
        jobs += 1;
        for (figure, model) in run::run(&job) {
            let Some(real) = measured(&job, &figure, model) else { continue };
            let ratio = model / real;
            let gap = GAPS.iter().find(|gap| (gap.job, gap.figure) == (job.name, figure.as_str()));
            open.retain(|open| gap.is_none_or(|gap| !std::ptr::eq(*open, gap)));
            let why = gap.map_or("", |gap| gap.why.name());
            println!("{:17} {figure:29} {real:12.0} {model:12.0} {ratio:7.3} {why}", job.name);
            if let Err(what) = judge(ratio, gap) {
                wrong.push(format!("{} {figure} {what}", job.name));
            }
            compared += 1;
        }
    }
    println!("{compared} figures of {jobs} jobs, {} gaps", GAPS.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(open.is_empty(), "gaps of nothing: {open:?}");
    assert_eq!(jobs, 41);
}
