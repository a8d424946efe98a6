//! The order in which pages make room, against lists.

use super::*;
use proptest::prelude::*;

const PAGES: u64 = 24;

/// Least recently used: a list for each set, the next to go in front.
struct Naive {
    sets: Vec<Vec<u64>>,
    ways: usize,
}

impl Naive {
    fn access(&mut self, page: u64) {
        let number = (page % self.sets.len() as u64) as usize;
        let set = &mut self.sets[number];
        if let Some(at) = set.iter().position(|other| *other == page) {
            set.remove(at);
        } else if set.len() == self.ways {
            set.remove(0);
        }
        set.push(page);
    }

    fn pages(&self) -> Vec<u64> {
        let mut pages: Vec<u64> = self.sets.iter().flatten().copied().collect();
        pages.sort_unstable();
        pages
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// With one access after another the cache holds what lists say, whether the first of them took time or not.
    #[test]
    fn the_least_recently_used_page_goes(
        sets in 1u32..4,
        ways in 1u32..5,
        warm in 0usize..40,
        accesses in proptest::collection::vec((0..PAGES, any::<bool>()), 1..60),
    ) {
        let mut bench = Bench::new(&small(sets, ways));
        bench.outside.latencies = vec![Time::from_us(5)];
        let mut naive = Naive { sets: vec![Vec::new(); sets as usize], ways: ways as usize };
        for (number, (page, write)) in (0..).zip(&accesses) {
            if number < warm {
                bench.cache.warm(page * PAGE, *write);
            } else {
                let at = bench.outside.queue.now() + Time::from_us(1);
                bench.at(at, line(*page, *write, Absent::Wait));
                bench.run();
            }
            naive.access(*page);
            let here: Vec<u64> = (0..PAGES).filter(|page| bench.cache.is_cached(page * PAGE)).collect();
            prop_assert_eq!(here, naive.pages());
        }
    }
}
