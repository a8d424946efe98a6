//! First in, first out.

use super::{CLOCK_MAX, Replacement, as_many};
use engine::Snapshot;

/// First in, first out: evicts the way entered longest ago.
pub struct Fifo {
    ways: u32,
    clock: u64,
    entered: Vec<u64>,
}

impl Fifo {
    /// Creates the policy for `sets` of `ways`.
    pub fn new(sets: u32, ways: u32) -> Fifo {
        Fifo { ways, clock: 0, entered: vec![0; (sets * ways) as usize] }
    }
}

impl Replacement for Fifo {
    fn enter(&mut self, set: u32, way: u32) {
        self.clock += 1;
        self.entered[(set * self.ways + way) as usize] = self.clock;
    }
    fn touch(&mut self, _set: u32, _way: u32) {}
    fn leave(&mut self, _set: u32, _way: u32) {}
    fn victim(&mut self, set: u32, may: &dyn Fn(u32) -> bool) -> Option<u32> {
        let first = set * self.ways;
        (0..self.ways).filter(|way| may(*way)).min_by_key(|way| self.entered[(first + way) as usize])
    }
    fn save(&self, out: &mut Vec<u8>) {
        self.clock.save(out);
        self.entered.save(out);
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.clock = u64::load(input).filter(|clock| *clock < CLOCK_MAX)?;
        self.entered = as_many(&self.entered, input)?;
        self.entered.iter().all(|at| *at <= self.clock).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::ReplacementPolicy;
    use super::super::tests::{List, decides_as};

    #[test]
    fn it_decides_as_its_reference() {
        decides_as(&ReplacementPolicy::fifo, false, |_| List { order: Vec::new(), stays: true });
    }
}
