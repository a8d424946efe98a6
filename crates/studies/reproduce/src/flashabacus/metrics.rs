//! What is read from a run of kernels, on FlashAbacus or on the rival.

use super::super::mean::Metric;
use config::Diagnostic;
use machine::result::Document;

/// What both kinds of system say of a run.
struct Run<'a> {
    makespan_ns: f64,
    input_bytes_per_s: f64,
    utilisation: f64,
    /// Share of the makespan in which a core waits for its caches or for memory.
    stalled: f64,
    /// Share of the makespan in which a core has a screen, whose data it may wait for. The rival's data are there before a step begins.
    held: f64,
    /// Programs with the ends of their kernels, if they have ended.
    kernels: Vec<(&'a str, Option<f64>)>,
}

fn mean(shares: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = shares.len() as f64;
    shares.sum::<f64>() / count
}

fn run(document: &Document) -> Result<Run<'_>, Diagnostic> {
    if let Some(at) = document.accelerator.first() {
        return Ok(Run {
            makespan_ns: at.makespan_ns,
            input_bytes_per_s: at.input_bytes_per_s,
            utilisation: at.utilisation,
            stalled: mean(at.workers.iter().map(|worker| worker.stalled_share)),
            held: mean(at.workers.iter().map(|worker| worker.held_share)),
            kernels: at.kernels.iter().map(|kernel| (kernel.program.as_str(), kernel.over_ns)).collect(),
        });
    }
    if let Some(at) = document.coprocessor.first() {
        return Ok(Run {
            makespan_ns: at.makespan_ns,
            input_bytes_per_s: at.input_bytes_per_s,
            utilisation: at.utilisation,
            stalled: mean(at.cores.iter().map(|core| core.stalled_share)),
            held: at.utilisation,
            kernels: at.kernels.iter().map(|kernel| (kernel.program.as_str(), kernel.over_ns)).collect(),
        });
    }
    Err(Diagnostic::new(format!("no kernels in the run on {}", document.system)))
}

/// Input that is processed a second, MB.
pub(super) fn bandwidth(document: &Document) -> Result<f64, Diagnostic> {
    Ok(run(document)?.input_bytes_per_s / 1e6)
}

/// From the offload of the first kernel until the last result is written, us.
pub(super) fn makespan(document: &Document) -> Result<f64, Diagnostic> {
    Ok(run(document)?.makespan_ns / 1e3)
}

/// Share of the makespan in which cores compute, stalls included, per cent.
pub(super) fn utilisation(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 * run(document)?.utilisation)
}

/// Share of the makespan in which cores execute, per cent.
pub(super) fn executing(document: &Document) -> Result<f64, Diagnostic> {
    let run = run(document)?;
    Ok(100.0 * (run.utilisation - run.stalled))
}

/// Share of the makespan in which cores have a screen, per cent.
pub(super) fn held(document: &Document) -> Result<f64, Diagnostic> {
    Ok(100.0 * run(document)?.held)
}

/// The times at which kernels ended, all of which were there at the beginning.
fn latencies(document: &Document) -> Result<Vec<f64>, Diagnostic> {
    let ends: Option<Vec<f64>> = run(document)?.kernels.into_iter().map(|(_, end)| end).collect();
    let ends = ends.filter(|ends| !ends.is_empty());
    ends.ok_or_else(|| Diagnostic::new(format!("a kernel did not end on {}", document.system)))
}

/// Mean latency of a kernel, ns.
pub(super) fn mean_latency(document: &Document) -> Result<f64, Diagnostic> {
    let all = latencies(document)?;
    Ok(all.iter().sum::<f64>() / all.len() as f64)
}

/// The longest, ns.
pub(super) fn most_latency(document: &Document) -> Result<f64, Diagnostic> {
    Ok(latencies(document)?.into_iter().fold(0.0, f64::max))
}

/// The shortest, ns.
pub(super) fn least_latency(document: &Document) -> Result<f64, Diagnostic> {
    Ok(latencies(document)?.into_iter().fold(f64::INFINITY, f64::min))
}

/// When the last kernel of each program ended, ns, in the order of these ends.
pub(super) fn ends(document: &Document) -> Result<Vec<(String, f64)>, Diagnostic> {
    latencies(document)?;
    let mut ends: Vec<(String, f64)> = Vec::new();
    for (program, end) in run(document)?.kernels {
        let end = end.unwrap_or_default();
        match ends.iter_mut().find(|(known, _)| known == program) {
            Some((_, last)) => *last = last.max(end),
            None => ends.push((program.to_owned(), end)),
        }
    }
    ends.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    Ok(ends)
}

/// Whether a host offloaded the kernels: the rival.
pub(super) fn offloaded(document: &Document) -> bool {
    !document.coprocessor.is_empty()
}

/// Seconds in which the rival's data move, and in which its accelerator works.
pub(super) fn span(document: &Document) -> Result<(f64, f64), Diagnostic> {
    let kernels = || document.coprocessor.iter().flat_map(|at| &at.kernels);
    let working: f64 =
        kernels().filter_map(|kernel| kernel.phases.get("work")).map(|phase| phase.time_ns).sum();
    let all: f64 = kernels().flat_map(|kernel| kernel.phases.values()).map(|phase| phase.time_ns).sum();
    if working <= 0.0 {
        return Err(Diagnostic::new(format!("nothing was executed on {}", document.system)));
    }
    Ok(((all - working) / 1e9, working / 1e9))
}

/// The share of the rival's time in which data move, per cent.
pub(super) fn transfer_time(document: &Document) -> Result<f64, Diagnostic> {
    let (moving, working) = span(document)?;
    Ok(100.0 * moving / (moving + working))
}

/// Seconds of the rival's work.
pub(super) fn work(document: &Document) -> Result<f64, Diagnostic> {
    Ok(span(document)?.1)
}

/// A utilisation of the makespan as one of the rival's work alone, per cent.
pub(super) fn of_work(document: &Document, utilisation: Metric) -> Result<f64, Diagnostic> {
    Ok(utilisation(document)? * makespan(document)? / 1e6 / work(document)?)
}
