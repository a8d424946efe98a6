//! The streaming multiprocessors of a GPU.

pub mod sched;
mod spec;
mod stats;

pub use spec::{AluSpec, GpuSpec, L1Spec, LoadStoreSpec, ResidentSpec, SfuSpec, SharedSpec, TlbSpec};
pub use stats::{Counters, GpuStats, KernelStats, LatencySum, SmStats};

use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{Access, Tally, Translation};
use proto::simt::Programs;

/// The multiprocessors' own event: a cycle in which one of them has something to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// A cycle.
    Cycle,
}

impl kernel::Event for Event {
    const BITS: u32 = 0;
    #[inline]
    fn word(self) -> u64 {
        0
    }
    #[inline]
    fn from_word(_: u64) -> Event {
        Event::Cycle
    }
}

/// Messages that the multiprocessors send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A line is read, written or changed.
    Access(Access),
    /// A translation is needed. Pages and frames are numbers, in units of the reach.
    Translate(Translation),
    /// An application has no kernel left.
    Finished(u8),
}

/// What a multiprocessor has too little of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    /// Threads of one block.
    BlockThreads,
    /// Warps of a multiprocessor.
    Warps,
    /// Threads of a multiprocessor, counted in whole warps.
    Threads,
    /// Registers of a multiprocessor.
    Registers,
    /// Bytes of shared memory.
    Shared,
}

/// A kernel whose blocks fit on no multiprocessor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfit {
    /// The application.
    pub app: u8,
    /// Which of its launches.
    pub kernel: u32,
    /// What there is too little of.
    pub what: Need,
    /// What a block needs; zero if it has no threads.
    pub needs: u64,
    /// What a multiprocessor has.
    pub limit: u64,
}

/// All multiprocessors of a GPU.
pub struct Gpu {
    /// What happened.
    pub stats: GpuStats,
    /// The multiprocessors' share of the stages.
    pub tally: Tally,
    /// A later kernel that fits on no multiprocessor; its application has stopped there.
    pub unfit: Option<Unfit>,
}

impl Gpu {
    /// Idle multiprocessors for `apps` applications; a translation entry covers `reach` bytes, a multiple of 4 KiB.
    ///
    /// # Errors
    /// The first value that cannot be built, with its key inside the `gpu` table.
    pub fn new(spec: &GpuSpec, apps: u8, reach: u64) -> Result<Gpu, SpecError> {
        spec.check()?;
        spec::check_reach(reach)?;
        let _ = apps;
        Ok(Gpu { stats: GpuStats::default(), tally: Tally::default(), unfit: None })
    }

    /// Launches the first kernel of every application.
    ///
    /// # Errors
    /// A kernel that fits on no multiprocessor.
    pub fn begin(
        &mut self,
        _programs: &mut dyn Programs,
        _cx: &mut impl Cx<Event, Out>,
    ) -> Result<(), Unfit> {
        unimplemented!()
    }

    /// A cycle has come.
    pub fn handle(&mut self, _event: Event, _programs: &mut dyn Programs, _cx: &mut impl Cx<Event, Out>) {
        unimplemented!()
    }

    /// The answer to an access has arrived.
    pub fn answer(&mut self, _access: Access, _programs: &mut dyn Programs, _cx: &mut impl Cx<Event, Out>) {
        unimplemented!()
    }

    /// The answer to a translation has arrived.
    pub fn translated(
        &mut self,
        _translation: Translation,
        _programs: &mut dyn Programs,
        _cx: &mut impl Cx<Event, Out>,
    ) {
        unimplemented!()
    }

    /// Every multiprocessor forgets a translation, and the lines of its page.
    pub fn invalidate(&mut self, _app: u8, _page: u64) {
        unimplemented!()
    }

    /// Multiprocessors: ports of the network that they take.
    pub fn ports(&self) -> u16 {
        unimplemented!()
    }

    /// Whether every application has ended.
    pub fn is_done(&self) -> bool {
        unimplemented!()
    }

    /// Accesses and translations sent and not answered.
    pub fn outstanding(&self) -> usize {
        unimplemented!()
    }

    /// Forgets what was counted; running kernels begin now.
    pub fn reset_stats(&mut self, _now: Time) {
        unimplemented!()
    }
}
