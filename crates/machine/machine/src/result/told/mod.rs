//! What a result document says, in words: what limits the run, what slow requests wait for, and which keys are worth a try. It reads
//! the document alone, so that one of last year is told as well as one of now.

mod change;
mod figure;
mod keys;
mod rules;
mod share;
mod words;

pub use figure::{Better, Figure};
pub use keys::{Key, TOLD, worth};

use serde_json::Value;
use words::{parts, percent, time};

/// A run in words.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Told {
    /// What limits it, first, and then what else its figures say; a sentence each.
    pub findings: Vec<String>,
    /// The keys most worth changing, at most three, the one that most time hangs on first.
    pub keys: Vec<Key>,
}

/// Kinds of requests.
const KINDS: [&str; 4] = ["read", "write", "trim", "flush"];
/// A resource with at least this share of its time is what limits a run: *chosen*; beyond it waits grow without bound.
const FULL: f64 = 0.9;
/// The busiest of several is apart from the others if it has this many times their mean share: *chosen*.
const APART: f64 = 1.5;
/// Write amplification that is worth a word: *chosen*.
const AMPLIFIED: f64 = 1.5;

/// Tells a document.
pub fn told(document: &Value) -> Told {
    let mut findings = limits(document);
    for kind in KINDS {
        findings.extend(mean(document, kind));
        findings.extend(tail(document, kind));
    }
    findings.extend(others(document));
    findings.extend(kernels(document));
    findings.extend(collection(document));
    let mut keys = worth(document);
    keys.truncate(TOLD);
    Told { findings, keys }
}

fn number(value: &Value, pointer: &str) -> Option<f64> {
    value.pointer(pointer).and_then(Value::as_f64)
}

fn numbers(value: &Value, pointer: &str) -> Vec<f64> {
    let list = value.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_f64).collect()
}

fn drives(document: &Value) -> impl Iterator<Item = &Value> {
    list(document, "/flash")
}

/// The elements of a list, if it is there.
fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// What limits the run.
fn limits(document: &Value) -> Vec<String> {
    let mut full = Vec::new();
    let mut fullest: Option<(f64, String)> = None;
    for drive in drives(document) {
        let name = drive.get("name").and_then(Value::as_str).unwrap_or("flash");
        for (what, pointer) in [("dies", "/utilisation/die"), ("channels", "/utilisation/channel")] {
            let shares = numbers(drive, pointer);
            let (Some(most), mean) = (shares.iter().copied().reduce(f64::max), average(&shares)) else {
                continue;
            };
            let of = format!("the {what} of {name}");
            if mean >= FULL {
                full.push(format!("{of} limit it: they are busy {} of the time", percent(mean)));
            } else if most >= FULL && most >= APART * mean {
                let busy = shares.iter().filter(|share| **share >= FULL).count();
                full.push(format!(
                    "{busy} of {} {what} of {name} limit it: the busiest is held {} of the time, on average they are {}: what is asked for does not spread",
                    shares.len(),
                    percent(most),
                    percent(mean)
                ));
            }
            if fullest.as_ref().is_none_or(|(share, _)| mean > *share) {
                fullest = Some((mean, format!("{of}, the busiest resource, are")));
            }
        }
        if let Some(share) = number(drive, "/utilisation/link") {
            let of = format!("the link of {name}");
            if share >= FULL {
                full.push(format!("{of} limits it: it is busy {} of the time", percent(share)));
            }
            if fullest.as_ref().is_none_or(|(most, _)| share > *most) {
                fullest = Some((share, format!("{of}, the busiest resource, is")));
            }
        }
    }
    if full.is_empty()
        && let Some(text) = loops(document, fullest)
    {
        full.push(text);
    }
    full
}

/// A run that no resource limits: its requests decide.
fn loops(document: &Value, fullest: Option<(f64, String)>) -> Option<String> {
    let depth = number(document, "/io/all/queue_depth_mean")?;
    let (share, resource) = fullest?;
    let latency = number(document, "/io/all/latency_ns/mean")?;
    let flows = document.pointer("/io/flows").and_then(Value::as_array)?;
    let open = flows.iter().all(|flow| number(flow, "/active/offered_iops").is_some());
    let room = format!("{resource} busy {} of the time", percent(share));
    Some(if open {
        format!("no part of flash limits it: requests are served as they arrive; {room}")
    } else {
        format!(
            "its own requests limit it: {depth:.1} are in flight on average, and each takes {}; {room}, so more in flight would bring more",
            time(latency)
        )
    })
}

fn average(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// Where the mean latency of a kind goes: the parts that make up most of it.
fn mean(document: &Value, kind: &str) -> Option<String> {
    let mean = number(document, &format!("/io/{kind}/latency_ns/mean"))?;
    let all = parts(document.pointer(&format!("/breakdown_ns/{kind}"))?);
    let total: f64 = all.iter().map(|(_, part)| part).sum();
    let (mut said, mut list) = (0.0, Vec::new());
    for (name, part) in all {
        if said >= 0.9 * total || part < 0.01 * total {
            break;
        }
        said += part;
        list.push(format!("{} {}", percent(part / total), words::milestone(name)));
    }
    (!list.is_empty()).then(|| format!("a {kind} takes {} on average: {}", time(mean), list.join(", ")))
}

/// What the slowest of a kind wait for.
fn tail(document: &Value, kind: &str) -> Option<String> {
    of_tails(kind, document.pointer(&format!("/io/{kind}/tail"))?.as_array()?)
}

/// One sentence on the slowest thousandth of a kind, or on the slowest hundredth where there are too few.
pub fn of_tails(kind: &str, tails: &[Value]) -> Option<String> {
    let mut slow = tails.iter().filter(|tail| number(tail, "/slowest").is_some_and(|share| share >= 0.0009));
    sentence(kind, slow.next_back()?)
}

/// One sentence on slow requests: where they wait, and behind whom.
fn sentence(kind: &str, tail: &Value) -> Option<String> {
    let mean = number(tail, "/latency_ns_mean")?;
    let all = parts(tail.get("breakdown_ns")?);
    let (name, part) = *all.first()?;
    let mut text = format!(
        "the slowest {} of {kind}s ({} on average) spend {} of their time {}",
        percent(number(tail, "/slowest")?),
        time(mean),
        percent(part / mean),
        words::milestone(name)
    );
    let by = match name {
        "die_wait" => tail.pointer("/blocked_ns/die"),
        "channel_wait" => tail.pointer("/blocked_ns/channel"),
        _ => None,
    };
    let behind = by.into_iter().flat_map(parts).filter(|(_, held)| *held >= 0.1 * part);
    for (at, (holder, held)) in behind.enumerate() {
        let of = if at == 0 { " of that" } else { "" };
        text += &format!(", {}{of} {}", percent(held / part), words::holder(holder));
    }
    let covered = number(tail, "/covered").unwrap_or(1.0);
    if covered < 1.0 {
        text += &format!(" (known of {} of them)", percent(covered));
    }
    Some(text)
}

/// Where the time of GPUs' and servers' accesses goes.
fn others(document: &Value) -> Vec<String> {
    let Some(all) = document.get("breakdown_ns").and_then(Value::as_object) else { return Vec::new() };
    let own = all.iter().filter(|(name, _)| !KINDS.contains(&name.as_str()));
    own.filter_map(|(name, of)| {
        let all = parts(of);
        let total: f64 = all.iter().map(|(_, part)| part).sum();
        let (part, most) = *all.first()?;
        Some(format!(
            "a {name} takes {} on average, {} of it {}",
            time(total),
            percent(most / total),
            words::milestone(part)
        ))
    })
    .collect()
}

/// Where the time of kernels on accelerators and coprocessors goes: the phases that make up most of it.
fn kernels(document: &Value) -> Vec<String> {
    let of_accelerators =
        share::kernels(document).into_iter().map(|(phase, share)| (words::kernel(phase), share));
    let of_coprocessors =
        share::offloaded(document).into_iter().map(|(phase, share)| (words::phase(&phase), share));
    let said = |(what, phases): (&str, Vec<(String, f64)>)| {
        let list: Vec<String> = phases
            .iter()
            .filter(|(_, share)| *share >= 0.05)
            .map(|(phase, share)| format!("{} {phase}", percent(*share)))
            .collect();
        (!list.is_empty()).then(|| format!("a kernel of {what} spends its time: {}", list.join(", ")))
    };
    let all =
        [("the accelerator", of_accelerators.collect()), ("the coprocessor", of_coprocessors.collect())];
    all.into_iter().filter_map(said).collect()
}

/// What collection costs.
fn collection(document: &Value) -> Vec<String> {
    let of = |drive: &Value| {
        let name = drive.get("name").and_then(Value::as_str).unwrap_or("flash");
        let amplified = number(drive, "/write_amplification").filter(|waf| *waf >= AMPLIFIED)?;
        let moved = number(drive, "/gc_programs")?;
        let all = moved + number(drive, "/host_programs")?;
        Some(format!(
            "{name} writes each byte {amplified:.2} times: {} of its programs move data for collection",
            percent(moved / all.max(1.0))
        ))
    };
    drives(document).filter_map(of).collect()
}
