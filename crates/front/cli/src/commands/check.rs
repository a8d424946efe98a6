//! `nandscape check`.

use crate::imported::planned;
use crate::options::PlanArgs;
use crate::output::{Fault, print};
use config::Diagnostic;
use machine::run;

/// Arguments of `check`. For a file with every key to start from: `nandscape init NEW.toml --like SYSTEM`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// System and run options
    #[command(flatten)]
    plan: PlanArgs,
    /// Also check a workload against the system; traces are read to the last line; repeatable
    #[arg(long)]
    workload: Vec<String>,
}

/// Prints the resolved spec; warnings about the workloads follow as comments.
///
/// # Errors
/// All faults found.
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
