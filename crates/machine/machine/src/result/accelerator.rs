//! What an accelerator did, and the flash that it governs; and what a coprocessor did for a host's program.

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

/// An accelerator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct AcceleratorResult {
    /// What the system calls it.
    pub name: String,
    /// From the offload of the first kernel until all that the last one leaves is on flash.
    pub makespan_ns: f64,
    /// Bytes that kernels process: the input of each instance, that is what it reads and does not write first, of its arrays as a whole; what
    /// instances share counts for each of them.
    pub input_bytes: u64,
    /// The same over the makespan.
    pub input_bytes_per_s: f64,
    /// Kernels, in the order in which they were offloaded.
    pub kernels: Vec<KernelResult>,
    /// From the offload of a kernel until it is over, of those that are.
    pub latency_ns: Summary,
    /// Workers.
    pub workers: Vec<WorkerResult>,
    /// Share of the makespan in which workers compute, stalls included: their mean, and the sum of the two shares below.
    pub utilisation: f64,
    /// Share of the makespan in which workers issue instructions: their mean.
    pub computing_share: f64,
    /// Share of the makespan in which workers stand still in a section, for their caches or for memory: their mean.
    pub stalled_share: f64,
    /// Share of the makespan in which the core of Flashvisor works.
    pub flashvisor_share: f64,
    /// Share of the makespan in which the core of Storengine works.
    pub storengine_share: f64,
    /// Share of the makespan in which the shared memory moves data.
    pub memory_share: f64,
    /// Time for which the link to the host carries tables of kernels.
    pub offload_ns: f64,
    /// Screens that workers began.
    pub screens: u64,
    /// Sections that they computed.
    pub sections: u64,
    /// Page groups of sections that were in memory.
    pub groups_found: u64,
    /// Page groups of sections that were on their way to memory for another section.
    pub groups_coming: u64,
    /// Page groups of sections that were asked of flash.
    pub groups_fetched: u64,
    /// Page groups of sections that nobody had written before.
    pub groups_fresh: u64,
    /// Page groups that flash has programmed.
    pub groups_written: u64,
    /// Times that a section waited for memory.
    pub memory_waits: u64,
    /// Bytes that came from flash.
    pub flash_read_bytes: u64,
    /// Bytes that went to flash.
    pub flash_written_bytes: u64,
}

/// A kernel. Times are from the beginning of the run; null of what has not happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct KernelResult {
    /// Its program.
    pub program: String,
    /// Its application.
    pub application: u16,
    /// When the host offloaded it.
    pub offloaded_ns: Option<f64>,
    /// When it could be scheduled.
    pub released_ns: Option<f64>,
    /// When its first screen began.
    pub begun_ns: Option<f64>,
    /// When its last screen had ended.
    pub computed_ns: Option<f64>,
    /// When all that it leaves was on flash.
    pub over_ns: Option<f64>,
    /// Its critical path: of each microblock, the time of the longest screen.
    pub path_ns: Option<f64>,
}

/// A worker. Shares are of the makespan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WorkerResult {
    /// Share in which it computes.
    pub busy_share: f64,
    /// Of that, the share in which it waits for its caches or for memory.
    pub stalled_share: f64,
    /// Share in which it has a screen.
    pub held_share: f64,
}

/// Flash of page groups.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct GroupFlashResult {
    /// What the system calls it.
    pub name: String,
    /// Page groups that can be addressed.
    pub groups: u64,
    /// Blocks of planes that were bad from the factory; left out where `group_flash.bad_blocks` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bad_blocks: Option<u64>,
    /// Bytes of the map of page groups.
    pub map_bytes: u64,
    /// Page groups read for kernels.
    pub groups_read: u64,
    /// Page groups programmed for kernels.
    pub groups_written: u64,
    /// From a page group's request until it is in the accelerator's memory.
    pub group_read_ns: Summary,
    /// From a page group's number until it is programmed.
    pub group_write_ns: Summary,
    /// Locks of data sections that were asked for.
    pub locks: u64,
    /// How long those waited that were not free at once.
    pub lock_wait_ns: Summary,
    /// How long writes waited for reclaim that found no free number.
    pub space_wait_ns: Summary,
    /// Entries of the map looked up.
    pub lookups: u64,
    /// Entries of the map changed.
    pub updates: u64,
    /// Steps of Storengine.
    pub storengine_steps: u64,
    /// Page groups that reclaim has moved.
    pub moved: u64,
    /// Metadata groups programmed.
    pub metadata: u64,
    /// Page groups of the map that dumps programmed.
    pub dumped: u64,
    /// Dumps that have ended.
    pub dumps: u64,
    /// Dumps that were put off because the one before was under way.
    pub dumps_late: u64,
    /// Blocks erased.
    pub erases: u64,
    /// Reads of pages that were repeated; left out where `group_flash.cell.errors` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Mean share of the run in which a die is at work.
    pub die_share: f64,
    /// Mean share of the run in which a channel is at work.
    pub channel_share: f64,
    /// Share of the run in which the link to the accelerator carries data.
    pub link_in_share: f64,
    /// Share of the run in which the link from the accelerator carries data.
    pub link_out_share: f64,
}

/// A share of a time.
fn share(part: Time, of: Time) -> f64 {
    if of == Time::ZERO { 0.0 } else { part.ps() as f64 / of.ps() as f64 }
}

/// Shares of a makespan in which cores have work, and its two parts: means over cores.
pub(super) struct Split {
    pub(super) utilisation: f64,
    pub(super) computing: f64,
    pub(super) stalled: f64,
}

/// The shares of cores that were busy for so long, and of that stalled.
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

/// Kernels in the order of their offload: their times are kept in that of their ends.
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

/// A coprocessor.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoprocessorResult {
    /// What the system calls it.
    pub name: String,
    /// From the beginning of the run, at which all kernels are offered, until the last one is over.
    pub makespan_ns: f64,
    /// Bytes that kernels process: the input of each instance, that is what it reads and does not write first, of its arrays as a whole; what
    /// instances share counts for each of them.
    pub input_bytes: u64,
    /// The same over the makespan.
    pub input_bytes_per_s: f64,
    /// Kernels, in the order in which they were executed.
    pub kernels: Vec<OffloadedKernelResult>,
    /// From the beginning of the run until a kernel is over, of those that are.
    pub latency_ns: Summary,
    /// Cores.
    pub cores: Vec<CoreResult>,
    /// Share of the makespan in which cores compute, stalls included: their mean, and the sum of the two shares below.
    pub utilisation: f64,
    /// Share of the makespan in which cores issue instructions: their mean.
    pub computing_share: f64,
    /// Share of the makespan in which cores stand still in a step, for their caches or for memory: their mean.
    pub stalled_share: f64,
    /// Share of the makespan in which steps are executed, launches apart.
    pub executing_share: f64,
    /// Share of the makespan that memory needs for what crosses it.
    pub memory_share: f64,
    /// Share of the makespan in which the link carries data to the coprocessor.
    pub link_in_share: f64,
    /// Share of the makespan in which the link carries data back.
    pub link_out_share: f64,
    /// Orders to send.
    pub sends: OrdersResult,
    /// Orders to receive.
    pub receives: OrdersResult,
    /// Orders to execute a step.
    pub steps: OrdersResult,
}

/// Orders of a kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OrdersResult {
    /// How many.
    pub count: u64,
    /// Bytes that they moved over the link.
    pub bytes: u64,
    /// From an order until the host is interrupted, all together.
    pub time_ns: f64,
}

/// A kernel. Times are from the beginning of the run; null of what has not happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OffloadedKernelResult {
    /// Its program.
    pub program: String,
    /// Its application.
    pub application: u32,
    /// When the host's program began with it.
    pub begun_ns: f64,
    /// When all that it leaves was written.
    pub over_ns: Option<f64>,
    /// Bytes that were sent for it.
    pub sent_bytes: u64,
    /// Bytes that were received.
    pub received_bytes: u64,
    /// What the host's program did for it, by name; together as long as the kernel, or longer if a second thread moves data meanwhile.
    pub phases: BTreeMap<&'static str, PhaseResult>,
    /// Time for which the first thread waited for the second, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waited_ns: Option<f64>,
    /// Time for which the program waited for drives, and for others who do.
    pub storage_ns: f64,
    /// Time for which it had a core, or waited for one while it computed.
    pub cpu_ns: f64,
    /// Time for which it waited for the coprocessor, or for data on the way there or back.
    pub accelerator_ns: f64,
}

/// A phase of a kernel, all its parts together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PhaseResult {
    /// How long it lasted.
    pub time_ns: f64,
    /// Of that, time of a core of the host.
    pub core_ns: f64,
}

/// A core. Shares are of the makespan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CoreResult {
    /// Share in which it computes.
    pub busy_share: f64,
    /// Of that, the share in which it waits for its caches or for memory.
    pub stalled_share: f64,
}

/// A share of a time.
fn share_of_core(part: Time, of: Time) -> f64 {
    if of == Time::ZERO { 0.0 } else { part.ps() as f64 / of.ps() as f64 }
}

fn orders(of: &Orders) -> OrdersResult {
    OrdersResult { count: of.count, bytes: of.bytes, time_ns: of.time.as_ns_f64() }
}

impl CoprocessorResult {
    /// Nothing of one that has executed no kernel.
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
