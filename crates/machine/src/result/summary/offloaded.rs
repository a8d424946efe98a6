//! The result of a coprocessor as a person likes to read it.

use super::super::coprocessor::{CoprocessorResult, OffloadedKernelResult};
use super::{count, time};
use std::fmt::Write;

/// Kernels that a page lists.
const KERNELS: usize = 24;

/// What a coprocessor did.
pub(super) fn coprocessor(of: &CoprocessorResult, text: &mut String) {
    let over = of.kernels.iter().filter(|kernel| kernel.over_ns.is_some()).count();
    let _ = writeln!(
        text,
        "\n  {}: {over} of {} kernels in {}; {:.1} MB of input, {:.1} MB/s",
        of.name,
        of.kernels.len(),
        time(of.makespan_ns),
        of.input_bytes as f64 / 1e6,
        of.input_bytes_per_s / 1e6
    );
    let stalled: f64 = of.cores.iter().map(|core| core.stalled_share).sum();
    let _ = writeln!(
        text,
        "  {} cores compute for {:.1} % of the time, of which {:.1} % stalled; steps {:.1} %, memory {:.1} %",
        of.cores.len(),
        100.0 * of.utilisation,
        100.0 * stalled / of.cores.len() as f64,
        100.0 * of.executing_share,
        100.0 * of.memory_share
    );
    let _ = writeln!(
        text,
        "  {} steps; {:.1} MB sent in {}, {:.1} MB received in {}",
        count(of.steps.count),
        of.sends.bytes as f64 / 1e6,
        time(of.sends.time_ns),
        of.receives.bytes as f64 / 1e6,
        time(of.receives.time_ns)
    );
    let _ = writeln!(
        text,
        "\n  {:<12}{:>12}{:>13}{:>13}{:>13}{:>13}{:>13}",
        "kernel", "application", "begun", "storage", "CPU", "accelerator", "over"
    );
    for kernel in of.kernels.iter().take(KERNELS) {
        let OffloadedKernelResult { program, application, begun_ns, over_ns, .. } = kernel;
        let _ = writeln!(
            text,
            "  {program:<12}{application:>12}{:>13}{:>13}{:>13}{:>13}{:>13}",
            time(*begun_ns),
            time(kernel.storage_ns),
            time(kernel.cpu_ns),
            time(kernel.accelerator_ns),
            over_ns.map_or("-".to_owned(), time)
        );
    }
    if of.kernels.len() > KERNELS {
        let _ = writeln!(text, "  and {} more", of.kernels.len() - KERNELS);
    }
}
