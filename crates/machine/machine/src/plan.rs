//! What is to be run.

use crate::precondition::{self, Precondition};
use crate::spec::{self, Loaded};
use crate::warmup::Warmup;
use config::Diagnostic;
use requests::trace::{Remap, TraceOptions};

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
