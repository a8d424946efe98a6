//! A first-level cache of a core: lines, their coherence state, miss registers.

use super::spec::L1Spec;
use engine::{Mutant, planted_nth};
use mem::cache::{Shape, Tags};
use proto::memory::Absent;

/// What a core may do with a line that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Held {
    /// Read it; other cores may have it too.
    #[default]
    Shared,
    /// Read it, and change it without asking.
    Exclusive,
    /// It has been changed here.
    Modified,
}

/// A line that is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Miss {
    /// Its number.
    pub(super) line: u64,
    /// It is wanted to be changed.
    pub(super) own: bool,
    /// What becomes of the request if the line's page is in flash.
    pub(super) absent: Absent,
}

/// A first-level cache.
pub(super) struct L1 {
    tags: Tags<Held>,
    pub(super) latency: u64,
    registers: Vec<Miss>,
    /// Bit by bit, the registers that are in use, and all there are.
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

    /// What the core may do with a line; that is a use of it.
    #[inline]
    pub(super) fn look(&mut self, line: u64) -> Option<&mut Held> {
        let place = self.tags.find(line)?;
        self.tags.touch(place);
        Some(self.tags.meta_mut(place))
    }

    /// The register of a line that is missing.
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

    /// Takes a register, if one is free.
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

    /// What a register waits for.
    pub(super) fn waits_for(&mut self, register: u8) -> &mut Miss {
        &mut self.registers[usize::from(register)]
    }

    /// Gives a register back.
    pub(super) fn end(&mut self, register: u8) -> Miss {
        self.used &= !(1 << register);
        self.registers[usize::from(register)]
    }

    /// Takes a line in; the line that makes room, and whether it was changed here.
    pub(super) fn fill(&mut self, line: u64, held: Held) -> Option<(u64, bool)> {
        if let Some(place) = self.tags.find(line) {
            *self.tags.meta_mut(place) = held;
            self.tags.touch(place);
            return None;
        }
        let (_, gone) = self.tags.insert(line, held, |_| true).expect("every line may go");
        gone.map(|(line, held)| (line, held == Held::Modified))
    }

    /// Another core wants a line: it goes, or stays as a shared copy. What it was.
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

    /// What the core may do with a line; that is no use of it.
    pub(super) fn held(&self, line: u64) -> Option<Held> {
        self.tags.find(line).map(|place| *self.tags.meta(place))
    }

    /// Lines that are here, and what the core may do with each. O(lines).
    pub(super) fn lines(&self) -> impl Iterator<Item = (u64, Held)> {
        let places = 0..self.tags.places();
        places.filter_map(|place| Some((self.tags.line(place)?, *self.tags.meta(place))))
    }

    /// Lines that are missing.
    pub(super) fn outstanding(&self) -> usize {
        self.used.count_ones() as usize
    }
}
