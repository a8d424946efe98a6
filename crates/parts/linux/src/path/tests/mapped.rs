//! Requests that are loads and stores of a mapping, on a host before a drive of constant latency: what the page cache has costs what is copied.
//!
//! Costs in nanoseconds: `call` 150 and `lookup` 300 a fault, `allocate` 190, `insert` 330, `map` 90, `bio` 720, `request` 660, `interrupt` 500,
//! `complete` 1040, `end_page` 100, `context_switch` 950, `idle_exit` 2000, `dirty` 330; 4 KiB are copied at 19.5 GB/s in 210.

use super::queued::{Load, plain};
use super::*;
use proto::file::Advice;

const LATENCY: u64 = 20_000;
const COPY: u64 = 210;
const FAULT: u64 = 150 + 300;
/// A fault that misses a page, reads it alone, sleeps, and finds it: 190 + 330 + 90 + 720 + 660, then 500 + 1040 + 100, then 950 + 2000.
const MAJOR: u64 = FAULT + 1990 + LATENCY + 1640 + 2950 + FAULT;

/// A mapping of this advice.
fn load(advice: Advice) -> Load {
    let mut load = Load::new(&plain(), Time::from_ns(LATENCY), 1);
    load.host.open_flow(0, Way::Mapped, 0, None, advice);
    load
}

/// Requests of so many pages, each from this page on, one after another in the same instant.
fn serve(load: &mut Load, op: IoOp, pages: &[(u64, u64)]) -> Vec<u64> {
    let first = load.latencies().len();
    for &(page, count) in pages {
        load.ask(Way::Mapped, Command::new(0, op, page * PAGE, count * PAGE));
        while load.step().expect("a request that is not served").is_empty() {}
    }
    load.latencies().split_off(first)
}

fn near(latencies: &[u64], expected: &[u64]) {
    // Times of copies are not whole nanoseconds.
    let close = |(a, b): (&u64, &u64)| a.abs_diff(*b) <= 1 + b / 10_000;
    let equal = latencies.len() == expected.len() && latencies.iter().zip(expected).all(close);
    assert!(equal, "{latencies:?} of {expected:?}");
}

/// `MADV_RANDOM`: a page that is missing is read alone; one that is mapped takes no call.
#[test]
fn a_page_that_is_mapped_costs_its_copy() {
    let mut load = load(Advice::Random);
    serve(&mut load, IoOp::Read, &[(1000, 1)]);
    near(
        &serve(&mut load, IoOp::Read, &[(7, 1), (7, 1), (1000, 1), (7, 1)]),
        &[MAJOR + COPY, COPY, COPY, COPY],
    );
    assert_eq!(load.commands(), [(IoOp::Read, 1000, 1), (IoOp::Read, 7, 1)]);
    // A request of several pages faults for each that is missing.
    near(&serve(&mut load, IoOp::Read, &[(6, 3)]), &[2 * MAJOR + 3 * COPY]);
    load.drain();
}

/// Without advice a fault reads `read_ahead_kb` around its page, 128 KiB, and maps what is there of the 64 KiB around it
/// (`fault_around_bytes`).
#[test]
fn a_fault_reads_and_maps_around_its_page() {
    let mut load = load(Advice::Normal);
    serve(&mut load, IoOp::Read, &[(1000, 1)]);
    serve(&mut load, IoOp::Read, &[(100, 1)]);
    assert_eq!(load.commands()[1], (IoOp::Read, 84, 32));
    // Pages 96 to 111 are mapped with page 100, whichever is the marker of the window apart; those beyond are not.
    let mapped = serve(&mut load, IoOp::Read, &[(97, 1), (111, 1), (96, 1)]);
    near(&mapped, &[COPY; 3]);
    near(&serve(&mut load, IoOp::Read, &[(95, 1), (94, 1)]), &[FAULT + COPY, COPY]);
    assert_eq!(load.commands().len(), 2);
    load.drain();
}

/// `MADV_SEQUENTIAL` after `POSIX_FADV_SEQUENTIAL`: twice the read-ahead, from the page on.
#[test]
fn a_sequential_mapping_reads_ahead() {
    let mut load = load(Advice::Sequential);
    let pages: Vec<(u64, u64)> = (0..512).map(|page| (page, 1)).collect();
    serve(&mut load, IoOp::Read, &pages);
    let commands = load.commands();
    assert_eq!(commands[0], (IoOp::Read, 0, 64));
    // Each page once, in order, 256 KiB at a time.
    let mut next = 0;
    for (op, page, count) in &commands {
        assert_eq!((*op, *page), (IoOp::Read, next));
        next += count;
    }
    assert!((512..=640).contains(&next) && commands.len() <= 12, "{commands:?}");
    load.drain();
}

/// The first store into a clean page is a fault that makes it dirty; write-back makes it clean. A flush is `msync`: what is dirty is written, and the
/// drive's cache is emptied.
#[test]
fn a_store_makes_its_page_dirty_and_a_flush_clean() {
    let mut load = load(Advice::Random);
    serve(&mut load, IoOp::Read, &[(1000, 1)]);
    let stores = serve(&mut load, IoOp::Write, &[(5, 1), (5, 1), (1000, 1), (1000, 1)]);
    near(&stores, &[MAJOR + 330 + COPY, COPY, 330 + COPY, COPY]);
    // What a store covers is read before, as a mapping does.
    assert_eq!(load.commands(), [(IoOp::Read, 1000, 1), (IoOp::Read, 5, 1)]);
    serve(&mut load, IoOp::Flush, &[(0, 0)]);
    let mut written = load.commands().split_off(2);
    assert_eq!(written.pop(), Some((IoOp::Flush, 0, 0)));
    assert_eq!(written, [(IoOp::Write, 5, 1), (IoOp::Write, 1000, 1)]);
    near(&serve(&mut load, IoOp::Read, &[(5, 1)]), &[COPY]);
    near(&serve(&mut load, IoOp::Write, &[(5, 1), (5, 1)]), &[330 + COPY, COPY]);
    serve(&mut load, IoOp::Flush, &[(0, 0)]);
    load.drain();
}
