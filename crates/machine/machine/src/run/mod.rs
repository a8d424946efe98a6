//! One run, from names to the result document; it can be stopped, inspected, and continued.

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

/// Builds the machine, preconditions it, and runs it.
///
/// # Errors
/// Anything in the plan that cannot be used.
pub fn run(plan: &Plan, outside: &mut Outside<'_>) -> Result<Document, Diagnostic> {
    match run_observed(plan, outside, Observers::default())? {
        Some(document) => Ok(document),
        None => Err(Diagnostic::new("interrupted before the simulation began: no result")),
    }
}

/// Runs without an outside: no clocks, no early end.
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

/// Runs without an outside to the end, or for `looks` looks at the run, each after 65,536 events: some settings make
/// runs that last minutes. What was run is checked all the same ([`Document::is_sound`]).
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

/// Checks a plan without running it; returns the system, and warnings about its workloads.
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

/// Runs like [`run`], with observers; `None` if an early end was wanted before the simulation began.
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

/// Services that the outside lends to a run: clocks that the model must not see, interruption, progress.
pub struct Outside<'a> {
    /// CPU time of this thread so far, seconds.
    pub cpu_s: &'a dyn Fn() -> f64,
    /// Wall-clock time so far, seconds.
    pub wall_s: &'a dyn Fn() -> f64,
    /// Peak resident set, bytes.
    pub peak_rss: &'a dyn Fn() -> u64,
    /// Flag that ends the run early.
    pub stop: &'a AtomicBool,
    /// Callback for progress, called from time to time and at each change of stage.
    pub watch: &'a mut dyn FnMut(Stage<'_>),
    /// Store of states after preconditioning, if any.
    pub states: Option<&'a dyn States>,
}

impl Outside<'_> {
    /// Returns whether an early end is wanted.
    pub(crate) fn wants_an_end(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Stage of a run.
#[derive(Clone, Copy)]
pub enum Stage<'a> {
    /// Opening a workload: reading traces, building graphs.
    Reading(&'a str),
    /// Building the parts around the workloads, and filling the memory of a server.
    Building,
    /// Preconditioning the device.
    Preconditioning(Progress),
    /// Running: from here on a result exists, possibly partial.
    Running(&'a Machine),
    /// Checking the accounts of a machine that has ended.
    Checking,
}

/// Observers of a run. They schedule nothing: a result is bit for bit the same with and without them.
#[derive(Default)]
pub struct Observers {
    /// Observer of completed requests.
    pub requests: Option<Box<dyn requests::inject::Observer>>,
    /// Observers of the commands that dies have finished: one for each drive in the order of declaration, then one for
    /// the flash of each accelerator; or none.
    pub commands: Vec<Box<dyn nand::dies::observe::Observer>>,
    /// Observers of accelerators: one for each in the order of declaration, or none.
    pub kernels: Vec<Box<dyn compute::vliw::Observer>>,
    /// Observers of coprocessors: one for each in the order of declaration, or none.
    pub steps: Vec<Box<dyn compute::vliw::coprocessor::Observer>>,
    /// Observers of the host programs that drive coprocessors: one for each coprocessor in the order of declaration, or
    /// none.
    pub phases: Vec<Box<dyn programs::host::offload::Observer>>,
}

/// Several observers of requests, as one.
pub struct Several(pub Vec<Box<dyn requests::inject::Observer>>);

impl requests::inject::Observer for Several {
    fn completed(&mut self, seen: &requests::inject::Seen, account: Option<&proto::Account>) {
        self.0.iter_mut().for_each(|one| one.completed(seen, account));
    }
}

/// Session: a plan whose machine is built and preconditioned, and run so far as requested.
pub struct Session {
    plan: Plan,
    loaded: Loaded,
    /// Plan with all later changes.
    changes: Plan,
    present: Loaded,
    machine: Machine,
    warnings: Vec<String>,
    preconditions: Vec<Report>,
    precondition_cpu_s: f64,
    cpu_s: f64,
    wall_s: f64,
    begun: bool,
    /// Outcome of the last [`Session::run`]: `None` if it came to its pause.
    end: Option<End>,
}

impl Session {
    /// Builds and preconditions the machine; `None` if an early end was wanted before that was done.
    ///
    /// # Errors
    /// Anything in the plan, or in the supplied policies, that cannot be used.
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

    /// Returns the machine.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// End of the run: `None` if it is paused or interrupted.
    pub fn end(&self) -> Option<End> {
        self.end.filter(|end| *end != End::Interrupted)
    }

    /// Runs to the end, until a stop is wanted, or through the first event at `pause` or later; does nothing once the
    /// run has ended.
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

    /// Changes policies from now on: values of the spec as `key.path=value`, and policies that a caller supplies. The
    /// result reports this, and has the spec as it was at the beginning.
    ///
    /// # Errors
    /// Values that are invalid, or cannot change while a machine runs: then nothing has changed. A part without such a
    /// policy: then the changes listed before it have been made.
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

    /// Returns the system as it is now.
    pub fn system(&self) -> &Loaded {
        &self.present
    }

    /// Returns the result so far. It is partial for a run that has not ended, as for an interrupted one.
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
