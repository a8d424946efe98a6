//! Event queue against a binary heap: nanoseconds per event in the hold model (pop one, schedule one).
//!
//! `cargo bench -p nandscape-engine --bench queue`

use engine::{EventQueue, Rng, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// Delay as in a flash device: most are around a read, some around a program, a few are short.
fn delay(rng: &mut Rng) -> u64 {
    let jitter = rng.below(1 << 16);
    match rng.below(8) {
        0 => 600_000_000 + jitter,
        1..=3 => 5_150_000 + jitter,
        4 => 290_000 + jitter,
        _ => 50_300_000 + jitter,
    }
}

fn wheel(pending: usize, events: u64) -> (f64, u64) {
    let mut rng = Rng::stream(1, "bench");
    let mut queue = EventQueue::<u32>::new();
    for n in 0..pending {
        queue.after(Time::from_ps(delay(&mut rng)), n as u32);
    }
    let start = Instant::now();
    let mut digest = 0u64;
    for _ in 0..events {
        let Some(who) = queue.pop() else { break };
        digest = digest.wrapping_mul(31).wrapping_add(u64::from(who));
        queue.after(Time::from_ps(delay(&mut rng)), who);
    }
    (start.elapsed().as_nanos() as f64 / events as f64, digest)
}

fn heap(pending: usize, events: u64) -> (f64, u64) {
    let mut rng = Rng::stream(1, "bench");
    let mut queue = BinaryHeap::new();
    let mut order = 0u64;
    for n in 0..pending {
        queue.push(Reverse((delay(&mut rng), order, n as u32)));
        order += 1;
    }
    let start = Instant::now();
    let mut digest = 0u64;
    for _ in 0..events {
        let Some(Reverse((now, _, who))) = queue.pop() else { break };
        digest = digest.wrapping_mul(31).wrapping_add(u64::from(who));
        queue.push(Reverse((now + delay(&mut rng), order, who)));
        order += 1;
    }
    (start.elapsed().as_nanos() as f64 / events as f64, digest)
}

fn main() {
    println!("{:>9}  {:>9}  {:>11}  {:>6}", "pending", "queue ns", "std heap ns", "ratio");
    for pending in [30, 100, 1_000, 10_000, 100_000] {
        let events = 2_000_000;
        let (ours, a) = wheel(pending, events);
        let (theirs, b) = heap(pending, events);
        assert_eq!(a, b, "the two queues must deliver the same order");
        println!("{pending:>9}  {ours:>9.1}  {theirs:>11.1}  {:>6.2}", theirs / ours);
    }
}
