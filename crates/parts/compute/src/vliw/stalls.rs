//! Cache stalls of a core in a microblock, from a sample of its accesses.
//!
//! The contents of a cache depend on earlier accesses, up to about its own size. So loops around far larger amounts of
//! data are sampled at single iterations, and in these the inner loops are executed access by access, at their true
//! bounds and strides: first until the caches have forgotten their initial state, then measured. The result is a miss
//! rate per iteration of each loop; a piece has misses according to its iterations.

use super::memory::{Caches, Misses};
use super::spec::CacheSpec;
use config::SpecError;
use nest::{Access, Kernel, Piece};
use std::ops::Range;

/// Multiple of the second level's contents that is touched before anything is measured, in at most this many times the
/// measured accesses.
const FORGETS: u64 = 2;
const BEFORE: u64 = 4;
/// Screens with at most this many times the measured accesses of a loop are executed whole.
const WHOLE: u64 = 4;
/// Positions in a large loop at which its iterations are sampled, as fractions of it.
const PLACES: [(u64, u64); 3] = [(1, 6), (3, 6), (5, 6)];
/// Alignment of the arrays' beginnings, bytes: a page group.
const APART: u64 = 64 << 10;

/// Misses of a number of iterations of a loop.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Rate {
    misses: Misses,
    iterations: u64,
}

/// Misses of a microblock.
#[derive(Clone, Debug, PartialEq)]
pub struct Stalls {
    /// Rates by loop; the last one is of code outside all loops.
    rates: Vec<Rate>,
    /// Misses of a screen that are due to empty caches at its beginning.
    cold: Misses,
}

impl Stalls {
    /// Samples a screen, which a core begins with empty caches: at least `measured` accesses of each loop that has as
    /// many. In a large microblock, one screen represents all.
    ///
    /// # Errors
    /// A cache that cannot be built.
    pub fn sample(
        kernel: &Kernel,
        screen: Piece,
        (first, second, streams): (&CacheSpec, &CacheSpec, u32),
        measured: u64,
    ) -> Result<Stalls, SpecError> {
        let loops = kernel.microblocks()[screen.microblock].loops.len();
        let mut sample = Sample {
            kernel,
            starts: starts(kernel),
            forgets: FORGETS * second.size.get(),
            specs: (first, second, streams),
            rates: vec![Rate::default(); loops + 1],
            cold: Misses::default(),
            iterations: Vec::new(),
            measured,
        };
        let counts = kernel.counts(&screen);
        if counts.loads + counts.stores <= WHOLE * measured {
            sample.execute(&screen, &mut sample.caches()?, true);
        } else {
            sample.body(&screen, None)?;
        }
        Ok(Stalls { rates: sample.rates, cold: sample.cold })
    }

    /// Misses of a piece with these iterations of each loop, including those of empty caches if it begins a screen.
    pub fn of(&self, iterations: &[u64], begins: bool) -> Misses {
        let mut misses = if begins { self.cold } else { Misses::default() };
        for (rate, iterations) in self.rates.iter().zip(iterations.iter().chain([&1])) {
            let scaled = |count: u64| {
                let per = u128::from(rate.iterations.max(1));
                ((u128::from(count) * u128::from(*iterations) + per / 2) / per) as u64
            };
            let Misses { first, second, ahead, written } = rate.misses;
            let [first, second, ahead, written] = [first, second, ahead, written].map(scaled);
            misses += Misses { first, second, ahead, written };
        }
        misses
    }
}

/// Address at which each array begins in memory.
fn starts(kernel: &Kernel) -> Vec<u64> {
    let mut next = 0;
    let start = |array: &nest::Array| {
        let start = next;
        next += array.bytes().next_multiple_of(APART);
        start
    };
    kernel.arrays().iter().map(start).collect()
}

/// Sample in progress.
struct Sample<'k> {
    kernel: &'k Kernel,
    /// Address at which each array begins in memory.
    starts: Vec<u64>,
    forgets: u64,
    specs: (&'k CacheSpec, &'k CacheSpec, u32),
    rates: Vec<Rate>,
    cold: Misses,
    /// Buffer overwritten by every execution.
    iterations: Vec<u64>,
    measured: u64,
}

impl Sample<'_> {
    fn caches(&self) -> Result<Caches, SpecError> {
        Ok(Caches::new(self.specs.0, self.specs.1)?.with_streams(self.specs.2))
    }

    /// Bytes that a piece touches.
    fn bytes(&self, piece: &Piece) -> u64 {
        self.kernel.footprint(piece).iter().map(nest::Extent::bytes).sum()
    }

    fn accesses(&self, piece: &Piece) -> u64 {
        let counts = self.kernel.counts(piece);
        counts.loads + counts.stores
    }

    /// Samples the parts that a piece executes one after another. `before` is the iteration before it.
    fn body(&mut self, piece: &Piece, before: Option<&Piece>) -> Result<(), SpecError> {
        let outside = self.rates.len() - 1;
        let around = piece.range().map_or(outside, |(id, _)| id);
        for part in self.kernel.parts(piece) {
            if part.range().is_some() {
                let before = before.and_then(|before| self.same(before, &part));
                self.iterations(&part, before)?;
            } else {
                // Too rare to matter among the surrounding accesses: all of these miss.
                self.rates[around].misses.second += self.accesses(&part);
            }
        }
        self.rates[around].iterations += u64::from(around != outside);
        Ok(())
    }

    /// Loop of a part in a different iteration of the surrounding loops.
    fn same(&self, other: &Piece, part: &Piece) -> Option<Piece> {
        let id = part.range()?.0;
        self.kernel.parts(other).into_iter().find(|part| part.range().is_some_and(|(other, _)| other == id))
    }

    /// Samples iterations of a loop.
    fn iterations(&mut self, part: &Piece, before: Option<Piece>) -> Result<(), SpecError> {
        let Some((id, Range { start, end })) = part.range().filter(|(_, range)| !range.is_empty()) else {
            return Ok(());
        };
        let one = &self.kernel.microblocks()[part.microblock].loops[id];
        let middle = start + (end - start) / 2;
        if one.is_innermost() || self.bytes(&part.narrowed(middle..middle + 1)) <= self.forgets {
            return self.window(part, before);
        }
        let places: &[(u64, u64)] = if one.parent.is_none() { &PLACES } else { &PLACES[1..2] };
        for (place, places) in places {
            let at = start + (end - start) * place / places;
            let before = (at > start).then(|| part.narrowed(at - 1..at));
            self.body(&part.narrowed(at..at + 1), before.as_ref())?;
        }
        Ok(())
    }

    /// Executes consecutive iterations of a loop, after others that make caches forget their initial state: those
    /// before them or, if these are too few, those of the same loop before.
    fn window(&mut self, part: &Piece, before: Option<Piece>) -> Result<(), SpecError> {
        let Some((id, Range { start, end })) = part.range() else { return Ok(()) };
        let trips = end - start;
        let middle = start + trips / 2;
        let each = self.accesses(&part.narrowed(middle..middle + 1)).max(1);
        // Lines are missed every few iterations: measure whole rounds.
        let round = self.round(part.microblock, id);
        let measured = self.measured.div_ceil(each).next_multiple_of(round).min(trips);
        let mut caches = self.caches()?;
        let enough = self.enough(trips, each, |count| self.bytes(&part.narrowed(start..start + count)));
        if part.steps().count() == 1 {
            return self.begin(part, enough, measured);
        }
        if enough + measured <= trips {
            let from = start + (trips - enough - measured) / 2;
            self.execute(&part.narrowed(from..from + enough), &mut caches, false);
            self.execute(&part.narrowed(from + enough..from + enough + measured), &mut caches, true);
            return Ok(());
        }
        if let Some(before) = before
            && let Some((_, Range { start, end })) = before.range()
        {
            let last = |count: u64| before.narrowed(end - count..end);
            let enough = self.enough(end - start, each, |count| self.bytes(&last(count)));
            if enough > 0 {
                self.execute(&last(enough), &mut caches, false);
            }
        }
        let measured = (WHOLE * self.measured).div_ceil(each).next_multiple_of(round).min(trips);
        self.execute(&part.narrowed(start..start + measured), &mut caches, true);
        Ok(())
    }

    /// Executes a window for a loop that begins a screen. Its initial misses beyond the later rate are the cost of
    /// empty caches for the screen.
    fn begin(&mut self, part: &Piece, enough: u64, measured: u64) -> Result<(), SpecError> {
        let Some((_, Range { start, end })) = part.range() else { return Ok(()) };
        let mut caches = self.caches()?;
        let none = vec![Rate::default(); self.rates.len()];
        let rates = std::mem::replace(&mut self.rates, none);
        self.execute(&part.narrowed(start..start + enough), &mut caches, true);
        let first = std::mem::replace(&mut self.rates, rates);
        let from = (start + enough).min(end - measured);
        self.execute(&part.narrowed(from..from + measured), &mut caches, true);
        for (first, rate) in first.iter().zip(&self.rates) {
            let beyond = |of: fn(&Misses) -> u64| {
                let usual = u128::from(of(&rate.misses)) * u128::from(first.iterations);
                of(&first.misses).saturating_sub((usual / u128::from(rate.iterations.max(1))) as u64)
            };
            self.cold.first += beyond(|misses| misses.first);
            self.cold.second += beyond(|misses| misses.second);
            self.cold.ahead += beyond(|misses| misses.ahead);
        }
        Ok(())
    }

    /// Number of iterations, out of `trips`, that caches need to forget.
    fn enough(&self, trips: u64, each: u64, bytes: impl Fn(u64) -> u64) -> u64 {
        let most = (BEFORE * self.measured).div_ceil(each).min(trips);
        let mut count = 1.min(most);
        while count < most && bytes(count) < self.forgets {
            count = (2 * count).min(most);
        }
        count
    }

    /// Number of iterations after which a loop's data lie in lines as before.
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
        // The line and each stride: only powers of two matter, since the line is one.
        strides.map(|stride| line >> stride.trailing_zeros().min(line.trailing_zeros())).max().unwrap_or(1)
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

#[cfg(test)]
mod tests {
    // Samples against whole executions, address by address.
    use super::*;
    use crate::vliw::testing::cache;

    fn caches(scale: u64) -> (CacheSpec, CacheSpec) {
        (cache(32 / scale, 2, 64, 12), cache(512 / scale, 4, 128, 60))
    }

    /// Executes every access of a screen.
    fn whole(
        kernel: &Kernel,
        screen: &Piece,
        (first, second, streams): (&CacheSpec, &CacheSpec, u32),
    ) -> Misses {
        let mut caches = Caches::new(first, second).expect("caches").with_streams(streams);
        let starts = starts(kernel);
        let mut misses = Misses::default();
        kernel.accesses(screen, &mut |access: Access| {
            misses += caches.access(starts[access.array] + access.byte, access.write);
        });
        misses
    }

    /// Cycles for which a core stalls.
    fn stalls(misses: &Misses, (first, second, _): (&CacheSpec, &CacheSpec, u32)) -> f64 {
        let lone = misses.first * u64::from(first.miss) + misses.second * u64::from(second.miss);
        (lone + misses.ahead * u64::from(second.miss) / 2) as f64
    }

    /// Programs on caches a sixteenth of the size, with matrices from half of the first level to six times the second.
    #[test]
    fn samples_are_within_five_per_cent_of_whole_executions() {
        check_samples(0);
    }

    /// Programs with a prefetcher of eight streams, which takes half of a miss.
    #[test]
    fn the_same_with_streams_that_are_fetched_ahead() {
        check_samples(8);
    }

    fn check_samples(streams: u32) {
        let (first, second) = caches(16);
        let specs = (&first, &second, streams);
        let mut off = Vec::new();
        for (name, text) in nest::programs() {
            for side in [16, 90, 128] {
                let sizes: Vec<(String, i64)> = Kernel::read(text, name, &[])
                    .expect("a program")
                    .sizes()
                    .iter()
                    .map(|(name, _)| (name.clone(), side))
                    .collect();
                let Ok(kernel) = Kernel::read(text, name, &sizes) else { continue };
                for microblock in 0..kernel.microblocks().len() {
                    let screen = kernel
                        .screens(microblock, 6)
                        .nth(2)
                        .or_else(|| kernel.screens(microblock, 6).last())
                        .expect("a screen");
                    let sampled = Stalls::sample(&kernel, screen, specs, 1 << 16).expect("a sample");
                    let mut iterations = Vec::new();
                    kernel.iterations(&screen, &mut iterations);
                    let found = stalls(&sampled.of(&iterations, true), specs);
                    let wanted = stalls(&whole(&kernel, &screen, specs), specs);
                    let error = (found - wanted).abs() / wanted.max(1.0);
                    if error > 0.05 {
                        off.push(format!(
                            "{name} {side} {microblock}: {found} against {wanted}, {:.1} %",
                            100.0 * error
                        ));
                    }
                }
            }
        }
        assert!(off.is_empty(), "{}:\n{}", off.len(), off.join("\n"));
    }
}
