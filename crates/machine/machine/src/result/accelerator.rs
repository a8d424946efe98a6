//! Results of accelerators, of the flash that they govern, and of coprocessors.

use super::flash::Retries;
use crate::machine::Machine;
use crate::parts::driven::{Driven, OffloadedKernels};
use crate::parts::governed::Governed;
use compute::vliw::accelerator::KernelTimes;
use compute::vliw::coprocessor::Orders;
use engine::Time;
use programs::host::offload::{Executed, Phase, Shares};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Summary;
use std::collections::BTreeMap;

/// Results of an accelerator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AcceleratorResult {
    /// Name of the accelerator in the system.
    pub name: String,
    /// Time from the offload of the first kernel until all results of the last one are on flash.
    pub makespan_ns: f64,
    /// Bytes that kernels process: for each instance, the whole arrays that it reads and does not write first. Input
    /// that instances share counts once for each instance.
    pub input_bytes: u64,
    /// `input_bytes` divided by the makespan.
    pub input_bytes_per_s: f64,
    /// Kernels, in the order of their offload.
    pub kernels: Vec<KernelResult>,
    /// Latency of completed kernels, from offload to end.
    pub latency_ns: Summary,
    /// Workers.
    pub workers: Vec<WorkerResult>,
    /// Mean share of the makespan in which workers compute, stalls included: the sum of the two shares below.
    pub utilisation: f64,
    /// Mean share of the makespan in which workers issue instructions.
    pub computing_share: f64,
    /// Mean share of the makespan in which workers stall in a section, for their caches or for memory.
    pub stalled_share: f64,
    /// Share of the makespan in which Flashvisor's core works.
    pub flashvisor_share: f64,
    /// Share of the makespan in which Storengine's core works.
    pub storengine_share: f64,
    /// Share of the makespan in which the shared memory moves data.
    pub memory_share: f64,
    /// Time for which the link to the host carries kernel tables.
    pub offload_ns: f64,
    /// Screens that workers began.
    pub screens: u64,
    /// Sections that they computed.
    pub sections: u64,
    /// Page groups that sections found in memory.
    pub groups_found: u64,
    /// Page groups that sections found on their way to memory for a different section.
    pub groups_coming: u64,
    /// Page groups that sections requested from flash.
    pub groups_fetched: u64,
    /// Page groups of sections that had never been written.
    pub groups_fresh: u64,
    /// Page groups programmed to flash.
    pub groups_written: u64,
    /// Number of times a section waited for memory.
    pub memory_waits: u64,
    /// Bytes read from flash.
    pub flash_read_bytes: u64,
    /// Bytes written to flash.
    pub flash_written_bytes: u64,
}

/// Results of a kernel. Times count from the beginning of the run; null for events that have not happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KernelResult {
    /// Program of the kernel.
    pub program: String,
    /// Application of the kernel.
    pub application: u16,
    /// Time of the offload by the host.
    pub offloaded_ns: Option<f64>,
    /// Time from which the kernel could be scheduled.
    pub released_ns: Option<f64>,
    /// Time at which the first screen began.
    pub begun_ns: Option<f64>,
    /// Time at which the last screen ended.
    pub computed_ns: Option<f64>,
    /// Time at which all results were on flash.
    pub over_ns: Option<f64>,
    /// Critical path of the kernel: the sum over microblocks of the longest screen's time.
    pub path_ns: Option<f64>,
}

/// Results of a worker. Shares are of the makespan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkerResult {
    /// Share in which the worker computes.
    pub busy_share: f64,
    /// Share in which the worker waits for its caches or for memory; part of `busy_share`.
    pub stalled_share: f64,
    /// Share in which the worker has a screen.
    pub held_share: f64,
}

/// Results of flash of page groups.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GroupFlashResult {
    /// Name of the flash in the system.
    pub name: String,
    /// Addressable page groups.
    pub groups: u64,
    /// Plane blocks that were bad from the factory; left out without `group_flash.bad_blocks`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<u64>,
    /// Size of the page-group map, bytes.
    pub map_bytes: u64,
    /// Page groups read for kernels.
    pub groups_read: u64,
    /// Page groups programmed for kernels.
    pub groups_written: u64,
    /// Read latency of a page group, from the request until the group is in the accelerator's memory.
    pub group_read_ns: Summary,
    /// Write latency of a page group, from the allocation of its number until it is programmed.
    pub group_write_ns: Summary,
    /// Lock requests for data sections.
    pub locks: u64,
    /// Wait of lock requests that were not granted at once.
    pub lock_wait_ns: Summary,
    /// Wait of writes for reclaim, when no number was free.
    pub space_wait_ns: Summary,
    /// Map entries looked up.
    pub lookups: u64,
    /// Map entries changed.
    pub updates: u64,
    /// Steps executed by Storengine.
    pub storengine_steps: u64,
    /// Page groups moved by reclaim.
    pub moved: u64,
    /// Metadata groups programmed.
    pub metadata: u64,
    /// Page groups of the map programmed by dumps.
    pub dumped: u64,
    /// Map dumps completed.
    pub dumps: u64,
    /// Map dumps delayed because the previous dump was under way.
    pub dumps_late: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Page reads that were repeated; left out without `group_flash.cell.errors`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Mean share of the run in which a die is busy.
    pub die_share: f64,
    /// Mean share of the run in which a channel is busy.
    pub channel_share: f64,
    /// Share of the run in which the link to the accelerator carries data.
    pub link_in_share: f64,
    /// Share of the run in which the link from the accelerator carries data.
    pub link_out_share: f64,
}

/// Returns a share of a time.
fn share(part: Time, of: Time) -> f64 {
    if of == Time::ZERO { 0.0 } else { part.ps() as f64 / of.ps() as f64 }
}

/// Shares of a makespan in which cores have work, and the two parts of that: means over cores.
pub(super) struct Split {
    pub(super) utilisation: f64,
    pub(super) computing: f64,
    pub(super) stalled: f64,
}

/// Computes the shares of cores from busy and stalled times.
pub(super) fn split(busy: &[Time], stalled: &[Time], of: Time) -> Split {
    let cores = busy.len() as f64;
    let mean = |sum: f64| sum / cores;
    let issued = busy.iter().zip(stalled).map(|(busy, stalled)| share(busy.since(*stalled), of));
    Split {
        utilisation: mean(busy.iter().map(|busy| share(*busy, of)).sum()),
        computing: mean(issued.sum()),
        stalled: mean(stalled.iter().map(|stalled| share(*stalled, of)).sum()),
    }
}

impl AcceleratorResult {
    pub(super) fn collect(machine: &Machine, at: &Governed) -> AcceleratorResult {
        let (now, stats) = (machine.now(), &at.accelerator.stats);
        let done = at.accelerator.is_idle();
        let last = stats.kernels.iter().map(|times| times.over).max().filter(|_| done).unwrap_or(now);
        let mut latency = stats::Histogram::default();
        for times in &stats.kernels {
            latency.record((times.over - times.offloaded).ps());
        }
        let input_bytes = at.kernels.iter().map(|kernel| kernel.input_bytes).sum();
        let workers: Vec<WorkerResult> = (0..usize::from(at.accelerator.workers()))
            .map(|worker| WorkerResult {
                busy_share: share(stats.busy[worker], last),
                stalled_share: share(stats.stalled[worker], last),
                held_share: share(stats.held[worker], last),
            })
            .collect();
        let Split { utilisation, computing, stalled } = split(&stats.busy, &stats.stalled, last);
        let [visor, storengine, memory] = at.accelerator.busy(last);
        let seconds = last.as_s_f64();
        AcceleratorResult {
            name: at.name.clone(),
            makespan_ns: last.as_ns_f64(),
            input_bytes,
            input_bytes_per_s: if seconds > 0.0 { input_bytes as f64 / seconds } else { 0.0 },
            kernels: kernels(at),
            latency_ns: Summary::from_ps(&latency),
            utilisation,
            computing_share: computing,
            stalled_share: stalled,
            workers,
            flashvisor_share: share(visor, last),
            storengine_share: share(storengine, last),
            memory_share: share(memory, last),
            offload_ns: at.offload.link.busy(now).1.as_ns_f64(),
            screens: stats.screens,
            sections: stats.sections,
            groups_found: stats.found,
            groups_coming: stats.coming,
            groups_fetched: stats.fetched,
            groups_fresh: stats.fresh,
            groups_written: stats.written,
            memory_waits: stats.hungry,
            flash_read_bytes: at.flash.stats.groups_read * at.flash.layout().group_bytes(),
            flash_written_bytes: at.flash.stats.groups_written * at.flash.layout().group_bytes(),
        }
    }
}

/// Lists kernels in the order of their offload; their times are kept in the order of their ends.
fn kernels(at: &Governed) -> Vec<KernelResult> {
    let mut times: Vec<Option<KernelTimes>> = vec![None; at.kernels.len()];
    for of in &at.accelerator.stats.kernels {
        times[of.instance as usize] = Some(*of);
    }
    let kernel = |(kernel, times): (&crate::parts::governed::Offloaded, Option<KernelTimes>)| {
        let at = |time: fn(&KernelTimes) -> Time| times.as_ref().map(|times| time(times).as_ns_f64());
        KernelResult {
            program: kernel.program.clone(),
            application: kernel.app,
            offloaded_ns: at(|times| times.offloaded),
            released_ns: at(|times| times.released),
            begun_ns: at(|times| times.begun),
            computed_ns: at(|times| times.computed),
            over_ns: at(|times| times.over),
            path_ns: at(|times| times.path),
        }
    };
    at.kernels.iter().zip(times).map(kernel).collect()
}

impl GroupFlashResult {
    pub(super) fn collect(machine: &Machine, at: &Governed) -> GroupFlashResult {
        let (now, stats, counters) = (machine.now(), &at.flash.stats, at.flash.counters());
        let busy = at.flash.busy(now);
        let shape = at.flash.layout().shape();
        let mean = |all: Time, count: u64| share(all, now) / count as f64;
        GroupFlashResult {
            name: at.storage.clone(),
            groups: at.flash.layout().groups().into(),
            bad_blocks: Some(at.flash.bad_blocks()).filter(|_| at.has_bad_blocks),
            map_bytes: at.flash.layout().map_bytes(),
            groups_read: stats.groups_read,
            groups_written: stats.groups_written,
            group_read_ns: Summary::from_ps(&stats.group_read),
            group_write_ns: Summary::from_ps(&stats.group_write),
            locks: stats.locks,
            lock_wait_ns: Summary::from_ps(&stats.lock_wait),
            space_wait_ns: Summary::from_ps(&stats.space_wait),
            lookups: counters.lookups,
            updates: counters.updates,
            storengine_steps: stats.steps,
            moved: counters.moves,
            metadata: counters.metadata,
            dumped: counters.dumped,
            dumps: counters.dumps,
            dumps_late: stats.dumps_late,
            erases: counters.erases,
            retries: at.flash.has_errors().then(|| Retries::of(&at.flash.media())),
            die_share: mean(
                busy.dies,
                u64::from(shape.channels) * u64::from(shape.ways) * u64::from(shape.dies),
            ),
            channel_share: mean(busy.channels, u64::from(shape.channels)),
            link_in_share: share(busy.link_in, now),
            link_out_share: share(busy.link_out, now),
        }
    }
}

/// Results of a coprocessor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoprocessorResult {
    /// Name of the coprocessor in the system.
    pub name: String,
    /// Time from the beginning of the run, at which all kernels are offered, until the last one is over.
    pub makespan_ns: f64,
    /// Bytes that kernels process: for each instance, the whole arrays that it reads and does not write first. Input
    /// that instances share counts once for each instance.
    pub input_bytes: u64,
    /// `input_bytes` divided by the makespan.
    pub input_bytes_per_s: f64,
    /// Kernels, in the order of execution.
    pub kernels: Vec<OffloadedKernelResult>,
    /// Latency of completed kernels, from the beginning of the run to the kernel's end.
    pub latency_ns: Summary,
    /// Cores.
    pub cores: Vec<CoreResult>,
    /// Mean share of the makespan in which cores compute, stalls included: the sum of the two shares below.
    pub utilisation: f64,
    /// Mean share of the makespan in which cores issue instructions.
    pub computing_share: f64,
    /// Mean share of the makespan in which cores stall in a step, for their caches or for memory.
    pub stalled_share: f64,
    /// Share of the makespan in which steps are executed, without their launches.
    pub executing_share: f64,
    /// Share of the makespan that memory needs for the data that cross it.
    pub memory_share: f64,
    /// Share of the makespan in which the link carries data to the coprocessor.
    pub link_in_share: f64,
    /// Share of the makespan in which the link carries data back to the host.
    pub link_out_share: f64,
    /// Orders to send data.
    pub sends: OrdersResult,
    /// Orders to receive data.
    pub receives: OrdersResult,
    /// Orders to execute a step.
    pub steps: OrdersResult,
}

/// Orders of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OrdersResult {
    /// Number of orders.
    pub count: u64,
    /// Bytes that the orders moved over the link.
    pub bytes: u64,
    /// Total time from each order until the host is interrupted.
    pub time_ns: f64,
}

/// Results of an offloaded kernel. Times count from the beginning of the run; null for events that have not happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OffloadedKernelResult {
    /// Program of the kernel.
    pub program: String,
    /// Application of the kernel.
    pub application: u32,
    /// Time at which the host's program began with the kernel.
    pub begun_ns: f64,
    /// Time at which all results were written.
    pub over_ns: Option<f64>,
    /// Bytes sent to the coprocessor.
    pub sent_bytes: u64,
    /// Bytes received from the coprocessor.
    pub received_bytes: u64,
    /// Phases of the host's program, by name. The phases sum to the kernel's time, or to more if a second thread moves
    /// data meanwhile.
    pub phases: BTreeMap<&'static str, PhaseResult>,
    /// Time for which the first thread waited for the second; left out without a second thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<f64>,
    /// Time for which the program waited for drives, or for threads that wait for drives.
    pub storage_ns: f64,
    /// Time for which the program had a core, or waited for one to compute.
    pub cpu_ns: f64,
    /// Time for which the program waited for the coprocessor, or for data on the link.
    pub accelerator_ns: f64,
}

/// Total of one phase of a kernel.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseResult {
    /// Duration of the phase.
    pub time_ns: f64,
    /// Time of the phase for which the program had a core of the host.
    pub core_ns: f64,
}

/// Results of a core. Shares are of the makespan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoreResult {
    /// Share in which the core computes.
    pub busy_share: f64,
    /// Share in which the core waits for its caches or for memory; part of `busy_share`.
    pub stalled_share: f64,
}

/// Returns a core's share of a time.
fn share_of_core(part: Time, of: Time) -> f64 {
    if of == Time::ZERO { 0.0 } else { part.ps() as f64 / of.ps() as f64 }
}

fn orders(of: &Orders) -> OrdersResult {
    OrdersResult { count: of.count, bytes: of.bytes, time_ns: of.time.as_ns_f64() }
}

impl CoprocessorResult {
    /// Returns `None` for a coprocessor that has executed no kernel.
    pub(super) fn collect(machine: &Machine, at: &Driven) -> Option<CoprocessorResult> {
        let OffloadedKernels { applications, .. } = at.kernels.as_ref()?;
        let (now, stats, executed) = (machine.now(), &at.coprocessor.stats, at.executed(machine.hosts()));
        let last = at.end(machine.hosts()).unwrap_or(now);
        let mut latency = stats::Histogram::default();
        executed.iter().filter_map(|one| one.ended).for_each(|ended| latency.record(ended.ps()));
        let input_bytes = executed.iter().map(|one| applications[one.application as usize].1).sum();
        let cores: Vec<CoreResult> = (stats.busy.iter().zip(&stats.stalled))
            .map(|(busy, stalled)| CoreResult {
                busy_share: share_of_core(*busy, last),
                stalled_share: share_of_core(*stalled, last),
            })
            .collect();
        let Split { utilisation, computing, stalled } = split(&stats.busy, &stats.stalled, last);
        let [link_in, link_out] = at.coprocessor.link_busy(now);
        let seconds = last.as_s_f64();
        Some(CoprocessorResult {
            name: at.name.clone(),
            makespan_ns: last.as_ns_f64(),
            input_bytes,
            input_bytes_per_s: if seconds > 0.0 { input_bytes as f64 / seconds } else { 0.0 },
            kernels: executed.iter().map(|one| offloaded_kernel(one, applications)).collect(),
            latency_ns: Summary::from_ps(&latency),
            utilisation,
            computing_share: computing,
            stalled_share: stalled,
            cores,
            executing_share: share_of_core(stats.executing, last),
            memory_share: share_of_core(at.coprocessor.memory_busy(), last),
            link_in_share: share_of_core(link_in, last),
            link_out_share: share_of_core(link_out, last),
            sends: orders(&stats.sent),
            receives: orders(&stats.received),
            steps: orders(&stats.worked),
        })
    }
}

fn offloaded_kernel(one: &Executed, applications: &[(String, u64)]) -> OffloadedKernelResult {
    let Shares { storage, cpu, accelerator } = one.shares();
    let phase = |phase: Phase| {
        let spent = one.spent(phase);
        (phase.name(), PhaseResult { time_ns: spent.time.as_ns_f64(), core_ns: spent.core.as_ns_f64() })
    };
    OffloadedKernelResult {
        program: applications[one.application as usize].0.clone(),
        application: one.application,
        begun_ns: one.begun.as_ns_f64(),
        over_ns: one.ended.map(Time::as_ns_f64),
        sent_bytes: one.sent_bytes,
        received_bytes: one.received_bytes,
        phases: Phase::ALL.map(phase).into_iter().collect(),
        waited_ns: (one.waited > Time::ZERO).then(|| one.waited.as_ns_f64()),
        storage_ns: storage.as_ns_f64(),
        cpu_ns: cpu.as_ns_f64(),
        accelerator_ns: accelerator.as_ns_f64(),
    }
}
