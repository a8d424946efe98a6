//! A host for tests: as many cores as threads, and calls of fixed lengths.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use engine::Time;
use proto::file::{Call, Next, Program};

/// How long calls take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    /// Any call.
    pub(crate) time: Time,
    /// A sync besides.
    pub(crate) sync: Time,
}

/// What a thread did, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Did {
    pub(crate) at: Time,
    pub(crate) thread: u32,
    pub(crate) next: Next,
}

/// Runs a program until a time.
pub(crate) fn drive<P: Program + ?Sized>(program: &mut P, calls: &Calls, until: Time) -> Vec<Did> {
    let (mut queue, mut asleep) = (BinaryHeap::new(), vec![None; program.threads() as usize]);
    let (mut order, mut done) = (0_u64, Vec::new());
    let mut wake = |queue: &mut BinaryHeap<_>, at: Time, thread: u32| {
        order += 1;
        queue.push(Reverse((at, order, thread)));
        order
    };
    for thread in 0..program.threads() {
        wake(&mut queue, Time::ZERO, thread);
    }
    while let Some(Reverse((now, ticket, thread))) = queue.pop() {
        if now > until {
            break;
        }
        // A sleeper that was woken early.
        if asleep[thread as usize].take().is_some_and(|valid: u64| valid != ticket) {
            continue;
        }
        let next = program.next(thread, now);
        done.push(Did { at: now, thread, next });
        match next {
            Next::Compute(time) => drop(wake(&mut queue, now + time, thread)),
            Next::Call(Call::Sync { .. }) => drop(wake(&mut queue, now + calls.time + calls.sync, thread)),
            Next::Call(_) | Next::Order { .. } => drop(wake(&mut queue, now + calls.time, thread)),
            Next::Until(time) => drop(wake(&mut queue, time.max(now), thread)),
            Next::Wait => asleep[thread as usize] = Some(u64::MAX),
            Next::Wake(other) => {
                if asleep[other as usize].take().is_some() {
                    wake(&mut queue, now, other);
                }
                wake(&mut queue, now, thread);
            }
            Next::End => {}
        }
    }
    done
}
