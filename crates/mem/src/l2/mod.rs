//! The cache that all multiprocessors share: its banks, miss registers, prefetching, parked pages.

pub mod prefetch;
mod spec;
mod stats;

pub use spec::{L2Spec, WritePolicy};
pub use stats::L2Stats;

use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{Access, MemCommand, Tally};

kernel::events! {
    /// What happens inside the cache.
    pub enum Event {
        /// A bank has served its access.
        Served(u16),
    }
}

/// What the cache sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// An access comes back to its port.
    Answer(Access),
    /// Lines to fetch from memory, or to store there.
    Command(MemCommand),
}

/// All banks of the shared cache.
pub struct L2 {
    banks: u16,
    /// What it has counted.
    pub stats: L2Stats,
    /// Its share of where requests' time went.
    pub tally: Tally,
}

#[expect(unused_variables, reason = "the interface stands before the model")]
impl L2 {
    /// A cache as the spec says.
    ///
    /// # Errors
    /// The first value of the spec that does not fit.
    pub fn new(spec: &L2Spec, seed: u64) -> Result<L2, SpecError> {
        spec.check()?;
        Ok(L2 { banks: spec.banks, stats: L2Stats::default(), tally: Tally::default() })
    }
    /// How many banks there are.
    pub fn banks(&self) -> u16 {
        self.banks
    }
    /// The bank that serves a physical address.
    pub fn bank_of(&self, address: u64) -> u16 {
        unimplemented!()
    }
    /// An access has come to a bank.
    pub fn access(&mut self, bank: u16, access: Access, cx: &mut impl Cx<Event, Out>) {
        unimplemented!()
    }
    /// Memory has done a command.
    pub fn done(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        unimplemented!()
    }
    /// Takes a dirty page that overcrowded flash registers hand back; false if there is no room.
    pub fn park(&mut self, page: u64, lines: u32, app: u8, cx: &mut impl Cx<Event, Out>) -> bool {
        unimplemented!()
    }
    /// All lines of an application leave; dirty ones are written.
    pub fn purge(&mut self, app: u8, cx: &mut impl Cx<Event, Out>) {
        unimplemented!()
    }
    /// One of its events has come.
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out>) {
        unimplemented!()
    }
    /// Accesses and commands inside.
    pub fn outstanding(&self) -> usize {
        unimplemented!()
    }
    /// Time that the banks have been occupied in the measured window, summed over banks.
    pub fn busy(&self, now: Time) -> Time {
        unimplemented!()
    }
    /// Begins a measured window.
    pub fn reset_stats(&mut self, now: Time) {
        unimplemented!()
    }
}
