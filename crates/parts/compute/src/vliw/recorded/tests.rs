//! Programs written down by hand, and what is heard of them.

use super::*;
use crate::vliw::testing::core;
use nest::executed::{Bfs, Wc};
use nest::{Counts, Section};

const GROUP: u64 = 64 << 10;

fn record(program: &dyn Executed) -> Recorded {
    Recorded::of(program, &core(), GROUP).expect("caches")
}

/// Three pieces at once: each reads ten elements of a page group of `x` of its own, and adds them up in the first element of `y`; then one piece reads all three groups.
struct Sums;

impl Executed for Sums {
    fn name(&self) -> &'static str {
        "sums"
    }

    fn arrays(&self) -> Vec<Area> {
        let area = |name: &str, bytes, section| Area { name: name.to_owned(), bytes, section };
        vec![area("x", 3 * GROUP, Section::Input), area("y", 4, Section::Output)]
    }

    fn bodies(&self) -> Vec<Body> {
        let own = Counts { loads: 2, stores: 1, adds: 1, iterations: 1, ..Counts::default() };
        let chain: &[Operation] = &[Operation::Load, Operation::Add, Operation::Store];
        vec![
            Body { about: "a sum", own, chain, recurrence: chain, overlaps: true },
            Body {
                about: "a look",
                own: Counts { loads: 1, ..Counts::default() },
                chain: &[Operation::Load],
                recurrence: &[],
                overlaps: false,
            },
        ]
    }

    fn execute(&self, watch: &mut dyn Watch) {
        watch.microblock(true);
        for piece in 0..3 {
            watch.piece();
            watch.body(0, 1, 10);
            for at in 0..10 {
                watch.access(1, 0, false);
                watch.access(0, piece * GROUP + 4 * at, false);
                watch.access(1, 0, true);
            }
        }
        watch.microblock(false);
        watch.piece();
        watch.body(1, 3, 3);
        (0..3).for_each(|piece| watch.access(0, piece * GROUP, false));
    }
}

#[test]
fn cycles_misses_and_groups_are_those_worked_out_by_hand() {
    let sums = record(&Sums);
    assert_eq!(sums.microblocks(), 2);
    // Load 5, add 3, store 1: an iteration begins each 9 cycles; nothing is left after the last but what is in them. The elements of a piece share a line; the first piece finds y's missing as well.
    let piece = |second| (90, Misses { first: 0, second, ahead: 0, written: 0 });
    assert_eq!([0, 1, 2].map(|at| sums.cost(at..at + 1)), [piece(2), piece(1), piece(1)]);
    // One of each: 5 cycles of the load, one after another. The caches begin anew.
    assert_eq!(sums.cost(3..4), (3 * 5, Misses { first: 0, second: 3, ahead: 0, written: 0 }));
    assert_eq!(sums.cost(0..3), (270, Misses { first: 0, second: 4, ahead: 0, written: 0 }));
    let touch = |array, group, writes| Touch { array, group, reads: true, writes };
    assert_eq!(sums.touched(1..2), [touch(1, 0, true), touch(0, 1, false)]);
    assert_eq!(sums.touched(3..4), [0, 1, 2].map(|group| touch(0, group, false)));
}

#[test]
fn screens_and_sections_are_ranges_of_pieces() {
    let sums = record(&Sums);
    let screens = |microblock, most| sums.screens(microblock, most).collect::<Vec<_>>();
    assert_eq!(screens(0, 8), [0..1, 1..2, 2..3]);
    assert_eq!(screens(0, 2), [0..2, 2..3]);
    assert_eq!(screens(1, 8), [Range { start: 3, end: 4 }]);
    // A piece has two groups, of which y's is in all: two pieces have three.
    assert_eq!(sums.sections(0..3, 3), [0..2, 2..3]);
    assert_eq!(sums.sections(0..3, 2), [0..1, 1..2, 2..3]);
    assert_eq!(sums.sections(0..3, 4), [Range { start: 0, end: 3 }]);
    assert_eq!(sums.largest(), 3);
    assert_eq!(sums.sections(3..4, 1), [Range { start: 3, end: 4 }], "more than fits, by itself");
}

/// Sections of each screen tile it, screens tile their microblock, and all cost what the whole does.
#[test]
fn parts_are_the_whole() {
    let nodes = 70_000_u32;
    let offsets: Vec<u32> = (0..=nodes).map(|node| 3 * node).collect();
    let edges = (0..3 * nodes).map(|edge| (edge.wrapping_mul(2_654_435_761) >> 8) % nodes).collect();
    let search = record(&Bfs::new(offsets, edges, 0));
    let mut next = 0;
    let mut cycles = 0;
    for microblock in 0..search.microblocks() {
        for screen in search.screens(microblock, 3) {
            for section in search.sections(screen.clone(), 12) {
                assert_eq!(section.start, next);
                next = section.end;
                cycles += search.cost(section).0;
            }
            assert_eq!(screen.end, next);
        }
    }
    assert_eq!(cycles, search.cost(0..next).0);
}

/// A program whose watcher hears runs of loads one by one.
struct OneByOne<'p>(&'p dyn Executed);

/// Who hears them so.
struct Single<'w>(&'w mut dyn Watch);

impl Watch for Single<'_> {
    fn microblock(&mut self, is_split: bool) {
        self.0.microblock(is_split);
    }
    fn piece(&mut self) {
        self.0.piece();
    }
    fn body(&mut self, body: usize, entries: u64, passes: u64) {
        self.0.body(body, entries, passes);
    }
    fn access(&mut self, array: usize, byte: u64, write: bool) {
        self.0.access(array, byte, write);
    }
}

impl Executed for OneByOne<'_> {
    fn name(&self) -> &'static str {
        self.0.name()
    }
    fn arrays(&self) -> Vec<Area> {
        self.0.arrays()
    }
    fn bodies(&self) -> Vec<Body> {
        self.0.bodies()
    }
    fn execute(&self, watch: &mut dyn Watch) {
        self.0.execute(&mut Single(watch));
    }
}

#[test]
fn a_run_of_loads_is_its_loads() {
    let words = Wc::generate(300_000, 500, 3);
    let (at_once, one_by_one) = (record(&words), record(&OneByOne(&words)));
    let pieces = at_once.pieces.len();
    for piece in 0..pieces {
        assert_eq!(at_once.cost(piece..piece + 1), one_by_one.cost(piece..piece + 1), "piece {piece}");
    }
    assert!(at_once.cost(0..pieces).1.second > 300_000 / 128, "the text is not in the caches");
    assert_eq!(at_once.touched(0..pieces), one_by_one.touched(0..pieces));
}
