//! Results of arithmetic that are still to come: a wheel of cycles, so that a short latency costs no event.

/// A register of a warp that will have been written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wake {
    /// Slot of the warp.
    pub slot: u8,
    /// The register.
    pub register: u8,
}

/// End of a list.
const NONE: u16 = u16::MAX;

/// Wakes by cycle, fewer cycles ahead than the ring is long. No cycle that holds one may be passed over.
pub(super) struct Ring {
    /// The latest wake of each cycle.
    cycles: Box<[u16]>,
    /// Each wake, and the one before it of the same cycle.
    wakes: Vec<(Wake, u16)>,
    /// The latest free one of them; the places of few are used over and over, so that they stay in the processor's cache.
    free: u16,
    occupied: Vec<u64>,
    len: usize,
}

impl Ring {
    /// A ring for delays of at most `longest` cycles.
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

    /// One wake of a cycle; none when there are no more.
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

    /// The first cycle at or after `from` that has a wake; all lie less than a round ahead.
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
    use super::{Ring, Wake};

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
