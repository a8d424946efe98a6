//! A whole machine as a user writes it.

use crate::precondition::Precondition;
use config::units::Duration;
use config::{Diagnostic, Layers, Resolved};
use flash::spec::{Built, FlashSpec, SpecError};
use flash::{Device, spec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::inject::Queues;

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What the machine is, in one line.
    pub description: String,
    /// The flash device.
    pub flash: FlashSpec,
    /// The host's software.
    pub host: HostSoftware,
    /// The state that the device is brought into before the run.
    pub precondition: Precondition,
    /// The simulation itself.
    pub sim: Sim,
}

/// The host's software: time that a request spends outside the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSoftware {
    /// From arrival to submission.
    pub submit: Duration,
    /// From the completion's interrupt until the application knows.
    pub complete: Duration,
}

/// The simulation itself. Nothing here changes what the host sees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sim {
    /// Whether stages without contention are folded into one event.
    pub fold: bool,
    /// Whether a shadow follows every unit's data and checks every read. Costs memory and time.
    pub shadow: bool,
}

/// A spec with the memory of where each value stands.
pub struct Loaded {
    /// Its name: a shipped system's, or the file's.
    pub name: String,
    /// The spec.
    pub spec: Spec,
    resolved: Resolved,
}

impl Loaded {
    /// Reads a shipped system or a file, with overrides (`key.path=value`).
    ///
    /// # Errors
    /// Everything that is wrong with it, with places.
    pub fn load(name: &str, overrides: &[String]) -> Result<Loaded, Diagnostic> {
        let mut resolved = Layers::load(name, &crate::systems::Shipped)?;
        for assignment in overrides {
            resolved.set(assignment)?;
        }
        let spec: Spec = resolved.parse()?;
        crate::validate::check(&resolved)?;
        let loaded = Loaded { name: name.to_owned(), spec, resolved };
        // Building geometry and thresholds checks what a parser cannot.
        loaded.device(0)?;
        Ok(loaded)
    }

    /// The resolved spec as TOML.
    pub fn to_toml(&self) -> String {
        self.resolved.to_toml_string()
    }

    /// Where a value stands, for errors about it.
    pub fn diagnose(&self, key: &str, what: &str) -> Diagnostic {
        self.resolved.diagnose(key, what)
    }

    /// Builds the device, empty and idle.
    ///
    /// # Errors
    /// What cannot be built.
    pub fn device(&self, seed: u64) -> Result<Device, Diagnostic> {
        let context = Built { seed, name: "flash0".into(), fold: self.spec.sim.fold };
        self.spec.flash.build(&context).map_err(|error| self.explain(error))
    }

    fn explain(&self, error: SpecError) -> Diagnostic {
        let diagnostic = self.resolved.diagnose(&format!("flash.{}", error.key), error.what);
        match error.help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }
}

/// The host interface's queues, as the injector needs to know.
pub fn queues(spec: &spec::FlashSpec) -> Queues {
    spec.host.nvme.as_ref().map_or(Queues::UNBOUNDED, |n| Queues { count: n.queues, depth: n.depth })
}
