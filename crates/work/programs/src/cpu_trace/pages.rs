//! From a program's addresses to the address space of a service: pages one behind the other in the order of their first use.

use proto::memory::PAGE;
use rustc_hash::FxHashMap;

/// Pages, as they have been used.
#[derive(Clone, Debug)]
pub(super) struct Pages {
    /// Where each lies now.
    places: FxHashMap<u64, u64>,
    /// The page that was looked for last, and where it lies: most accesses are to it again.
    last: (u64, u64),
}

impl Default for Pages {
    fn default() -> Pages {
        // No page has the highest number of all.
        Pages { places: FxHashMap::default(), last: (u64::MAX, 0) }
    }
}

impl Pages {
    /// Pages that have been used.
    pub(super) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Uses the page of an address.
    #[inline]
    pub(super) fn touch(&mut self, address: u64) {
        let page = address / PAGE;
        if page != self.last.0 {
            let next = self.places.len() as u64;
            self.last = (page, *self.places.entry(page).or_insert(next));
        }
    }

    /// Where an address lies now, if its page has been used.
    #[inline]
    pub(super) fn place(&mut self, address: u64) -> Option<u64> {
        let page = address / PAGE;
        if page != self.last.0 {
            self.last = (page, *self.places.get(&page)?);
        }
        Some(self.last.1 * PAGE + address % PAGE)
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn pages_lie_in_the_order_of_their_first_use() {
        let mut pages = Pages::default();
        for address in [0x7fff_f123, 0x40_0000, 0x7fff_f000, 0x40_1000, u64::MAX] {
            pages.touch(address);
        }
        assert_eq!(pages.len(), 4);
        let placed = [0x7fff_fffe, 0x40_0000, 0x40_1001, u64::MAX, 0x40_2000, 0].map(|at| pages.place(at));
        assert_eq!(placed, [Some(0xffe), Some(0x1000), Some(0x2001), Some(0x3fff), None, None]);
    }
}
