//! Results of a GPU and its memory.

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

/// Work of warps and their memory accesses.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkResult {
    /// Warp instructions.
    pub warp_instructions: u64,
    /// Thread instructions: active lanes, summed over warp instructions.
    pub thread_instructions: u64,
    /// Loads, stores and atomic operations on global memory, in warp instructions.
    pub memory_instructions: u64,
    /// Lines of 128 B after coalescing.
    pub lines: u64,
    /// Share of these lines that are loads.
    pub read_share: f64,
    /// Share of loaded lines that hit a first-level cache.
    pub l1_hit_share: f64,
    /// Share of look-ups that hit a first-level TLB.
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

/// Results of one kernel launch.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KernelResult {
    /// Name of the kernel, with the number of the launch.
    pub name: String,
    /// Start of the first block, or of the measured window if later.
    pub begun_ns: f64,
    /// End of the last block; null while the kernel runs.
    pub ended_ns: Option<f64>,
    /// Warp instructions per cycle, from the first block to the last.
    pub ipc: Option<f64>,
    /// Work of the launch.
    #[serde(flatten)]
    pub work: WorkResult,
}

/// Results of one application.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AppResult {
    /// Name of the program.
    pub name: String,
    /// Size of the application's address space, bytes.
    pub footprint_bytes: u64,
    /// Time at which the last kernel ended, for the first time if it is repeated; null if it has not.
    pub ended_ns: Option<f64>,
    /// Warp instructions per cycle until the application ended, or until all have ended if applications are repeated.
    pub ipc: f64,
    /// Work of the application.
    #[serde(flatten)]
    pub work: WorkResult,
    /// Kernels, in the order in which they ended.
    pub kernels: Vec<KernelResult>,
}

/// Memory behind the shared cache.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GpuMemoryResult {
    /// Name of the memory.
    pub name: String,
    /// Kind of the memory: `dram`, `dram_cache`, `direct`, `engine` or `initiator`.
    pub kind: &'static str,
    /// Bytes read and written by the shared cache, per second.
    pub bandwidth_bytes_per_s: f64,
    /// Bytes read and programmed by flash arrays, per second, in whole pages; null without flash behind the cache.
    pub array_bandwidth_bytes_per_s: Option<f64>,
    /// Metrics of this kind of memory.
    #[serde(flatten)]
    pub behind: BehindResult,
    /// Share of DRAM accesses that hit an open row; null without DRAM.
    pub row_hit_share: Option<f64>,
    /// Memories behind this one; left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<AskedResult>,
}

/// Results of a GPU and its memory in the measured window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GpuResult {
    /// Name of the GPU.
    pub name: String,
    /// Warp instructions per cycle of all applications, until the last one ended.
    pub ipc: f64,
    /// Cycles of the multiprocessors' clock until the last application ended.
    pub cycles: f64,
    /// Work of all applications.
    #[serde(flatten)]
    pub work: WorkResult,
    /// Latency of loads and atomic operations, from issue until the line arrives.
    pub read_latency_ns: Summary,
    /// Latency of stores, from issue until the line is taken.
    pub write_latency_ns: Summary,
    /// Share of cycles in which multiprocessors issued an instruction.
    pub issuing_share: f64,
    /// Instructions of helper threads, which belong to no application; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub helper_instructions: Option<u64>,
    /// Applications of the GPU.
    pub applications: Vec<AppResult>,
    /// Shared cache.
    pub l2: L2Result,
    /// Translation behind the first-level TLBs.
    pub mmu: MmuResult,
    /// Memory behind the shared cache.
    pub memory: GpuMemoryResult,
    /// Bytes moved by the network, per second; headers included.
    pub network_bytes_per_s: f64,
    /// Paging by the host; left out if memory holds everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paging: Option<PagingResult>,
    /// Instructions of applications over time; left out without `sim.series`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<Vec<InstructionWindow>>,
}

/// Bases of relative metrics.
struct Measured {
    /// Start of the measured window.
    from: Time,
    /// Window from its start until the last application ended, or until now.
    window: Window,
    /// Cycle of the multiprocessors, seconds.
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
    // A repeated application issues until all have ended.
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

/// Returns the mean time per stage of loads and atomics, and of stores.
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

/// Returns the sum of all stages, and the sum of load and store latencies that it must equal; picoseconds. Loads and
/// stores are summed together: an atomic operation on a read-only cache waits for its write as a store does.
pub(super) fn tiling(machine: &Machine, complex: &Complex, simt: &Simt) -> (u128, u128) {
    let latency = simt.gpu.stats.latency_sum();
    (hierarchy::total(&machine.tally(complex)), latency.reads + latency.writes)
}
