//! What the outside lends to a run, and who looks on.

use crate::machine::Machine;
use crate::precondition::Progress;
use crate::state::States;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the outside lends to a run: clocks that the model must not see, interruption, progress.
pub struct Outside<'a> {
    /// CPU seconds of this thread so far.
    pub cpu_s: &'a dyn Fn() -> f64,
    /// Wall-clock seconds so far.
    pub wall_s: &'a dyn Fn() -> f64,
    /// Peak resident set, bytes.
    pub peak_rss: &'a dyn Fn() -> u64,
    /// Set to end the run early.
    pub stop: &'a AtomicBool,
    /// Told now and then what the run is at, and whenever that changes.
    pub watch: &'a mut dyn FnMut(Stage<'_>),
    /// Where states after preconditioning are kept, if they are.
    pub states: Option<&'a dyn States>,
}

impl Outside<'_> {
    /// Whether an early end is wanted.
    pub(crate) fn wants_an_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// What a run is at.
#[derive(Clone, Copy)]
pub enum Stage<'a> {
    /// A workload is opened: traces are read through, graphs are built.
    Reading(&'a str),
    /// The parts are built around the workloads; the memory of a server is filled.
    Building,
    /// The device is brought into its state.
    Preconditioning(Progress),
    /// The machine runs: from here on there is a result, if only of a part.
    Running(&'a Machine),
    /// The machine has ended: its accounts are held against each other.
    Checking,
}

/// Who looks on at a run. Observers schedule nothing: a result is the same bit for bit with them and without.
#[derive(Default)]
pub struct Observers {
    /// Sees every completed request.
    pub requests: Option<Box<dyn workload::inject::Observer>>,
    /// Each sees every command that a die of its drive has finished: as many as there are drives, in the order of their declaration, and
    /// behind them as many as there are accelerators, for the flash of each; or none.
    pub commands: Vec<Box<dyn flash::media::dies::observe::Observer>>,
    /// Each sees what its accelerator does: as many as there are, in the order of their declaration, or none.
    pub kernels: Vec<Box<dyn compute::vliw::Observer>>,
    /// Each sees what its coprocessor does: as many as there are, in the order of their declaration, or none.
    pub steps: Vec<Box<dyn compute::vliw::coprocessor::Observer>>,
    /// Each sees what the host's program does that drives its coprocessor: as many as there are, in the order of their declaration, or none.
    pub phases: Vec<Box<dyn workload::host::offload::observe::Observer>>,
}

/// Several observers of requests in the place of one.
pub struct Several(pub Vec<Box<dyn workload::inject::Observer>>);

impl workload::inject::Observer for Several {
    fn completed(&mut self, seen: &workload::inject::Seen, account: Option<&proto::Account>) {
        self.0.iter_mut().for_each(|one| one.completed(seen, account));
    }
}
