//! Human-readable summary of a result.

mod work;

use super::accelerator::{CoprocessorResult, OffloadedKernelResult};
use super::energy::{EnergyResult, PartEnergy, TotalEnergy};
use super::host::{HostResult, ProgramResult};
use super::told::of_tails;
use super::{Document, FileResult, FlashResult, FlowResult, Kinds, OpResult, RecordedResult};
use std::fmt::Write;
use work::{heading, table};

/// Formats the requests of a run; empty if processors work without any.
fn requested(d: &Document) -> String {
    let works = !(d.gpu.is_empty() && d.cpu.is_empty() && d.host.is_empty() && d.accelerator.is_empty());
    match d.io.kinds.all.requests {
        0 if works => String::new(),
        requests => format!(", {} requests", count(requests)),
    }
}

/// Formats recorded latencies next to simulated ones.
fn recorded_beside_simulated(recorded: &RecordedResult, kinds: &Kinds, text: &mut String) {
    let ops = [
        ("read", recorded.reads, &recorded.read_latency_ns),
        ("write", recorded.writes, &recorded.write_latency_ns),
    ];
    let apart = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), time);
    for (kind, requests, there) in ops.into_iter().filter(|(_, requests, _)| *requests > 0) {
        let here = kinds.get(kind).map(|op| op.latency_ns).unwrap_or_default();
        let figures = [
            ("mean", there.mean, here.mean),
            ("p50", there.p50, here.p50),
            ("p99", there.p99, here.p99),
            ("p99.9", there.p99_9, here.p99_9),
        ];
        let list: Vec<String> = figures
            .iter()
            .map(|(name, there, here)| format!("{name} {} (simulated {})", apart(*there), apart(*here)))
            .collect();
        let _ = writeln!(text, "\n  recorded {kind}s, {}: {}", count(requests), list.join(", "));
    }
}

/// Formats a short report.
pub fn human(document: &Document) -> String {
    let mut text = String::new();
    let d = document;
    let partial = if d.partial { "  (PARTIAL: ended early)" } else { "" };
    let _ = writeln!(text, "{}  {}{partial}", d.system, d.workload.join("  "));
    let _ = writeln!(
        text,
        "  simulated {}{}{}",
        time(d.simulated_ns),
        requested(d),
        d.flash.first().and_then(|f| f.precondition.as_ref()).map_or(String::new(), |p| format!(
            ", preconditioned: {} ({:.1} % mapped)",
            p.kind,
            100.0 * p.mapped_share
        ))
    );
    if d.io.kinds.all.requests > 0 {
        requests(&d.io.kinds, &mut text);
        flows(&d.io.flows, &mut text);
        files(&d.io.files, &mut text);
    }
    if let Some(f) = &d.io.fragments {
        let (requests, fragments) = (count(f.requests), count(f.fragments));
        let _ = writeln!(text, "\n  {requests} of the requests went to the device in {fragments} fragments");
    }
    if let Some(recorded) = &d.io.recorded {
        recorded_beside_simulated(recorded, &d.io.kinds, &mut text);
    }
    d.host.iter().for_each(|host| work::host(host, &mut text));
    d.gpu.iter().for_each(|gpu| work::gpu(gpu, &mut text));
    d.cpu.iter().for_each(|cpu| work::cpu(cpu, &mut text));
    d.accelerator.iter().for_each(|accelerator| work::accelerator(accelerator, &mut text));
    d.coprocessor.iter().for_each(|coprocessor| self::coprocessor(coprocessor, &d.host, &mut text));
    d.group_flash.iter().for_each(|flash| work::flash(flash, &mut text));
    let fragments = if d.io.fragments.is_some() { ", by fragment," } else { "" };
    for (name, parts) in &d.breakdown_ns {
        let total: f64 = parts.values().filter_map(serde_json::Value::as_f64).sum();
        let list: Vec<String> = parts
            .iter()
            .filter_map(|(part, mean)| mean.as_f64().map(|m| (part, m)))
            .filter(|(_, m)| *m >= total * 0.002)
            .map(|(part, m)| format!("{part} {} ({:.0} %)", time(m), 100.0 * m / total))
            .collect();
        let _ = writeln!(text, "\n  a {name}{fragments} waits for: {}", list.join(", "));
    }
    for kind in ["read", "write"] {
        let tails = d.io.kinds.get(kind).map_or_else(Vec::new, |op| op.tail.iter().collect());
        let tails: Vec<_> = tails.into_iter().filter_map(|tail| serde_json::to_value(tail).ok()).collect();
        if let Some(sentence) = of_tails(kind, &tails) {
            let _ = writeln!(text, "  {sentence}");
        }
    }
    d.flash.iter().filter(|f| f.reads.host + f.host_programs > 0).for_each(|f| flash(f, &mut text));
    d.energy.iter().for_each(|energy| self::energy(energy, &mut text));
    for (at, warning) in d.warnings.iter().enumerate() {
        let apart = if at == 0 { "\n" } else { "" };
        let _ = writeln!(text, "{apart}  note: {warning}");
    }
    for check in d.checks.iter().filter(|c| !c.ok) {
        let _ = writeln!(text, "\n  FAILED: {}: {}", check.name, check.detail);
    }
    let _ = write!(
        text,
        "\n  {} checks, {}; {:.2} s CPU{}, {}, {} MiB",
        d.checks.len(),
        if d.ok { "all passed" } else { "SOME FAILED" },
        d.run.cpu_s,
        preconditioned(d),
        speed(d),
        d.run.peak_rss_bytes >> 20
    );
    text
}

/// Formats the time of preconditioning, which is not part of the run's time.
fn preconditioned(d: &Document) -> String {
    let seconds = d.run.precondition_cpu_s;
    if seconds >= 0.005 { format!(" and {seconds:.2} s of preconditioning before") } else { String::new() }
}

/// Formats the work of the front end per CPU second.
fn speed(d: &Document) -> String {
    let rate = |n: u64| count((n as f64 / d.run.cpu_s.max(f64::MIN_POSITIVE)) as u64);
    match (d.gpu.first(), d.cpu.first()) {
        (Some(gpu), _) => format!("{} warp instructions/s", rate(gpu.work.warp_instructions)),
        (_, Some(cpu)) => format!("{} instructions/s", rate(cpu.instructions)),
        _ if !d.accelerator.is_empty() => {
            format!("{} sections/s", rate(d.accelerator.iter().map(|of| of.sections).sum()))
        }
        _ if d.io.kinds.all.requests == 0 && !d.host.is_empty() => {
            let programs = d.host.iter().flat_map(|host| &host.programs);
            format!("{} system calls/s", rate(programs.map(|program| program.calls).sum()))
        }
        _ => format!("{} requests/s", count(d.run.requests_per_cpu_s as u64)),
    }
}

/// Formats the host's requests.
fn requests(kinds: &Kinds, text: &mut String) {
    let _ = writeln!(
        text,
        "\n  {:<6}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        "", "IOPS", "MB/s", "mean", "p50", "p95", "p99", "p99.9", "max"
    );
    for name in ["read", "write", "trim", "flush"] {
        if let Some(op) = kinds.get(name) {
            let _ = writeln!(text, "  {name:<6}{}", line(op));
        }
    }
}

/// Formats the part of write amplification that is still buffered, if any.
fn still_buffered(f: &FlashResult) -> String {
    match f.flushed_write_amplification {
        Some(flushed) if f.buffered_bytes > 0 => {
            let bytes = f.buffered_bytes as f64 / 1e6;
            format!(" so far, {flushed:.3} once the {bytes:.1} MB still in the buffer are on flash")
        }
        _ => String::new(),
    }
}

/// Most flows that a report lists.
const FLOWS: usize = 16;

/// Formats several flows side by side, each with its own active time.
fn flows(flows: &[FlowResult], text: &mut String) {
    if flows.len() < 2 {
        return;
    }
    let _ = writeln!(
        text,
        "\n  {:<22}{:>13}{:>14}{:>13}{:>13}",
        "flow", "IOPS of run", "while active", "from", "until"
    );
    for flow in flows.iter().take(FLOWS) {
        let active = &flow.active;
        let drive = flow.drive.as_ref().map_or(String::new(), |drive| format!("{drive}: "));
        let _ = writeln!(
            text,
            "  {:<22}{:>13}{:>14}{:>13}{:>13}",
            format!("{drive}{}", flow.name),
            rate(flow.kinds.all.iops),
            rate(active.iops),
            time(active.from_ns),
            time(active.until_ns)
        );
    }
    if flows.len() > FLOWS {
        let _ = writeln!(text, "  and {} more (--json)", flows.len() - FLOWS);
    }
}

/// Formats the places of files.
fn files(files: &[FileResult], text: &mut String) {
    if files.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n  {:<24}{:>7}{:>12}{:>12}  jobs", "laid out", "files", "from", "size");
    for of in files.iter().take(FLOWS) {
        let drive = of.drive.as_ref().map_or(String::new(), |drive| format!("{drive}: "));
        let _ = writeln!(
            text,
            "  {:<24}{:>7}{:>12}{:>12}  {}",
            format!("{drive}{}", of.name),
            count(of.files),
            binary(of.offset_bytes),
            binary(of.bytes),
            of.jobs.join(", ")
        );
    }
    if files.len() > FLOWS {
        let _ = writeln!(text, "  and {} more (--json)", files.len() - FLOWS);
    }
}

/// Formats bytes as in fio's options.
fn binary(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        n if n % (1 << 30) == 0 => format!("{} GiB", count(n >> 30)),
        n if n >= 1 << 20 && n % (1 << 20) == 0 => format!("{} MiB", count(n >> 20)),
        n if n >= 1 << 20 => format!("{:.1} MiB", n as f64 / f64::from(1 << 20)),
        n => format!("{:.0} KiB", n as f64 / 1024.0),
    }
}

/// Formats the results of a flash device.
fn flash(f: &FlashResult, text: &mut String) {
    let mean = |v: &[f64]| 100.0 * v.iter().sum::<f64>() / v.len().max(1) as f64;
    let _ = writeln!(
        text,
        "\n  {}: channels {:.0} % busy, dies {:.0} % busy; units read {} host + {} gc + {} mapping; programmed {} host + {} gc + {} mapping{}",
        f.name,
        mean(&f.utilisation.channel),
        mean(&f.utilisation.die),
        count(f.reads.host),
        count(f.reads.gc),
        count(f.reads.mapping),
        count(f.host_programs),
        count(f.gc_programs),
        count(f.mapping_programs),
        f.parity.as_ref().map_or_else(String::new, |parity| format!(" + {} parity", count(parity.programs)))
    );
    if let Some(a) = f.look_ahead.as_ref().filter(|a| a.issued > 0) {
        let _ = writeln!(
            text,
            "  {} more units were read ahead: the host asked for {} of them, {} were evicted unread",
            count(a.issued),
            count(a.used + a.met),
            count(a.wasted)
        );
    }
    if let Some(p) = f.parity.as_ref().filter(|p| p.rebuilt_reads + p.lost_reads > 0) {
        let _ = writeln!(
            text,
            "  {} pages were rebuilt from other dies; {} more could not be rebuilt",
            count(p.rebuilt_reads),
            count(p.lost_reads)
        );
    }
    if let Some(r) = &f.registers {
        let _ = writeln!(
            text,
            "  registers took {} writes, {} of them to pages already held, and served {} reads; {} pages moved to a different plane",
            count(r.stores),
            count(r.merged),
            count(r.reads),
            count(r.moves)
        );
    }
    if let Some(waf) = f.write_amplification {
        let _ = writeln!(
            text,
            "  write amplification {waf:.3}{}; {} GC runs, {} erases, at least {} reclaim units free; erase counts {} to {}",
            still_buffered(f),
            count(f.gc_runs),
            count(f.erases),
            f.free_blocks_min,
            f.erase_count.min,
            f.erase_count.max
        );
    }
}

fn line(op: &OpResult) -> String {
    let l = &op.latency_ns;
    let optional = |v: Option<f64>| v.map_or_else(|| "-".into(), brief);
    format!(
        "{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}",
        rate(op.iops),
        rate(op.bandwidth_bytes_per_s / 1e6),
        optional(l.mean),
        optional(l.p50),
        optional(l.p95),
        optional(l.p99),
        optional(l.p99_9),
        optional(l.max)
    )
}

/// Formats nanoseconds in the most readable unit.
fn time(ns: f64) -> String {
    match ns {
        n if n >= 1e9 => format!("{:.3} s", n / 1e9),
        n if n >= 1e6 => format!("{:.2} ms", n / 1e6),
        n if n >= 1e3 => format!("{:.2} us", n / 1e3),
        n => format!("{n:.0} ns"),
    }
}

/// Formats nanoseconds with three significant digits, for tables.
fn brief(ns: f64) -> String {
    let units = [(1e9, "s"), (1e6, "ms"), (1e3, "us"), (1.0, "ns")];
    // 999.6 us is 1.00 ms.
    let (scale, unit) = units.into_iter().find(|(scale, _)| ns >= 0.9995 * scale).unwrap_or((1.0, "ns"));
    let value = ns / scale;
    let places = if scale == 1.0 || value >= 99.95 { 0 } else { 1 + usize::from(value < 9.995) };
    format!("{value:.places$} {unit}")
}

/// Formats a rate with at least three digits.
fn rate(per_s: f64) -> String {
    match per_s {
        r if r >= 100.0 => count(r.round() as u64),
        r if r >= 10.0 => format!("{r:.1}"),
        r if r >= 1.0 => format!("{r:.2}"),
        r => format!("{r:.3}"),
    }
}

/// Formats a count with separators.
fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

// Human-readable summary of a coprocessor.

/// Returns whether a program of a host drove a coprocessor: it is then reported with the coprocessor.
fn drives(program: &ProgramResult) -> bool {
    program.requests.contains_key("kernel")
}

/// Formats the results of a coprocessor, and of the host program that drove it.
fn coprocessor(of: &CoprocessorResult, hosts: &[HostResult], text: &mut String) {
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

// Human-readable summary of energy.

/// Most activities of a component in a report: the largest ones.
const ACTIVITIES: usize = 4;

/// Formats the energy of the components.
fn energy(of: &EnergyResult, text: &mut String) {
    let measured = time(of.measured_ns);
    match &of.total {
        Some(total) => {
            let _ = writeln!(
                text,
                "\n  energy: {} in {measured}, {:.2} W on average, {:.2} W at most; {:.1} kWh in a year{}",
                joules(total.energy_j),
                total.power_w_mean,
                total.power_w_max,
                total.year_kwh,
                served(total)
            );
        }
        None => {
            let missing = of.missing.join(", ");
            let _ = writeln!(text, "\n  energy in {measured}: no total, because {missing} report no energy");
        }
    }
    of.parts.iter().for_each(|of| part(of, text));
}

/// Formats the energy per unit of work.
fn served(total: &TotalEnergy) -> String {
    let of = [
        (total.request_j, "per request"),
        (total.call_j, "per system call"),
        (total.job_j, "per job"),
        (total.instruction_j, "per instruction"),
        (total.warp_instruction_j, "per warp instruction"),
        (total.kernel_j, "per kernel"),
    ];
    of.into_iter().filter_map(|(each, what)| Some(format!("; {} {what}", joules(each?)))).collect()
}

fn part(of: &PartEnergy, text: &mut String) {
    let mut activities: Vec<_> = of.activities.iter().filter(|each| each.energy_j > 0.0).collect();
    activities.sort_by(|a, b| b.energy_j.total_cmp(&a.energy_j));
    let list: Vec<String> = activities
        .iter()
        .take(ACTIVITIES)
        .map(|each| format!("{} {:.0} %", each.activity, 100.0 * each.energy_j / of.energy_j))
        .collect();
    let _ = writeln!(
        text,
        "  {:<12}{:>10}{:>9.2} W  {}",
        of.name,
        joules(of.energy_j),
        of.power_w_mean,
        list.join(", ")
    );
}

/// Formats joules in the most readable unit.
fn joules(energy: f64) -> String {
    let units = [(1e6, "MJ"), (1e3, "kJ"), (1.0, "J"), (1e-3, "mJ"), (1e-6, "uJ"), (1e-9, "nJ")];
    let (scale, unit) = units.into_iter().find(|(scale, _)| energy >= *scale).unwrap_or((1e-12, "pJ"));
    format!("{:.2} {unit}", energy / scale)
}

#[cfg(test)]
mod tests {
    use super::{brief, joules};

    #[test]
    fn numbers_of_tables_have_three_digits_and_a_unit() {
        let cases = [
            (0.0, "0 ns"),
            (999.4, "999 ns"),
            (999.6, "1.00 us"),
            (9_994.0, "9.99 us"),
            (45_214.0, "45.2 us"),
            (379_190.0, "379 us"),
            (12_840_000.0, "12.8 ms"),
            (2.5e9, "2.50 s"),
        ];
        for (ns, expected) in cases {
            assert_eq!(brief(ns), expected);
        }
        assert_eq!(joules(2_147_725.46), "2.15 MJ");
    }
}
