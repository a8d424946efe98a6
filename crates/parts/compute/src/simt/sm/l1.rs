//! First-level data cache: its lines, and the miss registers of lines under way.

use crate::simt::spec::L1Spec;
use engine::{List, Lists, Time};
use mem::cache::{Shape, Tags};

/// Number of page groups for counting.
const GROUPS: usize = 256;

/// Page of an application as one word.
#[inline]
pub(super) fn page_key(app: u8, page: u64) -> u64 {
    page << 8 | u64::from(app)
}

/// Physical lines in the cache, each with its virtual page. If a page's translation is removed, its lines are too,
/// because the frame may get different data.
pub(super) struct L1 {
    tags: Tags<u64>,
    /// Number of lines in each group of pages, so that a page without lines needs no search.
    lines_of: Vec<u32>,
}

#[inline]
fn group(key: u64) -> usize {
    // Fibonacci hashing (Knuth, volume 3, 6.4): neighbours spread.
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize
}

impl L1 {
    pub(super) fn new(spec: &L1Spec) -> L1 {
        let shape = Shape { sets: spec.sets, ways: spec.ways };
        L1 { tags: Tags::new(shape, &spec.replacement), lines_of: vec![0; GROUPS] }
    }

    /// Returns whether a line is present; counts as a use.
    #[inline]
    pub(super) fn look_up(&mut self, line: u64) -> bool {
        let Some(place) = self.tags.find(line) else { return false };
        self.tags.touch(place);
        true
    }

    /// Inserts a line of a page.
    pub(super) fn fill(&mut self, line: u64, key: u64) {
        debug_assert!(self.tags.find(line).is_none(), "a line that is here was fetched");
        if let Some((_, gone)) = self.tags.insert(line, key, |_| true) {
            self.lines_of[group(key)] += 1;
            if let Some((_, key)) = gone {
                self.lines_of[group(key)] -= 1;
            }
        }
    }

    /// Removes a line.
    #[inline]
    pub(super) fn evict(&mut self, line: u64) {
        if let Some(place) = self.tags.find(line) {
            self.remove(place);
        }
    }

    fn remove(&mut self, place: u32) {
        self.lines_of[group(*self.tags.meta(place))] -= 1;
        self.tags.remove(place);
    }

    /// Removes every line of a page.
    pub(super) fn forget(&mut self, key: u64) {
        if self.lines_of[group(key)] == 0 {
            return;
        }
        for place in 0..self.tags.places() {
            if self.tags.line(place).is_some() && *self.tags.meta(place) == key {
                self.remove(place);
            }
        }
    }
}

// Miss status holding registers: lines under way to the first-level cache, and their waiters.

/// End of a bucket.
const LAST: u16 = u16::MAX;

/// Number of hash buckets. Few registers are in use at once, whatever their number, and every multiprocessor has a
/// table: together they must stay in the host processor's cache.
const BUCKETS: usize = 2048;

/// Request that waits for a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    /// Number of the instruction in the load-store unit.
    pub op: u32,
    /// Latest milestone; the first waiter's travels with the access.
    pub since: Time,
}

/// Miss register.
#[derive(Clone, Copy, Debug)]
struct Register {
    line: u64,
    /// Page that the line belongs to.
    key: u64,
    waiters: List,
    /// Number of waiters beside the first.
    merged: u32,
    /// True if the line enters the cache: not if it was changed meanwhile.
    keep: bool,
    /// Next register of its bucket.
    beside: u16,
}

/// Line that has arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrived {
    pub line: u64,
    pub key: u64,
    pub keep: bool,
    waiters: List,
}

#[inline]
fn bucket(line: u64) -> usize {
    // Fibonacci hashing (Knuth, volume 3, 6.4): neighbours spread.
    (line.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize & (BUCKETS - 1)
}

/// Miss registers of a multiprocessor.
pub(super) struct Misses {
    registers: Vec<Register>,
    free: Vec<u16>,
    /// First register in use of each bucket of lines.
    buckets: Box<[u16]>,
    waiters: Lists<Waiter>,
    merges: u32,
}

impl Misses {
    pub(super) fn new(registers: u16, merges: u16) -> Misses {
        let empty = Register { line: 0, key: 0, waiters: List::EMPTY, merged: 0, keep: false, beside: LAST };
        Misses {
            registers: vec![empty; registers.into()],
            free: (0..registers).rev().collect(),
            buckets: vec![LAST; BUCKETS].into(),
            waiters: Lists::default(),
            merges: merges.into(),
        }
    }

    /// Register of a line under way.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<u16> {
        let mut register = self.buckets[bucket(line)];
        while register != LAST && self.registers[usize::from(register)].line != line {
            register = self.registers[usize::from(register)].beside;
        }
        (register != LAST).then_some(register)
    }

    /// Prefetches the register of a line that will arrive soon.
    #[inline]
    pub(super) fn expect(&self, register: u16) {
        engine::prefetch(&self.registers[usize::from(register)]);
    }

    /// Allocates a register for a line that is not under way, with its first waiter; `None` if all are in use.
    #[inline]
    pub(super) fn open(&mut self, line: u64, key: u64, op: u32, since: Time) -> Option<u16> {
        let register = self.free.pop()?;
        let mut waiters = List::EMPTY;
        self.waiters.push(&mut waiters, Waiter { op, since });
        let beside = std::mem::replace(&mut self.buckets[bucket(line)], register);
        self.registers[usize::from(register)] =
            Register { line, key, waiters, merged: 0, keep: true, beside };
        Some(register)
    }

    /// Adds a waiter; returns false at the limit.
    #[inline]
    pub(super) fn merge(&mut self, register: u16, op: u32, since: Time) -> bool {
        let register = &mut self.registers[usize::from(register)];
        if register.merged == self.merges {
            return false;
        }
        self.waiters.push(&mut register.waiters, Waiter { op, since });
        register.merged += 1;
        true
    }

    /// Frees the register of a line that has arrived. [`Misses::next_waiter`] returns its waiters.
    #[inline]
    pub(super) fn close(&mut self, register: u16) -> Arrived {
        let Register { line, key, waiters, keep, beside, .. } = self.registers[usize::from(register)];
        debug_assert_eq!(self.find(line), Some(register), "an unexpected answer");
        let mut before = self.buckets[bucket(line)];
        if before == register {
            self.buckets[bucket(line)] = beside;
        } else {
            while self.registers[usize::from(before)].beside != register {
                before = self.registers[usize::from(before)].beside;
            }
            self.registers[usize::from(before)].beside = beside;
        }
        self.free.push(register);
        Arrived { line, key, keep, waiters }
    }

    /// Takes the next waiter of a line that has arrived, in the order of arrival.
    #[inline]
    pub(super) fn next_waiter(&mut self, arrived: &mut Arrived) -> Option<Waiter> {
        self.waiters.pop(&mut arrived.waiters)
    }

    /// Marks a line under way as changed: it will not be kept.
    #[inline]
    pub(super) fn spoil(&mut self, line: u64) {
        if let Some(register) = self.find(line) {
            self.registers[usize::from(register)].keep = false;
        }
    }

    /// Marks every line of a page, like [`Misses::spoil`].
    pub(super) fn spoil_page(&mut self, key: u64) {
        for register in self.registers.iter_mut().filter(|r| r.key == key) {
            register.keep = false;
        }
    }

    /// Number of registers in use.
    pub(super) fn in_use(&self) -> usize {
        self.registers.len() - self.free.len()
    }
}

// Pending results of arithmetic: a wheel of cycles, so that a short latency needs no event.

/// Register of a warp with a pending write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wake {
    /// Slot of the warp.
    pub slot: u8,
    /// Number of the register.
    pub register: u8,
}

/// End of a list.
const NONE: u16 = u16::MAX;

/// Wake-ups by cycle, fewer cycles ahead than the ring is long. No cycle with a wake-up may be skipped.
pub(super) struct Ring {
    /// Latest wake-up of each cycle.
    cycles: Box<[u16]>,
    /// Wake-ups, each with the previous one of the same cycle.
    wakes: Vec<(Wake, u16)>,
    /// Latest free entry; few entries are reused over and over, so that they stay in the host processor's cache.
    free: u16,
    occupied: Vec<u64>,
    len: usize,
}

impl Ring {
    /// Creates a ring for delays of at most `longest` cycles.
    pub(super) fn new(longest: u64) -> Ring {
        let cycles = (longest as usize + 1).next_power_of_two().max(64);
        Ring {
            cycles: vec![NONE; cycles].into(),
            wakes: Vec::new(),
            free: NONE,
            occupied: vec![0; cycles / 64],
            len: 0,
        }
    }

    #[inline]
    fn place(&self, cycle: u64) -> usize {
        cycle as usize & (self.cycles.len() - 1)
    }

    #[inline]
    pub(super) fn push(&mut self, cycle: u64, wake: Wake) {
        let place = self.place(cycle);
        let entry = (wake, self.cycles[place]);
        self.cycles[place] = if self.free == NONE {
            // A warp waits for a register at most once: 128 warps of 255 registers.
            self.wakes.push(entry);
            (self.wakes.len() - 1) as u16
        } else {
            let name = self.free;
            let old = std::mem::replace(&mut self.wakes[usize::from(name)], entry);
            self.free = old.1;
            name
        };
        self.occupied[place / 64] |= 1 << (place % 64);
        self.len += 1;
    }

    /// Takes one wake-up of a cycle; `None` when none is left.
    #[inline]
    pub(super) fn pop(&mut self, cycle: u64) -> Option<Wake> {
        let place = self.place(cycle);
        let name = self.cycles[place];
        if name == NONE {
            self.occupied[place / 64] &= !(1 << (place % 64));
            return None;
        }
        let (wake, before) = self.wakes[usize::from(name)];
        self.cycles[place] = before;
        self.wakes[usize::from(name)].1 = self.free;
        self.free = name;
        self.len -= 1;
        Some(wake)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// First cycle at or after `from` with a wake-up; all are less than a round ahead.
    pub(super) fn next(&self, from: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = self.place(from);
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            }
            if bits != 0 {
                let place = word * 64 + bits.trailing_zeros() as usize;
                return Some(from + (place.wrapping_sub(start) & (self.cycles.len() - 1)) as u64);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{L1, Ring, Wake, page_key};
    use crate::simt::spec::L1Spec;
    use mem::cache::replace::ReplacementPolicy;

    #[test]
    fn a_page_takes_its_lines_along() {
        let replacement = ReplacementPolicy::lru;
        let spec = L1Spec { sets: 4, ways: 2, replacement, latency: 1, miss_registers: 1, merges: 0 };
        let mut l1 = L1::new(&spec);
        for line in 0..12 {
            l1.fill(line, page_key(line as u8 % 2, 9));
        }
        // Two ways of four sets: the last eight lines.
        let here = |l1: &mut L1| (0..12).filter(|line| l1.look_up(*line)).collect::<Vec<u64>>();
        assert_eq!(here(&mut l1), [4, 5, 6, 7, 8, 9, 10, 11]);
        l1.evict(8);
        l1.forget(page_key(1, 9));
        assert_eq!(here(&mut l1), [4, 6, 10]);
        l1.forget(page_key(0, 9));
        assert!(here(&mut l1).is_empty());
        assert!(l1.lines_of.iter().all(|lines| *lines == 0));
    }

    #[test]
    fn wakes_come_in_their_cycle() {
        let mut ring = Ring::new(100);
        let wake = |slot| Wake { slot, register: 1 };
        ring.push(1_000 + 100, wake(3));
        ring.push(1_000 + 1, wake(1));
        ring.push(1_000 + 1, wake(2));
        assert_eq!(ring.next(1_000), Some(1_001));
        assert_eq!(ring.pop(1_000), None);
        assert_eq!((ring.pop(1_001), ring.pop(1_001), ring.pop(1_001)), (Some(wake(2)), Some(wake(1)), None));
        assert_eq!((ring.next(1_002), ring.is_empty()), (Some(1_100), false));
        assert_eq!((ring.pop(1_100), ring.pop(1_100)), (Some(wake(3)), None));
        assert_eq!((ring.next(1_101), ring.is_empty()), (None, true));
    }
}
