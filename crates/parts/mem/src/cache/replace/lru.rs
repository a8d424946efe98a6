//! Least recently used.

use super::{CLOCK_MAX, Replacement, as_many};
use engine::Snapshot;

/// Least recently used: evicts the way entered or touched longest ago.
pub struct Lru {
    ways: u32,
    clock: u64,
    used: Vec<u64>,
}

impl Lru {
    /// Creates the policy for `sets` of `ways`.
    pub fn new(sets: u32, ways: u32) -> Lru {
        Lru { ways, clock: 0, used: vec![0; (sets * ways) as usize] }
    }

    #[inline]
    fn stamp(&mut self, set: u32, way: u32) {
        self.clock += 1;
        self.used[(set * self.ways + way) as usize] = self.clock;
    }
}

impl Replacement for Lru {
    #[inline]
    fn enter(&mut self, set: u32, way: u32) {
        self.stamp(set, way);
    }
    #[inline]
    fn touch(&mut self, set: u32, way: u32) {
        self.stamp(set, way);
    }
    fn leave(&mut self, _set: u32, _way: u32) {}
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32> {
        let first = (set * self.ways) as usize;
        let used = &self.used[first..first + self.ways as usize];
        let oldest = (0..self.ways).min_by_key(|way| used[*way as usize])?;
        if may(oldest) {
            return Some(oldest);
        }
        (0..self.ways).filter(|way| may(*way)).min_by_key(|way| used[*way as usize])
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.clock.save(out);
        self.used.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.clock = u64::load(input).filter(|clock| *clock < CLOCK_MAX)?;
        self.used = as_many(&self.used, input)?;
        self.used.iter().all(|at| *at <= self.clock).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ReplacementPolicy;
    use super::super::tests::{List, decides_as};

    #[test]
    fn it_decides_as_its_reference() {
        decides_as(&ReplacementPolicy::lru, false, |_| List { order: Vec::new(), stays: false });
    }
}
