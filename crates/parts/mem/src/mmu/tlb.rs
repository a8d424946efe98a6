//! Translation lookaside buffer as a table without time.

use crate::cache::replace::ReplacementPolicy;
use crate::cache::{Shape, Tags};
use engine::{Mutant, planted};

/// Bits of a page's number; the application is stored above them, so that the pages of one application spread over all
/// sets.
const PAGE_BITS: u32 = 56;

/// Translations of pages, tagged with their application.
pub struct Tlb {
    tags: Tags<u64>,
}

#[inline]
fn key(app: u8, page: u64) -> u64 {
    debug_assert!(page < 1 << PAGE_BITS, "page {page:#x} has more than {PAGE_BITS} bits");
    let app = if planted(Mutant::ForeignTranslation) { 0 } else { app };
    u64::from(app) << PAGE_BITS | page
}

impl Tlb {
    /// Creates an empty buffer of `entries` in sets of `ways`, with LRU replacement.
    ///
    /// # Panics
    /// Panics if the entries are not a multiple of the ways, or zero.
    pub fn new(entries: u32, ways: u32) -> Tlb {
        assert!(
            ways > 0 && entries > 0 && entries.is_multiple_of(ways),
            "{entries} entries in sets of {ways}"
        );
        let shape = Shape { sets: entries / ways, ways };
        Tlb { tags: Tags::new(shape, &ReplacementPolicy::lru) }
    }

    /// Physical page of a virtual one, if it is here; counts as a use.
    #[inline]
    pub fn look_up(&mut self, app: u8, page: u64) -> Option<u64> {
        let place = self.tags.find(key(app, page))?;
        self.tags.touch(place);
        Some(*self.tags.meta(place))
    }

    /// Adds a translation; counts as a use.
    pub fn fill(&mut self, app: u8, page: u64, frame: u64) {
        let key = key(app, page);
        match self.tags.find(key) {
            Some(place) => {
                *self.tags.meta_mut(place) = frame;
                self.tags.touch(place);
            }
            None => {
                self.tags.insert(key, frame, |_| true);
            }
        }
    }

    /// Forgets a translation.
    pub fn invalidate(&mut self, app: u8, page: u64) {
        if let Some(place) = self.tags.find(key(app, page)).filter(|_| !planted(Mutant::StaleTranslation)) {
            self.tags.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Tlb;
    use proptest::prelude::*;

    #[test]
    fn applications_do_not_see_each_other() {
        let mut tlb = Tlb::new(8, 2);
        tlb.fill(0, 5, 50);
        tlb.fill(1, 5, 51);
        assert_eq!((tlb.look_up(0, 5), tlb.look_up(1, 5), tlb.look_up(2, 5)), (Some(50), Some(51), None));
        tlb.invalidate(0, 5);
        assert_eq!((tlb.look_up(0, 5), tlb.look_up(1, 5)), (None, Some(51)));
        tlb.fill(1, 5, 99);
        assert_eq!(tlb.look_up(1, 5), Some(99));
    }

    #[test]
    fn as_many_consecutive_pages_fit_as_there_are_entries() {
        for app in [0, 3, 255] {
            let mut tlb = Tlb::new(512, 8);
            for page in 1000..1512 {
                tlb.fill(app, page, page + 1);
            }
            assert!((1000..1512).all(|page| tlb.look_up(app, page) == Some(page + 1)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Compared with a list in the order of use: the set is given by the lowest bits of the page.
        #[test]
        fn holds_the_latest_used_of_every_set(
            steps in proptest::collection::vec((0u8..3, 0u64..24, 0u8..8), 0..300),
        ) {
            const SETS: u64 = 4;
            const WAYS: usize = 3;
            let mut tlb = Tlb::new(12, 3);
            let mut sets: [Vec<(u8, u64, u64)>; SETS as usize] = Default::default();
            for (step, (app, page, act)) in steps.into_iter().enumerate() {
                let set = &mut sets[(page % SETS) as usize];
                let at = set.iter().position(|e| (e.0, e.1) == (app, page));
                match act {
                    0 => {
                        tlb.invalidate(app, page);
                        at.map(|at| set.remove(at));
                    }
                    1..=3 => {
                        tlb.fill(app, page, step as u64);
                        at.map(|at| set.remove(at));
                        if set.len() == WAYS {
                            set.remove(0);
                        }
                        set.push((app, page, step as u64));
                    }
                    _ => {
                        let entry = at.map(|at| set.remove(at));
                        set.extend(entry);
                        prop_assert_eq!(tlb.look_up(app, page), entry.map(|e| e.2));
                    }
                }
            }
        }
    }
}
