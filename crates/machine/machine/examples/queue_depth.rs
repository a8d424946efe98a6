//! What queue depth does to latency: throughput grows with depth until every die is busy, from then on latency does.
//!
//! The document's numbers obey Little's law: the mean number in flight is throughput times mean latency.

use config::Diagnostic;
use machine::result::OpResult;
use machine::run::{Plan, run_alone};

/// Dies of the device below: 4 channels, 2 ways.
const DIES: u32 = 8;

fn reads(depth: u32) -> Result<OpResult, Diagnostic> {
    let job = format!("fio:rw=randread,bs=4k,iodepth={depth},number_ios=20000,norandommap=1");
    let plan = Plan::new("d16", &job)
        .set("flash.precondition=sequential")
        .set("flash.geometry.channels=4")
        .set("flash.geometry.ways=2")
        .set("flash.geometry.planes=1");
    let document = run_alone(&plan)?;
    assert!(document.ok, "{:?}", document.checks);
    document.io.kinds.read.ok_or_else(|| Diagnostic::new("nothing was read"))
}

fn main() -> Result<(), Diagnostic> {
    println!("{:>5} {:>12} {:>12} {:>12}", "depth", "IOPS", "mean (us)", "p99 (us)");
    let mut found = Vec::new();
    for depth in [1, 4, 16, 64, 256] {
        let read = reads(depth)?;
        let mean_us = read.latency_ns.mean.unwrap_or_default() / 1e3;
        let p99_us = read.latency_ns.p99.unwrap_or_default() / 1e3;
        println!("{depth:>5} {:>12.0} {mean_us:>12.1} {p99_us:>12.1}", read.iops);
        // Little's law; the last requests leave the queue less than full.
        let in_flight = read.iops * mean_us / 1e6;
        assert!((in_flight / f64::from(depth) - 1.0).abs() < 0.05, "{in_flight} in flight at depth {depth}");
        found.push((read.iops, mean_us));
    }
    let alone = found[0];
    // A single read takes 50 us in the array and a few on the way.
    assert!((50.0..70.0).contains(&alone.1));
    // Never more than one read a die at a time.
    let ceiling = f64::from(DIES) / 50e-6;
    assert!(found.iter().all(|(iops, _)| *iops < ceiling));
    // At depth 256 the dies are busy all the time, so four times the depth is four times the latency.
    let (deep, deepest) = (found[3], found[4]);
    assert!(deepest.0 < 1.1 * deep.0 && deepest.1 > 3.5 * deep.1);
    Ok(())
}
