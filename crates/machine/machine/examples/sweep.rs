//! A sweep from code: a run is a function of its plan, so a sweep is a loop, and threads share nothing.
//!
//! `nandscape sweep FILE` does the same from a file, with a store of results that can be resumed.

use config::Diagnostic;
use machine::run::{Plan, run_alone};
use std::sync::Mutex;

/// Reads per second with this many channels, and ways per channel.
fn iops(channels: u32, ways: u32) -> Result<f64, Diagnostic> {
    let plan = Plan::new("d16", "fio:rw=randread,bs=4k,iodepth=128,number_ios=20000,norandommap=1")
        .set("flash.precondition=sequential")
        .set("flash.geometry.blocks=300")
        .set(&format!("flash.geometry.channels={channels}"))
        .set(&format!("flash.geometry.ways={ways}"));
    let document = run_alone(&plan)?;
    assert!(document.ok, "{:?}", document.checks);
    Ok(document.io.kinds.all.iops)
}

fn main() -> Result<(), Diagnostic> {
    let points: Vec<(u32, u32)> = [1, 2, 4].into_iter().flat_map(|c| [1, 2, 8].map(|w| (c, w))).collect();
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for (channels, ways) in &points {
            let found = &found;
            scope.spawn(move || {
                let iops = iops(*channels, *ways);
                found.lock().expect("no thread panics with the lock").push((*channels, *ways, iops));
            });
        }
    });
    let mut rows = Vec::new();
    for (channels, ways, iops) in found.into_inner().expect("no thread panics with the lock") {
        rows.push((channels, ways, iops?));
    }
    // Threads end in any order; what each of them finds does not depend on it.
    rows.sort_by_key(|(channels, ways, _)| (*channels, *ways));
    for (channels, ways, iops) in &rows {
        println!("{channels} channels of {ways} ways: {iops:>8.0} reads/s");
    }
    let of =
        |channels, ways| rows.iter().find(|row| (row.0, row.1) == (channels, ways)).map_or(0.0, |row| row.2);
    // Channels are independent of each other.
    assert!((of(4, 1) / of(1, 1) / 4.0 - 1.0).abs() < 0.1);
    // A channel of 800 MB/s moves 4 KiB in 5.12 us: beyond ten dies a channel, more do not help.
    assert!(of(1, 8) < 800e6 / 4096.0);
    assert!(of(1, 2) > 1.8 * of(1, 1));
    Ok(())
}
