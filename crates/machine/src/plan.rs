//! What is to be run.

use crate::precondition::Precondition;
use crate::warmup::Warmup;
use workload::trace::{Remap, TraceOptions};

/// What to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// A shipped system's name or a file.
    pub system: String,
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
            set: Vec::new(),
            workloads: vec![workload.to_owned()],
            seed: 1,
            precondition: None,
            warmup: None,
            trace: TraceOptions { remap: Remap::Fit, ..TraceOptions::default() },
            queue_depth: None,
        }
    }

    /// Overrides a value of the spec.
    #[must_use]
    pub fn set(mut self, assignment: &str) -> Plan {
        self.set.push(assignment.to_owned());
        self
    }
}
