//! `nandscape check`.

use crate::output::{Fault, print};
use crate::trace_args::TraceArgs;
use machine::run::{self, Plan};
use workload::trace::Remap;

/// What to check. A file with every key to begin with: `nandscape init NEW.toml --like SYSTEM`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A shipped system or a TOML file
    system: String,
    /// Overrides a value of the spec (key.path=value); repeatable
    #[arg(long)]
    set: Vec<String>,
    /// Also checks a workload against the system, a trace to its last line; repeatable
    #[arg(long)]
    workload: Vec<String>,
    /// How traces are read
    #[command(flatten)]
    trace: TraceArgs,
}

/// Prints the resolved spec, with what must be known of the workloads as comments.
///
/// # Errors
/// Everything that is wrong.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    let plan = Plan {
        system: args.system.clone(),
        set: args.set.clone(),
        workloads: args.workload.clone(),
        seed: 1,
        precondition: None,
        warmup: None,
        trace: args.trace.options(Remap::Fit)?,
        queue_depth: None,
    };
    let (loaded, warnings) = run::check(&plan)?;
    let mut text = loaded.to_toml();
    text.truncate(text.trim_end().len());
    for warning in warnings {
        text.push_str("\n# ");
        text.push_str(&warning.replace('\n', "\n# "));
    }
    print(&text)?;
    Ok(true)
}
