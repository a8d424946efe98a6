//! Causes of slow requests' latency.

use super::io::flows;
use crate::machine::Machine;
use proto::{Account, Holder, IoOp};
use requests::inject::explain::{CHANNEL, DIE, OUTSIDE, PARTS, of_place};
use requests::inject::{Explain, Explained, FlowStats, Split};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use ssd::device::{DeviceStats, MILESTONES};
use stats::{Breakdown, OpStats, Slowest, Tail};
use std::collections::BTreeMap;

/// Shares of the slowest requests to report; one is all of them.
const SHARES: [f64; 3] = [0.01, 0.001, 0.0001];
/// Most dies to name: those that were waited for longest.
const DIES: usize = 8;

/// Slowest requests of a kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TailResult {
    /// Share of this kind's requests, for example 0.01.
    pub slowest: f64,
    /// Number of these requests.
    pub requests: u64,
    /// Share of these requests whose waits are known. It is below one if the run became so much faster that requests
    /// which are slow in the end were not kept, or if requests took a path without milestones (the host's kernel). If
    /// more than 1,024 of the fastest have latencies equal within 3 %, one in 64 represents all.
    pub covered: f64,
    /// Least latency of these requests, to 3 %.
    pub from_ns: f64,
    /// Mean latency of these requests.
    pub latency_ns_mean: f64,
    /// Breakdown of the latency: the mean time per milestone, and `host` outside the device. It sums to the mean
    /// latency. If a request was split, its milestones are those of the command that finished last.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub breakdown_ns: Map<String, Value>,
    /// Mean waits by blocker.
    pub blocked_ns: Blocked,
    /// Dies that the requests waited for longest, longest first.
    pub dies: Vec<BlockingDie>,
}

/// Mean waits by blocker: `host_read`, `host_program`, `collection_read` and `collection_program` (wear levelling
/// included), `erase`, `mapping`, `look_ahead`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Blocked {
    /// Waits at dies, by holder of the die: `host_read`, `host_program`, `collection_read`, `collection_program`,
    /// `erase`, `mapping`, `look_ahead`. `channel` is the rest: the die was free, and its channel was not (where planes
    /// read independently, also waits for the reads of other planes). The waits sum to `die_wait`.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub die: Map<String, Value>,
    /// Waits at channels with data that had been read, by holder of the channel. The waits sum to `channel_wait`.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub channel: Map<String, Value>,
}

/// Die that slow requests waited for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockingDie {
    /// Drive of the die; left out if the system has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// Number of the die.
    pub die: u32,
    /// Channel of the die.
    pub channel: u32,
    /// Share of the total wait of these requests at dies and channels.
    pub share: f64,
}

/// Slowest request: one entry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SlowRequest {
    /// Number in the order of issue, from zero; for a request in several commands, that of the last to end.
    pub id: u64,
    /// Name of the request's flow.
    pub flow: String,
    /// Operation: `read`, `write`, `trim`, `write_zeroes`, `flush`.
    pub op: &'static str,
    /// Arrival time.
    pub at_ns: f64,
    /// Latency of the request.
    pub latency_ns: f64,
    /// First byte of the request.
    pub offset: u64,
    /// Size of the request, bytes.
    pub bytes: u64,
    /// Breakdown of the latency; for a request through the host's kernel, all of it is `host`, including the kernel's
    /// waits. Empty if no milestones were kept.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub breakdown_ns: Map<String, Value>,
    /// Waits by blocker.
    pub blocked_ns: Blocked,
    /// Drive that the request waited for last; left out if the system has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// Die that the request waited for last; null if none.
    pub die: Option<u32>,
    /// Channel of that die.
    pub channel: Option<u32>,
}

/// Name of an operation in results.
pub fn op_name(op: IoOp) -> &'static str {
    match op {
        IoOp::Read => "read",
        IoOp::Write => "write",
        IoOp::Trim => "trim",
        IoOp::WriteZeroes => "write_zeroes",
        IoOp::Flush => "flush",
    }
}

/// Converts picoseconds by name to nanoseconds, zeros left out.
fn named<'a>(parts: impl Iterator<Item = (&'a str, f64)>) -> Map<String, Value> {
    parts.filter(|(_, ps)| *ps > 0.0).map(|(name, ps)| (name.to_owned(), (ps / 1e3).into())).collect()
}

fn breakdown(parts: &[f64; PARTS]) -> Map<String, Value> {
    named(MILESTONES.into_iter().chain(["host"]).zip(parts[..=OUTSIDE].iter().copied()))
}

fn blocked(parts: &[f64; PARTS]) -> Blocked {
    let by = |from: usize| named(Holder::NAMES.into_iter().zip(parts[from..].iter().copied()));
    Blocked { die: by(DIE), channel: by(CHANNEL) }
}

/// Returns the tails of a kind of requests, or of all.
pub(super) fn tails(machine: &Machine, kind: &str) -> Vec<TailResult> {
    let Some(explain) = &machine.injector.explain else { return Vec::new() };
    let of = |op| explain.tail(op).clone();
    let tail = match kind {
        "read" => of(IoOp::Read),
        "write" => of(IoOp::Write),
        "trim" => of(IoOp::Trim),
        "flush" => of(IoOp::Flush),
        _ => all(explain),
    };
    SHARES.iter().filter_map(|share| Some(result(machine, *share, &tail.slowest(*share)?))).collect()
}

fn all(explain: &Explain) -> Tail<PARTS> {
    let mut all = explain.tail(IoOp::Read).clone();
    [IoOp::Write, IoOp::Trim, IoOp::Flush].into_iter().for_each(|op| all.merge(explain.tail(op)));
    all
}

fn result(machine: &Machine, share: f64, found: &Slowest<PARTS>) -> TailResult {
    let waited: f64 = found.places.iter().map(|(_, weight)| weight).sum();
    let mut places = found.places.clone();
    places.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let die = |(name, weight): &(u32, f64)| {
        let (drive, die) = of_place(*name);
        let (drive, device) = machine.drive_at(drive)?;
        let channel = device.ftl.geo.channel_of_die(die);
        Some(BlockingDie { drive, die, channel, share: weight / waited })
    };
    TailResult {
        slowest: share,
        requests: found.values,
        covered: found.covered,
        from_ns: found.from as f64 / 1e3,
        latency_ns_mean: found.mean / 1e3,
        breakdown_ns: breakdown(&found.parts),
        blocked_ns: blocked(&found.parts),
        dies: places.iter().take(DIES).filter_map(die).collect(),
    }
}

/// Returns the slowest requests.
pub(super) fn slowest(machine: &Machine) -> Vec<SlowRequest> {
    let kept = machine.injector.explain.iter().flat_map(|explain| explain.slowest());
    kept.map(|explained| one(machine, explained)).collect()
}

fn one(machine: &Machine, explained: &Explained) -> SlowRequest {
    let Explained { seen, account } = explained;
    let latency = seen.latency();
    let accounted = account.or_else(|| machine.is_through_a_kernel(seen.flow).then(Account::default));
    let parts = accounted.map_or([0; PARTS], |account| Explain::parts(latency, &account)).map(|ps| ps as f64);
    let place = account.and_then(|account| account.place);
    let flow = machine.injector.flows.get(usize::from(seen.flow));
    SlowRequest {
        id: seen.id,
        flow: flow.map(|flow| flow.name.clone()).unwrap_or_default(),
        op: op_name(seen.request.op),
        at_ns: seen.request.at.as_ns_f64(),
        latency_ns: latency.as_ns_f64(),
        offset: seen.request.offset,
        bytes: seen.request.bytes,
        breakdown_ns: breakdown(&parts),
        blocked_ns: blocked(&parts),
        drive: place.and_then(|place| machine.drive_at(place.drive)?.0),
        die: place.map(|place| place.die),
        channel: place.map(|place| place.channel),
    }
}

/// Additional waits of requests, beside the commands that drives have measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The host's software: each request, or each of its fragments, is one command.
    Software,
    /// Other commands of a stripe, and the host's software.
    Stripe,
    /// The host's kernel, whose commands are not the requests: all time counts as the kernel's.
    Kernel,
    /// No requests: the commands are those of memory or of programs.
    Nothing,
    /// Unknown: requests and other commands go to the same drives and cannot be told apart.
    Unknown,
}

impl Beside {
    fn of(machine: &Machine, flows: &[FlowStats]) -> Beside {
        let count = |flow: &FlowStats| flow.by_kind().iter().map(|op| op.requests).sum::<u64>();
        let of_processors = flows[machine.injector.flows.len()..].iter().map(count).sum::<u64>();
        let measured: u64 = machine.drives().map(|(_, device)| device.stats.commands()).sum();
        let each_is_a_command = measured == machine.injector.answered_in_window() + of_processors;
        if flows.iter().map(count).sum::<u64>() == 0 {
            Beside::Nothing
        } else if each_is_a_command && !machine.uses_a_page_cache() {
            Beside::Software
        } else if !machine.hosts().is_empty() && of_processors == 0 {
            Beside::Kernel
        } else if machine.stripes().next().is_some() && machine.hosts().is_empty() {
            Beside::Stripe
        } else {
            Beside::Unknown
        }
    }
}

/// Mean time per milestone, with the host's share, so that it sums to the mean latency; of fragments if requests were
/// split.
pub(super) fn of_requests(machine: &Machine) -> BTreeMap<String, Map<String, Value>> {
    let flows = flows(machine);
    let mut drives = machine.drives().map(|(_, device)| &device.stats);
    let Some(DeviceStats { reads, writes, .. }) = drives.next() else { return BTreeMap::new() };
    let (mut reads, mut writes) = (reads.clone(), writes.clone());
    for more in drives {
        reads.merge(&more.reads);
        writes.merge(&more.writes);
    }
    let beside = Beside::of(machine, &flows);
    let kinds =
        [("read", reads, (|f| &f.read) as fn(&FlowStats) -> &OpStats), ("write", writes, |f| &f.write)];
    let parts = kinds.into_iter().filter_map(|(name, device, of)| {
        let total = flows.iter().fold(OpStats::default(), |mut sum, f| {
            sum.merge(of(f));
            sum
        });
        // The device has measured commands: for a split request, its fragments.
        let Split { requests, fragments, .. } = &machine.injector.split;
        let (split, fragments) = (of(requests), of(fragments));
        let commands = total.requests - split.requests + fragments.requests;
        let latency = (total.latency.sum() - split.latency.sum() + fragments.latency.sum()) as f64;
        Some((name.to_owned(), of_kind(&device, beside, (commands, latency))?))
    });
    parts.collect()
}

/// Breakdown of a kind: the drives' measurements, and the number and latency of the requests; `None` if no known parts
/// sum to the latency.
fn of_kind(
    device: &Breakdown<{ proto::MILESTONES }>,
    beside: Beside,
    (commands, latency): (u64, f64),
) -> Option<Map<String, Value>> {
    let tasks = if beside == Beside::Kernel { 0 } else { device.tasks() };
    if beside == Beside::Unknown || tasks == 0 && beside != Beside::Kernel {
        return None;
    }
    let means = device.means_ns().filter(|(_, mean)| tasks > 0 && *mean > 0.0);
    let mut parts: Map<String, Value> = means.map(|(n, mean)| (n.to_owned(), mean.into())).collect();
    if beside == Beside::Nothing {
        return Some(parts);
    }
    if commands == 0 {
        return None;
    }
    // Some commands have only one end in the window, at the drive or at the host: compare their means.
    let inside = if tasks > 0 { device.total_ps() as f64 * (commands as f64 / tasks as f64) } else { 0.0 };
    let rest = latency - inside;
    if rest < -1e-9 * latency {
        return None;
    }
    if rest > 0.0 {
        let name = if beside == Beside::Stripe { "stripe" } else { "host" };
        parts.insert(name.into(), (rest / 1e3 / commands as f64).into());
    }
    Some(parts)
}
