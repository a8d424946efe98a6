//! The result of a coprocessor as a person likes to read it.

use super::super::coprocessor::{CoprocessorResult, OffloadedKernelResult};
use super::super::host::{HostResult, ProgramResult};
use super::kernels::{heading, table};
use super::{count, time};
use std::fmt::Write;

/// Whether a program of a host had kernels executed: it stands with the coprocessor that executed them.
pub(super) fn drives(program: &ProgramResult) -> bool {
    program.requests.contains_key("kernel")
}

/// What a coprocessor did, and the program of a host that drove it.
pub(super) fn coprocessor(of: &CoprocessorResult, hosts: &[HostResult], text: &mut String) {
    let ends = of.kernels.iter().map(|kernel| kernel.over_ns);
    heading(&of.name, ends, (of.makespan_ns, of.input_bytes, of.input_bytes_per_s), &of.latency_ns, text);
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
    let programs = hosts.iter().flat_map(|host| &host.programs);
    let calls: u64 = programs
        .filter(|program| drives(program) && program.name == of.name)
        .map(|program| program.calls)
        .sum();
    let _ = writeln!(
        text,
        "  {} system calls; {} steps; {:.1} MB sent in {}, {:.1} MB received in {}",
        count(calls),
        count(of.steps.count),
        of.sends.bytes as f64 / 1e6,
        time(of.sends.time_ns),
        of.receives.bytes as f64 / 1e6,
        time(of.receives.time_ns)
    );
    let rows = of.kernels.iter().map(|kernel| {
        let OffloadedKernelResult { program, application, begun_ns, over_ns, .. } = kernel;
        let OffloadedKernelResult { storage_ns, cpu_ns, accelerator_ns, .. } = kernel;
        let times = [Some(*begun_ns), Some(*storage_ns), Some(*cpu_ns), Some(*accelerator_ns), *over_ns];
        (program.as_str(), *application, times)
    });
    table(["begun", "storage", "CPU", "accelerator", "over"], rows, text);
}
