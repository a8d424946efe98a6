//! Recording of a program that is executed on its data: cycles, cache misses and page groups of each of its pieces.
//!
//! The pieces of a microblock are executed one after another through one core's caches, which begin empty with the
//! microblock. The cost of empty caches for each later screen is not included: at most the lines of the second level,
//! once per screen.

use super::issue::LoopCycles;
use super::memory::{Caches, Misses};
use super::spec::{CoreSpec, LatencySpec};
use config::SpecError;
use nest::executed::{Area, Body, Executed, Operation, Watch};
use std::ops::Range;

/// Page group that a piece touches: the array, and the group's position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Number of the array.
    pub array: u32,
    /// Position of the group.
    pub group: u32,
    /// True if any of the group is read.
    pub reads: bool,
    /// True if any of the group is written.
    pub writes: bool,
}

/// Costs of a piece.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    cycles: u64,
    misses: Misses,
    /// Index after the last of its touches.
    touches: usize,
}

/// Pieces of a microblock, as a range, and whether they may run at once.
#[derive(Clone, Copy, Debug)]
struct Microblock {
    first: usize,
    below: usize,
    is_split: bool,
}

/// Recorded program.
#[derive(Clone, Debug)]
pub struct Recorded {
    microblocks: Vec<Microblock>,
    pieces: Vec<Piece>,
    touches: Vec<Touch>,
}

impl Recorded {
    /// Executes a program on a core, in page groups of `group` bytes.
    ///
    /// # Errors
    /// A cache that cannot be built.
    pub fn of(program: &dyn Executed, core: &CoreSpec, group: u64) -> Result<Recorded, SpecError> {
        let mut groups = 0;
        let begin = |area: &Area| {
            let begin = groups;
            groups += area.bytes.div_ceil(group);
            begin
        };
        let begins = program.arrays().iter().map(begin).collect();
        let mut recorder = Recorder {
            caches: core.build_caches()?,
            core,
            line: core.l1.line.get().trailing_zeros(),
            loaded: u64::MAX,
            bodies: program.bodies().iter().map(|body| of_body(core, body)).collect(),
            begins,
            group,
            seen: vec![(0, 0); groups as usize],
            found: Recorded { microblocks: Vec::new(), pieces: Vec::new(), touches: Vec::new() },
        };
        program.execute(&mut recorder);
        Ok(recorder.found)
    }

    /// Number of microblocks.
    pub fn microblocks(&self) -> usize {
        self.microblocks.len()
    }

    /// Returns whether the pieces of a microblock may run at once.
    pub fn is_split(&self, microblock: usize) -> bool {
        self.microblocks[microblock].is_split
    }

    /// Divides the pieces of a microblock into at most `most` ranges that may run at once; those of a serial one are
    /// one range.
    pub fn screens(&self, microblock: usize, most: u64) -> impl Iterator<Item = Range<usize>> + use<> {
        let Microblock { first, below, is_split } = self.microblocks[microblock];
        deal(first..below, is_split, most)
    }

    /// Divides pieces of a microblock into at most `most` ranges that may run at once; those of a serial one are one
    /// range.
    pub fn dealt(&self, pieces: Range<usize>, most: u64) -> impl Iterator<Item = Range<usize>> + use<> {
        let microblock = self.microblocks.partition_point(|one| one.below <= pieces.start);
        deal(pieces, self.microblocks[microblock].is_split, most)
    }

    /// Divides pieces into ranges that touch at most `groups` groups; a piece that touches more is a range of its own.
    pub fn sections(&self, pieces: Range<usize>, groups: usize) -> Vec<Range<usize>> {
        let mut sections: Vec<Range<usize>> = Vec::new();
        let mut union = Vec::new();
        for piece in pieces {
            let own = self.touched(piece..piece + 1);
            let more = own.iter().filter(|touch| !holds(&union, touch)).count();
            match sections.last_mut() {
                Some(last) if union.len() + more <= groups => last.end = piece + 1,
                _ => {
                    sections.push(piece..piece + 1);
                    union.clear();
                }
            }
            union.extend(own.iter().map(|touch| (touch.array, touch.group)));
            union.sort_unstable();
            union.dedup();
        }
        sections
    }

    /// Groups that pieces touch, once for each piece.
    pub fn touched(&self, pieces: Range<usize>) -> &[Touch] {
        let behind = |piece: usize| piece.checked_sub(1).map_or(0, |last| self.pieces[last].touches);
        &self.touches[behind(pieces.start)..behind(pieces.end)]
    }

    /// Most groups that a piece touches.
    pub fn largest(&self) -> usize {
        (0..self.pieces.len()).map(|piece| self.touched(piece..piece + 1).len()).max().unwrap_or(0)
    }

    /// Cycles in which a core issues pieces, and their cache misses.
    pub fn cost(&self, pieces: Range<usize>) -> (u64, Misses) {
        self.pieces[pieces].iter().fold((0, Misses::default()), |(cycles, mut misses), piece| {
            misses += piece.misses;
            (cycles + piece.cycles, misses)
        })
    }
}

/// Equal ranges, the last with the rest.
fn deal(pieces: Range<usize>, is_split: bool, most: u64) -> impl Iterator<Item = Range<usize>> {
    let most = if is_split { most as usize } else { 1 };
    let each = pieces.len().div_ceil(most.max(1)).max(1);
    let below = pieces.end;
    pieces.step_by(each).map(move |from| from..(from + each).min(below))
}

fn holds(union: &[(u32, u32)], touch: &Touch) -> bool {
    union.binary_search(&(touch.array, touch.group)).is_ok()
}

/// Cycles of a body, computed as for a loop of a nest.
fn of_body(core: &CoreSpec, body: &Body) -> LoopCycles {
    let along = |chain: &[Operation]| chain.iter().map(|one| cycles(*one, &core.latency)).sum();
    LoopCycles {
        resources: core.resources(&core.by_unit(&body.own)),
        recurrence: along(body.recurrence),
        chain: along(body.chain),
        overlaps: body.overlaps,
    }
}

fn cycles(operation: Operation, latency: &LatencySpec) -> u64 {
    let cycles = match operation {
        Operation::Load => latency.load,
        Operation::Store => latency.store,
        Operation::Add => latency.add,
        Operation::Multiply => latency.multiply,
        Operation::Compare => latency.compare,
        Operation::Divide => latency.divide,
        Operation::SquareRoot => latency.square_root,
    };
    cycles.into()
}

/// Recorder that watches the execution.
struct Recorder<'r> {
    caches: Caches,
    core: &'r CoreSpec,
    /// Bits of an address within a first-level line, and the line that the piece loaded last.
    line: u32,
    loaded: u64,
    bodies: Vec<LoopCycles>,
    /// First group of each array, with all arrays one behind the other.
    begins: Vec<u64>,
    group: u64,
    /// Number of pieces at the last touch of each group, and the touch.
    seen: Vec<(usize, usize)>,
    found: Recorded,
}

impl Recorder<'_> {
    fn last(&mut self) -> &mut Piece {
        self.found.pieces.last_mut().expect("a piece has begun")
    }
}

impl Watch for Recorder<'_> {
    fn microblock(&mut self, is_split: bool) {
        let first = self.found.pieces.len();
        self.found.microblocks.push(Microblock { first, below: first, is_split });
        self.caches = self.core.build_caches().expect("caches that were built before");
    }

    fn piece(&mut self) {
        self.loaded = u64::MAX;
        let touches = self.found.touches.len();
        self.found.pieces.push(Piece { touches, ..Piece::default() });
        self.found.microblocks.last_mut().expect("a microblock has begun").below += 1;
    }

    fn body(&mut self, body: usize, entries: u64, passes: u64) {
        let one = self.bodies[body];
        self.last().cycles += passes * one.interval() + entries * one.drain();
    }

    fn loads(&mut self, array: usize, bytes: Range<u64>) {
        // Lines lie within page groups: bytes behind the first byte of a line hit the first level.
        let mut byte = bytes.start;
        while byte < bytes.end {
            self.access(array, byte, false);
            byte = ((byte >> self.line) + 1) << self.line;
        }
    }

    fn access(&mut self, array: usize, byte: u64, write: bool) {
        let within = byte / self.group;
        let place = self.begins[array] + within;
        let address = place * self.group + byte % self.group;
        // The line loaded last is in the first level, in front of all others; stores allocate no line there.
        let line = address >> self.line;
        if !write {
            if self.loaded == line {
                return;
            }
            self.loaded = line;
        }
        let misses = self.caches.access(address, write);
        self.last().misses += misses;
        let pieces = self.found.pieces.len();
        let seen = &mut self.seen[place as usize];
        if seen.0 != pieces {
            *seen = (pieces, self.found.touches.len());
            let touch = Touch { array: array as u32, group: within as u32, reads: false, writes: false };
            self.found.touches.push(touch);
            self.found.pieces[pieces - 1].touches += 1;
        }
        let touch = &mut self.found.touches[seen.1];
        touch.reads |= !write;
        touch.writes |= write;
    }
}

#[cfg(test)]
mod tests {
    // Programs written down by hand, and what is heard of them.
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

    /// Program whose watcher sees runs of loads one by one.
    struct OneByOne<'p>(&'p dyn Executed);

    /// Watcher that passes them on one by one.
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
}
