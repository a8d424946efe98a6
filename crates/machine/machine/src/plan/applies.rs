//! Options of a run that say how traces are read: whether they apply to what is run.

use crate::plan::Plan;
use config::Diagnostic;
use requests::trace::{Remap, TraceOptions};

/// Refuses options that would be accepted and do nothing.
///
/// # Errors
/// A queue depth of zero, options for traces where no workload is a block trace (`has_trace`), or one about times that a replay at
/// a queue depth does not use.
pub(crate) fn check(plan: &Plan, has_trace: bool) -> Result<(), Diagnostic> {
    if plan.queue_depth == Some(0) {
        return Err(Diagnostic::new("--queue-depth 0: nothing could ever be issued").help("give 1 or more"));
    }
    let default = TraceOptions::default();
    let of_times = [
        ("--time-scale", plan.trace.time_scale != default.time_scale),
        ("--align", plan.trace.align != default.align),
    ];
    if plan.queue_depth.is_some()
        && let Some((option, _)) = of_times.iter().find(|(_, given)| *given)
    {
        let what =
            format!("{option} with --queue-depth: a replay at a queue depth does not use the trace's times");
        return Err(Diagnostic::new(what).help("leave one of them out"));
    }
    match given(plan).filter(|_| !has_trace) {
        Some(option) => Err(Diagnostic::new(format!(
            "{option} is for block traces, and no workload here is one"
        ))
        .help("an fio job says the same in its own words (iodepth, number_ios, ...); leave the option out")),
        None => Ok(()),
    }
}

/// The first option for traces that is not at its default.
fn given(plan: &Plan) -> Option<&'static str> {
    let TraceOptions {
        format,
        columns,
        time_unit,
        sector,
        time_scale,
        // What a run says itself.
        timed: _,
        start,
        end,
        align,
        volumes,
        max_requests,
        lenient,
        capacity: _,
        remap,
        action,
        sort_window,
        others: _,
    } = &plan.trace;
    let default = TraceOptions::default();
    let options = [
        ("--queue-depth", plan.queue_depth.is_some()),
        ("--format", format.is_some()),
        ("--columns", columns.is_some()),
        ("--time-unit", time_unit.is_some()),
        ("--sector", sector.is_some()),
        ("--time-scale", *time_scale != default.time_scale),
        ("--start", start.is_some()),
        ("--end", end.is_some()),
        ("--align", *align != default.align),
        ("--volumes", *volumes != default.volumes),
        ("--max-requests", max_requests.is_some()),
        ("--lenient", *lenient),
        // What a run does with requests beyond the device if nothing is said, and what a reader does.
        ("--remap", *remap != Remap::Fit && *remap != default.remap),
        ("--action", action.is_some()),
        ("--sort-window", *sort_window != default.sort_window),
    ];
    options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}
