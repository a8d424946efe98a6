//! The queue against a sorted list.

use super::*;
use proptest::prelude::*;

/// The naive reference: a sorted list.
#[derive(Default)]
struct Sorted {
    now: u64,
    scheduled: u64,
    list: Vec<(u64, bool, u64, u32)>,
}
impl Sorted {
    fn push(&mut self, time: u64, late: bool, event: u32) {
        self.list.push((time, late, self.scheduled, event));
        self.scheduled += 1;
    }
    fn pop(&mut self) -> Option<u32> {
        let at = (0..self.list.len()).min_by_key(|i| self.list[*i])?;
        let (time, _, _, event) = self.list.remove(at);
        self.now = time;
        Some(event)
    }
}

proptest! {
    #[test]
    fn crowds_leave_in_the_order_of_a_sorted_list(
        width in 0u32..24,
        cancelled in any::<bool>(),
        steps in prop::collection::vec((any::<bool>(), any::<u32>()), 1..1500),
    ) {
        let mut queue = EventQueue::new();
        let mut naive = Sorted::default();
        if cancelled {
            // Throughout, the queue holds a cancelled event.
            let ticket = queue.after(Time::from_s(1), u32::MAX);
            queue.cancel(ticket);
        }
        for (n, (pops, fine)) in steps.into_iter().enumerate() {
            if pops && n > 200 {
                prop_assert_eq!(queue.pop(), naive.pop());
                prop_assert_eq!(queue.now().ps(), naive.now);
            } else {
                let delay = u64::from(fine >> 8) >> (24 - width);
                queue.after(Time::from_ps(delay), n as u32);
                naive.push(naive.now + delay, false, n as u32);
            }
        }
        while let Some(event) = naive.pop() {
            prop_assert_eq!(queue.pop(), Some(event));
        }
        prop_assert_eq!(queue.pop(), None);
    }

    #[test]
    fn leaves_in_the_order_of_a_sorted_list(steps in prop::collection::vec((0u8..6, 0u32..48, any::<u16>()), 1..400)) {
        let mut queue = EventQueue::new();
        let mut naive = Sorted::default();
        let mut tickets: Vec<(u32, Ticket)> = Vec::new();
        for (n, (what, magnitude, fine)) in steps.into_iter().enumerate() {
            let event = n as u32;
            match what {
                0..=2 => {
                    let delay = (1u64 << magnitude >> 1) + if magnitude > 20 { u64::from(fine) } else { 0 };
                    tickets.push((event, queue.after(Time::from_ps(delay), event)));
                    naive.push(naive.now + delay, false, event);
                }
                3 => {
                    queue.late(Time::ZERO, event);
                    naive.push(naive.now, true, event);
                }
                4 if !tickets.is_empty() => {
                    let (victim, ticket) = tickets.remove(fine as usize % tickets.len());
                    if let Some(at) = naive.list.iter().position(|e| e.3 == victim) {
                        naive.list.remove(at);
                        queue.cancel(ticket);
                    }
                }
                _ => {
                    prop_assert_eq!(queue.pop(), naive.pop());
                    prop_assert_eq!(queue.now().ps(), naive.now);
                }
            }
            prop_assert_eq!(queue.len(), naive.list.len());
        }
        while let Some(event) = naive.pop() {
            prop_assert_eq!(queue.pop(), Some(event));
            prop_assert_eq!(queue.now().ps(), naive.now);
        }
        prop_assert_eq!(queue.pop(), None);
    }
}

/// More events in one slot than the list has room for, while a different one is cancelled: the next event is as often
/// in the heap as in the list.
#[test]
fn a_crowd_leaves_in_order_while_something_is_cancelled() {
    let mut queue = EventQueue::new();
    let ticket = queue.after(Time::from_s(9), u32::MAX);
    queue.cancel(ticket);
    for event in 0..100u32 {
        queue.after(Time::from_us(50) + Time::from_ps(u64::from(event * 37 % 100)), event * 37 % 100);
    }
    let left: Vec<Option<u32>> = (0..101).map(|_| queue.pop()).collect();
    assert_eq!(left, (0..100).map(Some).chain([None]).collect::<Vec<_>>());
}

#[test]
fn a_cancelled_event_does_not_move_time() {
    let mut queue = EventQueue::new();
    queue.after(Time::from_ns(1), 1u32);
    let ticket = queue.after(Time::from_s(9), 2);
    assert_eq!(queue.pop(), Some(1));
    queue.cancel(ticket);
    assert_eq!(queue.pop(), None);
    assert_eq!(queue.now(), Time::from_ns(1));
}

#[test]
fn late_runs_behind_everything_of_its_instant() {
    let mut queue = EventQueue::new();
    queue.after(Time::from_us(5), 1u32);
    assert_eq!(queue.pop(), Some(1));
    queue.late(Time::ZERO, 9);
    queue.after(Time::ZERO, 2);
    queue.after(Time::ZERO, 3);
    assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(2), Some(3), Some(9)]);
}

#[test]
#[should_panic(expected = "213 days")]
fn the_horizon_is_an_error() {
    let mut queue = EventQueue::new();
    queue.after(Time::from_us(1), 0u32);
    queue.pop();
    queue.after(Time::MAX, 0u32);
}
