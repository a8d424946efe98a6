//! What a coprocessor did for a host's program.

use super::accelerator::{Split, split};
use crate::machine::Machine;
use crate::parts::driven::{Driven, OffloadedKernels};
use compute::vliw::coprocessor::Orders;
use engine::Time;
use programs::host::offload::{Executed, Phase, Shares};
use schemars::JsonSchema;
use serde::Serialize;
use stats::Summary;
use std::collections::BTreeMap;

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
fn share(part: Time, of: Time) -> f64 {
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
                busy_share: share(*busy, last),
                stalled_share: share(*stalled, last),
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
            kernels: executed.iter().map(|one| kernel(one, applications)).collect(),
            latency_ns: Summary::from_ps(&latency),
            utilisation,
            computing_share: computing,
            stalled_share: stalled,
            cores,
            executing_share: share(stats.executing, last),
            memory_share: share(at.coprocessor.memory_busy(), last),
            link_in_share: share(link_in, last),
            link_out_share: share(link_out, last),
            sends: orders(&stats.sent),
            receives: orders(&stats.received),
            steps: orders(&stats.worked),
        })
    }
}

fn kernel(one: &Executed, applications: &[(String, u64)]) -> OffloadedKernelResult {
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
