//! Assembly of a plan into a machine that is ready to run.

mod nests;

pub(crate) use nests::{executes, of_programs};

use crate::build::{gpu, host, server};
use crate::machine::Machine;
use crate::parts::complex::Processor;
use crate::plan::bring::{self, Policies};
use crate::plan::workloads::{self, Opened, WorkloadOptions};
use crate::plan::{Bound, Looking, Plan, bind, drives, of_kind, offloaded, part_for};
use crate::run::{Observers, Outside, Stage};
use crate::state::{Found, OfMemory, State, StateSpec, Wanted};
use config::Diagnostic;
use engine::Time;
use programs::host::HostProgram;
use programs::kernels::Application;
use programs::program::Program;
use programs::service::Service;
use proto::file::Way;
use requests::fio::{Behind, Scheduler};
use requests::inject::{Injector, Queues, Source};
use requests::synth::Region;
use spec::precondition::{self, Report};
use spec::warmup::Warmup;
use spec::{DriveSpec, Id, Kind, Loaded, queues, queues_of};
use ssd::Device;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// Programs of one run: what [`programs::program::Apps`] can number.
const MOST_PROGRAMS: usize = 254;

/// Workloads of a plan, sorted by the part that runs them.
#[derive(Default)]
pub(crate) struct Work {
    /// Request sources, each with its target number: drives first, then stripes.
    sources: Vec<(Box<dyn Source>, u16)>,
    /// Programs of each GPU, by GPU number.
    programs: BTreeMap<usize, Vec<Box<dyn Program>>>,
    /// Programs of the host, and whether its requests go through its kernel.
    of_host: Vec<Box<dyn HostProgram>>,
    to_file: bool,
    /// Files laid out for requests on each drive of the host, by the host's drive number.
    files: BTreeMap<u16, Vec<Region>>,
    /// I/O schedulers that workloads set for the host's drives.
    schedulers: BTreeMap<usize, Scheduler>,
    /// Service of each server, by server number.
    services: BTreeMap<usize, Box<dyn Service>>,
    /// Applications of each accelerator and of each coprocessor.
    kernels: BTreeMap<Id, Vec<Application>>,
    warnings: Vec<String>,
    ramp: Time,
}

impl Work {
    /// Records the I/O scheduler that a workload sets for a drive of the host.
    ///
    /// # Errors
    /// An earlier workload sets a different scheduler.
    fn set_scheduler(
        &mut self,
        disk: usize,
        scheduler: Option<Scheduler>,
        text: &str,
    ) -> Result<(), Diagnostic> {
        let Some(wanted) = scheduler else { return Ok(()) };
        match self.schedulers.insert(disk, wanted) {
            Some(other) if other != wanted => {
                let what = format!(
                    "`{text}` sets a different `ioscheduler` than an earlier workload: a drive has one scheduler during a run"
                );
                Err(Diagnostic::new(what))
            }
            _ => Ok(()),
        }
    }

    /// Opens every workload of a plan, or fewer if an early end is wanted.
    ///
    /// # Errors
    /// An invalid workload, or one that the system cannot run.
    fn open(plan: &Plan, loaded: &Loaded, outside: &mut Outside<'_>) -> Result<Work, Diagnostic> {
        let mut work = Work::default();
        let mut traces = BTreeSet::new();
        let goes_on = &mut |text: &str| {
            (outside.watch)(Stage::Reading(text));
            !outside.stop.load(Ordering::Relaxed)
        };
        let bound = bind(loaded, &plan.workloads)?;
        for (to, opened) in open_each(plan, loaded, &bound, goes_on)? {
            match opened {
                Opened::Programs(programs) => {
                    let gpus = of_kind(loaded, Kind::Gpu);
                    let gpu = part_for(loaded, to, &gpus, "a program of a GPU")?.map_or(0, |id| id.number);
                    gpu::tables(loaded, gpu)?;
                    programs.iter().for_each(|program| work.warnings.extend_from_slice(program.notes()));
                    work.programs.entry(gpu).or_default().extend(programs);
                }
                Opened::Service(service) => {
                    let cpus = of_kind(loaded, Kind::Cpu);
                    let cpu = part_for(loaded, to, &cpus, "a program of a server")?.map_or(0, |id| id.number);
                    server::tables(loaded, cpu)?;
                    work.serve(cpu, service)?;
                }
                Opened::Kernels(applications) => {
                    let id = nests::executes(plan, loaded, to, &applications)?;
                    work.kernels.entry(id).or_default().extend(applications);
                }
                Opened::Host(program) => {
                    if program.progress().is_none() && loaded.spec.sim.until.is_none() {
                        let what = format!("`{}` never ends, and the run has no time limit", program.name());
                        return Err(Diagnostic::new(what).help("set a limit: --set sim.until=10s"));
                    }
                    work.warnings.extend(program.notes());
                    work.of_host.push(program);
                }
                Opened::Requests(requests) => {
                    let drive = part_for(loaded, to, drives(loaded), "a load of requests")?;
                    let target = match drive {
                        Some(drive) if requests.to_file => {
                            let files = loaded.spec.flash.len() + loaded.spec.stripe.len();
                            let disk = drives(loaded).iter().position(|other| *other == drive).unwrap_or(0);
                            work.files.insert(disk as u16, requests.files);
                            work.set_scheduler(disk, requests.scheduler, to.text)?;
                            files + disk * Way::ALL.len()
                        }
                        Some(Id { kind: Kind::Stripe, number }) => loaded.spec.flash.len() + number,
                        drive => drive.map_or(0, |id| id.number),
                    };
                    work.to_file |= requests.to_file;
                    if drive.is_none() {
                        loaded.drive()?;
                    }
                    if requests.is_trace {
                        traces.insert(target);
                    }
                    work.sources.push((requests.source, target as u16));
                    work.warnings.extend(requests.warnings);
                    work.ramp = work.ramp.max(requests.ramp);
                }
            }
        }
        nests::hand_out(&mut work)?;
        nests::settle_inputs(&mut work, plan, loaded)?;
        if !outside.wants_an_end() {
            crate::plan::check_options(plan, !traces.is_empty())?;
        }
        if traces.len() > 1 && plan.queue_depth.is_none() {
            let text = "traces of different drives start at the same time, each with its first request";
            work.warnings.push(text.to_owned());
        }
        if let Some(programs) = work.programs.values().find(|programs| programs.len() > MOST_PROGRAMS) {
            let what = format!("{} programs side by side; at most {MOST_PROGRAMS} can run", programs.len());
            return Err(Diagnostic::new(what).help("run fewer programs: an application's number is one byte"));
        }
        Ok(work)
    }
}

impl Work {
    /// Assigns a service to a server.
    ///
    /// # Errors
    /// The server already has a service.
    fn serve(&mut self, cpu: usize, service: Box<dyn Service>) -> Result<(), Diagnostic> {
        match self.services.insert(cpu, service) {
            None => Ok(()),
            Some(_) => Err(Diagnostic::new("two programs for one server in one run").help(
                "its cores serve jobs of one program, or of loop nests: give one --workload of that kind",
            )),
        }
    }
}

/// Opens workloads in the given order, those of one drive together.
fn open_each<'a>(
    plan: &Plan,
    loaded: &Loaded,
    bound: &[Bound<'a>],
    goes_on: &mut dyn FnMut(&str) -> bool,
) -> Result<Vec<(Bound<'a>, Opened)>, Diagnostic> {
    let drives = drives(loaded);
    let drive_of = |one: &Bound<'_>| one.to.filter(|id| drives.contains(id)).or(drives.first().copied());
    let groups: BTreeSet<Option<Id>> = bound.iter().map(drive_of).collect();
    let mut opened: Vec<Option<(Bound<'a>, Opened)>> = bound.iter().map(|_| None).collect();
    for (n, one) in bound.iter().enumerate() {
        nests::fits(loaded, *one)?;
        if let Some(applications) = nests::of_programs(loaded, *one)? {
            opened[n] = Some((*one, Opened::Kernels(applications)));
        }
    }
    for group in groups {
        let is_open: Vec<bool> = opened.iter().map(Option::is_some).collect();
        let of_group = (0..bound.len()).filter(|n| drive_of(&bound[*n]) == group && !is_open[*n]);
        let texts: Vec<&str> = of_group.clone().map(|n| bound[n].text).collect();
        let options = options(plan, loaded, group)?;
        for (n, one) in of_group.zip(workloads::open_all(&texts, &options, goes_on)?) {
            opened[n] = Some((bound[n], one));
        }
    }
    Ok(opened.into_iter().flatten().collect())
}

/// Options for reading the workloads of a drive or a stripe.
///
/// # Errors
/// A drive or stripe that cannot be built.
pub(crate) fn options(
    plan: &Plan,
    loaded: &Loaded,
    drive: Option<Id>,
) -> Result<WorkloadOptions, Diagnostic> {
    Ok(WorkloadOptions {
        trace: plan.trace.clone(),
        queue_depth: plan.queue_depth,
        capacity: drive.map_or(Ok(0), |drive| loaded.capacity_of(drive))?,
        file_bytes: drive.map_or(Ok(0), |drive| host::file_bytes(loaded, drive)).map_err(Box::new),
        kernel: loaded.spec.host.first().and_then(|part| {
            let linux = part.spec.linux.as_ref()?;
            Some(linux.driver.poll_queues.unwrap_or(0))
        }),
        behind: drive
            .filter(|drive| drive.kind == Kind::Stripe)
            .map(|drive| behind(loaded, drive))
            .transpose()?,
        seed: plan.seed,
    })
}

/// The drives behind a stripe.
fn behind(loaded: &Loaded, stripe: Id) -> Result<Behind, Diagnostic> {
    let part = &loaded.spec.stripe[stripe.number];
    let drives = part.linked("drives").len() as u64;
    let bytes = loaded.capacity_of(stripe)? / drives.max(1);
    Ok(Behind { drives, chunk: part.spec.chunk.get(), bytes })
}

/// Machine that is ready to run, with reports of its preparation.
pub(crate) struct Assembled {
    pub(crate) machine: Machine,
    pub(crate) warnings: Vec<String>,
    /// Preconditioning report of each drive.
    pub(crate) preconditions: Vec<Report>,
    /// CPU time of preconditioning, seconds.
    pub(crate) precondition_cpu_s: f64,
}

/// Builds the machine and preconditions its flash devices; `None` if an early end was wanted before that was done.
///
/// # Errors
/// Any value of the plan that cannot be used.
pub(crate) fn assemble(
    plan: &Plan,
    loaded: &Loaded,
    outside: &mut Outside<'_>,
    observers: Observers,
    policies: Policies,
) -> Result<Option<Assembled>, Diagnostic> {
    let spec = &loaded.spec;
    let devices = (0..spec.flash.len()).map(|number| loaded.device_at(number, plan.seed));
    let mut devices = devices.collect::<Result<Vec<_>, _>>()?;
    // Opened before preconditioning, which may take long: a misspelt workload fails at once.
    let work = Work::open(plan, loaded, outside)?;
    let Work { sources, programs, services, mut of_host, to_file, files, schedulers, .. } = work;
    let Work { kernels, mut warnings, ramp, .. } = work;
    if outside.wants_an_end() {
        return Ok(None);
    }
    let mut wanted = wanted(plan, loaded, outside)?;
    (outside.watch)(Stage::Building);
    let Observers { requests, commands: mut of_drives, kernels: of_kernels, steps, phases } = observers;
    let of_flash = of_drives.split_off(of_drives.len().min(devices.len()));
    let looking = Looking {
        accelerators: of_kernels.into_iter().zip(of_flash).map(Some).collect(),
        coprocessors: steps.into_iter().zip(phases).map(Some).collect(),
    };
    let (governed, driven) = offloaded(plan, loaded, kernels, &mut of_host, looking)?;
    let unfit = |fault| loaded.at_workloads(&plan.workloads, fault);
    let is_hosted = to_file || !of_host.is_empty();
    if is_hosted {
        let linux = spec.host.first().and_then(|part| part.spec.linux.as_ref());
        warnings.extend(linux.and_then(|linux| linux.writeback.warning()));
    }
    let hosted = is_hosted.then(|| host::build(loaded, of_host, &files, &schedulers)).transpose()?;
    let mut built = Vec::new();
    for (number, programs) in programs {
        built.push(gpu::build(loaded, number, programs, plan.seed).map_err(unfit)?);
    }
    let first_server = services.keys().next().copied();
    let has_an_end = services.values().next().is_some_and(|service| service.jobs().is_some());
    for (number, service) in services {
        let of_memory = wanted.servers.remove(&number).flatten();
        let mut from = OfMemory::new(outside.states, of_memory, outside.stop);
        let server = server::build(loaded, number, service, plan.seed, &mut from).map_err(unfit)?;
        if let Processor::Ooo(ooo) = &server.complex.processor {
            warnings.extend(ooo.service.notes());
        }
        built.push(server);
    }
    if outside.wants_an_end() {
        return Ok(None);
    }
    let mut policies = policies;
    warnings.extend(bring::victims(std::mem::take(&mut policies.victims), spec, &mut devices)?);
    let before = (outside.cpu_s)();
    let mut reports = Vec::new();
    for (number, (device, wanted)) in devices.iter_mut().zip(wanted.drives).enumerate() {
        let Some(report) = prepare(device, number, plan, wanted, loaded, outside)? else { return Ok(None) };
        if spec.sim.shadow {
            device.attach_shadow();
        }
        reports.push(report);
    }
    let precondition_cpu_s = (outside.cpu_s)() - before;
    for (device, observer) in devices.iter_mut().zip(of_drives) {
        device.backend.observer = Some(observer);
    }
    let files = hosted.as_ref().map_or(0, |hosted| hosted.drives.len() * Way::ALL.len());
    let explains = spec.sim.explain && !sources.is_empty();
    if explains {
        devices.iter_mut().for_each(Device::keep_accounts);
    }
    let mut injector = injector(loaded, sources, files, requests);
    injector.explain = explains.then(Box::default);
    let of_jobs = first_server.filter(|_| !has_an_end).and_then(|number| {
        let server = &spec.cpu[number].spec;
        server.start.warmup.of(server.cores.load.jobs)
    });
    let ramp = (ramp > Time::ZERO).then_some(Warmup::Until(ramp));
    let warmup = plan.warmup.or(ramp).or(of_jobs);
    let machine = Machine::new(None, injector, warmup).with_end(spec.sim.until.map(|until| until.time()));
    let mut machine = with_drives(machine, loaded, devices)?;
    if let Some(hosted) = hosted {
        for driven in driven {
            machine = machine.with_driven(driven);
        }
        machine = machine.with_host(hosted);
    }
    for built in built {
        machine = machine.with(built);
    }
    for governed in governed {
        machine = machine.with_governed(governed);
    }
    warnings.extend(machine.bring(policies, spec)?);
    Ok(Some(Assembled { machine, warnings, preconditions: reports, precondition_cpu_s }))
}

/// Adds drives, and the stripes over them, to a machine.
fn with_drives(mut machine: Machine, loaded: &Loaded, devices: Vec<Device>) -> Result<Machine, Diagnostic> {
    for (part, device) in loaded.spec.flash.iter().zip(devices) {
        machine = machine.with_drive(&part.name, device);
    }
    for (number, part) in loaded.spec.stripe.iter().enumerate() {
        let drives = part.linked("drives").iter().map(|drive| drive.number as u16).collect();
        machine = machine.with_stripe(&part.name, loaded.stripe_at(number)?, drives);
    }
    Ok(machine)
}

/// Builds the injector of requests.
fn injector(
    loaded: &Loaded,
    sources: Vec<(Box<dyn Source>, u16)>,
    files: usize,
    observer: Option<Box<dyn requests::inject::Observer>>,
) -> Injector {
    let Some(host) = loaded.spec.host.first() else { return Injector::idle() };
    let cost = host.spec.cost();
    let drives = loaded.spec.flash.iter().map(|part| queues(&part.spec.flash));
    let stripes = (0..loaded.spec.stripe.len()).map(|number| queues_of(loaded, number));
    // A system call takes no entry of a queue: the kernel's path has its own.
    let files = std::iter::repeat_n(Queues::UNBOUNDED, files);
    let mut injector = Injector::over(sources, drives.chain(stripes).chain(files).collect(), cost);
    injector.observer = observer;
    injector
}

/// Lists the states that the run needs, for a state cache; unknown without a cache.
fn wanted(plan: &Plan, loaded: &Loaded, outside: &Outside<'_>) -> Result<Wanted, Diagnostic> {
    let Some(states) = outside.states else {
        return Ok(Wanted { drives: vec![None; loaded.spec.flash.len()], ..Wanted::default() });
    };
    let wanted = Wanted::of(plan, loaded)?;
    states.expect(&wanted.all()).map_err(|fault| at_its_key(loaded, fault))?;
    Ok(wanted)
}

/// Preconditions a device, or loads its state from the cache; `None` if an early end was wanted before that was done.
fn prepare(
    device: &mut Device,
    number: usize,
    plan: &Plan,
    wanted: Option<StateSpec>,
    loaded: &Loaded,
    outside: &mut Outside<'_>,
) -> Result<Option<Report>, Diagnostic> {
    let part = &loaded.spec.flash[number];
    let DriveSpec { flash, precondition } = &part.spec;
    let precondition = plan.precondition.as_ref().unwrap_or(precondition);
    let mut place = None;
    if let Some(states) = outside.states
        && let Some(wanted) = wanted
    {
        match states.find(&wanted, outside.stop).map_err(|fault| at_its_key(loaded, fault))? {
            Found::There(state) => match state.load(precondition, device) {
                Ok(report) => return Ok(Some(report)),
                Err(fault) => {
                    place = states.refuse(&wanted, fault)?;
                    // Discard what was loaded before the fault was found.
                    *device = loaded.device_at(number, plan.seed)?;
                }
            },
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
            if fault.place.is_some() {
                fault
            } else {
                fault.at(loaded.resolved().place(&format!("{}.precondition", part.table())))
            }
        })?;
    let Some(report) = applied else { return Ok(None) };
    device.format_map();
    if let Some(place) = place {
        place.keep(&State::save(&report, device));
    }
    Ok(Some(report))
}

/// Reports a fault of a key at the place where the spec sets it.
fn at_its_key(loaded: &Loaded, mut fault: Diagnostic) -> Diagnostic {
    if let Some(place) = &mut fault.place
        && place.source.is_empty()
    {
        **place = loaded.resolved().place(&place.key);
    }
    fault
}
