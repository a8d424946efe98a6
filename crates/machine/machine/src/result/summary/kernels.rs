//! The result of an accelerator as a person likes to read it.

use super::super::accelerator::{AcceleratorResult, GroupFlashResult, KernelResult};
use super::{count, time};
use stats::Summary;
use std::fmt::Write;

/// Kernels that a page lists.
const KERNELS: usize = 24;

/// What an accelerator did.
pub(super) fn accelerator(of: &AcceleratorResult, text: &mut String) {
    let ends = of.kernels.iter().map(|kernel| kernel.over_ns);
    heading(&of.name, ends, (of.makespan_ns, of.input_bytes, of.input_bytes_per_s), &of.latency_ns, text);
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
    let rows = of.kernels.iter().map(|kernel| {
        let KernelResult { program, application, offloaded_ns, begun_ns, computed_ns, over_ns, .. } = kernel;
        (program.as_str(), (*application).into(), [*offloaded_ns, *begun_ns, *computed_ns, *over_ns])
    });
    table(["offloaded", "begun", "computed", "over"], rows, text);
}

/// A time, if it has come.
fn ns(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), time)
}

/// What executed kernels, how many are over, in which time, and how long one takes.
pub(super) fn heading(
    name: &str,
    ends: impl ExactSizeIterator<Item = Option<f64>>,
    (makespan_ns, input_bytes, input_bytes_per_s): (f64, u64, f64),
    latency: &Summary,
    text: &mut String,
) {
    let all = ends.len();
    let over = ends.flatten().count();
    let _ = writeln!(
        text,
        "\n  {name}: {over} of {all} kernels in {}; {:.1} MB of input, {:.1} MB/s",
        time(makespan_ns),
        input_bytes as f64 / 1e6,
        input_bytes_per_s / 1e6
    );
    let _ = writeln!(
        text,
        "  latency of a kernel: mean {}, min {}, max {}",
        ns(latency.mean),
        ns(latency.min),
        ns(latency.max)
    );
}

/// A line for each kernel: its program, its application, and times.
pub(super) fn table<'k, const N: usize>(
    times: [&str; N],
    rows: impl ExactSizeIterator<Item = (&'k str, u32, [Option<f64>; N])>,
    text: &mut String,
) {
    let columns = |cells: [String; N]| cells.map(|cell| format!("{cell:>13}")).concat();
    let _ = writeln!(text, "\n  {:<12}{:>12}{}", "kernel", "application", columns(times.map(str::to_owned)));
    let more = rows.len().saturating_sub(KERNELS);
    for (program, application, times) in rows.take(KERNELS) {
        let _ = writeln!(text, "  {program:<12}{application:>12}{}", columns(times.map(ns)));
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

/// What the flash did that it governs.
pub(super) fn flash(of: &GroupFlashResult, text: &mut String) {
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
