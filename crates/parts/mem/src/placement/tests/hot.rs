//! Which pages rise: against a scan that marks page after page, a formula, and what a user expects.

use super::*;
use crate::placement::policy::Verdict;
use engine::Rng;
use proptest::prelude::*;

/// A policy without a limit, for so many pages, of which two lie in the first memory.
fn unlimited(params: &hot_policy::Params, pages: u32) -> Box<dyn Placing> {
    let params = hot_policy::Params { rate: Bandwidth::new(1 << 50), ..params.clone() };
    let mut policy =
        PlacementPolicy::hot(params).build(&spec(&[2, 1 << 20], PlacementPolicy::ranges).targets());
    policy.settle(&Extent { tables: pages, end: pages });
    policy
}

/// What Linux does: a scan takes access to pages away, one after the other; the next use gives it back, and knows since when.
struct Scanner {
    scan: u64,
    threshold: u64,
    /// When each page is marked next, and since when it is marked.
    pages: Vec<(u64, Option<u64>)>,
}

impl Scanner {
    fn new(params: &hot_policy::Params, pages: u64) -> Scanner {
        let (scan, threshold) = (params.scan.time().ps(), params.threshold.time().ps());
        Scanner { scan, threshold, pages: (0..pages).map(|page| (page * scan / pages, None)).collect() }
    }

    fn scan(&mut self, now: Time) {
        for (next, mark) in &mut self.pages {
            while *next <= now.ps() {
                mark.get_or_insert(*next);
                *next += self.scan;
            }
        }
    }

    /// Whether a use answers a mark, and whether it is hot.
    fn used(&mut self, page: u32, now: Time) -> (bool, bool) {
        self.scan(now);
        let mark = self.pages[page as usize].1.take();
        (mark.is_some(), mark.is_some_and(|mark| now.ps() - mark < self.threshold))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_page_is_hot_when_a_scanner_says_so(
        threshold in 0u64..40_000,
        scan in 1u64..20,
        uses in prop::collection::vec((0u64..3_000, 0u32..32), 1..400),
    ) {
        let params = hot_policy::Params { threshold: ns(threshold), scan: ns(scan * 1_024), ..eager() };
        let mut policy = unlimited(&params, 32);
        let mut scanner = Scanner::new(&params, 32);
        let mut now = Time::ZERO;
        for (gap, page) in uses {
            now += Time::from_ns(gap);
            let (place, is_new) = policy.place(page, now);
            let (_, hot) = scanner.used(page, now);
            let expected = if hot && !is_new && place.target == 1 { Verdict::Rise } else { Verdict::Stay };
            prop_assert_eq!(policy.used(page, place, now), expected, "page {} at {}", page, now);
            if expected == Verdict::Rise && page % 2 == 0 {
                // What it changes places with was in the first memory, where nothing is marked.
                let sunk = policy.makes_room(&|_| true).expect("data lie in the first memory");
                prop_assert_eq!(policy.find(sunk).map(|place| place.target), Some(0));
                policy.exchanged(page, sunk, now);
                scanner.pages[sunk as usize].1 = None;
                prop_assert_eq!((policy.find(page).map(|place| place.target), policy.find(sunk)), (Some(0), Some(place)));
            }
        }
    }
}

/// Used with a chance of `p` every 10 ns, a page is hot at `1 - (1 - p)^n` of its marks, `n` being the times within the threshold.
#[test]
fn pages_are_as_often_hot_as_the_formula_says() {
    let params = eager();
    let (mut policy, mut scanner) = (unlimited(&params, 4), Scanner::new(&params, 4));
    (0..4).for_each(|page| {
        policy.place(page, Time::ZERO);
    });
    scanner.scan(Time::ZERO);
    scanner.pages.iter_mut().for_each(|(_, mark)| *mark = None);
    let place = policy.find(3).expect("it was placed");
    assert_eq!(place.target, 1);
    let mut rng = Rng::stream(7, "uses");
    let (mut answered, mut hot) = (0, 0);
    for slot in 1..4_000_000 {
        if rng.below(300) > 0 {
            continue;
        }
        let now = Time::from_ns(10 * slot);
        answered += u64::from(scanner.used(3, now).0);
        hot += u64::from(policy.used(3, place, now) == Verdict::Rise);
    }
    let expected = 1.0 - (0..200).fold(1.0, |chance, _| chance * 299.0 / 300.0);
    let found = hot as f64 / answered as f64;
    let deviation = (expected * (1.0 - expected) / answered as f64).sqrt();
    assert!(
        answered > 2_000 && (found - expected).abs() < 3.0 * deviation,
        "{found} of {answered}, {expected}"
    );
}

/// Eight frames in front of 56, all used once; then a command every 100 ns. Answers how many of the last thousand went to the first memory.
fn settled(bench: &mut Bench, commands: u64, mut page: impl FnMut(&mut Rng) -> u64) -> u64 {
    bench.outside.own[1] = Time::from_ns(900);
    (0..64).for_each(|page| bench.at(Time::ZERO, read(page)));
    let mut rng = Rng::stream(1, "traffic");
    for n in 0..commands {
        let lines = 1 << rng.below(64);
        let command = MemCommand { lines, write: rng.below(4) == 0, ..read(page(&mut rng)) };
        bench.at(Time::from_ns(1_000 + 100 * n), command);
    }
    bench.run();
    bench.check_data();
    let last = bench.outside.asked.iter().filter(|asked| u64::from(asked.command.pc) > 64 + commands - 1_000);
    last.filter(|asked| asked.target == 0).count() as u64
}

#[test]
fn hot_pages_end_in_the_first_memory() {
    let mut bench = Bench::new(&spec(&[8, 56], PlacementPolicy::hot(eager())), 64, 0);
    // Nine in ten go to six pages that were used late.
    let first =
        settled(&mut bench, 5_000, |rng| if rng.below(10) > 0 { 50 + rng.below(6) } else { rng.below(64) });
    assert_eq!((50..56).map(|page| bench.target(page)).collect::<Vec<_>>(), [Some(0); 6]);
    // 0.9, and an eighth of the rest.
    assert!((870..=950).contains(&first), "{first} of 1000");

    let mut bench = Bench::new(&spec(&[8, 56], PlacementPolicy::first_touch), 64, 0);
    let first =
        settled(&mut bench, 5_000, |rng| if rng.below(10) > 0 { 50 + rng.below(6) } else { rng.below(64) });
    assert!(first < 30 && bench.placement.stats.promotions == 0, "{first} of 1000: they stay where they are");
}

#[test]
fn uniform_use_moves_no_more_than_the_rate() {
    let mut bench = Bench::new(&spec(&[8, 56], PlacementPolicy::hot(eager())), 64, 0);
    settled(&mut bench, 5_000, |rng| rng.below(64));
    let stats = &bench.placement.stats;
    // 501 us, with 4 pages in each 10 us.
    let most = 4 * 51;
    assert!(stats.limited > 100 && (most / 2..=most).contains(&stats.promotions), "{stats:?}");
    // Each of them is a page read and one written, there and back: just that, and all of it, is what memories see.
    let bytes = |write: bool| {
        let moved = bench.moved().filter(|asked| asked.command.write == write);
        moved.map(|asked| asked.command.bytes(CPU_LINE)).sum::<u64>()
    };
    let moved = 2 * PAGE * stats.promotions;
    assert_eq!((bytes(false), bytes(true), stats.moved_bytes), (moved, moved, moved));
    for (target, own) in (0..).zip(&stats.targets) {
        let count =
            |write| bench.moved().filter(|a| a.target == target && a.command.write == write).count() as u64;
        assert_eq!((own.pages_out, own.pages_in), (count(false), count(true)));
    }
}
