//! What slow requests waited for.

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

/// The shares of the slowest requests that are told apart; one is all of them.
const SHARES: [f64; 3] = [0.01, 0.001, 0.0001];
/// Dies that are named, those that were waited for the longest.
const DIES: usize = 8;

/// The slowest requests of a kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TailResult {
    /// Which share of the requests of this kind.
    pub slowest: f64,
    /// How many they are.
    pub requests: u64,
    /// The share of them whose waits are known: below one where a run has become so much faster that what was slow in the end was not
    /// kept, or where requests took a way that gives no account (the host's kernel). Of more than 1,024 of the fastest of them, alike to
    /// 3 %, one in 64 stands for all.
    pub covered: f64,
    /// The least latency among them, to 3 %.
    pub from_ns: f64,
    /// Their mean latency.
    pub latency_ns_mean: f64,
    /// Where it went: the mean time a milestone, and `host` outside the device. It sums to their mean latency. Of a request in several
    /// commands those of the last one to end.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub breakdown_ns: Map<String, Value>,
    /// Who was in the way.
    pub blocked_ns: Blocked,
    /// The dies that they waited for the longest, the longest first.
    pub dies: Vec<BlockingDie>,
}

/// Mean waits by who was in the way: `host_read`, `host_program`, `collection_read` and `collection_program` (wear levelling included), `erase`,
/// `mapping`, `look_ahead`.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Blocked {
    /// At dies, by who held the die: `host_read`, `host_program`, `collection_read`, `collection_program`, `erase`, `mapping`, `look_ahead`; `channel` is the rest: the die was free, and its channel was not (where planes read independently,
    /// also waits for the reads of other planes). It sums to `die_wait`.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub die: Map<String, Value>,
    /// At channels with data that had been read, by who held the channel. It sums to `channel_wait`.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub channel: Map<String, Value>,
}

/// A die that slow requests waited for.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BlockingDie {
    /// Its drive; left out where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// The die.
    pub die: u32,
    /// Its channel.
    pub channel: u32,
    /// The share of all that these requests waited at dies and channels.
    pub share: f64,
}

/// One of the slowest requests.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SlowRequest {
    /// Its number in the order of issue, from zero; of a request in several commands that of the last to end.
    pub id: u64,
    /// Name of its flow.
    pub flow: String,
    /// What it did: `read`, `write`, `trim`, `write_zeroes`, `flush`.
    pub op: &'static str,
    /// When it arrived.
    pub at_ns: f64,
    /// How long it took.
    pub latency_ns: f64,
    /// Its first byte.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u64,
    /// Where its latency went; of a request through the host's kernel all of it is `host`, with what the kernel waited for. Empty where no
    /// account of it was kept.
    #[schemars(with = "BTreeMap<String, f64>")]
    pub breakdown_ns: Map<String, Value>,
    /// Who was in the way.
    pub blocked_ns: Blocked,
    /// The drive that it waited for last; left out where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// The die that it waited for last; null if none.
    pub die: Option<u32>,
    /// The channel of that die.
    pub channel: Option<u32>,
}

/// What an operation is called in results.
pub fn op_name(op: IoOp) -> &'static str {
    match op {
        IoOp::Read => "read",
        IoOp::Write => "write",
        IoOp::Trim => "trim",
        IoOp::WriteZeroes => "write_zeroes",
        IoOp::Flush => "flush",
    }
}

/// Picoseconds by name as nanoseconds, those that are not zero.
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

/// The tails of a kind of requests, or of all.
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

/// The slowest requests.
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

/// What requests wait for beside the commands that drives have measured.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// The host's software: each request is a command, and each fragment of one.
    Software,
    /// The other commands of a stripe, and the host's software.
    Stripe,
    /// The host's kernel, whose commands are not the requests: all of their time is its.
    Kernel,
    /// No request was made: the commands are those of memory or of programs.
    Nothing,
    /// Requests and other commands go to the same drives, and are not told apart.
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

/// Mean time a milestone, with the host's share, so that it sums to the mean latency, of fragments where requests were split.
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
        // The device has measured commands: of a request that was split, its fragments.
        let Split { requests, fragments, .. } = &machine.injector.split;
        let (split, fragments) = (of(requests), of(fragments));
        let commands = total.requests - split.requests + fragments.requests;
        let latency = (total.latency.sum() - split.latency.sum() + fragments.latency.sum()) as f64;
        Some((name.to_owned(), of_kind(&device, beside, (commands, latency))?))
    });
    parts.collect()
}

/// The breakdown of a kind: what drives have measured of it, and the number and latency of the requests; nothing where no parts are known that
/// sum to it.
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
    // Of a few commands only one end lies in the window, that at the drive or that at the host: their means are compared.
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
