//! Translation from virtual to physical addresses.

pub mod spec;
pub mod table;
pub mod tlb;

pub use spec::{MmuSpec, SharedTlbSpec};

use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{Access, Tally, Translation};

/// What leaves a memory management unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A page walk reads an entry of a table through the shared cache.
    Walk(Access),
    /// A translation is known.
    Translated(Translation),
    /// A page is not resident. Said once for a page until [`Mmu::resolve`] is called.
    Fault(Translation),
}

kernel::events! {
    /// What happens inside a memory management unit.
    pub enum Event {
        /// The look-up of a translation in the shared TLB has ended.
        Looked(u32),
        /// A walker thread has done what precedes its next read, or the end of its walk.
        Walker(u32),
    }
}

/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MmuStats {
    /// Translations asked for.
    pub translations: u64,
    /// Of them, found in the shared TLB.
    pub tlb_hits: u64,
    /// Of them, joined to a walk for the same page.
    pub merged: u64,
    /// Of them, joined to a page fault under way.
    pub fault_merged: u64,
    /// Page walks.
    pub walks: u64,
    /// Page walks that had to wait for a thread of the walker.
    pub walks_queued: u64,
    /// Entries that walks have read from memory.
    pub walk_reads: u64,
    /// Entries that walks have found in the walk cache.
    pub walk_cached: u64,
    /// Page faults.
    pub faults: u64,
}

/// The memory management unit that all multiprocessors share.
pub struct Mmu {
    /// Counters.
    pub stats: MmuStats,
    /// Time waited, by stage. Translations count as reads.
    pub tally: Tally,
}

impl Mmu {
    /// An idle unit without applications. `port` is its own port of the network, for page walks.
    ///
    /// # Errors
    /// A value that cannot be built.
    pub fn new(spec: &MmuSpec, _port: u16) -> Result<Mmu, SpecError> {
        spec.check()?;
        unimplemented!("the interface comes first")
    }
    /// Bytes that one translation covers.
    pub fn reach(&self) -> u64 {
        unimplemented!("the interface comes first")
    }
    /// Bytes of virtual addresses that an application can have at most.
    pub fn span(&self) -> u64 {
        unimplemented!("the interface comes first")
    }
    /// Lays out an application's addresses from zero to `bytes`, in frames of their own, in the order of the calls.
    pub fn add_app(&mut self, _app: u8, _bytes: u64, _resident: bool) {}
    /// Bytes of the page tables, in memory or in the unit itself.
    pub fn table_bytes(&self) -> u64 {
        unimplemented!("the interface comes first")
    }
    /// End of the physical memory that data and page tables take.
    pub fn top(&self) -> u64 {
        unimplemented!("the interface comes first")
    }
    /// A multiprocessor asks for a translation.
    pub fn translate(&mut self, _translation: Translation, _cx: &mut impl Cx<Event, Out>) {}
    /// The answer to a read of a walk.
    pub fn walked(&mut self, _access: Access, _cx: &mut impl Cx<Event, Out>) {}
    /// A fault has been served: the page is resident now.
    pub fn resolve(&mut self, _translation: Translation, _cx: &mut impl Cx<Event, Out>) {}
    /// A page is not resident any more.
    pub fn evict(&mut self, _app: u8, _page: u64) {}
    /// Something happens.
    pub fn handle(&mut self, _event: Event, _cx: &mut impl Cx<Event, Out>) {}
    /// Translations inside.
    pub fn outstanding(&self) -> usize {
        unimplemented!("the interface comes first")
    }
    /// At most so many translations will be inside: what all multiprocessors together can ask for.
    pub fn bound(&mut self, _translations: usize) {}
    /// Counters begin anew.
    pub fn reset_stats(&mut self, _now: Time) {}
}
