//! Replays a trace, first at its own times and then as fast as a queue depth allows.
//!
//! At its own times (open loop) the load is the trace's: a device that is fast enough completes as many requests a second
//! as arrive. At a queue depth (closed loop) the times are not used, and the run measures the device.

use config::Diagnostic;
use machine::result::Document;
use machine::run::{Plan, run_alone};
use std::fmt::Write as _;

/// Requests of the trace, 100 us apart: every third a write of 8 KiB, the others reads of 4 KiB.
const REQUESTS: u64 = 5_000;

fn trace() -> String {
    let mut text = String::new();
    for n in 0..REQUESTS {
        // MQSim's format: time (ns), device, first sector, sectors, 1 for a read.
        let (sectors, is_read) = if n % 3 == 0 { (16, 0) } else { (8, 1) };
        let _ = writeln!(text, "{} 0 {} {sectors} {is_read}", n * 100_000, n * 7919 % 4096 * 16);
    }
    text
}

fn replay(path: &str, queue_depth: Option<u32>) -> Result<Document, Diagnostic> {
    let mut plan =
        Plan::new("d16", path).set("flash.precondition=sequential").set("flash.geometry.blocks=256");
    plan.queue_depth = queue_depth;
    let document = run_alone(&plan)?;
    assert!(document.ok, "{:?}", document.checks);
    assert_eq!(document.io.kinds.all.requests, REQUESTS);
    Ok(document)
}

fn main() -> Result<(), Diagnostic> {
    let path = std::env::temp_dir().join(format!("nandscape-example-{}.trace", std::process::id()));
    let fault = |e: std::io::Error| Diagnostic::new(format!("cannot use {}: {e}", path.display()));
    std::fs::write(&path, trace()).map_err(fault)?;
    let text = path.display().to_string();
    let (open, closed) = (replay(&text, None), replay(&text, Some(32)));
    std::fs::remove_file(&path).map_err(fault)?;
    let (open, closed) = (open?, closed?);
    for (name, document) in [("own times", &open), ("depth 32", &closed)] {
        let all = &document.io.kinds.all;
        println!(
            "{name:<10} {:>8.0} requests/s, mean latency {:>7.1} us",
            all.iops,
            all.latency_ns.mean.unwrap_or_default() / 1e3
        );
    }
    // One request each 100 us.
    assert!((open.io.kinds.all.iops / 10_000.0 - 1.0).abs() < 0.01);
    assert!(closed.io.kinds.all.iops > 2.0 * open.io.kinds.all.iops);
    assert!((closed.io.kinds.all.queue_depth_mean - 32.0).abs() < 1.0);
    Ok(())
}
