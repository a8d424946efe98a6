//! What to run, as `run` and `check` are told.

use crate::number;
use crate::output::Fault;
use crate::trace_args::TraceArgs;
use config::{Diagnostic, Place};
use machine::run::Plan;
use requests::trace::Remap;
use sweep::warmup;

/// A system, and how workloads run on it.
#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// A shipped system or a TOML file
    pub(crate) system: String,
    /// Overrides a value of the spec (key.path=value); repeatable
    #[arg(long)]
    set: Vec<String>,
    /// Seed of all random streams
    #[arg(long, default_value_t = 1, value_parser = number::whole)]
    seed: u64,
    /// State of the device before the run (none, sequential, steady:share=90%, ...); overrides the spec
    #[arg(long)]
    precondition: Option<String>,
    /// Leaves out of the results the first so many requests to complete, exactly, or what completes before this simulated time
    /// (5000, 10ms); a run that ends before has a failed check
    #[arg(long)]
    warmup: Option<String>,
    /// How traces are read
    #[command(flatten)]
    trace: TraceArgs,
    /// Replays traces at this queue depth, at least 1, instead of at their own times, which are not used then
    #[arg(long, value_parser = number::whole_u32)]
    queue_depth: Option<u32>,
}

impl PlanArgs {
    /// The system, as it is given.
    pub(crate) fn system(&self) -> &str {
        &self.system
    }

    /// Options that may name files.
    pub(crate) fn overrides(&self) -> impl Iterator<Item = &String> {
        self.set.iter().chain(&self.precondition)
    }

    /// The plan that these workloads make.
    ///
    /// # Errors
    /// A value that cannot be read.
    pub(crate) fn plan(&self, workloads: &[String]) -> Result<Plan, Diagnostic> {
        let mut set = self.set.clone();
        set.extend(self.state()?.into_iter().flatten());
        Ok(Plan {
            system: self.system.clone(),
            text: None,
            set,
            workloads: workloads.to_vec(),
            seed: self.seed,
            precondition: None,
            warmup: self.warmup.as_deref().map(warmup).transpose()?,
            trace: self.trace.options(Remap::Fit)?,
            queue_depth: self.queue_depth,
        })
    }

    /// The state of `--precondition` as overrides, one for each table of drives.
    fn state(&self) -> Result<Option<Vec<String>>, Diagnostic> {
        let Some(text) = self.precondition.as_deref() else { return Ok(None) };
        let plan = Plan { set: self.set.clone(), ..Plan::new(&self.system, "") };
        plan.overrides_of_state(text).map(Some)
    }

    /// A fault of the state stands in what the user wrote, not in the override that was made of it.
    pub(crate) fn named(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Input(fault) => Fault::Input(self.placed(fault)),
            undelivered @ Fault::Undelivered(_) => undelivered,
        }
    }

    fn placed(&self, mut fault: Diagnostic) -> Diagnostic {
        if let (Some(place), Some(text), Ok(Some(set))) = (&mut fault.place, &self.precondition, self.state())
            && set.contains(&place.text)
        {
            let key = std::mem::take(&mut place.key);
            **place =
                Place { source: "--precondition".to_owned(), text: text.clone(), key, ..Place::default() };
        }
        fault
    }
}
