//! Requests that are given out in batches (block/blk-core.c, until Linux 4.20).

use engine::Time;
use std::collections::{BTreeMap, VecDeque};

/// `BLK_BATCH_REQ` and `BLK_BATCH_TIME`: size and duration of a batch.
const BATCH: u32 = 32;
const BATCH_TIME: Time = Time::from_ms(20);

/// Synchronous or asynchronous requests of a queue (`struct request_list`).
#[derive(Debug, Default)]
struct Half {
    count: u32,
    /// Whether requests go only to tasks with a batch.
    full: bool,
    who: VecDeque<u32>,
}

/// Rest of a task's batch (`nr_batch_requests` and `last_waited` of `struct io_context`).
#[derive(Clone, Copy, Debug)]
struct Batch {
    left: u32,
    since: Time,
}

/// Admission to a queue of requests. Below the limit every task gets one. The task that reaches the limit, and each task that slept for a request, gets a batch: up to
/// 32 requests, as long as the queue holds less than 1.5 times the limit.
#[derive(Debug)]
pub(super) struct Batches {
    limit: u32,
    halves: [Half; 2],
    tasks: BTreeMap<u32, Batch>,
}

impl Batches {
    /// Admission with a limit for each half (`nr_requests`).
    pub(super) fn new(limit: u32) -> Batches {
        Batches { limit, halves: Default::default(), tasks: BTreeMap::new() }
    }

    /// Largest number of requests of both halves.
    pub(super) fn most(&self) -> u32 {
        2 * (self.limit + self.limit / 2)
    }

    /// Whether a task has a batch (`ioc_batching`). A whole batch never expires.
    fn has_batch(&self, task: u32, now: Time) -> bool {
        let running = |batch: &Batch| batch.left > 0 && now < batch.since + BATCH_TIME;
        self.tasks.get(&task).is_some_and(|batch| batch.left == BATCH || running(batch))
    }

    /// Gives a task a batch: it slept for a request, or took the last one below the limit (`ioc_set_batching`).
    pub(super) fn begin(&mut self, task: u32, now: Time) {
        if !self.has_batch(task, now) {
            self.tasks.insert(task, Batch { left: BATCH, since: now });
        }
    }

    /// Takes a request for a task, if the limit or a batch allows it (`__get_request`).
    pub(super) fn get(&mut self, is_sync: bool, task: u32, now: Time) -> bool {
        let half = &mut self.halves[usize::from(is_sync)];
        if half.count + 1 >= self.limit {
            if !std::mem::replace(&mut half.full, true) {
                self.begin(task, now);
            } else if !self.has_batch(task, now) {
                return false;
            }
        }
        let half = &mut self.halves[usize::from(is_sync)];
        if half.count >= self.limit + self.limit / 2 {
            return false;
        }
        half.count += 1;
        if self.has_batch(task, now)
            && let Some(batch) = self.tasks.get_mut(&task)
        {
            batch.left -= 1;
        }
        true
    }

    /// Returns a request; answers the task to wake (`__freed_request`).
    pub(super) fn put(&mut self, is_sync: bool) -> Option<u32> {
        let half = &mut self.halves[usize::from(is_sync)];
        half.count -= 1;
        if half.count + 1 > self.limit {
            return None;
        }
        half.full = false;
        half.who.pop_front()
    }

    /// Next task to wake, in place of one that was woken and went to another queue.
    pub(super) fn next(&mut self, is_sync: bool) -> Option<u32> {
        self.halves[usize::from(is_sync)].who.pop_front()
    }

    /// Appends a task to those that wait.
    pub(super) fn wait(&mut self, is_sync: bool, who: u32) {
        self.halves[usize::from(is_sync)].who.push_back(who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_ms(ms)
    }

    /// Task 1 takes 7 of 8, and the eighth, which fills the queue, with a batch of 32: it goes on to 12. Task 2 gets none before it has slept.
    #[test]
    fn the_task_that_fills_the_queue_goes_on_for_half_of_it() {
        let mut all = Batches::new(8);
        let taken = (0..100).take_while(|_| all.get(true, 1, ms(0))).count();
        assert_eq!(taken, 12);
        assert!(!all.get(true, 2, ms(0)));
        assert!(all.get(false, 2, ms(0)), "asynchronous requests are counted apart");
    }

    /// Waiting tasks are woken one by one, in order of arrival, once fewer than eight requests are out; a woken task takes its batch before any other.
    #[test]
    fn tasks_are_woken_in_turn_and_get_a_batch() {
        let mut all = Batches::new(8);
        while all.get(true, 1, ms(0)) {}
        (2..5).for_each(|who| all.wait(true, who));
        let woken: Vec<_> = (0..6).map(|_| all.put(true)).collect();
        assert_eq!(woken, [None, None, None, None, Some(2), Some(3)]);
        all.begin(2, ms(1));
        let taken = (0..100).take_while(|_| all.get(true, 2, ms(1))).count();
        assert_eq!(taken, 6);
        assert!(!all.get(true, 9, ms(1)));
    }

    /// A batch ends after 20 ms, but its first request can always be taken: a wake-up is never lost.
    #[test]
    fn a_batch_ends_but_not_before_its_first_request() {
        let mut all = Batches::new(8);
        while all.get(true, 1, ms(0)) {}
        all.begin(2, ms(0));
        all.put(true);
        all.put(true);
        assert!(all.get(true, 2, ms(100)));
        assert!(!all.get(true, 2, ms(100)));
    }
}
