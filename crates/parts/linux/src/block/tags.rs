//! Pools of numbers with wait lists (lib/sbitmap.c). Before Linux 4.20, requests were allocated in batches instead
//! (block/blk-core.c).

use engine::Time;
use std::collections::{BTreeMap, VecDeque};

/// `SBQ_WAIT_QUEUES`.
const WAIT_QUEUES: usize = 8;
/// `SBQ_WAKE_BATCH`.
const WAKE_BATCH: u32 = 8;

/// Pool of numbers from zero up: tags, tokens (`struct sbitmap_queue`).
///
/// The bits are words of equal length, so that a limit on the bits of a word (`sbitmap_get_shallow`) keeps the rest for
/// others. The lowest free number of the word of the last freed number is allocated: *chosen*, since Linux remembers a
/// word for every core.
///
/// Waiters are in eight lists, used in rotation: each new waiter joins the next list. Each time a batch of numbers has
/// come back, as many waiters of one list are woken, in order of arrival, and the next list is due. A task that takes
/// all the returned numbers cannot do so again before another task has been woken. When all numbers are free, all
/// waiters are woken.
#[derive(Debug)]
pub(super) struct Tags {
    words: Vec<u64>,
    /// Log2 of the bits of a word.
    shift: u32,
    depth: u32,
    hint: u32,
    used: u32,
    batch: u32,
    lists: [Waiting; WAIT_QUEUES],
    /// List that the next waiter joins (`wait_index`), and list that is checked first (`wake_index`).
    next: usize,
    turn: usize,
}

/// Waiters of one list (`struct sbq_wait_state`).
#[derive(Debug, Default)]
struct Waiting {
    who: VecDeque<u32>,
    /// Numbers still to come back before waiters are woken (`wait_cnt`).
    left: u32,
}

impl Tags {
    /// Creates a pool of `depth` numbers.
    pub(super) fn new(depth: u32) -> Tags {
        // `sbitmap_calculate_shift`: four words at least.
        let mut shift = 6;
        while depth >= 4 && 4 << shift > depth {
            shift -= 1;
        }
        let words = vec![0; depth.div_ceil(1 << shift) as usize];
        let lists = Default::default();
        let mut tags = Tags { words, shift, depth, hint: 0, used: 0, batch: 1, lists, next: 0, turn: 0 };
        tags.set_shallow(u32::MAX);
        tags.lists.iter_mut().for_each(|list| list.left = tags.batch);
        tags
    }

    /// Size of the pool.
    #[inline]
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Bits of a word.
    #[inline]
    pub(super) fn word(&self) -> u32 {
        1 << self.shift
    }

    /// Sets the lowest limit on the bits of a word. Batches are sized so that waiters always make progress
    /// (`sbq_calc_wake_batch`).
    pub(super) fn set_shallow(&mut self, shallow: u32) {
        let shallow = shallow.min(self.word());
        let rest = self.depth & (self.word() - 1);
        let reach = (self.depth >> self.shift) * shallow + rest.min(shallow);
        let batch = (reach / WAIT_QUEUES as u32).clamp(1, WAKE_BATCH);
        if batch != self.batch {
            self.batch = batch;
            self.lists.iter_mut().for_each(|list| list.left = 1);
        }
    }

    /// Sets the pool's size, at most the initial one (`sbitmap_queue_resize`). Allocated numbers beyond it stay
    /// allocated.
    pub(super) fn resize(&mut self, depth: u32) {
        debug_assert!(depth > 0 && depth.div_ceil(self.word()) as usize <= self.words.len());
        self.depth = depth;
        self.set_shallow(u32::MAX);
    }

    /// Returns whether any number is free.
    pub(super) fn has_room(&self) -> bool {
        self.used < self.depth
    }

    /// Allocates a number whose place in its word is below `shallow`.
    pub(super) fn get(&mut self, shallow: u32) -> Option<u32> {
        let words = self.depth.div_ceil(self.word());
        let mut at = if self.hint < self.depth { self.hint >> self.shift } else { 0 };
        for _ in 0..words {
            let bits = (self.depth - (at << self.shift)).min(self.word()).min(shallow);
            let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
            let free = !self.words[at as usize] & mask;
            if free != 0 {
                let bit = free.trailing_zeros();
                self.words[at as usize] |= 1 << bit;
                self.used += 1;
                let number = (at << self.shift) + bit;
                if number == self.hint {
                    self.hint = number + 1;
                }
                return Some(number);
            }
            at = if at + 1 == words { 0 } else { at + 1 };
        }
        self.hint = 0;
        None
    }

    /// Frees a number; passes the waiters that it wakes to `wake`.
    pub(super) fn put(&mut self, number: u32, mut wake: impl FnMut(u32)) {
        let (word, bit) = (number >> self.shift, number & (self.word() - 1));
        debug_assert!(self.words[word as usize] >> bit & 1 == 1, "{number} was not lent");
        self.words[word as usize] &= !(1 << bit);
        self.used -= 1;
        self.hint = number;
        if self.used == 0 {
            for turn in (0..WAIT_QUEUES).map(|at| (self.turn + at) % WAIT_QUEUES) {
                self.lists[turn].who.drain(..).for_each(&mut wake);
            }
        } else {
            self.came_back(wake);
        }
    }

    /// Handles a freed number, or a wake-up that its task does not use (`__sbq_wake_up`).
    pub(super) fn came_back(&mut self, mut wake: impl FnMut(u32)) {
        let mut turns = (0..WAIT_QUEUES).map(|at| (self.turn + at) % WAIT_QUEUES);
        let Some(turn) = turns.find(|turn| !self.lists[*turn].who.is_empty()) else { return };
        self.turn = turn;
        let list = &mut self.lists[turn];
        list.left -= 1;
        if list.left == 0 {
            list.left = self.batch;
            self.turn = (turn + 1) % WAIT_QUEUES;
            let most = list.who.len().min(self.batch as usize);
            list.who.drain(..most).for_each(&mut wake);
        }
    }

    /// Appends a waiter to the list whose turn it is (`sbq_wait_ptr`).
    pub(super) fn wait(&mut self, who: u32) {
        self.lists[self.next].who.push_back(who);
        self.next = (self.next + 1) % WAIT_QUEUES;
    }

    /// Removes a waiter.
    pub(super) fn forget(&mut self, who: u32) {
        self.lists.iter_mut().for_each(|list| list.who.retain(|other| *other != who));
    }
}

// Allocation of requests in batches (block/blk-core.c, until Linux 4.20).

/// `BLK_BATCH_REQ` and `BLK_BATCH_TIME`: size and duration of a batch.
const BATCH_REQUESTS: u32 = 32;

const BATCH_TIME: Time = Time::from_ms(20);

/// Synchronous or asynchronous requests of a queue (`struct request_list`).
#[derive(Debug, Default)]
struct Half {
    count: u32,
    /// True if only tasks with a batch get requests.
    full: bool,
    who: VecDeque<u32>,
}

/// Remaining batch of a task (`nr_batch_requests` and `last_waited` of `struct io_context`).
#[derive(Clone, Copy, Debug)]
struct Batch {
    left: u32,
    since: Time,
}

/// Admission to a queue of requests. Below the limit every task gets a request. The task that reaches the limit, and
/// each task that slept for a request, gets a batch: up to 32 requests, as long as the queue holds less than 1.5 times
/// the limit.
#[derive(Debug)]
pub(super) struct Batches {
    limit: u32,
    halves: [Half; 2],
    tasks: BTreeMap<u32, Batch>,
}

impl Batches {
    /// Creates the admission, with a limit for each half (`nr_requests`).
    pub(super) fn new(limit: u32) -> Batches {
        Batches { limit, halves: Default::default(), tasks: BTreeMap::new() }
    }

    /// Maximum number of requests of both halves.
    pub(super) fn most(&self) -> u32 {
        2 * (self.limit + self.limit / 2)
    }

    /// Returns whether a task has a batch (`ioc_batching`). A whole batch never expires.
    fn has_batch(&self, task: u32, now: Time) -> bool {
        let running = |batch: &Batch| batch.left > 0 && now < batch.since + BATCH_TIME;
        self.tasks.get(&task).is_some_and(|batch| batch.left == BATCH_REQUESTS || running(batch))
    }

    /// Gives a task a batch: it slept for a request, or took the last one below the limit (`ioc_set_batching`).
    pub(super) fn begin(&mut self, task: u32, now: Time) {
        if !self.has_batch(task, now) {
            self.tasks.insert(task, Batch { left: BATCH_REQUESTS, since: now });
        }
    }

    /// Allocates a request to a task, if the limit or a batch allows it (`__get_request`).
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

    /// Frees a request; returns the task to wake (`__freed_request`).
    pub(super) fn put(&mut self, is_sync: bool) -> Option<u32> {
        let half = &mut self.halves[usize::from(is_sync)];
        half.count -= 1;
        if half.count + 1 > self.limit {
            return None;
        }
        half.full = false;
        half.who.pop_front()
    }

    /// Returns the next task to wake, in place of a woken task that moved to another queue.
    pub(super) fn next(&mut self, is_sync: bool) -> Option<u32> {
        self.halves[usize::from(is_sync)].who.pop_front()
    }

    /// Appends a waiting task.
    pub(super) fn wait(&mut self, is_sync: bool, who: u32) {
        self.halves[usize::from(is_sync)].who.push_back(who);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sbitmap_calculate_shift`, `sbq_calc_wake_batch`.
    #[test]
    fn words_and_batches_are_the_kernel_s() {
        // Depth, bits of a word: at least four words, of at most 64 bits.
        for (depth, word) in [(1023, 64), (256, 64), (128, 32), (64, 16), (16, 4), (4, 1)] {
            assert_eq!(Tags::new(depth).word(), word, "{depth}");
        }
        // 256: 256 / 8 = 32, capped at 8. 31: 31 / 8 = 3. Limited to one bit of each of four words: 4 / 8, at least 1.
        let woken = |depth: u32, shallow: u32| {
            let mut tags = Tags::new(depth);
            tags.set_shallow(shallow);
            let lent: Vec<_> = std::iter::from_fn(|| tags.get(u32::MAX)).collect();
            assert_eq!(lent.len(), depth as usize);
            (0..20).for_each(|who| tags.wait(who));
            let mut woken = Vec::new();
            lent.iter()
                .map_while(|tag| {
                    tags.put(*tag, |who| woken.push(who));
                    woken.is_empty().then_some(())
                })
                .count()
                + 1
        };
        assert_eq!((woken(256, u32::MAX), woken(31, u32::MAX), woken(16, 1)), (8, 3, 1));
    }

    /// Two tasks wait for 32 tags: one in list 0, one in list 1 (`sbq_wait_ptr`). Four returned tags (32 / 8) wake list
    /// 0 only, although there is one for each. A task that takes all four and waits again is in list 2: the next four
    /// wake list 1 first.
    #[test]
    fn lists_of_those_who_wait_take_turns() {
        let mut tags = Tags::new(32);
        let mut lent: Vec<_> = std::iter::from_fn(|| tags.get(u32::MAX)).collect();
        let [greedy, other] = [7, 8];
        tags.wait(greedy);
        tags.wait(other);
        let mut woken = Vec::new();
        for round in 1..=3 {
            for tag in lent.drain(..4) {
                tags.put(tag, |who| woken.push(who));
            }
            assert_eq!(woken.len(), round);
            lent.extend((0..4).map(|_| tags.get(u32::MAX).expect("four came back")));
            tags.wait(woken[round - 1]);
        }
        assert_eq!(woken, [greedy, other, greedy]);
    }

    /// `sbitmap_get_shallow`: 48 of 64 bits in each of four words are 192 of 256; the rest is for others.
    #[test]
    fn a_shallow_depth_leaves_the_end_of_each_word() {
        let mut tags = Tags::new(256);
        let shallow: Vec<_> = std::iter::from_fn(|| tags.get(48)).collect();
        assert_eq!(shallow.len(), 192);
        assert!(shallow.iter().all(|tag| tag % 64 < 48));
        assert_eq!(std::iter::from_fn(|| tags.get(u32::MAX)).count(), 64);
    }

    /// `sbitmap_queue_resize`: tags allocated beyond the new depth stay so and are not allocated again.
    #[test]
    fn a_smaller_depth_counts_for_what_is_lent_from_now_on() {
        let mut tags = Tags::new(16);
        let lent: Vec<_> = std::iter::from_fn(|| tags.get(u32::MAX)).collect();
        tags.resize(4);
        lent.iter().for_each(|tag| tags.put(*tag, |_| ()));
        assert_eq!(std::iter::from_fn(|| tags.get(u32::MAX)).count(), 4);
        tags.resize(16);
        assert_eq!(std::iter::from_fn(|| tags.get(u32::MAX)).count(), 12);
    }

    fn ms(ms: u64) -> Time {
        Time::from_ms(ms)
    }

    /// Task 1 takes 7 of 8, and the eighth, which fills the queue, with a batch of 32: it goes on to 12. Task 2 gets
    /// none before it has slept.
    #[test]
    fn the_task_that_fills_the_queue_goes_on_for_half_of_it() {
        let mut all = Batches::new(8);
        let taken = (0..100).take_while(|_| all.get(true, 1, ms(0))).count();
        assert_eq!(taken, 12);
        assert!(!all.get(true, 2, ms(0)));
        assert!(all.get(false, 2, ms(0)), "asynchronous requests are counted separately");
    }

    /// Waiting tasks are woken one at a time, in order of arrival, once fewer than eight requests are out. A woken task
    /// takes its batch before any other.
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
