//! What is to be run.

pub(crate) mod applies;
pub(crate) mod bind;
pub(crate) mod bring;
pub mod workloads;

use crate::build::{self, accelerator, coprocessor};
use crate::parts::driven::Driven;
use crate::parts::governed::Governed;
use crate::precondition::{self, Precondition};
use crate::spec::validate::{self, limits, parts};
use crate::spec::{self, Id, Kind, Loaded, Spec};
use crate::warmup::Warmup;
use compute::vliw::Observer as KernelObserver;
use compute::vliw::coprocessor::Observer as StepObserver;
use config::{Diagnostic, Layers, Resolved};
use nand::dies::observe::Observer as CommandObserver;
use programs::host::{HostProgram, offload::Observer as PhaseObserver};
use programs::kernels::Application;
use requests::trace::{Remap, TraceOptions};
use std::collections::BTreeMap;

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
            Some(text) => Loaded::from_text(&self.system, text, &self.set),
            None => Loaded::load(&self.system, &self.set),
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
    let (mut governed, mut driven) = (Vec::new(), coprocessor::all(loaded)?);
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
        let mut program = coprocessor::program(loaded, driven, place, applications, &plan.workloads)?;
        let looking = looking.coprocessors.get_mut(number).and_then(Option::take);
        (driven.coprocessor.observer, program.observer) = looking.unzip();
        of_host.push(Box::new(program));
    }
    Ok((governed, driven))
}

// From a name to a spec whose links mean something and whose parts can be built.

impl Loaded {
    /// Reads a shipped system or a file, with overrides (`key.path=value`).
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn load(name: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        Loaded::with(name, Layers::load(name, &crate::systems::Shipped)?, overrides)
    }

    /// As [`Loaded::load`], of a text that is in memory; it may inherit shipped systems.
    ///
    /// # Errors
    /// As [`Loaded::load`].
    pub fn from_text(name: &str, text: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        Loaded::with(name, Layers::from_text(name, text, &crate::systems::Shipped)?, overrides)
    }

    fn with(name: &str, mut resolved: Resolved, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        for assignment in overrides {
            resolved.set(assignment)?;
        }
        let spec = Spec::parse(&mut resolved).map_err(|fault| remedied(&resolved, fault))?;
        Loaded::of(name, spec, resolved.clone()).map_err(|fault| {
            let check = |mut resolved: Resolved| {
                let spec = Spec::parse(&mut resolved).ok()?;
                Some(Loaded::of(name, spec, resolved))
            };
            resolved.blame(fault, check)
        })
    }

    /// Finds what links mean, and refuses what a parser cannot: limits, parts that do not go together or cannot be built.
    fn of(name: &str, spec: Spec, resolved: Resolved) -> Result<Loaded, Diagnostic> {
        let mut loaded = Loaded { name: name.to_owned(), spec, resolved };
        limits(&loaded)?;
        loaded.link()?;
        parts(&loaded)?;
        build::gpu::check(&loaded)?;
        build::server::check(&loaded)?;
        build::accelerator::check(&loaded)?;
        build::coprocessor::check(&loaded)?;
        // Building geometry and thresholds checks what a parser cannot.
        for number in 0..loaded.spec.flash.len() {
            loaded.device_at(number, 0)?;
        }
        for number in 0..loaded.spec.stripe.len() {
            loaded.stripe_at(number)?;
        }
        Ok(loaded)
    }
}

/// A list of missing keys, with the way to have them all.
fn remedied(resolved: &Resolved, mut fault: Diagnostic) -> Diagnostic {
    let remedy = validate::remedy(resolved);
    for one in std::iter::once(&mut fault.help).chain(fault.also.iter_mut().map(|also| &mut also.help)) {
        if one.as_ref().is_some_and(|help| help.starts_with("set ")) {
            *one = Some(remedy.clone());
        }
    }
    fault
}
