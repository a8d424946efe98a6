//! Event queue: a short sorted list in front of a hierarchical wheel.
//!
//! Events leave in the order (time, phase, schedule order). The wheel has levels of 64 slots, each level 64 times
//! coarser than the one below; it keeps far events unsorted at O(1). When the list runs empty, the next occupied slot
//! is opened: a slot with few events is sorted into the list, a crowded one is dealt out to finer levels first. If many
//! events arrive while a slot is open, the later half of the list goes back to the wheel. If the finest slot is still
//! crowded, usually with events of one instant, the excess goes to a heap beside the list. So the list stays in the L1
//! cache, whatever the number of pending events.

use crate::{Event, Time};
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// Number of bits of a picosecond time below the finest slot: 0.512 ns. A GPU has some ten events per nanosecond; those
/// of a slot are sorted one by one.
const GRAIN: u32 = 9;
/// Bits per level.
const LEVEL_BITS: u32 = 6;
/// Slots per level.
const SLOTS: usize = 1 << LEVEL_BITS;
/// Number of levels: ten cover the remaining 55 bits, made a power of two so that a mask shows that a level is in
/// range.
const LEVELS: usize = (64 - GRAIN as usize).div_ceil(LEVEL_BITS as usize).next_power_of_two();
/// Maximum number of events in a slot that is opened without dealing it out.
const OPEN_AT_ONCE: usize = 12;
/// Maximum length of the sorted list: a power of two for the same reason.
const SORTED: usize = 32;
/// End of a list.
const NONE: u32 = u32::MAX;
/// Phase bit of the order word: late events sort after every normal event of their instant.
const LATE: u64 = 1 << 63;

/// Handle of a scheduled event, for cancelling it.
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

/// Sorted list, with one array per field of an entry. Copying an entry whole, sixteen bytes at a time, would stall on
/// the narrower stores that wrote its fields a moment ago.
struct Near {
    times: [u64; SORTED],
    orders: [u64; SORTED],
    events: [u64; SORTED],
}

impl Near {
    #[inline(always)]
    fn get(&self, at: usize) -> Entry {
        Entry { time: self.times[at], order: self.orders[at], event: self.events[at] }
    }

    #[inline(always)]
    fn set(&mut self, at: usize, entry: Entry) {
        (self.times[at], self.orders[at], self.events[at]) = (entry.time, entry.order, entry.event);
    }
}

#[derive(Clone, Copy)]
struct Node {
    entry: Entry,
    next: u32,
}

/// Queue of pending events, ordered by (time, phase, schedule order).
///
/// Entries are passed field by field: an entry passed in memory is assembled in memory everywhere else too.
pub struct EventQueue<E> {
    now: u64,
    scheduled: u64,
    near_limit: u64,
    /// Number of pending entries in `near`.
    sorted: usize,
    /// True if `crowd` or `cancelled` is not empty.
    unusual: bool,
    /// Bit set of levels with an occupied slot.
    levels: u32,
    free: u32,
    /// Start of the slot opened last; wheel positions are relative to it.
    base: u64,
    nodes: Vec<Node>,
    /// Events before `near_limit`, latest first.
    near: Near,
    occupied: [u64; LEVELS],
    heads: [[u32; SLOTS]; LEVELS],
    /// Events before `near_limit` that do not fit in the list: a heap with four children per node.
    crowd: Vec<Entry>,
    cancelled: BTreeSet<u64>,
    events: PhantomData<E>,
}

impl<E: Event> Default for EventQueue<E> {
    fn default() -> Self {
        EventQueue::new()
    }
}

impl<E: Event> EventQueue<E> {
    /// Creates an empty queue at time zero.
    pub fn new() -> Self {
        EventQueue {
            now: 0,
            scheduled: 0,
            near_limit: 0,
            sorted: 0,
            unusual: false,
            levels: 0,
            free: NONE,
            base: 0,
            nodes: Vec::with_capacity(256),
            near: Near { times: [0; SORTED], orders: [0; SORTED], events: [0; SORTED] },
            occupied: [0; LEVELS],
            heads: [[NONE; SLOTS]; LEVELS],
            crowd: Vec::new(),
            cancelled: BTreeSet::new(),
            events: PhantomData,
        }
    }

    /// Returns the time of the event popped last.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Returns the number of pending events without cancelled ones. They are counted on demand.
    pub fn len(&self) -> usize {
        let mut far = self.nodes.len();
        let mut vacant = self.free;
        while let Some(node) = self.nodes.get(vacant as usize) {
            far -= 1;
            vacant = node.next;
        }
        self.sorted + self.crowd.len() + far - self.cancelled.len()
    }

    /// Returns whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Schedules `event` at `now + delay`.
    ///
    /// # Panics
    /// If the time lies beyond the horizon of `u64` picoseconds (213 days).
    #[inline(always)]
    pub fn after(&mut self, delay: Time, event: E) -> Ticket {
        self.schedule(delay, 0, event)
    }

    /// Schedules `event` at `now + delay`, after every normal event of that instant.
    ///
    /// # Panics
    /// If the time lies beyond the horizon, as for [`EventQueue::after`].
    #[inline(always)]
    pub fn late(&mut self, delay: Time, event: E) -> Ticket {
        self.schedule(delay, LATE, event)
    }

    /// Reserves the next place in the schedule order; an event may be put there later.
    #[inline]
    pub fn reserve(&mut self) -> Ticket {
        self.scheduled += 1;
        Ticket(self.scheduled - 1)
    }

    /// Reserves a place as [`EventQueue::reserve`] does, for an event of the late phase.
    #[inline]
    pub fn reserve_late(&mut self) -> Ticket {
        Ticket(self.reserve().0 | LATE)
    }

    /// Schedules `event` at `now + delay` in a reserved place of the schedule order. A place can be used once.
    ///
    /// # Panics
    /// If the time lies beyond the horizon, as for [`EventQueue::after`].
    #[inline(always)]
    pub fn at_place(&mut self, place: Ticket, delay: Time, event: E) {
        self.insert(delay.ps(), place.0, event.word());
    }

    #[inline(always)]
    fn schedule(&mut self, delay: Time, phase: u64, event: E) -> Ticket {
        let place = Ticket(self.reserve().0 | phase);
        self.at_place(place, delay, event);
        place
    }

    /// Cancels a pending event: it neither runs nor advances time.
    ///
    /// The caller must know that the event is pending; cancelling one that has run would leak its slot.
    pub fn cancel(&mut self, ticket: Ticket) {
        self.cancelled.insert(ticket.0);
        self.unusual = true;
    }

    /// Advances the clock to the next event and returns it.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        self.pop_word().map(E::from_word)
    }

    /// Pops as [`EventQueue::pop`] does, but leaves the event as a word: a caller that dispatches on the component
    /// already knows half of what [`Event::from_word`] would decode.
    #[inline]
    pub fn pop_word(&mut self) -> Option<u64> {
        loop {
            if self.unusual {
                return self.pop_unusual();
            }
            if let Some(next) = self.sorted.checked_sub(1) {
                self.sorted = next;
                let Entry { time, event, .. } = self.near.get(next % SORTED);
                debug_assert!(time >= self.now, "time went back");
                self.now = time;
                return Some(event);
            }
            if !self.refill() {
                return None;
            }
        }
    }

    /// Sets the clock back to a time before the event that was popped last, when later events no longer matter.
    pub fn end_at(&mut self, time: Time) {
        debug_assert!(time <= self.now(), "the end lies ahead");
        self.now = time.ps();
    }

    /// Returns the next event while the heap or the cancelled set is not empty.
    #[inline(never)]
    fn pop_unusual(&mut self) -> Option<u64> {
        loop {
            let Entry { time, order, event } = if !self.crowd.is_empty() {
                self.pop_crowded()
            } else if self.sorted > 0 {
                self.sorted -= 1;
                self.near.get(self.sorted)
            } else if self.refill() {
                // It may have crowded the heap: its first event may precede those of the list.
                continue;
            } else {
                return None;
            };
            if self.cancelled.remove(&order) {
                continue;
            }
            debug_assert!(time >= self.now, "time went back");
            self.now = time;
            self.unusual = !(self.crowd.is_empty() && self.cancelled.is_empty());
            return Some(event);
        }
    }

    /// Schedules the event as a word: it is built where its kind is known.
    #[inline(never)]
    fn insert(&mut self, delay: u64, order: u64, event: u64) {
        let time = self.now.checked_add(delay).expect("simulated time ends at 213 days");
        if time >= self.near_limit {
            self.push_far(time, order, event);
        } else if self.sorted < SORTED {
            self.push_near(time, order, event);
        } else {
            self.insert_into_full(time, order, event);
        }
    }

    #[cold]
    fn insert_into_full(&mut self, time: u64, order: u64, event: u64) {
        self.shorten();
        if time >= self.near_limit {
            self.push_far(time, order, event);
        } else {
            self.push_near(time, order, event);
        }
    }

    /// Moves the later half of the sorted list back to the wheel, unless too much is at one instant.
    #[cold]
    fn shorten(&mut self) {
        let limit = self.near.times[SORTED / 2];
        let leave = self.near.times.iter().position(|time| *time < limit);
        // The wheel holds nothing before its base. Events in the heap precede the limit anyway.
        let Some(leave) = leave.filter(|_| limit >= self.base && self.crowd.is_empty()) else { return };
        self.near_limit = limit;
        for at in 0..leave {
            let Entry { time, order, event } = self.near.get(at);
            self.push_far(time, order, event);
        }
        for at in leave..SORTED {
            self.near.set(at - leave, self.near.get(at));
        }
        self.sorted = SORTED - leave;
    }

    #[inline(always)]
    fn push_near(&mut self, time: u64, order: u64, event: u64) {
        let entry = Entry { time, order, event };
        let mut at = self.sorted;
        if at >= SORTED {
            self.push_crowd(time, order, event);
            return;
        }
        self.sorted = at + 1;
        let key = entry.key();
        while at > 0 {
            let later = self.near.get(at - 1);
            if later.key() >= key {
                break;
            }
            self.near.set(at, later);
            at -= 1;
        }
        self.near.set(at, entry);
    }

    #[cold]
    fn push_crowd(&mut self, time: u64, order: u64, event: u64) {
        let entry = Entry { time, order, event };
        let mut at = self.crowd.len();
        let key = entry.key();
        self.crowd.push(entry);
        self.unusual = true;
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

    /// Returns the next event while the heap is not empty.
    fn pop_crowded(&mut self) -> Entry {
        let top = self.crowd[0];
        let next = self.sorted.checked_sub(1).map(|at| self.near.get(at));
        if let Some(entry) = next.filter(|entry| entry.key() < top.key()) {
            self.sorted -= 1;
            return entry;
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
        top
    }

    #[inline(never)]
    fn push_far(&mut self, time: u64, order: u64, event: u64) {
        let (level, slot) = self.place(time);
        let node = Node { entry: Entry { time, order, event }, next: self.heads[level][slot] };
        let index = self.free;
        if let Some(vacant) = self.nodes.get_mut(index as usize) {
            self.free = vacant.next;
            *vacant = node;
            self.set_head(level, slot, index);
        } else {
            self.push_new(node);
        }
    }

    #[cold]
    fn push_new(&mut self, node: Node) {
        let (level, slot) = self.place(node.entry.time);
        self.nodes.push(node);
        self.set_head(level, slot, (self.nodes.len() - 1) as u32);
    }

    /// Returns the level and slot of a time relative to `base`.
    #[inline(always)]
    fn place(&self, time: u64) -> (usize, usize) {
        let differs = (time ^ self.base) >> GRAIN;
        let level = (63 - (differs | 1).leading_zeros()) / LEVEL_BITS;
        let slot = (time >> (GRAIN + LEVEL_BITS * level)) as usize % SLOTS;
        (level as usize % LEVELS, slot)
    }

    #[inline(always)]
    fn set_head(&mut self, level: usize, slot: usize, index: u32) {
        self.heads[level][slot] = index;
        self.occupied[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Opens slots until an event is near; false if nothing is pending.
    #[inline(never)]
    fn refill(&mut self) -> bool {
        while self.sorted == 0 {
            if self.levels == 0 {
                return false;
            }
            let level = self.levels.trailing_zeros();
            let at = level as usize % LEVELS;
            let occupied = self.occupied[at];
            let slot = occupied.trailing_zeros() as usize % SLOTS;
            self.occupied[at] = occupied & (occupied - 1);
            if self.occupied[at] == 0 {
                self.levels &= self.levels - 1;
            }
            // Bits above this level are those of `base`; the bits below are zero.
            let shift = GRAIN + LEVEL_BITS * level;
            self.base = (self.base >> shift >> LEVEL_BITS << LEVEL_BITS | slot as u64) << shift;
            let head = std::mem::replace(&mut self.heads[at][slot], NONE);
            if level == 0 || self.is_short(head) {
                self.near_limit = self.base.saturating_add(1 << shift);
                self.open(head);
            } else {
                self.near_limit = self.base;
                self.deal(head);
            }
        }
        true
    }

    /// Sorts the events of a slot into the list.
    #[inline]
    fn open(&mut self, head: u32) {
        let (mut index, mut last) = (head, head);
        while let Some(&Node { entry: Entry { time, order, event }, next }) = self.nodes.get(index as usize) {
            self.push_near(time, order, event);
            (last, index) = (index, next);
        }
        self.nodes[last as usize].next = self.free;
        self.free = head;
    }

    /// Moves the events of a slot to finer levels.
    fn deal(&mut self, mut index: u32) {
        while let Some(&Node { entry: Entry { time, .. }, next }) = self.nodes.get(index as usize) {
            let (level, slot) = self.place(time);
            self.nodes[index as usize].next = self.heads[level][slot];
            self.set_head(level, slot, index);
            index = next;
        }
    }

    /// Returns whether a slot holds few enough events to be opened at once.
    #[inline]
    fn is_short(&self, mut head: u32) -> bool {
        for _ in 0..OPEN_AT_ONCE {
            let Some(node) = self.nodes.get(head as usize) else { return true };
            head = node.next;
        }
        head == NONE
    }
}

#[cfg(test)]
mod tests;
