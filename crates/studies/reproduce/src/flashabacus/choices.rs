//! The choices of a reading that no key of a system has: how figures are read from runs, and what instances share.

use super::super::mean::Metric;
use super::metrics::{executing, held, utilisation};
use super::spent::{energy, whole_energy};
use serde::Deserialize;

/// Choices of the study, as `study` of `papers/flashabacus/readings.toml` has them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Choices {
    pub(super) inputs: Inputs,
    pub(super) utilisation: Utilisation,
    pub(super) energy: Energy,
    pub(super) latency: Latency,
}

impl Choices {
    /// The utilisation that counts, per cent of the makespan.
    pub(super) fn utilisation(&self) -> Metric {
        match self.utilisation {
            Utilisation::WithStalls => utilisation,
            Utilisation::Executing => executing,
            Utilisation::Held => held,
        }
    }

    /// The energy of a run that counts, J.
    pub(super) fn energy(&self) -> Metric {
        match self.energy {
            Energy::WhileMoving => energy,
            Energy::WholeRun => whole_energy,
        }
    }
}

/// Inputs of instances of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Inputs {
    /// One input for all instances.
    #[default]
    Shared,
    /// An input for each instance of a workload that the flash then holds; one for all instances of the others.
    OwnWherePossible,
}

/// Time of a core that counts as used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Utilisation {
    /// Executing and waiting for caches.
    #[default]
    WithStalls,
    /// Executing alone.
    Executing,
    /// Having a screen: executing, waiting for caches and for data from flash.
    Held,
}

/// Energy of the rival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Energy {
    /// The accelerator's, and those of host and drive while data move.
    #[default]
    WhileMoving,
    /// All parts over the whole run.
    WholeRun,
}

/// Mean of latencies over programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Latency {
    /// The mean of ratios.
    #[default]
    MeanOfRatios,
    /// The ratio of means.
    RatioOfMeans,
}
