//! What the cores of a server and their memory did, and what a reader must know of these figures before they are
//! believed: a percentile that rests on too few jobs, jobs that were not steady when the window began, a load above
//! saturation.

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

/// A first-level cache, of all cores together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct L1Result {
    /// Look-ups.
    pub accesses: u64,
    /// Share of them that found their line.
    pub hit_share: f64,
}

/// User-level threads.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ThreadsResult {
    /// Times that a job was halted because a page was in flash.
    pub halts: u64,
    /// Of them, those because of a store that had retired.
    pub store_halts: u64,
    /// Times that a halted job went on, whatever it waited for, because no more might be halted.
    pub crowded: u64,
    /// Answers that said that a page is in flash.
    pub signals: u64,
    /// Instructions in the window that were thrown away because of these.
    pub squashed_instructions: u64,
    /// Instructions that had retired behind a store whose page was in flash, and were executed again.
    pub repeated_instructions: u64,
}

/// The directory.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct DirectoryResult {
    /// Requests for a copy that may be shared.
    pub reads: u64,
    /// Requests for the only copy.
    pub owns: u64,
    /// Changed lines written back by cores.
    pub write_backs: u64,
    /// Probes of cores that leave them a shared copy.
    pub downgrades: u64,
    /// Probes of cores that leave them nothing.
    pub invalidations: u64,
    /// Probes that brought the line for the requester.
    pub forwarded: u64,
    /// Requests that found another one for their line under way.
    pub conflicts: u64,
}

/// The memory behind the shared cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuMemoryResult {
    /// What it is called.
    pub name: String,
    /// `dram`, `dram_cache`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes that the shared cache read and wrote, a second.
    pub bandwidth_bytes_per_s: f64,
    /// Bytes that the DRAM read and wrote, tags and pages on their way included, a second.
    pub dram_bytes_per_s: f64,
    /// Share of the DRAM's accesses to an open row.
    pub row_hit_share: f64,
    /// What its kind has figures of its own for.
    #[serde(flatten)]
    pub behind: BehindResult,
    /// The memories behind it; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskedResult>,
    /// Paging by the operating system; left out where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swap: Option<SwapResult>,
}

/// The first jobs of a run, which count in no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarmupResult {
    /// What began the measured window: `fixed` (after a number of jobs), `time`, `detected`, or `none`, if it began with the run.
    pub method: &'static str,
    /// Jobs that had ended before.
    pub jobs: u64,
    /// Whether the jobs were steady then; null if that was not looked for.
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

/// What the cores of a server and their memory did in the measured window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CpuResult {
    /// What they are called.
    pub name: String,
    /// Jobs that ended.
    pub jobs: u64,
    /// Jobs that ended a second, until the last one did.
    pub throughput_per_s: f64,
    /// Jobs that came a second; null if there is always another one.
    pub offered_per_s: Option<f64>,
    /// Jobs that had come and not begun when the last one ended; null if there is always another one.
    pub waiting_jobs: Option<u64>,
    /// The first jobs, which count in no figure.
    pub warmup: WarmupResult,
    /// From the beginning of a job on a core until its end, waiting for its pages included.
    pub service_ns: Summary,
    /// Half widths of the 95 % confidence intervals of these figures, from batches of jobs.
    pub service_ci95_ns: HalfWidths,
    /// From the arrival of a job until its end.
    pub latency_ns: Summary,
    /// Half widths of the 95 % confidence intervals of these figures, from batches of jobs.
    pub latency_ci95_ns: HalfWidths,
    /// Instructions that retired, those included that were executed again.
    pub instructions: u64,
    /// Cycles of the cores' clock, until the last job ended.
    pub cycles: f64,
    /// Instructions a cycle of one core.
    pub ipc: f64,
    /// Mean time of a core from one page that it needed from flash to the next; null if there was none.
    pub miss_interval_ns: Option<f64>,
    /// What the cores' time was spent for. Sums to one.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub time_share: BTreeMap<&'static str, f64>,
    /// The first-level instruction caches.
    pub l1i: L1Result,
    /// The first-level data caches.
    pub l1d: L1Result,
    /// Threads.
    pub threads: ThreadsResult,
    /// Translation behind the first-level TLBs, of all cores together.
    pub mmu: MmuResult,
    /// The shared cache.
    pub l2: L2Result,
    /// The directory.
    pub directory: DirectoryResult,
    /// Bytes that the mesh moved, headers included, a second.
    pub network_bytes_per_s: f64,
    /// Memory behind the shared cache.
    pub memory: CpuMemoryResult,
    /// Jobs executed without time before the run, to fill the DRAM cache or what the operating system pages into.
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

/// Slots that the cores had between two times: as many a cycle as their width.
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

/// Mean time a stage of the requests of cores for lines and translations. What cores write back nobody waits for.
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

/// Checks of a server: its own, and that its accounts of time are whole.
pub(super) fn checks(machine: &Machine, complex: &Complex, ooo: &Ooo, still: bool) -> Vec<Check> {
    let mut checks = machine.checks_of(complex, still);
    let whole = machine.measured_from == Time::ZERO;
    // What was under way when the window began has left stages behind.
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
        // What a core was ahead of the clock when the window began belongs to the time before.
        ok: (all.saturating_sub(if whole { 0 } else { ooo.cores.ahead() })..=all + ooo.cores.ahead())
            .contains(&spent),
        detail: format!("{spent} slots, {all} in the run"),
    });
    checks
}

/// The percentile that is looked at.
const P: f64 = 0.99;

/// Half an interval of 95 % may be so much of the percentile: *chosen*, two systems whose tails differ by a fifth are then told apart.
const WIDE: f64 = 0.1;

/// The warnings of a server's run.
pub(super) fn caveats(machine: &Machine, ooo: &Ooo, cpu: &CpuResult) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(unsteady(machine));
    let to = ooo.ended(machine.now());
    if let Some(queue) = ooo.cores.queue(to) {
        let seconds = to.since(machine.measured_from).as_s_f64();
        said.extend(saturated(&queue, cpu, ooo.cores.cores(), seconds));
    }
    // Jobs that have an end are all that there are: nothing is told of others.
    if ooo.service.jobs().is_none() {
        said.extend(tails(cpu));
    }
    said
}

/// What is missing of the percentiles of service and latency, said once where it is the same of both.
fn tails(cpu: &CpuResult) -> Vec<String> {
    let of = |name: &str, figures, widths| few(name, figures, widths, cpu.jobs, cpu.warmup.jobs);
    let service = |name: &str| of(name, &cpu.service_ns, &cpu.service_ci95_ns);
    let latency = |name: &str| of(name, &cpu.latency_ns, &cpu.latency_ci95_ns);
    if service("both") == latency("both") {
        return service("service and latency").into_iter().collect();
    }
    service("service").into_iter().chain(latency("latency")).collect()
}

/// Whether a percentile has no value, no interval, or a wide one; from how many jobs it would have.
fn few(name: &str, figures: &Summary, widths: &HalfWidths, jobs: u64, cut: u64) -> Option<String> {
    let (needed, why) = match (figures.p99, widths.p99) {
        (None, _) => {
            let least = Histogram::least_for(P);
            let why = format!(
                "the 99th percentile of {name} cannot be given: {jobs} jobs ended in the measured window"
            );
            (least, format!("{why}, and ten must lie above it"))
        }
        (Some(_), None) => {
            let why = format!(
                "the 99th percentile of {name} rests on {jobs} jobs: too few for a confidence interval"
            );
            (Batched::least_for(P), why)
        }
        (Some(p99), Some(width)) if width > WIDE * p99 => {
            // The width falls with the root of the jobs.
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
    Some(format!("{why}; some {needed} are needed: cpu.load.jobs={all}, those before the window included"))
}

/// Whether the measured window holds a transient, or may.
fn unsteady(machine: &Machine) -> Option<String> {
    match (machine.warmup, machine.cut) {
        (Some(Warmup::Until(_)) | None, None) => None,
        (Some(_), _) => {
            Some("the run ended before its warm-up was over: figures are those of all jobs".to_owned())
        }
        (None, Some(Cut { steady: Some(false), jobs, .. })) => Some(format!(
            "no steady state within the first {jobs} jobs, which are cut: figures may hold a trend; a longer run (cpu.load.jobs) or \
             a lower load would tell"
        )),
        _ => None,
    }
}

/// Whether more jobs came than cores can do.
fn saturated(queue: &Queue, cpu: &CpuResult, cores: u16, seconds: f64) -> Option<String> {
    let spread = cpu.service_ns.stddev.zip(cpu.service_ns.mean).map_or(0.0, |(stddev, mean)| stddev / mean);
    if !outgrows(queue, cpu.jobs, cores, spread * spread) {
        return None;
    }
    let came = queue.came as f64 / seconds;
    Some(format!(
        "the load is above saturation: {came:.0} jobs/s came, {:.0} jobs/s ended (achieved throughput); waiting jobs grew from {} to {} \
         in the measured window, and latencies with them",
        cpu.throughput_per_s, queue.before, queue.waiting
    ))
}

/// Whether jobs wait that a load below one does not leave.
///
/// At a load of exactly one the queue of a core is a random walk that is reflected at zero: from empty it has grown by half a
/// normal deviate of variance `v = came + scv * ended` (those of the core), `0.80 sqrt(v)` in the mean with a standard deviation
/// of `0.60 sqrt(v)`. What `n` cores have grown by together is compared with the mean and four standard deviations of that. A lower
/// load leaves less. The squared coefficient of variation of service counts as one at least.
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
