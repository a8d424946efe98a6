//! Results of a server's cores and their memory, and the warnings that qualify them: a percentile from too few jobs,
//! jobs that were not steady when the window began, a load above saturation.

use super::hierarchy::SwapResult;
use super::hierarchy::{self, L2Result, MmuResult, Window, per, share};
use super::memory::{AskedResult, BehindResult, Said, row_hits};
use crate::machine::Machine;
use crate::parts::complex::{Complex, Ooo};
use crate::parts::pager::Pager;
use compute::ooo::{Queue, Spent};
use engine::Time;
use mem::directory::Directory;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use spec::warmup::{Cut, Warmup};
use ssd::Check;
use stats::{Batched, HalfWidths, Histogram, Summary};
use std::collections::BTreeMap;

/// First-level caches of all cores, together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct L1Result {
    /// Cache look-ups.
    pub accesses: u64,
    /// Share of look-ups that found their line.
    pub hit_share: f64,
}

/// User-level threads of all cores.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadsResult {
    /// Number of times a job was halted because a page was in flash.
    pub halts: u64,
    /// Halts because of a store that had retired; part of `halts`.
    pub store_halts: u64,
    /// Number of times a halted job went on, whatever it waited for, because no more jobs might be halted.
    pub crowded: u64,
    /// Answers that signalled a page in flash.
    pub signals: u64,
    /// Instructions squashed by such answers.
    pub squashed_instructions: u64,
    /// Instructions executed again because they had retired behind a store whose page was in flash.
    pub repeated_instructions: u64,
}

/// Results of the coherence directory.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DirectoryResult {
    /// Requests for a copy that may be shared.
    pub reads: u64,
    /// Requests for the only copy.
    pub owns: u64,
    /// Changed lines written back by cores.
    pub write_backs: u64,
    /// Probes that leave a core a shared copy.
    pub downgrades: u64,
    /// Probes that leave a core no copy.
    pub invalidations: u64,
    /// Probes that brought the line to the requester.
    pub forwarded: u64,
    /// Requests that met a request under way for the same line.
    pub conflicts: u64,
}

/// Memory behind the shared cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuMemoryResult {
    /// Name of the memory.
    pub name: String,
    /// Kind of the memory: `dram`, `dram_cache`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes read and written by the shared cache, per second.
    pub bandwidth_bytes_per_s: f64,
    /// Bytes read and written by the DRAM, per second; tags and pages in transit included.
    pub dram_bytes_per_s: f64,
    /// Share of DRAM accesses that hit an open row.
    pub row_hit_share: f64,
    /// Metrics of this kind of memory.
    #[serde(flatten)]
    pub behind: BehindResult,
    /// Memories behind this one; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskedResult>,
    /// Paging by the operating system; left out without paging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapResult>,
}

/// Warm-up jobs of a run, excluded from every metric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarmupResult {
    /// Start of the measured window: `fixed` (after a number of jobs), `time`, `detected`, or `none` if it began with
    /// the run.
    pub method: &'static str,
    /// Jobs that ended before the window.
    pub jobs: u64,
    /// Whether the jobs were steady at the start of the window; null without detection.
    pub detected: Option<bool>,
}

impl WarmupResult {
    fn of(cut: Option<Cut>) -> WarmupResult {
        let method = match cut.map(|cut| cut.by) {
            None => "none",
            Some(Warmup::Requests(_)) => "fixed",
            Some(Warmup::Until(_)) => "time",
            Some(Warmup::Steady { .. }) => "detected",
        };
        WarmupResult { method, jobs: cut.map_or(0, |cut| cut.jobs), detected: cut.and_then(|cut| cut.steady) }
    }
}

/// Results of a server's cores and their memory in the measured window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuResult {
    /// Name of the server.
    pub name: String,
    /// Jobs completed.
    pub jobs: u64,
    /// Jobs completed per second, up to the end of the last one.
    pub throughput_per_s: f64,
    /// Jobs that arrived per second; null in a closed loop.
    pub offered_per_s: Option<f64>,
    /// Jobs that had arrived but not begun when the last job ended; null in a closed loop.
    pub waiting_jobs: Option<u64>,
    /// Warm-up jobs, excluded from every metric.
    pub warmup: WarmupResult,
    /// Service time of a job, from its beginning on a core to its end, waits for its pages included.
    pub service_ns: Summary,
    /// Half-widths of the 95 % confidence intervals of `service_ns`, from batches of jobs.
    pub service_ci95_ns: HalfWidths,
    /// Latency of a job, from arrival to end.
    pub latency_ns: Summary,
    /// Half-widths of the 95 % confidence intervals of `latency_ns`, from batches of jobs.
    pub latency_ci95_ns: HalfWidths,
    /// Instructions retired, including those executed again.
    pub instructions: u64,
    /// Cycles of the cores' clock until the last job ended.
    pub cycles: f64,
    /// Instructions per cycle of one core.
    pub ipc: f64,
    /// Mean time of a core between two pages that it needed from flash; null if there were none.
    pub miss_interval_ns: Option<f64>,
    /// Shares of the cores' time by activity. The shares sum to one.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub time_share: BTreeMap<&'static str, f64>,
    /// First-level instruction caches.
    pub l1i: L1Result,
    /// First-level data caches.
    pub l1d: L1Result,
    /// User-level threads.
    pub threads: ThreadsResult,
    /// Translation behind the first-level TLBs, all cores together.
    pub mmu: MmuResult,
    /// Shared cache.
    pub l2: L2Result,
    /// Coherence directory.
    pub directory: DirectoryResult,
    /// Bytes moved by the mesh, per second; headers included.
    pub network_bytes_per_s: f64,
    /// Memory behind the shared cache.
    pub memory: CpuMemoryResult,
    /// Jobs executed without time before the run, to fill the DRAM cache or the operating system's frames.
    pub fill_jobs: u64,
}

impl CpuResult {
    pub(super) fn collect(machine: &Machine, complex: &Complex, ooo: &Ooo) -> CpuResult {
        let s = ooo.cores.stats();
        let (from, to) = (machine.measured_from, ooo.ended(machine.now()));
        let window = Window { seconds: to.since(from).as_s_f64() };
        let (cores, cycles) = (f64::from(ooo.cores.cores()), window.seconds / ooo.cores.cycle().as_s_f64());
        let fetched = match (machine.memory_of(complex).pages_brought(), machine.pager_of(complex)) {
            (Some(pages), _) => pages,
            (None, Some(Pager::Swap(swap))) => swap.stats.faults,
            (None, Some(Pager::Paging(_)) | None) => 0,
        };
        let queue = ooo.cores.queue(to);
        CpuResult {
            name: complex.name.clone(),
            jobs: s.jobs,
            throughput_per_s: window.per_second(s.jobs),
            offered_per_s: queue.map(|queue| window.per_second(queue.came)),
            waiting_jobs: queue.map(|queue| queue.waiting),
            warmup: WarmupResult::of(machine.cut),
            service_ns: Summary::from_ps(&s.service.whole()),
            service_ci95_ns: HalfWidths::from_ps(&s.service),
            latency_ns: Summary::from_ps(&s.latency.whole()),
            latency_ci95_ns: HalfWidths::from_ps(&s.latency),
            instructions: s.instructions,
            cycles,
            ipc: per(s.instructions, cycles * cores),
            miss_interval_ns: (fetched > 0).then(|| window.seconds * 1e9 * cores / fetched as f64),
            time_share: time_share(&ooo.cores.spent(to)),
            l1i: L1Result { accesses: s.fetches, hit_share: share(s.fetch_hits, s.fetches) },
            l1d: L1Result { accesses: s.data_accesses, hit_share: share(s.data_hits, s.data_accesses) },
            threads: ThreadsResult {
                halts: s.halts,
                store_halts: s.store_halts,
                crowded: s.crowded,
                signals: s.signals,
                squashed_instructions: s.squashed,
                repeated_instructions: s.repeated,
            },
            mmu: MmuResult::collect(&complex.mmus),
            l2: L2Result::collect(&complex.l2, complex.line, window.seconds),
            directory: complex.directory.as_ref().map(directory).unwrap_or_default(),
            network_bytes_per_s: window.per_second(complex.network.bytes()),
            memory: CpuMemoryResult::collect(machine, complex, window),
            fill_jobs: ooo.fill_jobs,
        }
    }
}

/// Returns the issue slots of all cores between two times: `width` slots per cycle and core.
fn slots(ooo: &Ooo, from: Time, to: Time) -> u64 {
    let cycles = to.since(from).ps().div_ceil(ooo.cores.cycle().ps());
    cycles * ooo.cores.width() * u64::from(ooo.cores.cores())
}

fn time_share(spent: &[u64; Spent::COUNT]) -> BTreeMap<&'static str, f64> {
    let all = spent.iter().sum();
    Spent::NAMES.iter().zip(spent).map(|(name, slots)| (*name, share(*slots, all))).collect()
}

fn directory(directory: &Directory) -> DirectoryResult {
    let s = &directory.stats;
    DirectoryResult {
        reads: s.reads,
        owns: s.owns,
        write_backs: s.write_backs,
        downgrades: s.downgrades,
        invalidations: s.invalidations,
        forwarded: s.forwarded,
        conflicts: s.conflicts,
    }
}

impl CpuMemoryResult {
    fn collect(machine: &Machine, complex: &Complex, window: Window) -> CpuMemoryResult {
        let lines = complex.l2.stats.fetched_lines + complex.l2.stats.written_lines;
        let place = machine.place_of(complex);
        let said = Said::of(machine, place, window);
        let dram_bytes = said.dram.map_or(0, |dram| dram.read_bytes + dram.written_bytes);
        CpuMemoryResult {
            name: place.name.clone(),
            asks: AskedResult::collect(machine, complex, window),
            kind: said.kind,
            bandwidth_bytes_per_s: window.per_second(lines * complex.line),
            dram_bytes_per_s: window.per_second(dram_bytes),
            row_hit_share: said.dram.map_or(0.0, row_hits),
            behind: said.behind,
            swap: match machine.pager_of(complex) {
                Some(Pager::Swap(swap)) => Some(SwapResult::collect(swap)),
                _ => None,
            },
        }
    }
}

/// Returns the mean time per stage of the cores' requests for lines and translations. Write-backs of cores delay
/// nothing.
pub(super) fn breakdown(
    machine: &Machine,
    complex: &Complex,
    ooo: &Ooo,
) -> [(&'static str, Map<String, Value>); 2] {
    let s = ooo.cores.stats();
    hierarchy::breakdown(
        &machine.tally(complex),
        [("request", s.requests + s.translations), ("write_back", s.write_backs)],
    )
}

/// Checks of a server: its own, and the completeness of its time accounts.
pub(super) fn checks(machine: &Machine, complex: &Complex, ooo: &Ooo, still: bool) -> Vec<Check> {
    let mut checks = machine.checks_of(complex, still);
    let whole = machine.measured_from == Time::ZERO;
    // Requests under way at the start of the window have left stages behind.
    let (stages, waited) = (machine.tally(complex).reads().iter().sum::<u128>(), ooo.cores.stats().waited);
    checks.push(Check {
        name: "the stages of cores' requests tile their latency",
        ok: machine.outstanding(complex) > 0 || !whole || stages == waited,
        detail: format!("{stages} ps in stages, {waited} ps of latency"),
    });
    let end = ooo.ended(machine.now());
    let spent: u64 = ooo.cores.spent(end).iter().sum();
    let all = slots(ooo, machine.measured_from, end);
    checks.push(Check {
        name: "what cores' time was spent for sums to their time",
        // Time that a core was ahead of the clock at the start of the window belongs to the time before.
        ok: (all.saturating_sub(if whole { 0 } else { ooo.cores.ahead() })..=all + ooo.cores.ahead())
            .contains(&spent),
        detail: format!("{spent} slots, {all} in the run"),
    });
    checks
}

/// Percentile to examine.
const P: f64 = 0.99;

/// Largest half-width of a 95 % interval, relative to the percentile: *chosen*, so that two systems whose tails differ
/// by a fifth can be told apart.
const WIDE: f64 = 0.1;

/// Returns the warnings of a server's run.
pub(super) fn caveats(machine: &Machine, ooo: &Ooo, cpu: &CpuResult) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(unsteady(machine));
    let to = ooo.ended(machine.now());
    if let Some(queue) = ooo.cores.queue(to) {
        let seconds = to.since(machine.measured_from).as_s_f64();
        said.extend(saturated(&queue, cpu, ooo.cores.cores(), seconds));
    }
    // Finite jobs are the whole population: no estimate is needed.
    if ooo.service.jobs().is_none() {
        said.extend(tails(cpu));
    }
    said
}

/// Warns about weak percentiles of service and latency, once if both have the same weakness.
fn tails(cpu: &CpuResult) -> Vec<String> {
    let of = |name: &str, figures, widths| few(name, figures, widths, cpu.jobs, cpu.warmup.jobs);
    let service = |name: &str| of(name, &cpu.service_ns, &cpu.service_ci95_ns);
    let latency = |name: &str| of(name, &cpu.latency_ns, &cpu.latency_ci95_ns);
    if service("both") == latency("both") {
        return service("service and latency").into_iter().collect();
    }
    service("service").into_iter().chain(latency("latency")).collect()
}

/// Describes a percentile without a value, without an interval, or with a wide one, and the number of jobs needed.
fn few(name: &str, figures: &Summary, widths: &HalfWidths, jobs: u64, cut: u64) -> Option<String> {
    let (needed, why) = match (figures.p99, widths.p99) {
        (None, _) => {
            let least = Histogram::least_for(P);
            let why = format!("no 99th percentile of {name}: only {jobs} jobs ended in the measured window");
            (least, format!("{why}, and ten must lie above it"))
        }
        (Some(_), None) => {
            let why = format!(
                "the 99th percentile of {name} comes from {jobs} jobs: too few for a confidence interval"
            );
            (Batched::least_for(P), why)
        }
        (Some(p99), Some(width)) if width > WIDE * p99 => {
            // The width falls with the square root of the number of jobs.
            let times = (width / p99 / WIDE).powi(2);
            let why = format!(
                "the 99th percentile of {name} is known to +-{:.0} % (95 % confidence) from {jobs} jobs",
                100.0 * width / p99
            );
            ((jobs as f64 * times).ceil() as u64, why)
        }
        _ => return None,
    };
    let all = needed + cut;
    Some(format!("{why}; about {needed} are needed: set cpu.load.jobs={all}, which includes the warm-up"))
}

/// Warns if the measured window holds a transient, or may hold one.
fn unsteady(machine: &Machine) -> Option<String> {
    match (machine.warmup, machine.cut) {
        (Some(Warmup::Until(_)) | None, None) => None,
        (Some(_), _) => {
            Some("the run ended during its warm-up: all metrics include the warm-up jobs".to_owned())
        }
        (None, Some(Cut { steady: Some(false), jobs, .. })) => Some(format!(
            "no steady state within the first {jobs} jobs, which are excluded: metrics may still drift; try a longer run (cpu.load.jobs) or \
             a lower load"
        )),
        _ => None,
    }
}

/// Warns if jobs arrived faster than the cores can complete them.
fn saturated(queue: &Queue, cpu: &CpuResult, cores: u16, seconds: f64) -> Option<String> {
    let spread = cpu.service_ns.stddev.zip(cpu.service_ns.mean).map_or(0.0, |(stddev, mean)| stddev / mean);
    if !outgrows(queue, cpu.jobs, cores, spread * spread) {
        return None;
    }
    let came = queue.came as f64 / seconds;
    Some(format!(
        "the load is above saturation: {came:.0} jobs/s arrived, {:.0} jobs/s completed; the queue grew from {} to {} jobs \
         in the measured window, and latencies grew with it",
        cpu.throughput_per_s, queue.before, queue.waiting
    ))
}

/// Returns whether more jobs wait than a load below one leaves.
///
/// At a load of exactly one, the queue of a core is a random walk reflected at zero. Starting empty, it grows by half a
/// normal deviate of variance `v = came + scv * ended` (per core): `0.80 sqrt(v)` on average, with a standard deviation
/// of `0.60 sqrt(v)`. The growth of `n` cores together is compared with the mean plus four standard deviations. A lower
/// load leaves less. The squared coefficient of variation of service counts as at least one.
fn outgrows(queue: &Queue, ended: u64, cores: u16, scv: f64) -> bool {
    let grown = queue.waiting.saturating_sub(queue.before) as f64;
    let n = f64::from(cores);
    let each = ((queue.came as f64 + scv.max(1.0) * ended as f64) / n).sqrt();
    grown > each * (0.80 * n + 4.0 * 0.60 * n.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(came: u64, before: u64, waiting: u64) -> Queue {
        Queue { came, before, waiting }
    }

    #[test]
    fn growth_is_told_from_scatter() {
        // One core, 10,000 jobs: v = 20,000, so that 0.8 + 2.4 roots are 452.
        assert!(!outgrows(&queue(10_000, 0, 450), 10_000, 1, 0.5));
        assert!(outgrows(&queue(10_000, 0, 455), 10_000, 1, 0.5));
        assert!(!outgrows(&queue(10_000, 10, 455), 10_000, 1, 0.5));
        // Service that scatters more lets queues grow more by chance.
        assert!(!outgrows(&queue(10_000, 0, 455), 10_000, 1, 2.0));
        // A queue that becomes shorter.
        assert!(!outgrows(&queue(10_000, 5_000, 0), 10_000, 1, 1.0));
    }

    #[test]
    fn what_is_missing_is_said_with_what_would_do() {
        let figures = |p99| Summary { p99, ..Summary::default() };
        let widths = |p99| HalfWidths { p99, ..HalfWidths::default() };
        let of = |p99, width, jobs| few("service", &figures(p99), &widths(width), jobs, 50);
        assert!(of(None, None, 900).expect("said").contains("cpu.load.jobs=1050"));
        assert!(of(Some(1.0), None, 5000).expect("said").contains("cpu.load.jobs=10290"));
        // Twice as wide as it may be: four times the jobs.
        let said = of(Some(100.0), Some(20.0), 20_000).expect("said");
        assert!(said.contains("+-20 %") && said.contains("cpu.load.jobs=80050"), "{said}");
        assert_eq!(of(Some(100.0), Some(10.0), 20_000), None);
    }
}
