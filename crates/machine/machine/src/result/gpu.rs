//! What a GPU and its memory did.

use super::hierarchy::PagingResult;
use super::hierarchy::{self, L2Result, MmuResult, Window, per, share};
use super::memory::{AskedResult, BehindResult, Said, row_hits};
use crate::machine::Machine;
use crate::parts::complex::{Complex, InstructionWindow, Simt};
use crate::parts::pager::Pager;
use compute::simt::{Counters, KernelStats};
use engine::Time;
use proto::memory::LINE;
use proto::simt::Programs;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use stats::Summary;

/// Work of warps, and what its memory accesses became.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkResult {
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads: lanes at work, summed over warp instructions.
    pub thread_instructions: u64,
    /// Loads, stores and atomic operations on global memory, in instructions of warps.
    pub memory_instructions: u64,
    /// Lines of 128 B that they were merged into.
    pub lines: u64,
    /// Share of these lines that are loads.
    pub read_share: f64,
    /// Share of loaded lines that the first-level caches had.
    pub l1_hit_share: f64,
    /// Share of look-ups that the first-level TLBs answered.
    pub tlb_hit_share: f64,
}

impl WorkResult {
    fn of(c: &Counters) -> WorkResult {
        let loads = c.l1_hits + c.l1_misses + c.l1_merges;
        WorkResult {
            warp_instructions: c.warp_instructions,
            thread_instructions: c.thread_instructions,
            memory_instructions: c.loads + c.stores + c.atomics,
            lines: c.lines,
            read_share: share(loads, c.lines),
            l1_hit_share: share(c.l1_hits, loads),
            tlb_hit_share: share(c.tlb_hits, c.tlb_hits + c.tlb_misses),
        }
    }
}

/// One launch of a kernel.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KernelResult {
    /// Its name, with the number of the launch.
    pub name: String,
    /// When its first block began, or the measured window.
    pub begun_ns: f64,
    /// When its last block ended; null while it runs.
    pub ended_ns: Option<f64>,
    /// Instructions of warps a cycle, from its first block to its last.
    pub ipc: Option<f64>,
    /// Its work.
    #[serde(flatten)]
    pub work: WorkResult,
}

/// One application.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AppResult {
    /// The program's name.
    pub name: String,
    /// Bytes of its address space.
    pub footprint_bytes: u64,
    /// When its last kernel ended, for the first time if it is repeated; null if it has not.
    pub ended_ns: Option<f64>,
    /// Instructions of warps a cycle, until it ended; until all have ended if applications are repeated.
    pub ipc: f64,
    /// Its work.
    #[serde(flatten)]
    pub work: WorkResult,
    /// Its kernels, in the order in which they ended.
    pub kernels: Vec<KernelResult>,
}

/// The memory behind the shared cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GpuMemoryResult {
    /// What it is called.
    pub name: String,
    /// `dram`, `dram_cache`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes that the shared cache read and wrote, a second.
    pub bandwidth_bytes_per_s: f64,
    /// Bytes that flash arrays read and programmed, whole pages, a second; null without flash behind the cache.
    pub array_bandwidth_bytes_per_s: Option<f64>,
    /// What its kind has figures of its own for.
    #[serde(flatten)]
    pub behind: BehindResult,
    /// DRAM: share of accesses to an open row; null where there is none.
    pub row_hit_share: Option<f64>,
    /// The memories behind it; left out where there is none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskedResult>,
}

/// What a GPU and its memory did in the measured window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GpuResult {
    /// What it is called.
    pub name: String,
    /// Instructions of warps a cycle: all applications, until the last one ended.
    pub ipc: f64,
    /// Cycles of the multiprocessors' clock, until the last application ended.
    pub cycles: f64,
    /// The work of all applications.
    #[serde(flatten)]
    pub work: WorkResult,
    /// From the issue of a load or an atomic operation until its line was here.
    pub read_latency_ns: Summary,
    /// From the issue of a store until its line was taken.
    pub write_latency_ns: Summary,
    /// Share of cycles in which multiprocessors issued an instruction.
    pub issuing_share: f64,
    /// Instructions of helper threads, which are no application's; left out where none was executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helper_instructions: Option<u64>,
    /// The applications.
    pub applications: Vec<AppResult>,
    /// The shared cache.
    pub l2: L2Result,
    /// Translation.
    pub mmu: MmuResult,
    /// Memory behind the shared cache.
    pub memory: GpuMemoryResult,
    /// Bytes that the network moved, headers included, a second.
    pub network_bytes_per_s: f64,
    /// Paging by the host; left out where memory holds everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paging: Option<PagingResult>,
    /// What the applications issued over time; left out without `sim.series`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<InstructionWindow>>,
}

/// What results are relative to.
struct Measured {
    /// Start of the measured window.
    from: Time,
    /// Until the last application ended, or now.
    window: Window,
    /// A cycle of the multiprocessors, in seconds.
    cycle_s: f64,
}

impl Measured {
    fn of(machine: &Machine, simt: &Simt) -> Measured {
        let ended =
            simt.ended.iter().copied().max().flatten().filter(|_| simt.ended.iter().all(Option::is_some));
        let to = ended.unwrap_or(machine.now());
        Measured {
            from: machine.measured_from,
            window: Window { seconds: to.since(machine.measured_from).as_s_f64() },
            cycle_s: simt.cycle.as_s_f64(),
        }
    }

    fn cycles(&self, from: Time, to: Time) -> f64 {
        to.since(from).as_s_f64() / self.cycle_s
    }
}

impl GpuResult {
    pub(super) fn collect(machine: &Machine, complex: &Complex, simt: &Simt) -> GpuResult {
        let measured = Measured::of(machine, simt);
        let window = measured.window;
        let mut all = Counters::default();
        simt.gpu.stats.kernels.iter().for_each(|kernel| all += &kernel.counters);
        let cycles = window.seconds / measured.cycle_s;
        let issuing: u64 = simt.gpu.stats.sms.iter().map(|sm| sm.busy).sum();
        GpuResult {
            name: complex.name.clone(),
            ipc: per(all.warp_instructions, cycles),
            cycles,
            work: WorkResult::of(&all),
            read_latency_ns: Summary::from_ps(&simt.gpu.stats.reads),
            write_latency_ns: Summary::from_ps(&simt.gpu.stats.writes),
            issuing_share: per(issuing, cycles * simt.gpu.stats.sms.len() as f64),
            helper_instructions: Some(simt.gpu.stats.helper_instructions).filter(|count| *count > 0),
            applications: (0..simt.programs.apps()).map(|app| application(simt, app, &measured)).collect(),
            l2: L2Result::collect(&complex.l2, LINE, window.seconds),
            mmu: MmuResult::collect(&complex.mmus),
            memory: GpuMemoryResult::collect(machine, complex, window),
            network_bytes_per_s: window.per_second(complex.network.bytes()),
            paging: match machine.pager_of(complex) {
                Some(Pager::Paging(paging)) => Some(PagingResult::collect(paging)),
                _ => None,
            },
            series: simt.series(),
        }
    }
}

impl GpuMemoryResult {
    fn collect(machine: &Machine, complex: &Complex, window: Window) -> GpuMemoryResult {
        let lines = complex.l2.stats.fetched_lines + complex.l2.stats.written_lines;
        let place = machine.place_of(complex);
        let said = Said::of(machine, place, window);
        GpuMemoryResult {
            name: place.name.clone(),
            kind: said.kind,
            bandwidth_bytes_per_s: window.per_second(lines * LINE),
            array_bandwidth_bytes_per_s: said.array_bytes_per_s,
            behind: said.behind,
            row_hit_share: said.dram.map(row_hits),
            asks: AskedResult::collect(machine, complex, window),
        }
    }
}

fn application(simt: &Simt, app: u8, measured: &Measured) -> AppResult {
    let counters = simt.gpu.stats.app(app);
    let ended = simt.ended[usize::from(app)];
    // One that is repeated issues until all have ended.
    let own = ended.filter(|_| !simt.gpu.repeats());
    let cycles =
        own.map_or(measured.window.seconds / measured.cycle_s, |end| measured.cycles(measured.from, end));
    let kernel = |kernel: &KernelStats| KernelResult {
        name: simt.programs.kernel_name(app, kernel.number),
        begun_ns: kernel.begun.as_ns_f64(),
        ended_ns: kernel.ended.map(Time::as_ns_f64),
        ipc: kernel
            .ended
            .map(|end| per(kernel.counters.warp_instructions, measured.cycles(kernel.begun, end))),
        work: WorkResult::of(&kernel.counters),
    };
    AppResult {
        name: simt.programs.program(app).name().to_owned(),
        footprint_bytes: simt.programs.footprint(app),
        ended_ns: ended.map(Time::as_ns_f64),
        ipc: per(counters.warp_instructions, cycles),
        work: WorkResult::of(&counters),
        kernels: simt.gpu.stats.kernels.iter().filter(|k| k.app == app).map(kernel).collect(),
    }
}

/// Mean time a stage of loads and atomics, and of stores.
pub(super) fn breakdown(
    machine: &Machine,
    complex: &Complex,
    simt: &Simt,
) -> [(&'static str, Map<String, Value>); 2] {
    let stats = &simt.gpu.stats;
    hierarchy::breakdown(
        &machine.tally(complex),
        [("load", stats.reads.count()), ("store", stats.writes.count())],
    )
}

/// Picoseconds that the stages of all parts sum to, and the latencies of loads and stores that they must sum to. Together,
/// because an atomic operation on a read-only cache waits for its write as a store does.
pub(super) fn tiling(machine: &Machine, complex: &Complex, simt: &Simt) -> (u128, u128) {
    let latency = simt.gpu.stats.latency_sum();
    (hierarchy::total(&machine.tally(complex)), latency.reads + latency.writes)
}
