//! Plan of a run: what to run, the checks of its options, and the part that each workload is for (`NAME=WORKLOAD`, or
//! the only possible one).

pub(crate) mod bring;
pub mod nearby;
pub mod shrink;
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

/// Plan of a run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Name of a shipped system or a file; for a text, the name to report.
    pub system: String,
    /// Spec of the system, if it is in memory.
    pub text: Option<String>,
    /// Overrides, `key.path=value`.
    pub set: Vec<String>,
    /// Workloads as a user writes them.
    pub workloads: Vec<String>,
    /// Seed of the run.
    pub seed: u64,
    /// Preconditioning in place of the spec's.
    pub precondition: Option<Precondition>,
    /// Start of the measured window.
    pub warmup: Option<Warmup>,
    /// Options for reading traces.
    pub trace: TraceOptions,
    /// Queue depth at which traces are replayed.
    pub queue_depth: Option<u32>,
}

impl Plan {
    /// Plan for one workload on a system, with seed 1 and defaults otherwise.
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

    /// Loads the system, with its overrides.
    ///
    /// # Errors
    /// Every error in the system, with places.
    pub fn load(&self) -> Result<Loaded, Diagnostic> {
        match &self.text {
            Some(text) => crate::from_text(&self.system, text, &self.set),
            None => crate::load(&self.system, &self.set),
        }
    }

    /// Overrides that precondition every flash device (`none`, `sequential`, `steady:share=90%`, …) in place of the
    /// spec's state, so that the resolved spec has it.
    ///
    /// # Errors
    /// An unknown state.
    pub fn overrides_of_state(&self, state: &str) -> Result<Vec<String>, Diagnostic> {
        let value = toml::Value::try_from(precondition::parse(state)?)
            .map_err(|fault| Diagnostic::new(format!("--precondition: {fault}")))?;
        // Errors of the system are reported when it is read as a whole.
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

/// Observers of an accelerator and of the flash that it governs.
type OfAccelerator = (Box<dyn KernelObserver>, Box<dyn CommandObserver>);

/// Observers of a coprocessor and of the program that drives it.
type OfCoprocessor = (Box<dyn StepObserver>, Box<dyn PhaseObserver>);

/// Observers of parts that execute kernels, by number; parts behind the last have none.
pub(crate) struct Looking {
    pub(crate) accelerators: Vec<Option<OfAccelerator>>,
    pub(crate) coprocessors: Vec<Option<OfCoprocessor>>,
}

/// Builds accelerators and coprocessors with their kernels, and a host program for each coprocessor that has some.
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

// Spec loading: links resolved and parts checked.

/// Reads a shipped system or a file, with overrides (`key.path=value`).
///
/// # Errors
/// Every error in the spec, with places.
pub fn load(name: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
    Loaded::read(name, Layers::load(name, &Shipped)?, overrides, buildable)
}

/// Reads a spec from a text in memory, like [`load`]; it may inherit shipped systems.
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
    // Building geometry and thresholds finds errors that a parser cannot.
    for number in 0..loaded.spec.flash.len() {
        loaded.device_at(number, 0)?;
    }
    for number in 0..loaded.spec.stripe.len() {
        loaded.stripe_at(number)?;
    }
    Ok(())
}

/// Refuses options that would have no effect.
///
/// # Errors
/// A queue depth of zero, trace options without a block trace (`has_trace`), or a time option that a replay at a queue
/// depth does not use.
pub(crate) fn check_options(plan: &Plan, has_trace: bool) -> Result<(), Diagnostic> {
    if plan.queue_depth == Some(0) {
        return Err(
            Diagnostic::new("--queue-depth 0: no request could ever be issued").help("give 1 or more")
        );
    }
    let default = TraceOptions::default();
    let of_times = [
        ("--time-scale", plan.trace.time_scale != default.time_scale),
        ("--align", plan.trace.align != default.align),
    ];
    if plan.queue_depth.is_some()
        && let Some((option, _)) = of_times.iter().find(|(_, given)| *given)
    {
        let what = format!(
            "{option} has no effect with --queue-depth: a replay at a queue depth ignores the trace's times"
        );
        return Err(Diagnostic::new(what).help("leave one of them out"));
    }
    match given(plan).filter(|_| !has_trace) {
        Some(option) => Err(Diagnostic::new(format!(
            "{option} applies to block traces only, and no workload here is one"
        ))
        .help("leave it out; fio jobs have their own options (iodepth, number_ios, ...)")),
        None => Ok(()),
    }
}

/// First trace option that differs from its default.
fn given(plan: &Plan) -> Option<&'static str> {
    let TraceOptions {
        format,
        columns,
        time_unit,
        sector,
        time_scale,
        // Set by the run itself.
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
        // Defaults differ between a run, for requests beyond the device, and a reader.
        ("--remap", *remap != Remap::Fit && *remap != default.remap),
        ("--action", action.is_some()),
        ("--sort-window", *sort_window != default.sort_window),
    ];
    options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}

/// Kinds of parts that execute programs.
const PROCESSORS: [Kind; 4] = [Kind::Gpu, Kind::Cpu, Kind::Accelerator, Kind::Coprocessor];

/// Workload, and the part that the user assigned it to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    /// Workload as a user writes it, without the part.
    pub(crate) text: &'a str,
    /// Part that the workload is assigned to.
    pub(crate) to: Option<Id>,
}

/// Splits `NAME=WORKLOAD` into part and workload; a file of that name is a workload.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let (name, workload) = text.split_once('=')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (!name.is_empty() && name.chars().all(is_plain) && !Path::new(text).exists()).then_some((name, workload))
}

/// Workload without the part that it is for.
pub(crate) fn workload_of(text: &str) -> &str {
    split(text).map_or(text, |(_, workload)| workload)
}

/// Resolves the part of each workload of a plan.
///
/// # Errors
/// An unknown part, or one that runs nothing.
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

/// Drives that requests of the host can go to.
pub(crate) fn drives(loaded: &Loaded) -> &[Id] {
    loaded.spec.host.first().map_or(&[], |host| host.linked("drives"))
}

/// Part of a kind that a workload is for, among the candidates.
///
/// # Errors
/// Several parts qualify and none is named, or the named part has a different kind.
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
            let fault = Diagnostic::new(format!("`{text}` is {what}, and `{name}` cannot run it"));
            Err(fault.allowed(name, names()))
        }
        None if candidates.len() > 1 => {
            let fault =
                Diagnostic::new(format!("`{text}` is {what}, and {} parts can run it", candidates.len()));
            let help = format!("name one: --workload {}={text}", spec.name_of(candidates[0]));
            Err(fault.allowed("", names()).help(help))
        }
        None => Ok(candidates.first().copied()),
    }
}

/// Lists all parts of a kind.
pub(crate) fn of_kind(loaded: &Loaded, kind: Kind) -> Vec<Id> {
    (0..loaded.spec.count(kind)).map(|number| Id { kind, number }).collect()
}
