//! stub
mod spec;
use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{Tally, Translation};
pub use spec::{DriverSpec, GpuLinkSpec, PagingSpec};
kernel::events! {
    /// Paging's own events.
    pub enum Event {
        /// A sleeping thread of the driver has been woken.
        Woken(u32),
        /// A thread of the driver has finished a piece of work.
        Worked(u32),
        /// Data that makes room has left the GPU.
        Left(u32),
        /// The place for a granule is free.
        Room(u32),
        /// A granule is in the GPU's memory and its translation in the page table.
        Mapped(u32),
    }
}
/// Messages that paging sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// The page of a translation is in the GPU's memory.
    Resolved(Translation),
    /// A page is no longer in the GPU's memory.
    Evict {
        /// The application.
        app: u8,
        /// Virtual page, in the reach of translations.
        page: u64,
    },
    /// A command to the SSD.
    Submit(proto::Command),
}
/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagingStats {}
/// Paging.
pub struct Paging {
    /// What happened since the window began.
    pub stats: PagingStats,
    /// What faults have waited for.
    pub tally: Tally,
}
impl Paging {
    /// Builds.
    ///
    /// # Errors
    /// The first value that cannot be built.
    pub fn new(spec: &PagingSpec) -> Result<Paging, SpecError> {
        spec.check()?;
        Ok(Paging { stats: PagingStats::default(), tally: Tally::default() })
    }
    /// Bytes that a translation reaches, 4 KiB unless set.
    pub fn set_reach(&mut self, _bytes: u64) {}
    /// An application with `bytes` of data in the SSD; returns where they begin there.
    pub fn add_app(&mut self, _app: u8, _bytes: u64) -> u64 {
        0
    }
    /// A page fault.
    pub fn fault(&mut self, translation: Translation, cx: &mut impl Cx<Event, Out>) {
        cx.emit(Out::Resolved(translation));
    }
    /// The SSD's answer.
    pub fn completed(&mut self, _completion: proto::Completion, _cx: &mut impl Cx<Event, Out>) {}
    /// Runs an event.
    pub fn handle(&mut self, _event: Event, _cx: &mut impl Cx<Event, Out>) {}
    /// Faults and commands inside.
    pub fn outstanding(&self) -> usize {
        0
    }
    /// Starts the measured window.
    pub fn reset_stats(&mut self, _now: Time) {}
}
