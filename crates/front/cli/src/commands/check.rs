//! `nandscape check`.

use crate::imported::planned;
use crate::options::PlanArgs;
use crate::output::{Fault, print};
use config::Diagnostic;
use machine::run;

/// What to check. A file with every key to begin with: `nandscape init NEW.toml --like SYSTEM`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What would run, and how
    #[command(flatten)]
    plan: PlanArgs,
    /// Also checks a workload against the system, a trace to its last line; repeatable
    #[arg(long)]
    workload: Vec<String>,
}

/// Prints the resolved spec, with what must be known of the workloads as comments.
///
/// # Errors
/// Everything that is wrong.
pub(crate) fn run(args: &Args) -> Result<bool, Fault> {
    for planned in planned(args.plan.plan(&args.workload)?)? {
        let named = |fault: Diagnostic| args.plan.named(planned.placed(fault.into()));
        let (loaded, warnings) = run::check(&planned.plan).map_err(named)?;
        let mut text = loaded.to_toml();
        text.truncate(text.trim_end().len());
        for warning in planned.title.into_iter().chain(planned.notes).chain(warnings) {
            text.push_str("\n# ");
            text.push_str(&warning.replace('\n', "\n# "));
        }
        print(&text)?;
    }
    Ok(true)
}
