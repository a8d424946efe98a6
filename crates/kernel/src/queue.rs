//! The event queue: a short sorted list in front of a hierarchical wheel.
//!
//! Events leave in the order (time, phase, schedule order). The wheel has levels of 64 slots, each level 64 times
//! coarser than the one below; it keeps far events unsorted at O(1). When the list runs empty the next occupied slot
//! is opened: a slot with few events is sorted into the list, a crowded one is dealt out to finer levels first. If many
//! come while a slot is open, the later half of the list goes back to the wheel. What is still crowded in the finest
//! slot, events of one instant for the most part, goes to a heap beside the list. So the list stays in the first-level
//! cache, whatever the number of pending events.

use crate::{Event, Time};
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// Bits of a picosecond time below the finest slot: 0.512 ns. A GPU has some ten events a nanosecond; those of a slot are
/// sorted one by one.
const GRAIN: u32 = 9;
/// Bits per level.
const LEVEL_BITS: u32 = 6;
/// Slots per level.
const SLOTS: usize = 1 << LEVEL_BITS;
/// Levels that cover the remaining 55 bits.
const LEVELS: usize = (64 - GRAIN as usize).div_ceil(LEVEL_BITS as usize);
/// A slot with at most this many events is opened without dealing it out.
const OPEN_AT_ONCE: usize = 12;
/// Longest sorted list.
const SORTED: usize = 32;
/// End of a list.
const NONE: u32 = u32::MAX;
/// Phase bit of the order word: late events sort behind every normal event of their instant.
const LATE: u64 = 1 << 63;

/// Names a scheduled event, so that it can be cancelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticket(u64);

#[derive(Clone, Copy)]
struct Entry {
    time: u64,
    order: u64,
    event: u64,
}

impl Entry {
    #[inline]
    fn key(&self) -> u128 {
        (self.time as u128) << 64 | self.order as u128
    }
}

#[derive(Clone, Copy)]
struct Node {
    entry: Entry,
    next: u32,
}

/// Pending events, ordered by (time, phase, schedule order).
pub struct EventQueue<E> {
    now: u64,
    scheduled: u64,
    /// Events before `near_limit`, latest first.
    near: Vec<Entry>,
    /// More events before `near_limit`, as a 4-ary heap. Mostly empty.
    crowd: Vec<Entry>,
    near_limit: u64,
    /// Start of the slot opened last; wheel positions are relative to it.
    base: u64,
    occupied: [u64; LEVELS],
    heads: [[u32; SLOTS]; LEVELS],
    nodes: Vec<Node>,
    free: u32,
    far: usize,
    cancelled: BTreeSet<u64>,
    events: PhantomData<E>,
}

impl<E: Event> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E: Event> EventQueue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        EventQueue {
            now: 0,
            scheduled: 0,
            near: Vec::with_capacity(SORTED + 1),
            crowd: Vec::new(),
            near_limit: 0,
            base: 0,
            occupied: [0; LEVELS],
            heads: [[NONE; SLOTS]; LEVELS],
            nodes: Vec::with_capacity(256),
            free: NONE,
            far: 0,
            cancelled: BTreeSet::new(),
            events: PhantomData,
        }
    }

    /// The time of the event popped last.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Events that are still to come, cancelled ones not counted.
    pub fn len(&self) -> usize {
        self.near.len() + self.crowd.len() + self.far - self.cancelled.len()
    }

    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Schedules `event` at `now + delay`.
    ///
    /// # Panics
    /// If the time lies beyond the horizon of `u64` picoseconds (213 days).
    #[inline]
    pub fn after(&mut self, delay: Time, event: E) -> Ticket {
        self.schedule(delay, 0, event)
    }

    /// Schedules `event` at `now + delay`, behind every normal event of that instant.
    ///
    /// # Panics
    /// As [`EventQueue::after`].
    #[inline]
    pub fn late(&mut self, delay: Time, event: E) -> Ticket {
        self.schedule(delay, LATE, event)
    }

    /// Takes the next place in the schedule order; an event may be put there later.
    #[inline]
    pub fn reserve(&mut self) -> Ticket {
        self.scheduled += 1;
        Ticket(self.scheduled - 1)
    }

    /// As [`EventQueue::reserve`], for an event of the late phase.
    #[inline]
    pub fn reserve_late(&mut self) -> Ticket {
        Ticket(self.reserve().0 | LATE)
    }

    /// Schedules `event` at `now + delay` in a reserved place of the schedule order. A place serves once.
    ///
    /// # Panics
    /// As [`EventQueue::after`].
    #[inline]
    pub fn at_place(&mut self, place: Ticket, delay: Time, event: E) {
        let time = self.now.checked_add(delay.ps()).expect("simulated time ends at 213 days");
        self.insert(Entry { time, order: place.0, event: event.word() });
    }

    #[inline]
    fn schedule(&mut self, delay: Time, phase: u64, event: E) -> Ticket {
        let place = Ticket(self.reserve().0 | phase);
        self.at_place(place, delay, event);
        place
    }

    /// Takes a pending event back: it neither runs nor moves time.
    ///
    /// The caller must know that the event is pending; cancelling one that has run would leak its name.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.cancelled.insert(ticket.0);
    }

    /// The next event, after moving the clock to it.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        loop {
            // In pieces, as in `push_crowd`: what was written in pieces a moment ago is slow to read as a whole.
            let (time, order, event) = match self.near.last() {
                Some(entry) if self.crowd.is_empty() => {
                    let pieces = (entry.time, entry.order, entry.event);
                    self.near.truncate(self.near.len() - 1);
                    pieces
                }
                None if self.crowd.is_empty() => {
                    if self.refill() {
                        continue;
                    }
                    return None;
                }
                _ => self.pop_crowded(),
            };
            if !self.cancelled.is_empty() && self.cancelled.remove(&order) {
                continue;
            }
            debug_assert!(time >= self.now, "time went back");
            self.now = time;
            return Some(E::from_word(event));
        }
    }

    #[inline]
    fn insert(&mut self, entry: Entry) {
        if entry.time < self.near_limit && self.near.len() == SORTED {
            self.shorten();
        }
        if entry.time < self.near_limit {
            self.push_near(entry);
        } else {
            self.push_far(entry.time, entry.order, entry.event);
        }
    }

    /// The later half of the sorted list goes back to the wheel, unless too much is at one instant.
    #[cold]
    fn shorten(&mut self) {
        let limit = self.near[SORTED / 2].time;
        let leave = self.near.iter().position(|entry| entry.time < limit);
        // The wheel holds nothing before its base. What is in the heap lies before the limit as it is.
        let Some(leave) = leave.filter(|_| limit >= self.base && self.crowd.is_empty()) else { return };
        self.near_limit = limit;
        for at in 0..leave {
            let Entry { time, order, event } = self.near[at];
            self.push_far(time, order, event);
        }
        self.near.drain(..leave);
    }

    #[inline(always)]
    fn push_near(&mut self, entry: Entry) {
        let mut at = self.near.len();
        if at >= SORTED {
            self.push_crowd(entry.time, entry.order, entry.event);
            return;
        }
        let key = entry.key();
        self.near.push(entry);
        while at > 0 && self.near[at - 1].key() < key {
            self.near[at] = self.near[at - 1];
            at -= 1;
        }
        self.near[at] = entry;
    }

    /// Takes the entry in pieces: one that is handed over in memory is put together there everywhere else too.
    #[cold]
    fn push_crowd(&mut self, time: u64, order: u64, event: u64) {
        let entry = Entry { time, order, event };
        let mut at = self.crowd.len();
        let key = entry.key();
        self.crowd.push(entry);
        while at > 0 {
            let parent = (at - 1) / 4;
            if self.crowd[parent].key() <= key {
                break;
            }
            self.crowd[at] = self.crowd[parent];
            at = parent;
        }
        self.crowd[at] = entry;
    }

    /// The next event while the heap is not empty.
    #[cold]
    fn pop_crowded(&mut self) -> (u64, u64, u64) {
        let top = self.crowd[0];
        if let Some(entry) = self.near.pop_if(|e| e.key() < top.key()) {
            return (entry.time, entry.order, entry.event);
        }
        let last = self.crowd[self.crowd.len() - 1];
        self.crowd.truncate(self.crowd.len() - 1);
        let len = self.crowd.len();
        if len > 0 {
            let key = last.key();
            let mut at = 0;
            loop {
                let first = 4 * at + 1;
                let Some(least) = (first..(first + 4).min(len)).min_by_key(|c| self.crowd[*c].key()) else {
                    break;
                };
                if key <= self.crowd[least].key() {
                    break;
                }
                self.crowd[at] = self.crowd[least];
                at = least;
            }
            self.crowd[at] = last;
        }
        (top.time, top.order, top.event)
    }

    #[inline]
    fn push_far(&mut self, time: u64, order: u64, event: u64) {
        let entry = Entry { time, order, event };
        let index = if self.free != NONE {
            let index = self.free;
            self.free = self.nodes[index as usize].next;
            self.nodes[index as usize].entry = entry;
            index
        } else {
            self.nodes.push(Node { entry, next: NONE });
            (self.nodes.len() - 1) as u32
        };
        self.far += 1;
        self.link(index);
    }

    /// Puts a node into its slot relative to `base`.
    #[inline]
    fn link(&mut self, index: u32) {
        let time = self.nodes[index as usize].entry.time;
        let differs = (time ^ self.base) >> GRAIN;
        let level = (63 - (differs | 1).leading_zeros()) / LEVEL_BITS;
        let slot = (time >> (GRAIN + LEVEL_BITS * level)) as usize & (SLOTS - 1);
        let level = level as usize;
        self.nodes[index as usize].next = self.heads[level][slot];
        self.heads[level][slot] = index;
        self.occupied[level] |= 1 << slot;
    }

    /// Opens slots until something is near. False if nothing is pending.
    #[inline(never)]
    fn refill(&mut self) -> bool {
        while self.near.is_empty() {
            let Some(level) = self.occupied.iter().position(|bits| *bits != 0) else { return false };
            let slot = self.occupied[level].trailing_zeros() as usize;
            let shift = GRAIN + LEVEL_BITS * level as u32;
            // Bits above this level are those of `base`; below it they are zero.
            let above = if shift + LEVEL_BITS >= 64 {
                0
            } else {
                self.base >> (shift + LEVEL_BITS) << (shift + LEVEL_BITS)
            };
            self.base = above | (slot as u64) << shift;
            let mut head = std::mem::replace(&mut self.heads[level][slot], NONE);
            self.occupied[level] &= !(1 << slot);
            if level == 0 || self.is_short(head) {
                self.near_limit = self.base.saturating_add(1 << shift);
                while head != NONE {
                    let node = self.nodes[head as usize];
                    self.push_near(node.entry);
                    self.nodes[head as usize].next = self.free;
                    self.free = head;
                    self.far -= 1;
                    head = node.next;
                }
            } else {
                self.near_limit = self.base;
                while head != NONE {
                    let next = self.nodes[head as usize].next;
                    self.link(head);
                    head = next;
                }
            }
        }
        true
    }

    fn is_short(&self, mut head: u32) -> bool {
        for _ in 0..OPEN_AT_ONCE {
            if head == NONE {
                return true;
            }
            head = self.nodes[head as usize].next;
        }
        head == NONE
    }
}

#[cfg(test)]
mod tests {
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
            steps in prop::collection::vec((any::<bool>(), any::<u32>()), 1..1500),
        ) {
            let mut queue = EventQueue::new();
            let mut naive = Sorted::default();
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
}
