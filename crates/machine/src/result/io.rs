//! What the host saw.

use crate::gpu::{GpuSide, Memory};
use crate::machine::Machine;
use flash::device::DeviceStats;
use flash::initiator::Initiator;
use kernel::Time;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use stats::{OpStats, Series, Summary};
use std::borrow::Cow;
use std::collections::BTreeMap;
use workload::inject::{FlowStats, Split};

/// Requests of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OpResult {
    /// Requests completed in the measured window.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Requests a second of simulated time.
    pub iops: f64,
    /// Bytes a second of simulated time.
    pub bandwidth_bytes_per_s: f64,
    /// Mean number in flight, from issue to completion.
    pub queue_depth_mean: f64,
    /// From arrival to completion (fio's lat).
    pub latency_ns: Summary,
    /// From arrival to submission (fio's slat).
    pub slat_ns: Summary,
    /// From submission to completion (fio's clat).
    pub clat_ns: Summary,
    /// From doorbell to the completion's interrupt.
    pub device_latency_ns: Summary,
}

/// Requests by kind. A kind of which none completed is left out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Kinds {
    /// All requests.
    pub all: OpResult,
    /// Reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<OpResult>,
    /// Writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<OpResult>,
    /// Deallocations and zeroing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trim: Option<OpResult>,
    /// Flushes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<OpResult>,
}

impl Kinds {
    /// The names, in order.
    pub const NAMES: [&str; 5] = ["all", "read", "write", "trim", "flush"];

    /// The requests of a kind, by its name.
    pub fn get(&self, name: &str) -> Option<&OpResult> {
        match name {
            "all" => Some(&self.all),
            "read" => self.read.as_ref(),
            "write" => self.write.as_ref(),
            "trim" => self.trim.as_ref(),
            "flush" => self.flush.as_ref(),
            _ => None,
        }
    }
}

/// One flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowResult {
    /// Name of the flow: an fio job, a trace and its stream, or `gpu:` and a program that the GPU runs.
    pub name: String,
    /// Its requests by kind, and all of them.
    #[serde(flatten)]
    pub kinds: Kinds,
}

/// Requests in fragments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FragmentResult {
    /// Requests that were split, completed in the measured window.
    pub requests: u64,
    /// Fragments of such requests, a command each, completed in the measured window.
    pub fragments: u64,
    /// From the arrival of the request to the completion of the fragment.
    pub latency_ns: Summary,
}

impl FragmentResult {
    fn collect(split: &Split) -> Option<FragmentResult> {
        let (requests, fragments) = (all(&split.requests), all(&split.fragments));
        (fragments.requests > 0).then(|| FragmentResult {
            requests: requests.requests,
            fragments: fragments.requests,
            latency_ns: Summary::from_ps(&fragments.latency),
        })
    }
}

/// What the host saw, and a GPU that reaches the flash device by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Io {
    /// Requests by kind, and all of them.
    #[serde(flatten)]
    pub kinds: Kinds,
    /// Longest backlog of an open loop: how late a request was issued.
    pub lag_max_ns: f64,
    /// Requests that went to the device in fragments, because `--remap compact` has put their bytes apart; left out if none did. Everywhere
    /// else in `io` such a request counts once: its latency is that of the fragment that completed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragments: Option<FragmentResult>,
    /// Each flow by itself.
    pub flows: Vec<FlowResult>,
    /// Completions of the host's flows over time.
    pub series: Series,
}

impl Io {
    pub(super) fn collect(machine: &Machine) -> Io {
        let injector = &machine.injector;
        let by_itself = initiator(machine).map_or(Time::ZERO, |(initiator, _)| initiator.last_completion);
        let last = injector.last_completion.max(by_itself);
        let seconds = last.since(machine.measured_from).as_s_f64();
        let flows = flows(machine);
        let mut total = FlowStats::default();
        for flow in flows.iter() {
            total.read.merge(&flow.read);
            total.write.merge(&flow.write);
            total.trim.merge(&flow.trim);
            total.flush.merge(&flow.flush);
        }
        let flows =
            flows.iter().map(|f| FlowResult { name: f.name.clone(), kinds: kinds(f, seconds) }).collect();
        Io {
            kinds: kinds(&total, seconds),
            lag_max_ns: injector.lag_max.as_ns_f64(),
            fragments: FragmentResult::collect(&injector.split),
            flows,
            series: injector.series.clone(),
        }
    }
}

/// What a GPU has that reaches the flash device by itself.
fn initiator(machine: &Machine) -> Option<(&Initiator, &GpuSide)> {
    let side = machine.gpu()?;
    match &side.memory {
        Memory::Initiator(initiator) => Some((initiator, side)),
        _ => None,
    }
}

/// The flows of the host, and behind them those of the GPU.
fn flows(machine: &Machine) -> Cow<'_, [FlowStats]> {
    let host = &machine.injector.flows;
    let Some((initiator, side)) = initiator(machine) else { return Cow::Borrowed(host) };
    let of_gpu = initiator.flows.iter().zip(0..).map(|(flow, app)| FlowStats {
        name: format!("gpu:{}", side.programs.program(app).name()),
        read: flow.read.clone(),
        write: flow.write.clone(),
        ..FlowStats::default()
    });
    Cow::Owned(host.iter().cloned().chain(of_gpu).collect())
}

/// All requests of a flow.
fn all(flow: &FlowStats) -> OpStats {
    let mut all = OpStats::default();
    for op in [&flow.read, &flow.write, &flow.trim, &flow.flush] {
        all.merge(op);
    }
    all
}

fn kinds(flow: &FlowStats, seconds: f64) -> Kinds {
    let of = |op: &OpStats| (op.requests > 0).then(|| result(op, seconds));
    Kinds {
        all: result(&all(flow), seconds),
        read: of(&flow.read),
        write: of(&flow.write),
        trim: of(&flow.trim),
        flush: of(&flow.flush),
    }
}

fn result(op: &OpStats, seconds: f64) -> OpResult {
    let per_second = |n: f64| if seconds > 0.0 { n / seconds } else { 0.0 };
    let parts = op.parts();
    OpResult {
        requests: op.requests,
        bytes: op.bytes,
        iops: per_second(op.requests as f64),
        bandwidth_bytes_per_s: per_second(op.bytes as f64),
        queue_depth_mean: per_second(op.latency.sum() as f64 / 1e12),
        latency_ns: Summary::from_ps(&op.latency),
        slat_ns: Summary::from_ps(&parts.submission),
        clat_ns: Summary::from_ps(&parts.completion),
        device_latency_ns: Summary::from_ps(&parts.device),
    }
}

/// Mean time a milestone, with the host's share, so that it sums to the mean latency, of fragments where requests were split.
pub(super) fn breakdown(machine: &Machine) -> BTreeMap<&'static str, Map<String, Value>> {
    let flows = flows(machine);
    let mut all = BTreeMap::new();
    let Some(device) = machine.drive() else { return all };
    let DeviceStats { reads, writes, .. } = &device.stats;
    for (name, device, of) in
        [("read", reads, (|f| &f.read) as fn(&FlowStats) -> &OpStats), ("write", writes, |f| &f.write)]
    {
        if device.tasks() == 0 {
            continue;
        }
        let total = flows.iter().fold(OpStats::default(), |mut sum, f| {
            sum.merge(of(f));
            sum
        });
        let mut parts: Map<String, Value> = device
            .means_ns()
            .filter(|(_, mean)| *mean > 0.0)
            .map(|(n, mean)| (n.to_owned(), mean.into()))
            .collect();
        // The device has measured commands: of a request that was split, its fragments.
        let Split { requests, fragments, .. } = &machine.injector.split;
        let (split, fragments) = (of(requests), of(fragments));
        let commands = total.requests - split.requests + fragments.requests;
        let latency = (total.latency.sum() - split.latency.sum() + fragments.latency.sum()) as f64;
        let inside = device.total_ps() as f64;
        let host = (latency - inside) / 1e3 / commands.max(1) as f64;
        if host > 0.0 {
            parts.insert("host".into(), host.into());
        }
        all.insert(name, parts);
    }
    all
}
