//! What is to be run, whether its options apply, and which part of a machine a workload is for: `NAME=WORKLOAD`, or
//! the only one that it could be for.

pub(crate) mod bring;
pub mod nearby;
pub mod workloads;

use crate::build::{self, accelerator};
use crate::parts::driven::Driven;
use crate::parts::governed::Governed;
use compute::vliw::Observer as KernelObserver;
use compute::vliw::coprocessor::Observer as StepObserver;
use config::{Diagnostic, Layers, Place};
use nand::dies::observe::Observer as CommandObserver;
use programs::host::HostProgram;
use programs::host::offload::Observer as PhaseObserver;
use programs::kernels::Application;
use requests::trace::{Remap, TraceOptions};
use spec::precondition::{self, Precondition};
use spec::systems::Shipped;
use spec::warmup::Warmup;
use spec::{Id, Kind, Loaded};
use std::collections::BTreeMap;
use std::path::Path;

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A shipped system's name or a file; of a text, what it is called.
    pub system: String,
    /// The system's spec, where it is in memory.
    pub text: Option<String>,
    /// Overrides, `key.path=value`.
    pub set: Vec<String>,
    /// Workloads as a user writes them.
    pub workloads: Vec<String>,
    /// The run's seed.
    pub seed: u64,
    /// Overrides the spec's preconditioning.
    pub precondition: Option<Precondition>,
    /// When the measured window begins.
    pub warmup: Option<Warmup>,
    /// Reading of traces.
    pub trace: TraceOptions,
    /// Replays traces at a queue depth.
    pub queue_depth: Option<u32>,
}

impl Plan {
    /// One workload on a system, with the seed 1 and everything else as the spec says.
    pub fn new(system: &str, workload: &str) -> Plan {
        Plan {
            system: system.to_owned(),
            text: None,
            set: Vec::new(),
            workloads: vec![workload.to_owned()],
            seed: 1,
            precondition: None,
            warmup: None,
            trace: TraceOptions { remap: Remap::Fit, others: programs::FILES, ..TraceOptions::default() },
            queue_depth: None,
        }
    }

    /// The system, with its overrides.
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn load(&self) -> Result<Loaded, Diagnostic> {
        match &self.text {
            Some(text) => crate::from_text(&self.system, text, &self.set),
            None => crate::load(&self.system, &self.set),
        }
    }

    /// Overrides that bring every flash device into a state (`none`, `sequential`, `steady:share=90%`, …) in place of the spec's: so
    /// that the resolved spec has it.
    ///
    /// # Errors
    /// A state that is none.
    pub fn overrides_of_state(&self, state: &str) -> Result<Vec<String>, Diagnostic> {
        let value = toml::Value::try_from(precondition::parse(state)?)
            .map_err(|fault| Diagnostic::new(format!("--precondition: {fault}")))?;
        // What is wrong with the system is told when it is read whole.
        let mut tables = spec::drives(&self.system, self.text.as_deref(), &self.set).unwrap_or_default();
        if tables.is_empty() {
            tables.push("flash".to_owned());
        }
        Ok(tables.iter().map(|table| format!("{table}.precondition={value}")).collect())
    }

    /// Overrides a value of the spec.
    #[must_use]
    pub fn set(mut self, assignment: &str) -> Plan {
        self.set.push(assignment.to_owned());
        self
    }
}

/// Who looks on at an accelerator, and at the flash that it governs.
type OfAccelerator = (Box<dyn KernelObserver>, Box<dyn CommandObserver>);

/// Who looks on at a coprocessor, and at the program that drives it.
type OfCoprocessor = (Box<dyn StepObserver>, Box<dyn PhaseObserver>);

/// Who looks on at what executes kernels, by number; nobody at those behind the last.
pub(crate) struct Looking {
    pub(crate) accelerators: Vec<Option<OfAccelerator>>,
    pub(crate) coprocessors: Vec<Option<OfCoprocessor>>,
}

/// Accelerators and coprocessors with their kernels; for each coprocessor that has some, a program of the host.
pub(crate) fn offloaded(
    plan: &Plan,
    loaded: &Loaded,
    kernels: BTreeMap<Id, Vec<Application>>,
    of_host: &mut Vec<Box<dyn HostProgram>>,
    mut looking: Looking,
) -> Result<(Vec<Governed>, Vec<Driven>), Diagnostic> {
    let (mut governed, mut driven) = (Vec::new(), accelerator::all_coprocessors(loaded)?);
    for (id, applications) in kernels {
        if id.kind == Kind::Accelerator {
            let mut built = accelerator::build(loaded, id.number, applications, plan.seed, &plan.workloads)?;
            if let Some((cores, flash)) = looking.accelerators.get_mut(id.number).and_then(Option::take) {
                built.accelerator.observer = Some(cores);
                built.flash.observe(flash);
            }
            governed.push(built);
            continue;
        }
        let (number, program) = (id.number, of_host.len());
        let driven = &mut driven[number];
        let place = (number, program);
        let mut program = accelerator::driving_program(loaded, driven, place, applications, &plan.workloads)?;
        let looking = looking.coprocessors.get_mut(number).and_then(Option::take);
        (driven.coprocessor.observer, program.observer) = looking.unzip();
        of_host.push(Box::new(program));
    }
    Ok((governed, driven))
}

// From a name to a spec whose links mean something and whose parts can be built.

/// Reads a shipped system or a file, with overrides (`key.path=value`).
///
/// # Errors
/// Everything that is wrong with it, with places.
pub fn load(name: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
    Loaded::read(name, Layers::load(name, &Shipped)?, overrides, buildable)
}

/// As [`load`], of a text that is in memory; it may inherit shipped systems.
///
/// # Errors
/// As [`load`].
pub fn from_text(name: &str, text: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
    Loaded::read(name, Layers::from_text(name, text, &Shipped)?, overrides, buildable)
}

/// Refuses parts that do not go together or cannot be built.
fn buildable(loaded: &Loaded) -> Result<(), Diagnostic> {
    build::gpu::check(loaded)?;
    build::server::check(loaded)?;
    build::accelerator::check(loaded)?;
    build::accelerator::check_coprocessors(loaded)?;
    // Building geometry and thresholds checks what a parser cannot.
    for number in 0..loaded.spec.flash.len() {
        loaded.device_at(number, 0)?;
    }
    for number in 0..loaded.spec.stripe.len() {
        loaded.stripe_at(number)?;
    }
    Ok(())
}

/// Refuses options that would be accepted and do nothing.
///
/// # Errors
/// A queue depth of zero, options for traces where no workload is a block trace (`has_trace`), or one about times that a replay at
/// a queue depth does not use.
pub(crate) fn check_options(plan: &Plan, has_trace: bool) -> Result<(), Diagnostic> {
    if plan.queue_depth == Some(0) {
        return Err(Diagnostic::new("--queue-depth 0: nothing could ever be issued").help("give 1 or more"));
    }
    let default = TraceOptions::default();
    let of_times = [
        ("--time-scale", plan.trace.time_scale != default.time_scale),
        ("--align", plan.trace.align != default.align),
    ];
    if plan.queue_depth.is_some()
        && let Some((option, _)) = of_times.iter().find(|(_, given)| *given)
    {
        let what =
            format!("{option} with --queue-depth: a replay at a queue depth does not use the trace's times");
        return Err(Diagnostic::new(what).help("leave one of them out"));
    }
    match given(plan).filter(|_| !has_trace) {
        Some(option) => Err(Diagnostic::new(format!(
            "{option} is for block traces, and no workload here is one"
        ))
        .help("an fio job says the same in its own words (iodepth, number_ios, ...); leave the option out")),
        None => Ok(()),
    }
}

/// The first option for traces that is not at its default.
fn given(plan: &Plan) -> Option<&'static str> {
    let TraceOptions {
        format,
        columns,
        time_unit,
        sector,
        time_scale,
        // What a run says itself.
        timed: _,
        start,
        end,
        align,
        volumes,
        max_requests,
        lenient,
        capacity: _,
        remap,
        action,
        sort_window,
        others: _,
    } = &plan.trace;
    let default = TraceOptions::default();
    let options = [
        ("--queue-depth", plan.queue_depth.is_some()),
        ("--format", format.is_some()),
        ("--columns", columns.is_some()),
        ("--time-unit", time_unit.is_some()),
        ("--sector", sector.is_some()),
        ("--time-scale", *time_scale != default.time_scale),
        ("--start", start.is_some()),
        ("--end", end.is_some()),
        ("--align", *align != default.align),
        ("--volumes", *volumes != default.volumes),
        ("--max-requests", max_requests.is_some()),
        ("--lenient", *lenient),
        // What a run does with requests beyond the device if nothing is said, and what a reader does.
        ("--remap", *remap != Remap::Fit && *remap != default.remap),
        ("--action", action.is_some()),
        ("--sort-window", *sort_window != default.sort_window),
    ];
    options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}

/// What executes programs.
const PROCESSORS: [Kind; 4] = [Kind::Gpu, Kind::Cpu, Kind::Accelerator, Kind::Coprocessor];

/// A workload, and the part that the user says it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    /// The workload as a user writes it, without the part.
    pub(crate) text: &'a str,
    /// The part.
    pub(crate) to: Option<Id>,
}

/// A text as a part's name and a workload, if it has the form; a file of that name is a workload.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let (name, workload) = text.split_once('=')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(is_plain) && !Path::new(text).exists()).then_some((name, workload))
}

/// A workload without the part that it is for.
pub(crate) fn workload_of(text: &str) -> &str {
    split(text).map_or(text, |(_, workload)| workload)
}

/// What each text of a plan is for.
///
/// # Errors
/// A part that is not there, or that runs nothing.
pub(crate) fn bind<'a>(loaded: &Loaded, texts: &'a [String]) -> Result<Vec<Bound<'a>>, Diagnostic> {
    texts.iter().map(|text| bound(loaded, text)).collect()
}

fn bound<'a>(loaded: &Loaded, text: &'a str) -> Result<Bound<'a>, Diagnostic> {
    let Some((name, workload)) = split(text) else { return Ok(Bound { text, to: None }) };
    let spec = &loaded.spec;
    let all = PROCESSORS
        .into_iter()
        .chain([Kind::Flash, Kind::Stripe])
        .flat_map(|kind| (0..spec.count(kind)).map(move |number| Id { kind, number }));
    let takes = |id: &Id| PROCESSORS.contains(&id.kind) || drives(loaded).contains(id);
    let candidates: Vec<Id> = all.filter(takes).collect();
    let found = candidates.iter().copied().find(|id| spec.name_of(*id) == name);
    if found.is_some() {
        return Ok(Bound { text: workload, to: found });
    }
    let what = format!("no part `{name}` takes a workload");
    let names = candidates.iter().map(|id| spec.name_of(*id).to_owned()).collect::<Vec<_>>();
    let place =
        Place { source: "--workload".to_owned(), text: text.to_owned(), column: 1, ..Place::default() };
    Err(Diagnostic::new(what).at(place).allowed(name, names))
}

/// The drives that requests of the host can go to.
pub(crate) fn drives(loaded: &Loaded) -> &[Id] {
    loaded.spec.host.first().map_or(&[], |host| host.linked("drives"))
}

/// The part of a kind that a workload is for, of those that could be.
///
/// # Errors
/// There are several, and none is said; another kind is said.
pub(crate) fn part_for(
    loaded: &Loaded,
    bound: Bound<'_>,
    candidates: &[Id],
    what: &str,
) -> Result<Option<Id>, Diagnostic> {
    let spec = &loaded.spec;
    let Bound { text, to } = bound;
    let names = || candidates.iter().map(|id| spec.name_of(*id).to_owned()).collect::<Vec<_>>();
    match to {
        Some(id) if candidates.contains(&id) => Ok(Some(id)),
        Some(id) => {
            let name = spec.name_of(id);
            let fault = Diagnostic::new(format!("`{text}` is {what}, and `{name}` takes none"));
            Err(fault.allowed(name, names()))
        }
        None if candidates.len() > 1 => {
            let fault = Diagnostic::new(format!(
                "`{text}` is {what}, and there are {} parts for it",
                candidates.len()
            ));
            let help = format!("say which: --workload {}={text}", spec.name_of(candidates[0]));
            Err(fault.allowed("", names()).help(help))
        }
        None => Ok(candidates.first().copied()),
    }
}

/// All parts of a kind.
pub(crate) fn of_kind(loaded: &Loaded, kind: Kind) -> Vec<Id> {
    (0..loaded.spec.count(kind)).map(|number| Id { kind, number }).collect()
}
