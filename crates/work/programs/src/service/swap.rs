//! Array swap: a job exchanges two elements.
//!
//! Source: the micro-benchmark "array swap" of AstriFlash's suite (S. Gupta, A. Daglis, B. Falsafi, "Distributed logless
//! atomic durability with persistent memory", MICRO 2019). Elements of one line, which is what the durability hardware of
//! that suite works on; both are guarded by the locks of their stripes, taken in order.

use rustc_hash::FxHashMap;

use super::{Built, Entry};
use crate::program::Params;
use crate::service::common::{Common, Objects, keys};
use crate::service::jobs::{DATA, Emit, FIRST_BLOCK, LINE, Program, Served, Value};
use crate::service::loaded;

/// Bytes of an element: a line.
const ELEMENT: u64 = LINE;
/// Locks, a line each so that neighbours do not share one: more than the 1024 threads of 16 cores, and a small part of an L1.
const STRIPES: u64 = 256;

const SWAP: u32 = FIRST_BLOCK;

pub(crate) const ENTRY: Entry = Entry {
    name: "swap",
    source: "micro-benchmarks (MICRO 2019)",
    what: "exchanges two elements of 64 bytes of an array",
    keys: keys!["5000"],
    build,
};

fn build(params: &Params) -> Built {
    let common = Common::read(params, STRIPES * LINE + 2 * ELEMENT)?;
    Ok(Box::new(Served::new(Swap::new(&common), common.work)))
}

/// The array.
pub(crate) struct Swap {
    common: Common,
    elements: Objects,
    /// Contents of the elements that have changed: initially an element holds its number.
    changed: FxHashMap<u64, u64>,
}

impl Swap {
    pub(crate) fn new(common: &Common) -> Swap {
        let elements = Objects::new((common.data - STRIPES * LINE) / ELEMENT, common);
        Swap { common: common.clone(), elements, changed: FxHashMap::default() }
    }

    fn value(&self, element: u64) -> u64 {
        self.changed.get(&element).copied().unwrap_or(element)
    }

    fn address(&self, element: u64) -> u64 {
        DATA + STRIPES * LINE + self.elements.slot(element) * ELEMENT
    }
}

impl Program for Swap {
    /// The two elements of a swap.
    type Job = [u64; 2];
    const BLOCKS: u32 = SWAP + 1;

    fn end(&self) -> u64 {
        DATA + STRIPES * LINE + self.elements.len() * ELEMENT
    }

    fn begin(&self, job: u64) -> [u64; 2] {
        let mut stream = self.common.stream(job);
        let first = self.elements.draw(&mut stream);
        [first, self.elements.draw_other(&[first], &mut stream)]
    }

    fn piece(&mut self, &mut [a, b]: &mut [u64; 2], e: &mut Emit<'_>) -> bool {
        let values = [self.value(a), self.value(b)];
        self.changed.insert(a, values[1]);
        self.changed.insert(b, values[0]);
        e.block(SWAP);
        // Two elements' addresses and their stripes' (mask, shift and add), and which stripe is the lower.
        let index = e.compute(2 + 2 * 2 + 2, [Value::READY]);
        let mut stripes = [a % STRIPES, b % STRIPES];
        stripes.sort_unstable();
        let held = if stripes[0] == stripes[1] { &stripes[..1] } else { &stripes[..] };
        for stripe in held {
            let taken = e.atomic(DATA + stripe * LINE, [index]);
            e.branch(false, [taken]);
        }
        let (a, b) = (self.address(a), self.address(b));
        let first = e.load(a, ELEMENT, [index]);
        let second = e.load(b, ELEMENT, [index]);
        e.store(a, ELEMENT, [index, second]);
        e.store(b, ELEMENT, [index, first]);
        for stripe in held {
            e.store(DATA + stripe * LINE, 8, [index]);
        }
        false
    }

    fn save(&self, out: &mut Vec<u8>) {
        loaded::save_changes(&self.changed, out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        let elements = self.elements.len();
        self.changed =
            loaded::load_changes(input, |element, value: &u64| element < elements && *value < elements)?;
        // Contents change their places: none is lost, and none is twice.
        let (mut places, mut values): (Vec<u64>, Vec<u64>) = self.changed.iter().unzip();
        places.sort_unstable();
        values.sort_unstable();
        if places != values {
            return None;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::common::{Placement, Skew};
    use crate::service::drive::{drive, pages, share, small};

    fn contents(swap: &Swap) -> Vec<u64> {
        (0..swap.elements.len()).map(|element| swap.value(element)).collect()
    }

    #[test]
    fn jobs_one_after_another_and_in_any_order_do_what_an_array_does() {
        for slots in [1, 7] {
            let mut swap = Swap::new(&small(STRIPES * LINE + 1000 * ELEMENT));
            let mut array: Vec<u64> = (0..1000).collect();
            drive(&mut swap, 0..3000, slots, |_, _, &[a, b], history| {
                array.swap(a as usize, b as usize);
                // Element, element, and their stores: each of the other's contents.
                let stores: Vec<_> = history.iter().filter(|op| op.width == 64).collect();
                assert_eq!((stores.len(), stores[2].needs[1], stores[3].needs[1]), (4, 1, 3));
            });
            assert_eq!(contents(&swap), array);
        }
    }

    #[test]
    fn a_tebibyte_takes_two_entries_a_job() {
        let mut swap = Swap::new(&small(1 << 40));
        drive(&mut swap, 0..2000, 4, |_, _, _, _| ());
        assert!(swap.changed.len() <= 4000 && swap.changed.len() > 1000);
    }

    #[test]
    fn the_hottest_pages_get_their_share() {
        // 4 MiB of elements, 64 on a page; the share that the formula gives the hottest 3 % of the pages, from each rank's
        // probability and where it lies. A job's two elements differ: at this size and skew that moves little.
        for placement in [Placement::Clustered, Placement::Scattered] {
            let n = 65_536;
            let mut common = small(STRIPES * LINE + n * ELEMENT);
            (common.placement, common.skew) = (placement, Skew::Zipf(0.8));
            let mut swap = Swap::new(&common);
            let slots: Vec<u64> = (0..n).map(|rank| swap.elements.slot(swap.elements.ranked(rank))).collect();
            let expected = share(&slots, 64, 0.8, 0.03);
            let mut counted = pages(n / 64);
            drive(&mut swap, 0..40_000, 1, |swap, _, job, _| {
                job.iter().for_each(|&element| counted[swap.elements.slot(element) as usize / 64] += 1);
            });
            let hot: u64 = expected.hottest.iter().map(|&page| counted[page]).sum();
            let measured = hot as f64 / counted.iter().sum::<u64>() as f64;
            assert!(
                (measured - expected.share).abs() < 0.015,
                "{placement:?}: {measured} {}",
                expected.share
            );
        }
    }
}
