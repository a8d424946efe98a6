//! Prefetchers at work in the cache.

use super::*;
use crate::l2::prefetch::{dynamic, predicted};

/// All lines of a page.
const ALL: u64 = (1 << 32) - 1;

#[test]
fn the_rest_of_a_page_comes_once_its_instruction_has_stayed_in_it() {
    let mut spec = spec(WritePolicy::read_only);
    spec.prefetch = Prefetching::predicted(predicted::Params::default());
    let mut rig = Rig::new(&spec, 50);
    for line in 0..20 {
        rig.read(100 * line, line * 128);
    }
    rig.run();
    // Thirteen re-accesses are above the cutoff of 12: the read of line 13 brings what is not here yet.
    let alone = (0..13).map(|line| (false, 0, 1 << line));
    assert!(rig.commands().into_iter().eq(alone.chain([(false, 0, ALL << 13 & ALL)])));
    let stats = rig.cache.stats;
    assert_eq!((stats.hits, stats.used_prefetched_lines, stats.prefetch.tests), (6, 6, 14));
}

#[test]
fn prefetched_lines_that_leave_unread_halve_the_granularity() {
    let mut spec = spec(WritePolicy::read_only);
    (spec.sets, spec.ways) = (32, 1);
    let params = dynamic::Params { cutoff: 0, window: 33, ..dynamic::Params::default() };
    spec.prefetch = Prefetching::dynamic(params);
    let mut rig = Rig::new(&spec, 50);
    // The second read is a re-access and brings the page; two lines of the page were read, thirty were not.
    rig.read(0, 0);
    rig.read(100, 128);
    // Page 1, read by another warp at another instruction, takes all its places, with the same pattern.
    for (delay, line) in [(1000, 0), (1100, 1)] {
        let tag = rig.read(delay, PAGE + line * 128) as usize;
        (rig.world.accesses[tag].pc, rig.world.accesses[tag].warp) = (9, 1);
    }
    rig.run();
    let page = (false, 0, ALL << 1 & ALL);
    assert_eq!(rig.commands(), [(false, 0, 1), page, (false, PAGE, 1), (false, PAGE, ALL << 1 & ALL)]);
    let stats = rig.cache.stats;
    // Lines 0 and 1 were missed, not prefetched: of 32 lines that have left, thirty were prefetched for nobody.
    assert_eq!((stats.evictions, stats.unused_evictions, stats.prefetch.evaluations), (32, 30, 0));
    // One more makes 33, of which 30 are more than 0.3; the next prefetch has half the granularity.
    rig.read(0, 2 * PAGE + 5 * 128);
    rig.read(1000, 2 * PAGE + 6 * 128);
    rig.run();
    assert_eq!((rig.cache.stats.prefetch.evaluations, rig.cache.stats.prefetch.halvings), (1, 1));
    assert_eq!(rig.commands()[5..], [(false, 2 * PAGE, 0xffff & !(1 << 5))]);
}
