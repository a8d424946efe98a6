//! What an accelerator has counted.

use super::super::Instance;
use engine::Time;

/// When a kernel was offloaded, when its first screen began, and when it was over. A screen's time is from Flashvisor's decision to its knowledge of the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelTimes {
    /// The kernel.
    pub instance: Instance,
    /// Offloaded.
    pub offloaded: Time,
    /// Flashvisor could schedule it: it was told, and all arrays were locked.
    pub released: Time,
    /// Its first screen began.
    pub begun: Time,
    /// Its last screen had ended.
    pub computed: Time,
    /// All that it leaves was on flash.
    pub over: Time,
    /// Its critical path: of each microblock, the time of the longest screen.
    pub path: Time,
}

/// What an accelerator has counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcceleratorStats {
    /// Of each worker: time in which it computed, and of that the part for which it waited for its caches or for memory.
    pub busy: Vec<Time>,
    /// The latter.
    pub stalled: Vec<Time>,
    /// Of each worker: time in which it had a screen.
    pub held: Vec<Time>,
    /// Of each worker: of the latter, the part in which it computed nothing, from one event to the next.
    pub waited: Vec<Time>,
    /// Times of all screens that have ended, from Flashvisor's decision to its knowledge of the end.
    pub work: Time,
    /// Screens, and sections of them.
    pub screens: u64,
    /// The latter.
    pub sections: u64,
    /// Page groups that sections found in memory, that were on their way, that were fetched, and that were new.
    pub found: u64,
    /// On their way.
    pub coming: u64,
    /// Fetched.
    pub fetched: u64,
    /// New.
    pub fresh: u64,
    /// Page groups that were programmed.
    pub written: u64,
    /// Times that a section waited for a frame.
    pub hungry: u64,
    /// Page groups that flash could not read or program.
    pub failed: u64,
    /// Kernels that are over.
    pub kernels: Vec<KernelTimes>,
}

impl AcceleratorStats {
    pub(super) fn new(workers: u16) -> AcceleratorStats {
        let none = vec![Time::ZERO; workers.into()];
        AcceleratorStats {
            busy: none.clone(),
            stalled: none.clone(),
            held: none.clone(),
            waited: none,
            ..Default::default()
        }
    }
}
