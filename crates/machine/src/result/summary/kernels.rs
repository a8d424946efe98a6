//! The result of an accelerator as a person likes to read it.

use super::super::accelerator::{AcceleratorResult, GroupFlashResult, KernelResult};
use super::{count, time};
use std::fmt::Write;

/// Kernels that a page lists.
const KERNELS: usize = 24;

/// What an accelerator did.
pub(super) fn accelerator(of: &AcceleratorResult, text: &mut String) {
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
    let ns = |figure: Option<f64>| figure.map_or("-".to_owned(), time);
    let latency = &of.latency_ns;
    let _ = writeln!(
        text,
        "  latency of a kernel: mean {}, min {}, max {}",
        ns(latency.mean),
        ns(latency.min),
        ns(latency.max)
    );
    let stalled: f64 = of.workers.iter().map(|worker| worker.stalled_share).sum();
    let _ = writeln!(
        text,
        "  {} workers compute for {:.1} % of the time, of which {:.1} % stalled; Flashvisor {:.2} %, Storengine {:.2} %, memory {:.1} %",
        of.workers.len(),
        100.0 * of.utilisation,
        100.0 * stalled / of.workers.len() as f64,
        100.0 * of.flashvisor_share,
        100.0 * of.storengine_share,
        100.0 * of.memory_share
    );
    let _ = writeln!(
        text,
        "  {} screens in {} sections; page groups: {} found, {} coming, {} fetched, {} new, {} written; {} waits for memory",
        count(of.screens),
        count(of.sections),
        count(of.groups_found),
        count(of.groups_coming),
        count(of.groups_fetched),
        count(of.groups_fresh),
        count(of.groups_written),
        count(of.memory_waits)
    );
    let _ = writeln!(
        text,
        "\n  {:<12}{:>12}{:>13}{:>13}{:>13}{:>13}",
        "kernel", "application", "offloaded", "begun", "computed", "over"
    );
    for KernelResult { program, application, offloaded_ns, begun_ns, computed_ns, over_ns, .. } in
        of.kernels.iter().take(KERNELS)
    {
        let _ = writeln!(
            text,
            "  {program:<12}{application:>12}{:>13}{:>13}{:>13}{:>13}",
            ns(*offloaded_ns),
            ns(*begun_ns),
            ns(*computed_ns),
            ns(*over_ns)
        );
    }
    if of.kernels.len() > KERNELS {
        let _ = writeln!(text, "  and {} more", of.kernels.len() - KERNELS);
    }
}

/// What the flash did that it governs.
pub(super) fn flash(of: &GroupFlashResult, text: &mut String) {
    let ns = |figure: Option<f64>| figure.map_or("-".to_owned(), time);
    let _ = writeln!(
        text,
        "\n  {}: {} page groups read in {}, {} programmed in {} on the mean; dies {:.1} %, channels {:.1} % at work",
        of.name,
        count(of.groups_read),
        ns(of.group_read_ns.mean),
        count(of.groups_written),
        ns(of.group_write_ns.mean),
        100.0 * of.die_share,
        100.0 * of.channel_share
    );
    let _ = writeln!(
        text,
        "  a map of {:.1} KiB, {} dumps; {} blocks erased, {} page groups moved",
        of.map_bytes as f64 / 1024.0,
        count(of.dumps),
        count(of.erases),
        count(of.moved)
    );
}
