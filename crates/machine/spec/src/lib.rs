//! Spec of a whole machine: description, simulation settings, and named parts with links.
//!
//! * Knows the kinds of parts, their links, the shipped systems, and the states that drives are brought into.
//! * Does not know events: nothing here runs.
//! * Read first: `kinds.rs`.

mod kinds;
mod links;
mod memory;
mod own;
pub mod precondition;
mod read;
mod schema;
pub mod systems;
mod validate;
pub mod warmup;

pub use kinds::{Id, Kind, Part, Spec};
pub use memory::MemorySpec;
pub use own::{DriveSpec, DrivenSpec, OffloadSpec, OffloadedSpec, ServerSpec, StartSpec};
use read::of_kind;
pub use schema::{document, of_file};

use crate::precondition::Precondition;
use config::SpecError;
use config::units::Duration;
use config::{Diagnostic, Layers, Place, Resolved, SleepSpec};
use engine::Time;
use ftl::page_map::gc::Victim;
use linux::path::PathSpec;
use mem::stripe::Stripe;
use requests::inject::{HostCost, Queues};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use ssd::spec::{Built, FlashSpec};
use ssd::{Device, spec};

/// Host software. Requests that go directly to a drive spend two times outside the device; requests through the page
/// cache, and programs, take the kernel's path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSoftware {
    /// Time from arrival to submission.
    pub submit: Duration,
    /// Time from the completion's interrupt until the application is notified.
    pub complete: Duration,
    /// Thread time per request of an fio job without a rate, in addition to its latency. Requests are handled one after
    /// another: the thread sees a completion when it is done with earlier ones, and issues the next request when it is
    /// done with this one. Zero if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<Duration>,
    /// Low-power state (C1E, C6) of the core of such a thread while idle: the core sees the completion that ends the
    /// state later, by the exit latency. If left out, cores stay awake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sleep: Option<SleepSpec>,
    /// Kernel: cores, page cache, write-back, file system, block layer and driver; Linux's defaults if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linux: Option<PathSpec>,
}

impl HostSoftware {
    /// Cost of a request outside the device.
    pub fn cost(&self) -> HostCost {
        HostCost {
            submit: self.submit.time(),
            complete: self.complete.time(),
            thread: self.thread.map_or(Time::ZERO, |thread| thread.time()),
            sleep: self.sleep,
        }
    }
}

/// Settings of the simulation. They change no result, except that `until` ends the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sim {
    /// Whether stages without contention are folded into one event.
    pub fold: bool,
    /// Whether a shadow follows the data of every unit and checks every read. Costs memory and time.
    pub shadow: bool,
    /// Whether the causes of slow requests' waits are recorded, as `io.*.tail` and `io.slowest` of the result; on if
    /// left out. Costs a few per cent of the run's time.
    #[serde(default = "on", skip_serializing_if = "is_on")]
    #[schemars(extend("default" = true))]
    pub explain: bool,
    /// Interval at which each application's issued instructions are recorded, as `gpu.series` of the result; not
    /// recorded if left out. The interval doubles until 4,096 of them hold the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "1ps"))]
    pub series: Option<Duration>,
    /// Simulated time after which the run ends, whether or not its work is done; no limit if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "1ps"))]
    pub until: Option<Duration>,
}

/// Default of switches that are on.
const fn on() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_on(on: &bool) -> bool {
    *on
}

impl Default for Sim {
    fn default() -> Sim {
        Sim { fold: false, shadow: false, explain: on(), series: None, until: None }
    }
}

/// Adds help to a list of missing keys: how to get all of them.
fn remedied(resolved: &Resolved, mut fault: Diagnostic) -> Diagnostic {
    let remedy = validate::remedy(resolved);
    for one in std::iter::once(&mut fault.help).chain(fault.also.iter_mut().map(|also| &mut also.help)) {
        if one.as_ref().is_some_and(|help| help.starts_with("set ")) {
            *one = Some(remedy.clone());
        }
    }
    fault
}

/// Name of the drive with this number in random streams, independent of the user's name for it.
pub fn stream(number: usize) -> String {
    format!("flash{number}")
}

/// Flash device, with the host software in front of it.
#[derive(Clone, Copy, Debug)]
pub struct Drive<'a> {
    /// Name of the drive.
    pub name: &'a str,
    /// Flash device.
    pub flash: &'a FlashSpec,
    /// Host software.
    pub host: &'a HostSoftware,
    /// State that the device is brought into before the run.
    pub precondition: &'a Precondition,
}

/// Spec with the place of each value.
pub struct Loaded {
    /// Name of the spec: a shipped system's, or the file's.
    pub name: String,
    /// Spec of the machine.
    pub spec: Spec,
    resolved: Resolved,
}

/// Keys of a system's tables that are drives: the system of this name, or of this text, with overrides.
///
/// # Errors
/// A system, or a file that it inherits, that cannot be read.
pub fn drives(system: &str, text: Option<&str>, set: &[String]) -> Result<Vec<String>, Diagnostic> {
    let mut resolved = match text {
        Some(text) => Layers::from_text(system, text, &crate::systems::Shipped)?,
        None => Layers::load(system, &crate::systems::Shipped)?,
    };
    for assignment in set {
        resolved.set(assignment)?;
    }
    Ok(read::of_kind(&resolved, Kind::Flash))
}

impl Loaded {
    /// Reads a configuration with overrides (`key.path=value`) and resolves its links; `check` refuses parts that
    /// cannot be built.
    ///
    /// # Errors
    /// Every error in the configuration, with places.
    pub fn read(
        name: &str,
        mut resolved: Resolved,
        overrides: &[String],
        check: fn(&Loaded) -> Result<(), Diagnostic>,
    ) -> Result<Loaded, Diagnostic> {
        for assignment in overrides {
            resolved.set(assignment)?;
        }
        let spec = Spec::parse(&mut resolved).map_err(|fault| remedied(&resolved, fault))?;
        Loaded::of(name, spec, resolved.clone(), check).map_err(|fault| {
            let again = |mut resolved: Resolved| {
                let spec = Spec::parse(&mut resolved).ok()?;
                Some(Loaded::of(name, spec, resolved, check))
            };
            resolved.blame(fault, again)
        })
    }

    /// Resolves links, and refuses errors that a parser cannot find: limits, and parts that do not go together.
    fn of(
        name: &str,
        spec: Spec,
        resolved: Resolved,
        check: fn(&Loaded) -> Result<(), Diagnostic>,
    ) -> Result<Loaded, Diagnostic> {
        let mut loaded = Loaded { name: name.to_owned(), spec, resolved };
        validate::limits(&loaded)?;
        links::resolve(&mut loaded.spec, &loaded.resolved)?;
        validate::parts(&loaded)?;
        check(&loaded)?;
        Ok(loaded)
    }

    /// Translates a key to its kind's: `flash.geometry.ways` for a drive of any name.
    pub fn as_kind(&self, key: &str) -> String {
        let (table, rest) = key.split_at(key.find('.').unwrap_or(key.len()));
        let declared = self.spec.tables.iter().find(|declared| declared.table == table);
        declared.map_or_else(|| key.to_owned(), |declared| format!("{}{rest}", declared.kind.name()))
    }

    /// Keys that a complete spec with these parts still lacks, for a list.
    pub fn lacking(&self) -> Vec<String> {
        Resolved::list(&read::missing(&self.resolved.table(), &self.spec.tables))
    }

    /// Missing links of a part: each key, and the kinds that it may name.
    pub fn absent_links(&self, id: Id, to_run: bool) -> Vec<(&'static str, &'static [Kind])> {
        links::absent(&self.spec, id, to_run).into_iter().map(|link| (link.key, link.to)).collect()
    }

    /// Tables of a spec in their kind's form, each with the prefix of its keys.
    pub fn tables(&self) -> Vec<(String, toml::Table)> {
        let root = self.resolved.table();
        let whole = root
            .iter()
            .filter(|(name, _)| *name == "sim")
            .map(|(name, value)| (name.clone(), (name.clone(), value)));
        let parts = self.spec.tables.iter().filter_map(|part| {
            let value = root.get(&part.table)?;
            Some((part.table.clone(), (part.kind.name().to_owned(), value)))
        });
        let table = |(name, (kind, value)): (String, (String, &toml::Value))| {
            (name, toml::Table::from_iter([(kind, value.clone())]))
        };
        whole.chain(parts).map(table).collect()
    }

    /// Returns the resolved spec as TOML.
    pub fn to_toml(&self) -> String {
        self.resolved.to_toml_string()
    }

    /// Creates a diagnostic at the place of a value.
    pub fn diagnose(&self, key: &str, what: &str) -> Diagnostic {
        self.resolved.diagnose(key, what)
    }

    /// Returns the first drive.
    ///
    /// # Errors
    /// A system without a drive.
    pub fn drive(&self) -> Result<Drive<'_>, Diagnostic> {
        self.drive_at(0)
    }

    /// Returns the drive with this number.
    ///
    /// # Errors
    /// A system without this drive, or without a host.
    pub fn drive_at(&self, number: usize) -> Result<Drive<'_>, Diagnostic> {
        match (self.spec.flash.get(number), self.spec.host.first()) {
            (Some(part), Some(host)) => {
                let DriveSpec { flash, precondition } = &part.spec;
                Ok(Drive { name: &part.name, flash, host: &host.spec, precondition })
            }
            _ => Err(Diagnostic::new(format!(
                "the system `{}` has no flash device that a host reaches",
                self.name
            ))
            .help("block requests need the tables `flash` and `host`")),
        }
    }

    /// Builds the first flash device, empty and idle.
    ///
    /// # Errors
    /// A device that cannot be built.
    pub fn device(&self, seed: u64) -> Result<Device, Diagnostic> {
        self.drive()?;
        self.device_at(0, seed)
    }

    /// Builds the flash device with this number, empty and idle.
    ///
    /// # Errors
    /// A device that cannot be built.
    pub fn device_at(&self, number: usize, seed: u64) -> Result<Device, Diagnostic> {
        let part = &self.spec.flash[number];
        let context = Built { seed, name: stream(number), fold: self.spec.sim.fold };
        part.spec.flash.build(&context).map_err(|error| self.explain(part.table(), error))
    }

    /// Returns the victim policy of the flash device with this number, in its initial state.
    pub fn victim_at(&self, number: usize, seed: u64) -> Box<dyn Victim> {
        let context = Built { seed, name: stream(number), fold: self.spec.sim.fold };
        self.spec.flash[number].spec.flash.victim(&context)
    }

    /// Builds the stripe with this number, empty.
    ///
    /// # Errors
    /// A stripe that cannot be built.
    pub fn stripe_at(&self, number: usize) -> Result<Stripe, Diagnostic> {
        let part = &self.spec.stripe[number];
        let capacities = part.linked("drives").iter().map(|drive| self.capacity_of(*drive));
        let capacities = capacities.collect::<Result<Vec<_>, _>>()?;
        let explain = |error| self.explain(part.table(), error);
        let mut stripe = Stripe::new(&part.spec, &capacities).map_err(explain)?;
        if self.spec.sim.shadow {
            stripe.attach_shadow();
        }
        Ok(stripe)
    }

    /// Capacity of a drive or a stripe, bytes.
    ///
    /// # Errors
    /// A device that cannot be built.
    pub fn capacity_of(&self, drive: Id) -> Result<u64, Diagnostic> {
        match drive.kind {
            Kind::Stripe => Ok(self.stripe_at(drive.number)?.capacity()),
            _ => Ok(self.device_at(drive.number, 0)?.capacity()),
        }
    }

    /// Moves a fault to the workloads if no value of the user is wrong: then the workloads do not fit.
    pub fn at_workloads(&self, workloads: &[String], mut fault: Diagnostic) -> Diagnostic {
        if fault.place.as_ref().is_none_or(|place| self.resolved.is_own(place)) {
            return fault;
        }
        fault.beside = fault.place.take();
        let text = workloads.join(" ");
        fault.at(Place { source: "--workload".to_owned(), text, ..Place::default() })
    }

    /// Returns the configuration that the spec was read from.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Reports a fault of a part at the key of its table.
    pub fn explain(&self, table: &str, error: SpecError) -> Diagnostic {
        let diagnostic = self.resolved.diagnose(&format!("{table}.{}", error.key), error.what);
        match error.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

impl Spec {
    /// Parses the description and the parts of a configuration, without resolving links.
    ///
    /// # Errors
    /// Every error in the configuration, with places.
    pub fn parse(resolved: &mut Resolved) -> Result<Spec, Diagnostic> {
        read::read(resolved)
    }

    /// Converts to the form of a result document: description, settings, and each table by name, with links as written.
    pub fn to_json(&self) -> Value {
        let mut all = Map::new();
        all.insert("description".to_owned(), json!(self.description));
        // Read from TOML, so it has a JSON form.
        all.insert("sim".to_owned(), serde_json::to_value(&self.sim).unwrap_or_default());
        for (declared, id) in self.declared() {
            let mut table = self.table_of(id);
            if let Some(table) = table.as_object_mut() {
                if declared.kind.name() != declared.table {
                    table.insert(read::KIND.to_owned(), json!(declared.kind.name()));
                }
                table.extend(declared.count.map(|count| (read::COUNT.to_owned(), json!(count))));
                table.extend(declared.links.iter().map(|(key, names)| ((*key).to_owned(), json!(names))));
            }
            all.insert(declared.table.clone(), table);
        }
        Value::Object(all)
    }

    /// Returns each table with the first of its parts.
    fn declared(&self) -> impl Iterator<Item = (&kinds::Declared, Id)> {
        let mut counted = [0; Kind::ALL.len()];
        self.tables.iter().map(move |declared| {
            let number = counted[declared.kind as usize];
            counted[declared.kind as usize] += declared.names().count();
            (declared, Id { kind: declared.kind, number })
        })
    }
}

/// Queues of a stripe: the number and depth that every drive has. A command to the stripe is at most one for each
/// drive.
pub fn queues_of(loaded: &Loaded, stripe: usize) -> Queues {
    let drives = loaded.spec.stripe[stripe].linked("drives").iter();
    let each = drives.map(|drive| queues(&loaded.spec.flash[drive.number].spec.flash));
    let least = |a: Queues, b: Queues| Queues { count: a.count.min(b.count), depth: a.depth.min(b.depth) };
    each.reduce(least).unwrap_or(Queues::UNBOUNDED)
}

/// Queues of the host interface, as the injector uses them.
pub fn queues(spec: &spec::FlashSpec) -> Queues {
    spec.host.queues().map_or(Queues::UNBOUNDED, |(count, depth)| Queues { count, depth })
}
