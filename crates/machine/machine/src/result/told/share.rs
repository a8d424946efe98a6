//! Share of a run's time that is spent on something.

use super::rules::{Kernel, On};
use super::{KINDS, list, number, parts};
use serde_json::Value;

/// Share of time that is spent on something: of a host's requests, or of a part's accesses or kernels.
pub(super) fn of(on: On, document: &Value) -> f64 {
    match on {
        On::Request(milestone) => requests(document, &KINDS, milestone, &[]),
        On::Kind(kind, milestone) => requests(document, &[kind], milestone, &[]),
        On::Behind(milestone, behind) => requests(document, &KINDS, milestone, behind),
        On::Access(stage) => accesses(document, stage),
        On::Core(spent) => core_time(document, spent),
        On::Issue => issuing(document),
        On::Phase(phase) => phase_of(document, phase),
        On::Kernel(phase) => {
            kernels(document).into_iter().find(|(one, _)| *one == phase).map_or(0.0, |(_, share)| share)
        }
        On::Refaults => host(document, "read", refaults),
        On::Pauses => host(document, "write", pauses),
    }
}

/// Share of requests of some kinds: the mean of the share over all requests of each kind and the share over its slowest
/// hundredth, relative to the time of all kinds.
fn requests(document: &Value, kinds: &[&str], milestone: &str, behind: &[&str]) -> f64 {
    let (mut part, mut whole) = (0.0, 0.0);
    for kind in KINDS {
        let Some(weight) = waited(document, kind) else { continue };
        whole += weight;
        if !kinds.contains(&kind) {
            continue;
        }
        let slow = document.pointer(&format!("/io/{kind}/tail/0"));
        let behind = slow.map_or(1.0, |slow| share_behind(slow, milestone, behind));
        let all = document.pointer(&format!("/breakdown_ns/{kind}")).map(|of| share_of(of, milestone));
        let tail = slow.and_then(|slow| slow.get("breakdown_ns")).map(|of| share_of(of, milestone));
        let shares: Vec<f64> = all.into_iter().chain(tail).collect();
        part += weight * behind * shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    }
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Total latency of all requests of a kind, ns.
fn waited(document: &Value, kind: &str) -> Option<f64> {
    let latency = number(document, &format!("/io/{kind}/latency_ns/mean"))?;
    Some(latency * number(document, &format!("/io/{kind}/requests"))?)
}

/// Share of slow requests' wait that is behind the holders that a rule names. It is not known for all requests, so the
/// slow ones represent them.
fn share_behind(slow: &Value, milestone: &str, behind: &[&str]) -> f64 {
    if behind.is_empty() {
        return 1.0;
    }
    let at = if milestone == "channel_wait" { "channel" } else { "die" };
    let Some(all) = slow.get("blocked_ns").and_then(|blocked| blocked.get(at)) else { return 0.0 };
    behind.iter().map(|holder| share_of(all, holder)).sum()
}

/// Share of one part in the sum.
fn share_of(of: &Value, name: &str) -> f64 {
    let all = parts(of);
    let total: f64 = all.iter().map(|(_, part)| part).sum();
    let part = all.iter().find(|(part, _)| *part == name).map_or(0.0, |(_, part)| *part);
    if total > 0.0 { part / total } else { 0.0 }
}

/// Share of the time of servers' cores that is spent on something.
fn core_time(document: &Value, spent: &str) -> f64 {
    mean(list(document, "/cpu").filter_map(|cpu| number(cpu, &format!("/time_share/{spent}"))))
}

/// Share of the time of GPUs' multiprocessors in which they issue.
fn issuing(document: &Value) -> f64 {
    mean(list(document, "/gpu").filter_map(|gpu| number(gpu, "/issuing_share")))
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count.max(1))
}

/// Activities of a server's cores other than waiting for accesses.
const BUSY: [&str; 7] = ["retiring", "latency", "fetch", "flush", "switch", "kernel", "idle"];

/// Share of accesses of GPUs and servers, as far as cores wait for them. An access that joins an earlier one to its
/// line waits for the same causes.
fn accesses(document: &Value, stage: &str) -> f64 {
    let all = document.get("breakdown_ns").and_then(Value::as_object);
    let (mut part, mut whole) = (0.0, 0.0);
    for (name, of) in all.into_iter().flatten().filter(|(name, _)| !KINDS.contains(&name.as_str())) {
        let count = accesses_of(document, name);
        for (name, time) in parts(of).into_iter().filter(|(name, _)| !name.ends_with("_merge")) {
            whole += count * time;
            part += if name == stage { count * time } else { 0.0 };
        }
    }
    let busy = issuing(document) + BUSY.iter().map(|spent| core_time(document, spent)).sum::<f64>();
    if whole > 0.0 { part / whole * (1.0 - busy).max(0.0) } else { 0.0 }
}

/// Number of accesses of a kind, over all parts that have them: `gpu0.load` are loads too.
fn accesses_of(document: &Value, name: &str) -> f64 {
    let sum =
        |parts: &str, of: &dyn Fn(&Value) -> Option<f64>| list(document, parts).filter_map(of).sum::<f64>();
    let lines = |gpu: &Value| Some((number(gpu, "/lines")?, number(gpu, "/read_share")?));
    let directory = |cpu: &Value, what: &str| number(cpu, &format!("/directory/{what}"));
    match name.rsplit('.').next().unwrap_or(name) {
        "load" => sum("/gpu", &|gpu| lines(gpu).map(|(lines, reads)| lines * reads)),
        "store" => sum("/gpu", &|gpu| lines(gpu).map(|(lines, reads)| lines * (1.0 - reads))),
        "request" => sum("/cpu", &|cpu| Some(directory(cpu, "reads")? + directory(cpu, "owns")?)),
        "write_back" => sum("/cpu", &|cpu| directory(cpu, "write_backs")),
        _ => 1.0,
    }
}

/// Phases of coprocessors' kernels with their times, ns.
fn phases(document: &Value) -> impl Iterator<Item = (&str, f64)> {
    let kernels = list(document, "/coprocessor").flat_map(|part| list(part, "/kernels"));
    let phases = kernels.filter_map(|kernel| kernel.get("phases")?.as_object()).flatten();
    phases.filter_map(|(name, phase)| Some((name.as_str(), number(phase, "/time_ns")?)))
}

fn phase_of(document: &Value, wanted: &str) -> f64 {
    let whole: f64 = phases(document).map(|(_, time)| time).sum();
    let part: f64 = phases(document).filter(|(name, _)| *name == wanted).map(|(_, time)| time).sum();
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// Phases of coprocessors' kernels with their shares, the largest first.
pub(super) fn offloaded(document: &Value) -> Vec<(String, f64)> {
    let mut names: Vec<&str> = phases(document).map(|(name, _)| name).collect();
    names.sort_unstable();
    names.dedup();
    let mut found: Vec<(String, f64)> =
        names.into_iter().map(|name| (name.to_owned(), phase_of(document, name))).collect();
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

/// Phases of accelerators' kernels with their shares of all kernels' time, the largest first. The cores' activity
/// divides the time of screens.
pub(super) fn kernels(document: &Value) -> Vec<(Kernel, f64)> {
    let [mut offloaded, mut queued, mut screens, mut writes] = [0.0; 4];
    let [mut busy, mut stalled, mut held] = [0.0; 3];
    for part in list(document, "/accelerator") {
        for kernel in list(part, "/kernels") {
            let at = |name: &str| number(kernel, name);
            let times = [
                at("/offloaded_ns"),
                at("/released_ns"),
                at("/begun_ns"),
                at("/computed_ns"),
                at("/over_ns"),
            ];
            let [Some(from), Some(released), Some(begun), Some(computed), Some(over)] = times else {
                continue;
            };
            offloaded += released - from;
            queued += begun - released;
            screens += computed - begun;
            writes += over - computed;
        }
        for worker in list(part, "/workers") {
            busy += number(worker, "/busy_share").unwrap_or(0.0);
            stalled += number(worker, "/stalled_share").unwrap_or(0.0);
            held += number(worker, "/held_share").unwrap_or(0.0);
        }
    }
    let all = offloaded + queued + screens + writes;
    if all <= 0.0 || held <= 0.0 {
        return Vec::new();
    }
    let of_screens = |part: f64| screens * part / held / all;
    let mut found = vec![
        (Kernel::Offloaded, offloaded / all),
        (Kernel::Queued, queued / all),
        (Kernel::Computes, of_screens(busy - stalled)),
        (Kernel::Stalls, of_screens(stalled)),
        (Kernel::Waits, of_screens(held - busy)),
        (Kernel::Writes, writes / all),
    ];
    found.sort_by(|a, b| b.1.total_cmp(&a.1));
    found
}

/// Share of a kind's requests in the time of all requests, weighted by the share that a host reports.
fn host(document: &Value, kind: &str, share: fn(&Value, f64) -> Option<f64>) -> f64 {
    let whole: f64 = KINDS.iter().filter_map(|kind| waited(document, kind)).sum();
    let Some(own) = waited(document, kind).filter(|own| *own > 0.0) else { return 0.0 };
    let found: f64 = list(document, "/host").filter_map(|host| share(host, own)).sum();
    found.min(1.0) * own / whole
}

/// Share of page-cache misses that are of recently evicted pages.
fn refaults(host: &Value, _: f64) -> Option<f64> {
    let misses = number(host, "/page_cache/misses").filter(|misses| *misses > 0.0)?;
    Some(number(host, "/page_cache/refaults")? / misses)
}

/// Share of the time of writes in which writers are throttled.
fn pauses(host: &Value, own: f64) -> Option<f64> {
    Some(number(host, "/writeback/pauses")? * number(host, "/writeback/pause_ns/mean")? / own)
}
