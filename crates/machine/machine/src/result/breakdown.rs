//! Where the latency of requests went.

use super::io::flows;
use crate::machine::Machine;
use requests::inject::{FlowStats, Split};
use serde_json::{Map, Value};
use ssd::device::DeviceStats;
use stats::{Breakdown, OpStats};
use std::collections::BTreeMap;

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
