//! One run, from names to the result document.

pub(crate) mod session;
pub mod stall;

use crate::assemble;
use crate::build::{accelerator, coprocessor, gpu, server};
use crate::machine::Machine;
use crate::plan::applies;
use crate::plan::bind::{Bound, bind, drives, of_kind, part_for};
use crate::plan::workloads;
use crate::precondition::Progress;
use crate::result::Document;
use crate::spec::{Kind, Loaded};
use crate::state::States;
use config::Diagnostic;
use engine::Time;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::plan::Plan;
pub use crate::plan::bring::{Policies, Schedulers};
pub use crate::run::session::Session;

/// Builds the machine, brings it into its state, runs it.
///
/// # Errors
/// Everything that is unusable about the plan.
pub fn run(plan: &Plan, outside: &mut Outside<'_>) -> Result<Document, Diagnostic> {
    match run_observed(plan, outside, Observers::default())? {
        Some(document) => Ok(document),
        None => Err(Diagnostic::new("interrupted before anything was simulated: there is no result")),
    }
}

/// Runs with nobody outside: without clocks, without an end before its time.
///
/// # Errors
/// As [`run`].
pub fn run_alone(plan: &Plan) -> Result<Document, Diagnostic> {
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &AtomicBool::new(false),
        watch: &mut |_| {},
        states: None,
    };
    run(plan, &mut outside)
}

/// Runs with nobody outside to its end, or for so many looks at the run, each after 65,536 events: a few values make runs that last
/// for minutes. What was run is checked all the same ([`Document::is_sound`]).
///
/// # Errors
/// As [`run`].
pub fn run_for(plan: &Plan, looks: u32) -> Result<Document, Diagnostic> {
    let (stop, mut seen) = (AtomicBool::new(false), 0);
    let mut outside = Outside {
        cpu_s: &|| 0.0,
        wall_s: &|| 0.0,
        peak_rss: &|| 0,
        stop: &stop,
        watch: &mut |stage| match stage {
            Stage::Running(_) => {
                seen += 1;
                stop.store(seen >= looks, Ordering::Relaxed);
            }
            Stage::Checking => stop.store(false, Ordering::Relaxed),
            _ => {}
        },
        states: None,
    };
    run(plan, &mut outside)
}

/// Looks through a plan without running it: the system, and what a user must know about its workloads.
///
/// # Errors
/// As [`run`].
pub fn check(plan: &Plan) -> Result<(Loaded, Vec<String>), Diagnostic> {
    let loaded = plan.load()?;
    let mut warnings = Vec::new();
    let mut has_trace = false;
    let mut kernels = BTreeMap::<_, Vec<_>>::new();
    for one in bind(&loaded, &plan.workloads)? {
        let drives = drives(&loaded);
        let drive = one.to.filter(|id| drives.contains(id)).or(drives.first().copied());
        let Bound { text, .. } = one;
        if let Some(applications) = assemble::of_programs(&loaded, one)? {
            let id = assemble::executes(plan, &loaded, one, &applications)?;
            kernels.entry(id).or_default().extend(applications);
            continue;
        }
        let found = workloads::check(&[text], &assemble::options(plan, &loaded, drive)?)?;
        warnings.extend(found.warnings);
        has_trace |= found.has_trace;
        if workloads::is_for_a_gpu(text) {
            let gpu = part_for(&loaded, one, &of_kind(&loaded, Kind::Gpu), "a program of a GPU")?;
            gpu::tables(&loaded, gpu.map_or(0, |id| id.number))?;
        }
        if let Some(applications) = found.kernels {
            let id = assemble::executes(plan, &loaded, one, &applications)?;
            kernels.entry(id).or_default().extend(applications);
        }
        if workloads::runs_on_a_server(text) {
            let cpu = part_for(&loaded, one, &of_kind(&loaded, Kind::Cpu), "a program of a server")?;
            server::tables(&loaded, cpu.map_or(0, |id| id.number))?;
        }
    }
    for (id, applications) in kernels {
        match id.kind {
            Kind::Accelerator => {
                accelerator::build(&loaded, id.number, applications, plan.seed, &plan.workloads)?;
            }
            Kind::Coprocessor => {
                let mut driven = coprocessor::all(&loaded)?.swap_remove(id.number);
                coprocessor::program(&loaded, &mut driven, (id.number, 0), applications, &plan.workloads)?;
            }
            _ => {}
        }
    }
    applies::check(plan, has_trace)?;
    Ok((loaded, warnings))
}

/// As [`run`], with observers; nothing if an early end was wanted before anything was simulated.
///
/// # Errors
/// As [`run`].
pub fn run_observed(
    plan: &Plan,
    outside: &mut Outside<'_>,
    observers: Observers,
) -> Result<Option<Document>, Diagnostic> {
    let Some(mut session) = Session::open(plan, outside, observers, Policies::default())? else {
        return Ok(None);
    };
    session.run(outside, Time::MAX)?;
    Ok(Some(session.document(outside)))
}

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
    pub requests: Option<Box<dyn requests::inject::Observer>>,
    /// Each sees every command that a die of its drive has finished: as many as there are drives, in the order of their declaration, and
    /// behind them as many as there are accelerators, for the flash of each; or none.
    pub commands: Vec<Box<dyn nand::dies::observe::Observer>>,
    /// Each sees what its accelerator does: as many as there are, in the order of their declaration, or none.
    pub kernels: Vec<Box<dyn compute::vliw::Observer>>,
    /// Each sees what its coprocessor does: as many as there are, in the order of their declaration, or none.
    pub steps: Vec<Box<dyn compute::vliw::coprocessor::Observer>>,
    /// Each sees what the host's program does that drives its coprocessor: as many as there are, in the order of their declaration, or none.
    pub phases: Vec<Box<dyn programs::host::offload::Observer>>,
}

/// Several observers of requests in the place of one.
pub struct Several(pub Vec<Box<dyn requests::inject::Observer>>);

impl requests::inject::Observer for Several {
    fn completed(&mut self, seen: &requests::inject::Seen, account: Option<&proto::Account>) {
        self.0.iter_mut().for_each(|one| one.completed(seen, account));
    }
}
