//! stub
mod spec;
use crate::Check;
use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{MemCommand, Tally};
pub use spec::{BufferDramSpec, EngineSpec, PageBufferSpec, PrefetchSpec};
kernel::events! {
    /// The engine's own events.
    pub enum Event {
        /// The dispatcher has taken a request.
        Dispatched(u32),
        /// A page to be read has been translated.
        Translated(u32),
        /// A page to be written has been translated.
        Placed(u32),
        /// A page has been read out of the DRAM, to be written to flash.
        ReadOut(u32),
        /// The DRAM has been accessed for a request.
        Answered(u32),
    }
}
/// Messages that the engine sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A request of the shared cache is done.
    Done(MemCommand),
    /// A command to the flash device.
    Submit(proto::Command),
}
/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {}
/// An SSD engine.
pub struct Engine {
    /// What happened since the window began.
    pub stats: EngineStats,
    /// What requests have waited for.
    pub tally: Tally,
}
impl Engine {
    /// Builds.
    ///
    /// # Errors
    /// The first value that cannot be built.
    pub fn new(spec: &EngineSpec) -> Result<Engine, SpecError> {
        spec.check()?;
        Ok(Engine { stats: EngineStats::default(), tally: Tally::default() })
    }
    /// Bytes that the device behind it holds; superpages end there.
    pub fn set_capacity(&mut self, _bytes: u64) {}
    /// A request of the shared cache.
    pub fn command(&mut self, command: MemCommand, cx: &mut impl Cx<Event, Out>) {
        cx.emit(Out::Done(command));
    }
    /// The device's answer.
    pub fn completed(&mut self, _completion: proto::Completion, _cx: &mut impl Cx<Event, Out>) {}
    /// Runs an event.
    pub fn handle(&mut self, _event: Event, _cx: &mut impl Cx<Event, Out>) {}
    /// Requests and commands inside.
    pub fn outstanding(&self) -> usize {
        0
    }
    /// Starts the measured window.
    pub fn reset_stats(&mut self, _now: Time) {}
    /// Accounts.
    pub fn checks(&self) -> Vec<Check> {
        Vec::new()
    }
}
