//! Which load instructions read in sequence.

use super::spec::PrefetchSpec;

/// No page yet.
const NONE: u64 = u64::MAX;

/// A table indexed by the address of the instruction, without tags: instructions that share an entry disturb each other,
/// as in the simulator that HybridGPU's authors published.
pub(super) struct Tracker {
    entries: Vec<Entry>,
    after: u32,
    pages: u64,
}

#[derive(Clone, Copy)]
struct Entry {
    last: u64,
    count: u32,
}

impl Tracker {
    pub(super) fn new(spec: &PrefetchSpec) -> Tracker {
        Tracker {
            entries: vec![Entry { last: NONE, count: 0 }; spec.entries as usize],
            after: spec.after,
            pages: u64::from(spec.pages),
        }
    }

    /// An instruction reads a page; an address of zero is no instruction.
    #[inline]
    pub(super) fn observe(&mut self, pc: u32, page: u64) {
        if pc == 0 {
            return;
        }
        let index = pc as usize % self.entries.len();
        let entry = &mut self.entries[index];
        if entry.last == NONE {
            entry.count = 0;
        } else if page / self.pages == entry.last / self.pages || page == entry.last + 1 {
            entry.count = (entry.count + 1).min(self.after);
        } else {
            entry.count = entry.count.saturating_sub(1);
        }
        entry.last = page;
    }

    /// The superpage of a page that the instruction misses, if all of it is to be fetched.
    #[inline]
    pub(super) fn superpage(&self, pc: u32, page: u64) -> Option<std::ops::Range<u64>> {
        if pc == 0 || self.entries[pc as usize % self.entries.len()].count < self.after {
            return None;
        }
        let first = page - page % self.pages;
        Some(first..first + self.pages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tracker() -> Tracker {
        Tracker::new(&PrefetchSpec { entries: 512, after: 15, pages: 16 })
    }

    #[test]
    fn fifteen_in_sequence_turn_it_on_and_one_astray_turns_it_off() {
        let mut tracker = tracker();
        // The first access has nothing to compare with; 15 more follow it, across a border of superpages.
        for page in 8..8 + 15 {
            tracker.observe(7, page);
            assert_eq!(tracker.superpage(7, page), None, "{page}");
        }
        tracker.observe(7, 23);
        assert_eq!(tracker.superpage(7, 23), Some(16..32));
        tracker.observe(7, 1000);
        assert_eq!(tracker.superpage(7, 1000), None);
        tracker.observe(7, 1000);
        assert_eq!(tracker.superpage(7, 1000), Some(992..1008));
    }

    #[test]
    fn instructions_share_an_entry_modulo_the_table() {
        let mut tracker = tracker();
        (0..16).for_each(|page| tracker.observe(1, page));
        assert!(tracker.superpage(1 + 512, 16).is_some());
        assert!(tracker.superpage(2, 16).is_none());
    }

    #[test]
    fn no_instruction_is_no_stream() {
        let mut tracker = tracker();
        (0..64).for_each(|page| tracker.observe(0, page));
        assert_eq!(tracker.superpage(0, 64), None);
    }
}
