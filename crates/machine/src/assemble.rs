//! From a plan to a machine that is ready to run.

use crate::applies;
use crate::build::{gpu, server};
use crate::complex::Processor;
use crate::machine::Machine;
use crate::outside::{Observers, Outside, Stage};
use crate::plan::Plan;
use crate::precondition::{self, Report};
use crate::spec::{Drive, Loaded, queues};
use crate::state::{Found, State, StateSpec};
use crate::warmup::Warmup;
use crate::workloads::{self, Opened, WorkloadOptions};
use config::Diagnostic;
use flash::Device;
use kernel::Time;
use std::sync::atomic::Ordering;
use workload::inject::{HostCost, Injector, Source};
use workload::program::{Apps, Program};
use workload::service::Service;

/// Programs of one run: what [`Apps`] can number.
const MOST_PROGRAMS: usize = 254;

/// What a plan's workloads became.
#[derive(Default)]
pub(crate) struct Work {
    sources: Vec<Box<dyn Source>>,
    programs: Vec<Box<dyn Program>>,
    service: Option<Box<dyn Service>>,
    warnings: Vec<String>,
    ramp: Time,
}

impl Work {
    /// Opens every workload of a plan, or as many as there is time for.
    ///
    /// # Errors
    /// A workload that is wrong, or that the system cannot run.
    fn open(
        plan: &Plan,
        loaded: &Loaded,
        device: Option<&Device>,
        outside: &mut Outside<'_>,
    ) -> Result<Work, Diagnostic> {
        let options = options(plan, device);
        let mut work = Work::default();
        let mut has_trace = false;
        let goes_on = &mut |text: &str| {
            (outside.watch)(Stage::Reading(text));
            !outside.stop.load(Ordering::Relaxed)
        };
        for opened in workloads::open_all(&plan.workloads, &options, goes_on)? {
            match opened {
                Opened::Programs(programs) => work.programs.extend(programs),
                Opened::Service(service) => {
                    server::tables(loaded)?;
                    if work.service.replace(service).is_some() {
                        let what = "two programs of a server in one run";
                        return Err(Diagnostic::new(what)
                            .help("its cores serve jobs of one program: give one --workload of that kind"));
                    }
                }
                Opened::Requests(requests) => {
                    loaded.drive()?;
                    has_trace |= requests.is_trace;
                    work.sources.push(requests.source);
                    work.warnings.extend(requests.warnings);
                    work.ramp = work.ramp.max(requests.ramp);
                }
            }
        }
        if !outside.wants_an_end() {
            applies::check(plan, has_trace)?;
        }
        if work.programs.len() > MOST_PROGRAMS {
            let what = format!("{} programs side by side; at most {MOST_PROGRAMS}", work.programs.len());
            return Err(Diagnostic::new(what).help("applications are numbered by a byte"));
        }
        Ok(work)
    }
}

/// How the workloads are to be read for a device.
pub(crate) fn options(plan: &Plan, device: Option<&Device>) -> WorkloadOptions {
    WorkloadOptions {
        trace: plan.trace.clone(),
        queue_depth: plan.queue_depth,
        capacity: device.map_or(0, Device::capacity),
        seed: plan.seed,
    }
}

/// A machine that is ready to run, and what is known about it before.
pub(crate) struct Assembled {
    pub(crate) machine: Machine,
    pub(crate) warnings: Vec<String>,
    pub(crate) precondition: Option<Report>,
    /// CPU seconds that it took.
    pub(crate) precondition_cpu_s: f64,
}

/// Builds the machine and brings its flash device into its state; nothing if an early end was wanted before that was done.
///
/// # Errors
/// Everything that is unusable about the plan.
pub(crate) fn assemble(
    plan: &Plan,
    loaded: &Loaded,
    outside: &mut Outside<'_>,
    observers: Observers,
) -> Result<Option<Assembled>, Diagnostic> {
    let spec = &loaded.spec;
    let mut device = spec.flash.is_some().then(|| loaded.device(plan.seed)).transpose()?;
    // Before the device is brought into its state, which may take long: a misspelt workload should not have to wait.
    let work = Work::open(plan, loaded, device.as_ref(), outside)?;
    if outside.wants_an_end() {
        return Ok(None);
    }
    (outside.watch)(Stage::Building);
    let unfit = |fault| loaded.at_workloads(&plan.workloads, fault);
    let gpu = match work.programs.is_empty() {
        true => None,
        false => Some(gpu::build(loaded, Apps::new(work.programs), plan.seed).map_err(unfit)?),
    };
    let mut warnings = work.warnings;
    let server = match work.service {
        None => None,
        Some(service) => Some(server::build(loaded, service, plan.seed, outside.stop).map_err(unfit)?),
    };
    if outside.wants_an_end() {
        return Ok(None);
    }
    if let Some(Processor::Ooo(ooo)) = server.as_ref().map(|built| &built.complex.processor) {
        warnings.extend(ooo.service.notes());
    }
    let (mut precondition, mut precondition_cpu_s) = (None, 0.0);
    if let Some(device) = &mut device {
        let before = (outside.cpu_s)();
        let Some(report) = prepare(device, plan, loaded, outside)? else { return Ok(None) };
        if spec.sim.shadow {
            device.attach_shadow();
        }
        device.backend.observer = observers.commands;
        precondition = Some(report);
        precondition_cpu_s = (outside.cpu_s)() - before;
    }
    let mut injector = match loaded.drive() {
        Ok(Drive { flash, host, .. }) => {
            let cost = HostCost { submit: host.submit.time(), complete: host.complete.time() };
            Injector::new(work.sources, queues(flash), cost)
        }
        Err(_) => Injector::idle(),
    };
    injector.observer = observers.requests;
    let cpu = loaded.spec.cpu.as_ref().filter(|_| server.is_some());
    let of_jobs = cpu.and_then(|cpu| cpu.warmup.of(cpu.first.load.jobs));
    let ramp = (work.ramp > Time::ZERO).then_some(Warmup::Until(work.ramp));
    let warmup = plan.warmup.or(ramp).or(of_jobs);
    let until = loaded.spec.sim.until.map(|until| until.time());
    let machine = Machine::new(device, injector, warmup).with(gpu).with(server).with_end(until);
    Ok(Some(Assembled { machine, warnings, precondition, precondition_cpu_s }))
}

/// Brings a device into its state, or takes that from where it is kept; nothing if an early end was wanted before that was done.
fn prepare(
    device: &mut Device,
    plan: &Plan,
    loaded: &Loaded,
    outside: &mut Outside<'_>,
) -> Result<Option<Report>, Diagnostic> {
    let Drive { flash, precondition, .. } = loaded.drive()?;
    let precondition = plan.precondition.as_ref().unwrap_or(precondition);
    let mut place = None;
    if let Some(states) = outside.states
        && let Some(wanted) = StateSpec::of(plan, loaded)?
    {
        match states.find(&wanted, outside.stop).map_err(|fault| at_its_key(loaded, fault))? {
            Found::There(state) => return state.load(precondition, device).map(Some),
            Found::Absent(absent) => place = absent,
            Found::Stopped => return Ok(None),
        }
    }
    let watch = &mut |progress| {
        (outside.watch)(Stage::Preconditioning(progress));
        outside.stop.load(Ordering::Relaxed)
    };
    let applied = precondition::apply_watched(precondition, flash, &mut device.ftl, plan.seed, watch)
        .map_err(|fault| {
            if fault.place.is_some() { fault } else { fault.at(loaded.resolved().place("precondition")) }
        })?;
    let Some(report) = applied else { return Ok(None) };
    device.format_map();
    if let Some(place) = place {
        place.keep(&State::save(&report, device));
    }
    Ok(Some(report))
}

/// A fault of a key, told where the spec sets it.
fn at_its_key(loaded: &Loaded, mut fault: Diagnostic) -> Diagnostic {
    if let Some(place) = &mut fault.place
        && place.source.is_empty()
    {
        **place = loaded.resolved().place(&place.key);
    }
    fault
}
