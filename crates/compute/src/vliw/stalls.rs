//! For how long caches make a core stand still in a microblock, from a sample of its accesses.
//!
//! What a cache holds depends on what was touched before, up to about its own size. So the loops that go around far more than that are sampled at single iterations, and in these
//! the loops inside are executed access by access, at their true bounds and strides: first for as long as the caches need to forget how they began, then measured. What is measured is
//! a rate of misses for an iteration of each loop; a piece has as many as its iterations say.

#[cfg(test)]
mod tests;

use super::caches::{Caches, Misses};
use super::spec::CacheSpec;
use config::SpecError;
use nest::{Access, DEPTH, Kernel, Node, Piece, Point};
use std::ops::Range;

/// How many times as much as the second level holds is touched before anything is measured, in at most so many times the accesses that are.
const FORGETS: u64 = 2;
const BEFORE: u64 = 4;
/// Screens with at most so many times the accesses that are measured in a loop are executed whole.
const WHOLE: u64 = 4;
/// Where in a loop that is too large its iterations are sampled, in parts of it.
const PLACES: [(u64, u64); 3] = [(1, 6), (3, 6), (5, 6)];
/// Bytes between the beginnings of arrays: of a page group.
const APART: u64 = 64 << 10;

/// Misses of so many iterations of a loop.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    misses: Misses,
    iterations: u64,
}

/// The misses of a microblock.
#[derive(Clone, Debug)]
pub struct Stalls {
    /// By loop; last what stands outside all.
    rates: Vec<Rate>,
    /// What a screen misses once because caches are empty when it begins.
    cold: Misses,
}

impl Stalls {
    /// Samples a screen, which a core begins with empty caches: at least `measured` accesses of each loop that has as many. Of a large microblock one
    /// screen stands for all.
    ///
    /// # Errors
    /// A cache that cannot be built.
    pub fn sample(
        kernel: &Kernel,
        screen: Piece,
        (first, second): (&CacheSpec, &CacheSpec),
        measured: u64,
    ) -> Result<Stalls, SpecError> {
        let loops = kernel.microblocks()[screen.microblock].loops.len();
        let mut sample = Sample {
            kernel,
            starts: starts(kernel),
            forgets: FORGETS * second.size.get(),
            specs: (first, second),
            rates: vec![Rate::default(); loops + 1],
            cold: Misses::default(),
            iterations: Vec::new(),
            measured,
        };
        let counts = kernel.counts(&screen);
        if counts.loads + counts.stores <= WHOLE * measured {
            sample.execute(&screen, &mut sample.caches()?, true);
        } else {
            sample.body(screen, &[0; DEPTH], None)?;
        }
        Ok(Stalls { rates: sample.rates, cold: sample.cold })
    }

    /// The misses of a piece of it, in which each loop has so many iterations; with those that empty caches cost if it begins a screen.
    pub fn of(&self, iterations: &[u64], begins: bool) -> Misses {
        let mut misses = if begins { self.cold } else { Misses::default() };
        for (rate, iterations) in self.rates.iter().zip(iterations.iter().chain([&1])) {
            let scaled = |count: u64| {
                let per = u128::from(rate.iterations.max(1));
                ((u128::from(count) * u128::from(*iterations) + per / 2) / per) as u64
            };
            let Misses { first, second, written } = rate.misses;
            misses += Misses { first: scaled(first), second: scaled(second), written: scaled(written) };
        }
        misses
    }
}

/// Where each array begins in memory.
fn starts(kernel: &Kernel) -> Vec<u64> {
    let mut next = 0;
    let start = |array: &nest::Array| {
        let start = next;
        next += array.bytes().next_multiple_of(APART);
        start
    };
    kernel.arrays().iter().map(start).collect()
}

/// A sample that is being taken.
struct Sample<'k> {
    kernel: &'k Kernel,
    /// Where each array begins in memory.
    starts: Vec<u64>,
    forgets: u64,
    specs: (&'k CacheSpec, &'k CacheSpec),
    rates: Vec<Rate>,
    cold: Misses,
    /// Overwritten by every execution.
    iterations: Vec<u64>,
    measured: u64,
}

impl Sample<'_> {
    fn caches(&self) -> Result<Caches, SpecError> {
        Caches::new(self.specs.0, self.specs.1)
    }

    /// Bytes that a piece touches.
    fn bytes(&self, piece: &Piece) -> u64 {
        self.kernel.footprint(piece).iter().map(nest::Extent::bytes).sum()
    }

    fn accesses(&self, piece: &Piece) -> u64 {
        let counts = self.kernel.counts(piece);
        counts.loads + counts.stores
    }

    /// Samples what stands in one iteration, or outside all loops. `point` is where that is; `before` is the iteration before it.
    fn body(&mut self, piece: Piece, point: &Point, before: Option<Piece>) -> Result<(), SpecError> {
        let microblock = &self.kernel.microblocks()[piece.microblock];
        let around = piece.steps().last().map(|(id, _)| id);
        for node in microblock.inside(around) {
            match *node {
                Node::Loop(id) => self.one(piece, point, before, id)?,
                // Too seldom to matter among what is around it: it finds nothing.
                Node::Statement(id) => {
                    let rate = &mut self.rates[around.unwrap_or(microblock.loops.len())];
                    rate.misses.second += microblock.statements[id].references.len() as u64;
                }
            }
        }
        if let Some(around) = around {
            self.rates[around].iterations += 1;
        }
        Ok(())
    }

    /// The iterations of a loop in a piece.
    fn range(&self, piece: &Piece, point: &Point, id: usize) -> Range<u64> {
        let one = &self.kernel.microblocks()[piece.microblock].loops[id];
        match piece.screen() {
            Some(range) if one.is_split => range,
            _ => 0..u64::try_from(one.trips_at(point)).unwrap_or(0),
        }
    }

    /// Samples a loop.
    fn one(
        &mut self,
        piece: Piece,
        point: &Point,
        before: Option<Piece>,
        id: usize,
    ) -> Result<(), SpecError> {
        let kernel = self.kernel;
        let one = &kernel.microblocks()[piece.microblock].loops[id];
        let Range { start, end } = self.range(&piece, point, id);
        if start == end {
            return Ok(());
        }
        let middle = start + (end - start) / 2;
        if one.is_innermost() || self.bytes(&piece.step(kernel, id, middle..middle + 1)) <= self.forgets {
            return self.window(piece, point, before, id);
        }
        let places: &[(u64, u64)] = if one.parent.is_none() { &PLACES } else { &PLACES[1..2] };
        for (part, parts) in places {
            let at = start + (end - start) * part / parts;
            let mut point = *point;
            point[one.level] = at as i64;
            let before = (at > start).then(|| piece.step(kernel, id, at - 1..at));
            self.body(piece.step(kernel, id, at..at + 1), &point, before)?;
        }
        Ok(())
    }

    /// Executes consecutive iterations of a loop, after others that make caches forget how they began: those in front of them or, if it has not enough, those of the
    /// iteration before.
    fn window(
        &mut self,
        piece: Piece,
        point: &Point,
        before: Option<Piece>,
        id: usize,
    ) -> Result<(), SpecError> {
        let kernel = self.kernel;
        let Range { start, end } = self.range(&piece, point, id);
        let trips = end - start;
        let middle = start + trips / 2;
        let each = self.accesses(&piece.step(kernel, id, middle..middle + 1)).max(1);
        // Lines are missed every so many iterations: measured are whole rounds.
        let round = self.round(piece.microblock, id);
        let measured = self.measured.div_ceil(each).next_multiple_of(round).min(trips);
        let mut caches = self.caches()?;
        let first = |count: u64| piece.step(kernel, id, start..start + count);
        let enough = self.enough(trips, each, |count| self.bytes(&first(count)));
        if piece.steps().next().is_none() {
            // The screen begins here.
            let mut cold = self.rates.clone();
            std::mem::swap(&mut self.rates, &mut cold);
            self.rates.fill(Rate::default());
            self.execute(&first(enough), &mut caches, true);
            std::mem::swap(&mut self.rates, &mut cold);
            let from = (start + enough).min(end - measured);
            self.execute(&piece.step(kernel, id, from..from + measured), &mut caches, true);
            self.begin(&cold);
            return Ok(());
        }
        if enough + measured <= trips {
            let from = start + (trips - enough - measured) / 2;
            self.execute(&piece.step(kernel, id, from..from + enough), &mut caches, false);
            self.execute(&piece.step(kernel, id, from + enough..from + enough + measured), &mut caches, true);
            return Ok(());
        }
        if let Some(before) = before {
            let level = kernel.microblocks()[piece.microblock].loops[id].level;
            let mut point = *point;
            point[level - 1] -= 1;
            let Range { start, end } = self.range(&before, &point, id);
            let last = |count: u64| before.step(kernel, id, end - count..end);
            let enough = self.enough(end - start, each, |count| self.bytes(&last(count)));
            if enough > 0 {
                self.execute(&last(enough), &mut caches, false);
            }
        }
        let measured = (WHOLE * self.measured).div_ceil(each).next_multiple_of(round).min(trips);
        self.execute(&piece.step(kernel, id, start..start + measured), &mut caches, true);
        Ok(())
    }

    /// How many of so many iterations caches need to forget.
    fn enough(&self, trips: u64, each: u64, bytes: impl Fn(u64) -> u64) -> u64 {
        let most = (BEFORE * self.measured).div_ceil(each).min(trips);
        let mut count = 1.min(most);
        while count < most && bytes(count) < self.forgets {
            count = (2 * count).min(most);
        }
        count
    }

    /// After how many iterations of a loop all that it touches lies in lines as before.
    fn round(&self, microblock: usize, id: usize) -> u64 {
        let microblock = &self.kernel.microblocks()[microblock];
        let level = microblock.loops[id].level;
        let line = self.specs.1.line.get();
        let within = |parent: Option<usize>| {
            let mut next = parent;
            while let Some(at) = next {
                if at == id {
                    return true;
                }
                next = microblock.loops[at].parent;
            }
            false
        };
        let inside = microblock.statements.iter().filter(|one| within(one.parent));
        let strides = inside.flat_map(|one| &one.references).map(|one| one.byte.by[level].unsigned_abs());
        // The line and each stride: powers of two decide alone, since the line is one.
        strides.map(|stride| line >> stride.trailing_zeros().min(line.trailing_zeros())).max().unwrap_or(1)
    }

    /// What a screen has missed at its beginning beyond the rate afterwards is what empty caches cost it.
    fn begin(&mut self, first: &[Rate]) {
        for (first, rate) in first.iter().zip(&self.rates) {
            let beyond = |of: fn(&Misses) -> u64| {
                let usual = u128::from(of(&rate.misses)) * u128::from(first.iterations);
                of(&first.misses).saturating_sub((usual / u128::from(rate.iterations.max(1))) as u64)
            };
            self.cold.first += beyond(|misses| misses.first);
            self.cold.second += beyond(|misses| misses.second);
        }
    }

    /// Executes a piece; its misses count if they are measured.
    fn execute(&mut self, piece: &Piece, caches: &mut Caches, measures: bool) {
        let outside = self.rates.len() - 1;
        let (rates, starts) = (&mut self.rates, &self.starts);
        self.kernel.accesses(piece, &mut |access: Access| {
            let misses = caches.access(starts[access.array] + access.byte, access.write);
            if measures {
                rates[access.within.unwrap_or(outside)].misses += misses;
            }
        });
        if measures {
            self.kernel.iterations(piece, &mut self.iterations);
            for (rate, iterations) in rates.iter_mut().zip(&self.iterations) {
                rate.iterations += iterations;
            }
        }
    }
}
