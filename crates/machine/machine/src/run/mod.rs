//! One run, from names to the result document; it can be stopped, looked at, and gone on with.

pub mod stall;

use crate::assemble::{self, Assembled};
use crate::build::{accelerator, gpu, server};
use crate::machine::Machine;
use crate::machine::course::End;
use crate::plan::bring::changed;
use crate::plan::workloads;
use crate::plan::{Bound, bind, drives, of_kind, part_for};
use crate::result::{Document, Frame, RunFigures};
use crate::state::States;
use config::Diagnostic;
use engine::Time;
use spec::precondition::{Progress, Report};
use spec::{Kind, Loaded};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

pub use crate::plan::Plan;
pub use crate::plan::bring::{Policies, Schedulers};

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
                let mut driven = accelerator::all_coprocessors(&loaded)?.swap_remove(id.number);
                accelerator::driving_program(
                    &loaded,
                    &mut driven,
                    (id.number, 0),
                    applications,
                    &plan.workloads,
                )?;
            }
            _ => {}
        }
    }
    crate::plan::check_options(plan, has_trace)?;
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

/// A plan whose machine is built and in its state, and as far as it has been run.
pub struct Session {
    plan: Plan,
    loaded: Loaded,
    /// Both with what has changed since.
    changes: Plan,
    present: Loaded,
    machine: Machine,
    warnings: Vec<String>,
    preconditions: Vec<Report>,
    precondition_cpu_s: f64,
    cpu_s: f64,
    wall_s: f64,
    begun: bool,
    /// What the last [`Session::run`] came to: none if it came to its pause.
    end: Option<End>,
}

impl Session {
    /// Builds the machine and brings it into its state; nothing if an early end was wanted before that was done.
    ///
    /// # Errors
    /// Everything that is unusable about the plan, or about policies from outside.
    pub fn open(
        plan: &Plan,
        outside: &mut Outside<'_>,
        observers: Observers,
        policies: Policies,
    ) -> Result<Option<Session>, Diagnostic> {
        let (loaded, present) = (plan.load()?, plan.load()?);
        let Some(assembled) = assemble::assemble(plan, &loaded, outside, observers, policies)? else {
            return Ok(None);
        };
        let Assembled { machine, warnings, preconditions, precondition_cpu_s } = assembled;
        (outside.watch)(Stage::Running(&machine));
        Ok(Some(Session {
            plan: plan.clone(),
            changes: plan.clone(),
            present,
            loaded,
            machine,
            warnings,
            preconditions,
            precondition_cpu_s,
            cpu_s: 0.0,
            wall_s: 0.0,
            begun: false,
            end: None,
        }))
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// How the run has ended: not yet, if it was paused or interrupted.
    pub fn end(&self) -> Option<End> {
        self.end.filter(|end| *end != End::Interrupted)
    }

    /// Runs to the end, until a stop is wanted, or up to and with the first event at `pause` or later; nothing more once it has ended.
    ///
    /// # Errors
    /// A failure of a source.
    pub fn run(&mut self, outside: &mut Outside<'_>, pause: Time) -> Result<(), Diagnostic> {
        if self.end().is_some() || self.begun && self.machine.now() >= pause {
            return Ok(());
        }
        let (cpu, wall) = ((outside.cpu_s)(), (outside.wall_s)());
        if !std::mem::replace(&mut self.begun, true) {
            self.machine.begin();
        }
        self.end = self.machine.go_on(outside.stop, pause, |m| (outside.watch)(Stage::Running(m)));
        self.cpu_s += (outside.cpu_s)() - cpu;
        self.wall_s += (outside.wall_s)() - wall;
        match self.machine.failure() {
            Some(failure) if self.end == Some(End::Failed) => Err(failure),
            _ => Ok(()),
        }
    }

    /// Changes policies, from now on: values of the spec as `key.path=value`, and those that a caller brings along. The result says so, and has the
    /// spec as it was at the beginning.
    ///
    /// # Errors
    /// Values that cannot be, or that cannot change while a machine runs: then nothing has changed. A part that nothing of the kind is decided for:
    /// what was named before it has.
    pub fn change(&mut self, set: &[String], policies: Policies) -> Result<(), Diagnostic> {
        let mut plan = self.changes.clone();
        plan.set.extend(set.iter().cloned());
        let loaded = plan.load()?;
        for number in 0..loaded.spec.cpu.len() {
            server::tables(&loaded, number)?;
        }
        let (of_spec, said) = changed(&self.present, &loaded, self.plan.seed)?;
        self.machine.bring(of_spec, &loaded.spec)?;
        let brought = self.machine.bring(policies, &loaded.spec)?;
        let now = self.machine.now();
        self.warnings.extend(said.into_iter().chain(brought).map(|what| format!("from {now} on, {what}")));
        (self.changes, self.present) = (plan, loaded);
        Ok(())
    }

    /// The system as it is now.
    pub fn system(&self) -> &Loaded {
        &self.present
    }

    /// The result so far. Of a run that has not ended it is partial, as that of one that was interrupted.
    pub fn document(&mut self, outside: &mut Outside<'_>) -> Document {
        let end = self.end.unwrap_or(End::Interrupted);
        let machine = &mut self.machine;
        let completed = machine.completed() as f64;
        let figures = RunFigures {
            wall_s: self.wall_s,
            cpu_s: self.cpu_s,
            precondition_cpu_s: self.precondition_cpu_s,
            events: machine.events,
            requests_per_cpu_s: if self.cpu_s > 0.0 { completed / self.cpu_s } else { 0.0 },
            peak_rss_bytes: (outside.peak_rss)(),
            commit: identity::commit(),
            results: identity::RESULTS,
        };
        let frame = Frame {
            system: self.loaded.name.clone(),
            spec: self.loaded.spec.to_json(),
            seed: self.plan.seed,
            workload: self.plan.workloads.clone(),
            warnings: self.warnings.iter().cloned().chain(stall::report(machine, end)).collect(),
            preconditions: self.preconditions.clone(),
        };
        (outside.watch)(Stage::Checking);
        Document::collect(frame, machine, end, figures, outside.stop)
    }
}
