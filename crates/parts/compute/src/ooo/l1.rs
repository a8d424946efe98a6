//! First-level cache of a core: lines, coherence states, miss registers.

use super::spec::L1Spec;
use engine::{Mutant, planted_nth};
use mem::cache::{Shape, Tags};
use proto::memory::Absent;

/// Access right of a core to a line that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Held {
    /// Read; other cores may hold it too.
    #[default]
    Shared,
    /// Read, and change without a request.
    Exclusive,
    /// Changed by this core.
    Modified,
}

/// Missing line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Miss {
    /// Number of the line.
    pub(super) line: u64,
    /// True if the line is needed for a change.
    pub(super) own: bool,
    /// Outcome of the request if the line's page is in flash.
    pub(super) absent: Absent,
}

/// First-level cache.
pub(super) struct L1 {
    tags: Tags<Held>,
    pub(super) latency: u64,
    registers: Vec<Miss>,
    /// Registers in use, and all registers, as bits.
    used: u64,
    all: u64,
}

impl L1 {
    pub(super) fn new(spec: &L1Spec, seed: u64) -> L1 {
        L1 {
            tags: Tags::seeded(Shape { sets: spec.sets, ways: spec.ways }, &spec.replacement, seed),
            latency: spec.latency.into(),
            registers: vec![Miss { line: 0, own: false, absent: Absent::Wait }; spec.registers as usize],
            used: 0,
            all: u64::MAX >> (64 - spec.registers),
        }
    }

    /// Access right to a line; counts as a use.
    #[inline]
    pub(super) fn look(&mut self, line: u64) -> Option<&mut Held> {
        let place = self.tags.find(line)?;
        self.tags.touch(place);
        Some(self.tags.meta_mut(place))
    }

    /// Register of a missing line.
    #[inline]
    pub(super) fn missing(&self, line: u64) -> Option<u8> {
        let mut used = self.used;
        while used != 0 {
            let register = used.trailing_zeros();
            if self.registers[register as usize].line == line {
                return Some(register as u8);
            }
            used &= used - 1;
        }
        None
    }

    /// Allocates a register, if one is free.
    pub(super) fn miss(&mut self, miss: Miss) -> Option<u8> {
        let free = self.all & !self.used;
        if free == 0 {
            return None;
        }
        let register = free.trailing_zeros();
        self.used |= 1 << register;
        self.registers[register as usize] = miss;
        Some(register as u8)
    }

    /// Miss that a register waits for.
    pub(super) fn waits_for(&mut self, register: u8) -> &mut Miss {
        &mut self.registers[usize::from(register)]
    }

    /// Frees a register.
    pub(super) fn end(&mut self, register: u8) -> Miss {
        self.used &= !(1 << register);
        self.registers[usize::from(register)]
    }

    /// Inserts a line; returns the evicted line, and whether it was changed here.
    pub(super) fn fill(&mut self, line: u64, held: Held) -> Option<(u64, bool)> {
        if let Some(place) = self.tags.find(line) {
            *self.tags.meta_mut(place) = held;
            self.tags.touch(place);
            return None;
        }
        let (_, gone) = self.tags.insert(line, held, |_| true).expect("every line may go");
        gone.map(|(line, held)| (line, held == Held::Modified))
    }

    /// Handles a probe of a different core: the line is invalidated, or stays as a shared copy. Returns the previous
    /// state.
    pub(super) fn give(&mut self, line: u64, invalidate: bool) -> Option<Held> {
        let place = self.tags.find(line)?;
        let held = *self.tags.meta(place);
        if invalidate && !planted_nth(Mutant::KeptLine, 16) {
            self.tags.remove(place);
        } else {
            *self.tags.meta_mut(place) = Held::Shared;
        }
        Some(held)
    }

    /// Access right to a line; does not count as a use.
    pub(super) fn held(&self, line: u64) -> Option<Held> {
        self.tags.find(line).map(|place| *self.tags.meta(place))
    }

    /// Lines in the cache, with the access right to each. O(lines).
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, Held)> {
        let places = 0..self.tags.places();
        places.filter_map(|place| Some((self.tags.line(place)?, *self.tags.meta(place))))
    }

    /// Number of missing lines.
    pub(super) fn outstanding(&self) -> usize {
        self.used.count_ones() as usize
    }
}
