//! What an observer is told, against what the part counts for itself.

use super::*;
use crate::vliw::coprocessor::observe::{Act, Done, Observer};
use std::cell::RefCell;
use std::rc::Rc;

/// Times by act, and the end of what was last on each track: cores, steps, and the link's directions.
#[derive(Default)]
struct Sums {
    shares: Vec<Time>,
    stalled: Vec<Time>,
    steps: Time,
    count: u64,
    link: [Time; 2],
    bytes: [u64; 2],
    last: Vec<Time>,
}

struct Watch(Rc<RefCell<Sums>>);

impl Observer for Watch {
    fn done(&mut self, done: &Done<'_>) {
        let (mut sums, took) = (self.0.borrow_mut(), done.to - done.from);
        let cores = sums.shares.len();
        let track = match done.act {
            Act::Share { core, stalled, program } => {
                assert!(["atax", "gemm"].contains(&program));
                sums.shares[usize::from(core)] += took;
                sums.stalled[usize::from(core)] += stalled;
                usize::from(core)
            }
            Act::Step { program, step } => {
                assert!(["atax", "gemm"].contains(&program) && u64::from(step) <= sums.count);
                sums.steps += took;
                sums.count += 1;
                cores
            }
            Act::Sends { bytes } => {
                sums.link[0] += took;
                sums.bytes[0] += bytes;
                cores + 1
            }
            Act::Receives { bytes } => {
                sums.link[1] += took;
                sums.bytes[1] += bytes;
                cores + 2
            }
        };
        assert!(sums.last[track] <= done.from, "twice at once on track {track}");
        sums.last[track] = done.to;
    }
}

#[test]
fn all_that_is_done_is_shown_once() {
    let spec = spec(3);
    let mut part = Coprocessor::new(&spec).expect("a coprocessor");
    let numbers =
        [("atax", 512), ("gemm", 128)].map(|(name, side)| part.add(shipped(name, side)).expect("it fits"));
    let sums = Rc::new(RefCell::new(Sums {
        shares: vec![Time::ZERO; 3],
        stalled: vec![Time::ZERO; 3],
        last: vec![Time::ZERO; 6],
        ..Sums::default()
    }));
    part.observer = Some(Box::new(Watch(Rc::clone(&sums))));
    let orders: Vec<Order> = numbers.iter().flat_map(|number| orders(part.plan(*number))).collect();
    let done = one_after_another(&mut part, orders);
    let (sums, stats) = (sums.borrow(), &part.stats);
    assert_eq!((&sums.shares, &sums.stalled), (&stats.computed, &stats.stalled));
    assert_eq!((sums.steps, sums.count), (stats.executing, stats.worked.count));
    assert_eq!(sums.link, part.link_busy(*done.last().expect("orders")));
    assert_eq!(sums.bytes, [stats.sent.bytes, stats.received.bytes]);
    assert!(sums.count > 2 && sums.bytes.iter().all(|bytes| *bytes > 0));
}
