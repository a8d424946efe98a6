//! What is to be run.

use crate::spec::{self, Id, Kind, Loaded, MemorySpec, Part, Spec};
use crate::warmup::Warmup;
use crate::{
    build::{self, accelerator, coprocessor},
    driven::Driven,
    governed::Governed,
    precondition::{self, Precondition},
};
use compute::vliw::{Observer as KernelObserver, coprocessor::Observer as StepObserver};
use config::{Diagnostic, Layers, Resolved, SpecError};
use nand::dies::observe::Observer as CommandObserver;
use programs::host::{HostProgram, offload::Observer as PhaseObserver};
use programs::kernels::Application;
use requests::trace::{Remap, TraceOptions};
use ssd::port::initiator::{EntranceChoice, InitiatorSpec};
use ssd::spec::NvmeSpec;
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
    let remedy = self::remedy(resolved);
    for one in std::iter::once(&mut fault.help).chain(fault.also.iter_mut().map(|also| &mut also.help)) {
        if one.as_ref().is_some_and(|help| help.starts_with("set ")) {
            *one = Some(remedy.clone());
        }
    }
    fault
}

// What lies between the parts of a spec. Limits of single values, and of products of a part's numbers, stand at the
// fields of the spec's types (`config::schema::beyond`).

/// Refuses values that cannot be simulated: those beyond the limits that stand at the fields of the spec's types.
///
/// # Errors
/// Every such value, with its limit.
pub(crate) fn limits(loaded: &Loaded) -> Result<(), Diagnostic> {
    let told = |fault: SpecError| {
        let diagnostic = loaded.diagnose(&fault.key, &fault.what);
        match fault.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    };
    let of_table = |(name, table): (String, toml::Table)| {
        let found = config::schema::beyond(crate::spec::document(), &table);
        // Its keys begin with the kind; the user's, with the name.
        let own = move |fault: SpecError| {
            let below = fault.key.split_once('.').map_or(String::new(), |(_, rest)| format!(".{rest}"));
            SpecError { key: format!("{name}{below}"), ..fault }
        };
        found.into_iter().map(own)
    };
    let mut faults = loaded.tables().into_iter().flat_map(of_table).map(told);
    match faults.next() {
        Some(first) => Err(first.also(faults)),
        None => Ok(()),
    }
}

/// How to have all the keys that a spec of these parts needs.
pub(crate) fn remedy(resolved: &Resolved) -> String {
    let has = |kind| !crate::spec::of_kind(resolved, kind).is_empty();
    let like = match (has(Kind::Cpu), has(Kind::Gpu)) {
        (true, _) => "dram-only",
        (_, true) => "zng",
        _ if has(Kind::Coprocessor) => "flashabacus-simd",
        _ if has(Kind::Accelerator) || has(Kind::GroupFlash) => "flashabacus",
        _ => "pm9a3",
    };
    format!(
        "`nandscape init NEW.toml --like {like}` writes a file with every key, its meaning and its source; \
         `inherits = \"{like}\"` takes from there what a file does not say"
    )
}

/// Refuses a part that lacks another which it needs, and parts that do not go together.
///
/// # Errors
/// The first such part.
pub(crate) fn parts(loaded: &Loaded) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    for kind in Kind::ALL {
        for id in (0..spec.count(*kind)).map(|number| Id { kind: *kind, number }) {
            needs(loaded, id)?;
        }
    }
    for part in &spec.memory {
        if let MemorySpec::Initiator(initiator) = &part.spec {
            queues(loaded, part, initiator)?;
        }
    }
    for gpu in &spec.gpu {
        let pager = gpu.link("paging").map(|id| spec.name_of(id));
        pages(loaded, gpu.link("l2"), pager, "the host pages into memory that is no DRAM")?;
    }
    for cpu in &spec.cpu {
        let pager = cpu.link("swap").map(|id| spec.name_of(id));
        pages(loaded, cpu.link("l2"), pager, "the operating system pages into memory that is no DRAM")?;
    }
    Ok(())
}

/// Refuses a part whose links go nowhere.
fn needs(loaded: &Loaded, id: Id) -> Result<(), Diagnostic> {
    let absent = loaded.absent_links(id, false);
    if absent.is_empty() {
        return Ok(());
    }
    let name = loaded.spec.name_of(id);
    let named = |(_, to): &(&str, &[Kind])| {
        to.iter().map(|kind| format!("`{}`", kind.name())).collect::<Vec<_>>().join(" or ")
    };
    let what = format!(
        "the part `{name}` stands without {}",
        absent.iter().map(named).collect::<Vec<_>>().join(", ")
    );
    let mut told = loaded.diagnose(name, &what);
    told.listed = loaded.lacking();
    Err(told.help("a drive needs a part that asks it, such as `host`; a GPU the parts `mmu`, `network`, `l2` and `memory`; a server `mmu`, `fabric`, `directory`, `l2` and `memory`; an accelerator `group_flash`"))
}

/// Refuses paging into what is no DRAM.
fn pages(loaded: &Loaded, l2: Option<Id>, pager: Option<&str>, what: &str) -> Result<(), Diagnostic> {
    let spec = &loaded.spec;
    let memory = l2.and_then(|l2| spec.l2[l2.number].link("memory"));
    // Where pages of a placement lie is not the pager's.
    let is_pageable = |id: Id| id.kind == Kind::Memory && spec.memory[id.number].spec.is_pageable();
    match pager {
        Some(pager) if !memory.is_some_and(is_pageable) => Err(loaded
            .diagnose(pager, what)
            .help("it needs a memory that is `dram`, behind the shared cache")),
        _ => Ok(()),
    }
}

/// Refuses an initiator with more queues or entries than its drive has for it.
fn queues(loaded: &Loaded, part: &Part<MemorySpec>, initiator: &InitiatorSpec) -> Result<(), Diagnostic> {
    let Some(id) = part.link("drive") else { return Ok(()) };
    if id.kind == Kind::Stripe {
        return match initiator.entrance {
            EntranceChoice::host => Ok(()),
            EntranceChoice::inner => {
                let what =
                    format!("`{}` is no drive by itself: nothing is inside it", loaded.spec.name_of(id));
                let key = format!("{}.initiator.entrance", part.table());
                Err(loaded.diagnose(&key, &what).help("give `host`, or a drive"))
            }
        };
    }
    let drive = &loaded.spec.flash[id.number];
    let flash = &drive.spec.flash;
    let (entrance, there) = match (initiator.entrance, &flash.inner) {
        (EntranceChoice::host, _) => ("host", flash.host.queues()),
        (EntranceChoice::inner, Some(inner)) => ("inner", inner.nvme.as_ref().map(NvmeSpec::queues)),
        (EntranceChoice::inner, None) => {
            let what = "the device has no entrance for a processor inside it";
            let help = format!("give the table `{}.inner`", drive.table());
            let key = format!("{}.initiator.entrance", part.table());
            return Err(loaded.diagnose(&key, what).help(help));
        }
    };
    let Some((count, depth)) = there else { return Ok(()) };
    let limits = [
        ("queues", u64::from(initiator.queues), u64::from(count)),
        ("depth", initiator.depth.into(), depth.into()),
    ];
    let table = drive.table();
    let is_ahci = entrance == "host" && flash.host.ahci.is_some();
    for (key, wanted, there) in limits {
        if wanted > there {
            let own = if is_ahci { "ahci.slots".to_owned() } else { format!("nvme.{key}") };
            let what = format!("{wanted} is more than the device has: {there} (`{table}.{entrance}.{own}`)");
            return Err(loaded.diagnose(&format!("{}.initiator.{key}", part.table()), &what));
        }
    }
    Ok(())
}
