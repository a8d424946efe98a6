//! DRAM behind controllers.

pub mod sched;
pub mod spec;

pub use spec::{DramBanksSpec, DramBusSpec, DramRefreshSpec, DramSpec, DramTimingSpec};

use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{MemCommand, Tally};

/// What leaves a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The lines of a command have been read or written.
    Done(MemCommand),
}

kernel::events! {
    /// What happens inside a memory.
    pub enum Event {
        /// A controller can go on.
        Wake(u16),
        /// The data of a part of a command have passed the bus.
        Moved(u32),
    }
}

/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DramStats {
    /// Commands that read.
    pub reads: u64,
    /// Commands that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Accesses (the lines of a command in one row) that found their row open.
    pub row_hits: u64,
    /// Accesses that found their bank closed.
    pub row_closed: u64,
    /// Accesses that found another row open.
    pub row_conflicts: u64,
    /// Activations.
    pub activations: u64,
    /// Changes of direction on a bus.
    pub turnarounds: u64,
    /// Time that data buses have carried data, summed over controllers.
    pub bus_busy: Time,
}

/// Memory behind controllers.
pub struct Dram {
    /// Counters.
    pub stats: DramStats,
    /// Time waited, by stage.
    pub tally: Tally,
}

impl Dram {
    /// An idle memory, every bank closed.
    ///
    /// # Errors
    /// A value that cannot be built.
    pub fn new(spec: &DramSpec) -> Result<Dram, SpecError> {
        spec.check()?;
        unimplemented!("the interface comes first")
    }
    /// Controllers.
    pub fn controllers(&self) -> u16 {
        unimplemented!("the interface comes first")
    }
    /// The controller in front of an address.
    pub fn controller_of(&self, _address: u64) -> u16 {
        unimplemented!("the interface comes first")
    }
    /// Bytes a second over all data buses.
    pub fn peak_bandwidth(&self) -> u64 {
        unimplemented!("the interface comes first")
    }
    /// Commands inside.
    pub fn outstanding(&self) -> usize {
        unimplemented!("the interface comes first")
    }
    /// At most so many commands will be inside: what all sources together can have outstanding.
    pub fn bound(&mut self, _commands: usize) {}
    /// A command arrives.
    pub fn command(&mut self, _command: MemCommand, _cx: &mut impl Cx<Event, Out>) {
        unimplemented!("the interface comes first")
    }
    /// Something happens.
    pub fn handle(&mut self, _event: Event, _cx: &mut impl Cx<Event, Out>) {
        unimplemented!("the interface comes first")
    }
    /// Counters begin anew.
    pub fn reset_stats(&mut self, _now: Time) {}
}
