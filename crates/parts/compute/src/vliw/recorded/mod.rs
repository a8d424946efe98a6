//! What a program does that is executed on its data: cycles, cache misses and page groups of each of its pieces.
//!
//! The pieces of a microblock are heard one after another through one core's caches, which begin empty with the microblock. What empty caches cost each later screen is not in it: at most
//! the lines of the second level, once a screen.

#[cfg(test)]
mod tests;

use super::caches::{Caches, Misses};
use super::issue::LoopCycles;
use super::spec::{CoreSpec, LatencySpec};
use config::SpecError;
use nest::executed::{Area, Body, Executed, Operation, Watch};
use std::ops::Range;

/// A page group that a piece touches: of an array, by number, and by its place in that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The array.
    pub array: u32,
    /// The group.
    pub group: u32,
    /// Whether any of it is read.
    pub reads: bool,
    /// Whether any of it is written.
    pub writes: bool,
}

/// What a piece does.
#[derive(Clone, Copy, Debug, Default)]
struct Piece {
    cycles: u64,
    misses: Misses,
    /// Behind the last of its touches.
    touches: usize,
}

/// Pieces of a microblock, from and below, and whether they may run at once.
#[derive(Clone, Copy, Debug)]
struct Microblock {
    first: usize,
    below: usize,
    is_split: bool,
}

/// A program as it was heard.
#[derive(Clone, Debug)]
pub struct Recorded {
    microblocks: Vec<Microblock>,
    pieces: Vec<Piece>,
    touches: Vec<Touch>,
}

impl Recorded {
    /// Executes a program on a core, in page groups of so many bytes.
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

    /// Microblocks.
    pub fn microblocks(&self) -> usize {
        self.microblocks.len()
    }

    /// Whether the pieces of a microblock may run at once.
    pub fn is_split(&self, microblock: usize) -> bool {
        self.microblocks[microblock].is_split
    }

    /// The pieces of a microblock as at most so many ranges that may run at once; those of a serial one are one range.
    pub fn screens(&self, microblock: usize, most: u64) -> impl Iterator<Item = Range<usize>> + use<> {
        let Microblock { first, below, is_split } = self.microblocks[microblock];
        deal(first..below, is_split, most)
    }

    /// Pieces of a microblock as at most so many ranges that may run at once; those of a serial one are one range.
    pub fn dealt(&self, pieces: Range<usize>, most: u64) -> impl Iterator<Item = Range<usize>> + use<> {
        let microblock = self.microblocks.partition_point(|one| one.below <= pieces.start);
        deal(pieces, self.microblocks[microblock].is_split, most)
    }

    /// Pieces in ranges that touch at most so many groups; a piece that alone touches more is one.
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

    /// The groups that pieces touch; one that several of them touch is there as often.
    pub fn touched(&self, pieces: Range<usize>) -> &[Touch] {
        let behind = |piece: usize| piece.checked_sub(1).map_or(0, |last| self.pieces[last].touches);
        &self.touches[behind(pieces.start)..behind(pieces.end)]
    }

    /// The most groups that a piece touches.
    pub fn largest(&self) -> usize {
        (0..self.pieces.len()).map(|piece| self.touched(piece..piece + 1).len()).max().unwrap_or(0)
    }

    /// Cycles in which a core issues pieces, and what its caches miss in them.
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

/// The cycles of a body, as of a loop of a nest.
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

/// Who listens.
struct Recorder<'r> {
    caches: Caches,
    core: &'r CoreSpec,
    /// Bits of an address within a line of the first level, and the line that the piece has loaded last.
    line: u32,
    loaded: u64,
    bodies: Vec<LoopCycles>,
    /// The first group of each array, if all lie one behind the other.
    begins: Vec<u64>,
    group: u64,
    /// Of each group: how many pieces there were when it was touched last, and the touch.
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
        // Lines lie within page groups: what is behind the first byte of a line is in the first level.
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
        // What was loaded last is in the first level, in front of all others; stores take no line there.
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
