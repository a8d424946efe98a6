//! Human-readable summary of GPUs, servers, hosts and accelerators.

use super::super::accelerator::{AcceleratorResult, GroupFlashResult, KernelResult};
use super::super::cpu::CpuResult;
use super::super::gpu::GpuResult;
use super::super::hierarchy::{SwapResult, share};
use super::super::host::HostResult;
use super::super::memory::{BehindResult, DirectResult, DramCacheResult, EngineResult};
use super::{brief, count, time};
use stats::Summary;
use std::fmt::Write;

/// Formats a host's path to its drives.
pub(super) fn host(h: &HostResult, text: &mut String) {
    let cache = &h.page_cache;
    let _ = writeln!(
        text,
        "\n  page cache of {}: {} hits, {} misses; {} pages read ahead, {} evicted; {} pages dirtied, {} written",
        h.name,
        count(cache.hits),
        count(cache.misses),
        count(cache.read_ahead),
        count(cache.evicted),
        count(h.writeback.dirtied),
        count(h.writeback.written)
    );
    let pauses =
        h.writeback.pause_ns.mean.map_or(String::new(), |mean| format!(", {} on average", time(mean)));
    let cores = &h.cores;
    let _ = writeln!(
        text,
        "  {} pauses of writers{pauses}; {} cores: {:.1} % programs, {:.1} % kernel, {:.1} % interrupts",
        count(h.writeback.pauses),
        cores.count,
        100.0 * cores.user_share,
        100.0 * cores.system_share,
        100.0 * cores.interrupt_share
    );
    for drive in &h.drives {
        let block = &drive.block;
        let _ = writeln!(
            text,
            "  {}: {} reads of {:.1} KiB, {} writes of {:.1} KiB, {} flushes",
            drive.drive,
            count(block.requests[0]),
            block.read_bytes_mean / 1024.0,
            count(block.requests[1]),
            block.write_bytes_mean / 1024.0,
            count(block.requests[2])
        );
    }
    for program in h.programs.iter().filter(|program| !super::drives(program)) {
        let _ = writeln!(
            text,
            "\n  {}: {} calls, {:.1} MB/s written",
            program.name,
            count(program.calls),
            program.written_bytes_per_s / 1e6
        );
        for (kind, of) in program.requests.iter().filter(|(_, of)| of.requests > 0) {
            let latency = &of.latency_ns;
            let figure = |value: Option<f64>| value.map_or_else(|| "-".into(), time);
            let _ = writeln!(
                text,
                "    {kind}: {} requests, {:.0} per second, {} on average, p99 {}",
                count(of.requests),
                of.iops,
                figure(latency.mean),
                figure(latency.p99)
            );
        }
    }
}

/// Formats the results of a GPU and its memory.
pub(super) fn gpu(g: &GpuResult, text: &mut String) {
    let _ = writeln!(
        text,
        "\n  {:<10}{:>8}{:>16}{:>8}{:>8}{:>8}{:>8}{:>11}",
        "", "IPC", "instructions", "kernels", "reads", "L1 hit", "L2 hit", "end"
    );
    for app in &g.applications {
        let _ = writeln!(
            text,
            "  {:<10}{:>8.4}{:>16}{:>8}{:>7.1}%{:>7.1}%{:>8}{:>11}",
            app.name,
            app.ipc,
            count(app.work.warp_instructions),
            app.kernels.len(),
            100.0 * app.work.read_share,
            100.0 * app.work.l1_hit_share,
            "",
            app.ended_ns.map_or_else(|| "-".into(), time)
        );
    }
    let _ = writeln!(
        text,
        "  {:<10}{:>8.4}{:>16}{:>8}{:>7.1}%{:>7.1}%{:>7.1}%",
        "all",
        g.ipc,
        count(g.work.warp_instructions),
        g.applications.iter().map(|app| app.kernels.len()).sum::<usize>(),
        100.0 * g.work.read_share,
        100.0 * g.work.l1_hit_share,
        100.0 * g.l2.hit_share
    );
    let array = g.memory.array_bandwidth_bytes_per_s;
    let _ = writeln!(
        text,
        "\n  memory moved {:.2} GB/s{}; {} translations, {:.1} % in the shared TLB, {} walks, {} faults",
        g.memory.bandwidth_bytes_per_s / 1e9,
        array.map_or(String::new(), |b| format!(", flash arrays {:.2} GB/s", b / 1e9)),
        count(g.mmu.translations),
        100.0 * g.mmu.tlb_hit_share,
        count(g.mmu.walks),
        count(g.mmu.faults)
    );
    behind(&g.memory.behind, text);
    g.memory.asks.iter().for_each(|asked| behind(&asked.behind, text));
    if let Some(accuracy) = g.l2.prediction_accuracy_share {
        let _ = writeln!(
            text,
            "  prefetch: {} lines, {:.1} % used; predictions {:.1} % right; {} pages parked",
            count(g.l2.prefetched_lines),
            100.0 * g.l2.prefetch_used_share,
            100.0 * accuracy,
            count(g.l2.parked_pages)
        );
    }
}

/// Formats the metrics specific to a kind of memory.
fn behind(memory: &BehindResult, text: &mut String) {
    if let Some(d) = &memory.direct {
        direct(d, text);
    }
    if let Some(e) = &memory.engine {
        engine(e, text);
    }
    if let Some(cache) = &memory.dram_cache {
        dram_cache(cache, text);
    }
}

fn direct(d: &DirectResult, text: &mut String) {
    let _ = writeln!(
        text,
        "  flash: {} pages read ({:.2} times each), {} programmed ({:.2} times each), {} merges; registers took {:.1} % of writes",
        count(d.array_reads),
        d.reads_of_a_page,
        count(d.eviction_programs + d.gc_programs),
        d.programs_of_a_page,
        count(d.gc_runs),
        100.0 * d.register_hit_share
    );
}

fn engine(e: &EngineResult, text: &mut String) {
    let _ = writeln!(
        text,
        "  engine: buffers hit {:.1} % of reads ({:.1} % waited for a page under way), {:.1} % of writes; {} translations; buffer {:.0} % busy, {:.2} GB/s",
        100.0 * e.read_hit_share,
        100.0 * e.read_merge_share,
        100.0 * e.write_hit_share,
        count(e.ftl_requests),
        100.0 * e.buffer_busy_share,
        e.buffer_bytes_per_s / 1e9
    );
}

/// Formats the results of a server's cores and their memory.
pub(super) fn cpu(c: &CpuResult, text: &mut String) {
    let came =
        c.offered_per_s.map_or(String::new(), |rate| format!(" of {} that arrived", count(rate as u64)));
    let _ = writeln!(
        text,
        "\n  {} jobs, {} per second{came}, after {} warm-up jobs; {:.3} instructions per cycle and core",
        count(c.jobs),
        count(c.throughput_per_s as u64),
        count(c.warmup.jobs),
        c.ipc
    );
    let _ = writeln!(
        text,
        "\n  {:<8}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        "", "mean", "p50", "p90", "p95", "p99", "+-", "p99.9"
    );
    let rows =
        [("service", &c.service_ns, &c.service_ci95_ns), ("latency", &c.latency_ns, &c.latency_ci95_ns)];
    for (name, s, ci95) in rows {
        let [mean, p50, p90, p95, p99, p99_9, width] =
            [s.mean, s.p50, s.p90, s.p95, s.p99, s.p99_9, ci95.p99].map(table_time);
        let _ =
            writeln!(text, "  {name:<8}{mean:>10}{p50:>10}{p90:>10}{p95:>10}{p99:>10}{width:>10}{p99_9:>10}");
    }
    let spent: Vec<String> = c
        .time_share
        .iter()
        .filter(|(_, share)| **share >= 0.002)
        .map(|(name, share)| format!("{name} {:.1} %", 100.0 * share))
        .collect();
    let _ = writeln!(text, "\n  cores' time: {}", spent.join(", "));
    let _ = writeln!(
        text,
        "  hits: L1I {:.1} %, L1D {:.1} %, second-level TLB {:.1} % of {}, shared cache {:.1} % of {}; {} page walks",
        100.0 * c.l1i.hit_share,
        100.0 * c.l1d.hit_share,
        100.0 * c.mmu.tlb_hit_share,
        count(c.mmu.translations),
        100.0 * c.l2.hit_share,
        count(c.l2.reads),
        count(c.mmu.walks)
    );
    behind(&c.memory.behind, text);
    let shown = |ns: Option<f64>| ns.map_or_else(|| "-".into(), time);
    if c.memory.behind.dram_cache.is_some() {
        let _ = writeln!(
            text,
            "  a core misses every {}; {} halts",
            shown(c.miss_interval_ns),
            count(c.threads.halts)
        );
    }
    if let Some(swap) = &c.memory.swap {
        paging(swap, c, text);
    }
}

fn dram_cache(cache: &DramCacheResult, text: &mut String) {
    let shown = |ns: Option<f64>| ns.map_or_else(|| "-".into(), time);
    let _ = writeln!(
        text,
        "  DRAM cache: {:.2} % of {} accesses missed, {} pages fetched in {} on average, {} written back",
        100.0 * cache.miss_share,
        count(cache.hits + cache.passes + cache.signalled),
        count(cache.fetches),
        shown(cache.response_ns),
        count(cache.write_backs)
    );
}

fn paging(swap: &SwapResult, c: &CpuResult, text: &mut String) {
    let shown = |ns: Option<f64>| ns.map_or_else(|| "-".into(), time);
    let missing = swap.faults + swap.merged;
    let walks = swap.present + missing;
    let _ = writeln!(
        text,
        "  paging: {:.2} % of {} walks faulted, {} for pages under way; a fault waits {} on average, {} found no free frame; \
         {} pages evicted, {} shoot-downs, {} written back; a core misses every {}; {} halts",
        100.0 * share(missing, walks),
        count(walks),
        count(swap.merged),
        shown(swap.fault_ns),
        count(swap.starved),
        count(swap.evictions),
        count(swap.shootdowns),
        count(swap.write_backs),
        shown(c.miss_interval_ns),
        count(c.threads.halts)
    );
}

/// Most kernels that a report lists.
const KERNELS: usize = 24;

/// Formats the results of an accelerator.
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

/// Formats a time of a table, if there is one.
fn table_time(ns: Option<f64>) -> String {
    ns.map_or_else(|| "-".into(), brief)
}

/// Formats a time, if it has come.
fn ns(figure: Option<f64>) -> String {
    figure.map_or("-".to_owned(), time)
}

/// Formats what executed kernels, how many are over, in which time, and the latency of one.
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

/// Formats a line for each kernel: program, application, times.
pub(super) fn table<'k, const N: usize>(
    times: [&str; N],
    rows: impl ExactSizeIterator<Item = (&'k str, u32, [Option<f64>; N])>,
    text: &mut String,
) {
    let columns = |cells: [String; N]| cells.map(|cell| format!("{cell:>11}")).concat();
    let _ = writeln!(text, "\n  {:<10}{:>13}{}", "kernel", "application", columns(times.map(str::to_owned)));
    let more = rows.len().saturating_sub(KERNELS);
    for (program, application, times) in rows.take(KERNELS) {
        let _ = writeln!(text, "  {program:<10}{application:>13}{}", columns(times.map(table_time)));
    }
    if more > 0 {
        let _ = writeln!(text, "  and {more} more");
    }
}

/// Formats the results of an accelerator's flash.
pub(super) fn flash(of: &GroupFlashResult, text: &mut String) {
    let _ = writeln!(
        text,
        "\n  {}: {} page groups read in {}, {} programmed in {} on average; dies {:.1} %, channels {:.1} % busy",
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
