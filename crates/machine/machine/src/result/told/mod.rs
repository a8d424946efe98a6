//! Explanation of a result document in sentences: what limits the run, what slow requests wait for, and which keys to
//! try. It reads the document alone, so old documents can be explained too.

mod keys;
mod rules;
mod share;

pub use keys::{Key, TOLD, worth};
pub(crate) use keys::{said, scaled};

use rules::Kernel;
use serde_json::Value;

/// Explanation of a run.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Told {
    /// Bottleneck first, then further findings; a sentence each.
    pub findings: Vec<String>,
    /// Keys most worth changing, at most three, the one with the largest share of time first.
    pub keys: Vec<Key>,
}

/// Kinds of requests.
const KINDS: [&str; 4] = ["read", "write", "trim", "flush"];
/// Busy share at which a resource limits a run: *chosen*; above it, waits grow without bound.
const FULL: f64 = 0.9;
/// Ratio to the mean share above which the busiest of several resources stands out: *chosen*.
const APART: f64 = 1.5;
/// Write amplification worth reporting: *chosen*.
const AMPLIFIED: f64 = 1.5;

/// Explains a document.
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

/// Elements of a list; empty if absent.
fn list<'v>(value: &'v Value, pointer: &str) -> impl Iterator<Item = &'v Value> + use<'v> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// Finds what limits the run.
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
                    "{busy} of {} {what} of {name} limit it: the busiest is busy {} of the time, the average is {}: the load is unevenly spread",
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

/// Explains a run that no resource limits: its requests do.
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

/// Breaks down the mean latency of a kind: the parts that make up most of it.
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
        list.push(format!("{} {}", percent(part / total), milestone(name)));
    }
    (!list.is_empty()).then(|| format!("a {kind} takes {} on average: {}", time(mean), list.join(", ")))
}

/// Explains the waits of a kind's slowest requests.
fn tail(document: &Value, kind: &str) -> Option<String> {
    of_tails(kind, document.pointer(&format!("/io/{kind}/tail"))?.as_array()?)
}

/// Formats a sentence on the slowest thousandth of a kind, or on the slowest hundredth if requests are too few.
pub fn of_tails(kind: &str, tails: &[Value]) -> Option<String> {
    let mut slow = tails.iter().filter(|tail| number(tail, "/slowest").is_some_and(|share| share >= 0.0009));
    sentence(kind, slow.next_back()?)
}

/// Formats a sentence on slow requests: where they wait, and behind what.
fn sentence(kind: &str, tail: &Value) -> Option<String> {
    let mean = number(tail, "/latency_ns_mean")?;
    let all = parts(tail.get("breakdown_ns")?);
    let (name, part) = *all.first()?;
    let mut text = format!(
        "the slowest {} of {kind}s ({} on average) spend {} of their time {}",
        percent(number(tail, "/slowest")?),
        time(mean),
        percent(part / mean),
        milestone(name)
    );
    let by = match name {
        "die_wait" => tail.pointer("/blocked_ns/die"),
        "channel_wait" => tail.pointer("/blocked_ns/channel"),
        _ => None,
    };
    let behind = by.into_iter().flat_map(parts).filter(|(_, held)| *held >= 0.1 * part);
    for (at, (holder, held)) in behind.enumerate() {
        let of = if at == 0 { " of that" } else { "" };
        text += &format!(", {}{of} {}", percent(held / part), self::holder(holder));
    }
    let covered = number(tail, "/covered").unwrap_or(1.0);
    if covered < 1.0 {
        text += &format!(" (known of {} of them)", percent(covered));
    }
    Some(text)
}

/// Breaks down the time of GPUs' and servers' accesses.
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
            milestone(part)
        ))
    })
    .collect()
}

/// Breaks down the time of kernels on accelerators and coprocessors: the phases that make up most of it.
fn kernels(document: &Value) -> Vec<String> {
    let of_accelerators = share::kernels(document).into_iter().map(|(phase, share)| (kernel(phase), share));
    let of_coprocessors =
        share::offloaded(document).into_iter().map(|(phase, share)| (self::phase(&phase), share));
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

/// Reports the cost of garbage collection.
fn collection(document: &Value) -> Vec<String> {
    let of = |drive: &Value| {
        let name = drive.get("name").and_then(Value::as_str).unwrap_or("flash");
        let amplified = number(drive, "/write_amplification").filter(|waf| *waf >= AMPLIFIED)?;
        let moved = number(drive, "/gc_programs")?;
        let all = moved + number(drive, "/host_programs")?;
        Some(format!(
            "{name} writes each byte {amplified:.2} times: {} of its programs move data for GC",
            percent(moved / all.max(1.0))
        ))
    };
    drives(document).filter_map(of).collect()
}

// Words for names of a result document.

/// Parts by name, the largest first; equal ones in the document's order.
fn parts(of: &Value) -> Vec<(&str, f64)> {
    let all = of.as_object().into_iter().flatten();
    let mut parts: Vec<(&str, f64)> =
        all.filter_map(|(name, value)| Some((name.as_str(), value.as_f64()?))).collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    parts
}

/// Formats a share.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        p if p >= 9.95 || p == 0.0 => format!("{p:.0} %"),
        p if p >= 0.995 => format!("{p:.1} %").replace(".0 %", " %"),
        p => format!("{p:.2} %").replace("0 %", " %"),
    }
}

/// Formats nanoseconds in the most readable unit.
fn time(ns: f64) -> String {
    match ns {
        n if n >= 1e9 => format!("{:.3} s", n / 1e9),
        n if n >= 1e6 => format!("{:.2} ms", n / 1e6),
        n if n >= 1e3 => format!("{:.2} us", n / 1e3),
        n => format!("{n:.0} ns"),
    }
}

/// Place where a milestone is spent; a milestone without words is named as it is.
fn milestone(name: &str) -> String {
    let words = match name {
        "submission" => "in submission queues",
        "controller" => "at controller cores",
        "host_transfer" => "on the host's link",
        "mapping" => "waiting for the mapping table",
        "buffer" => "waiting for the buffer",
        "merge" => "waiting for old data of units written in part",
        "space" => "waiting for free space",
        "die_wait" => "waiting for dies",
        "array" => "in the array",
        "channel_wait" => "waiting for channels",
        "channel" => "moving over channels",
        "durable" => "waiting for earlier writes",
        "host" => "at the host",
        "stripe" => "waiting for other drives of a stripe",
        other => return format!("in {}", other.replace('_', " ")),
    };
    words.to_owned()
}

/// Phase of a coprocessor's kernels; a phase without words is named as it is.
fn phase(name: &str) -> String {
    let words = match name {
        "files" => "opening and closing files",
        "read" => "reading files",
        "marshal" => "marshalling data",
        "copy" => "copying data to the driver",
        "send" => "sending data",
        "work" => "being executed",
        "receive" => "receiving results",
        "write" => "writing files",
        "sync" => "making results durable",
        other => return format!("in {other}"),
    };
    words.to_owned()
}

/// Phase of an accelerator's kernels.
fn kernel(phase: Kernel) -> String {
    let words = match phase {
        Kernel::Offloaded => "being offloaded",
        Kernel::Queued => "waiting for cores",
        Kernel::Computes => "computing",
        Kernel::Stalls => "waiting for caches",
        Kernel::Waits => "waiting for data and other cores",
        Kernel::Writes => "writing results to flash",
    };
    words.to_owned()
}

/// Blocker in words.
fn holder(name: &str) -> &str {
    match name {
        "host_read" => "behind other reads",
        "host_program" => "behind programs of the host's data",
        "collection_read" => "behind GC reads",
        "collection_program" => "behind GC programs",
        "erase" => "behind erases",
        "mapping" => "behind the mapping table's reads and programs",
        "look_ahead" => "behind reads ahead",
        "channel" => "for a channel while the die is free",
        other => other,
    }
}

// Metric that rates a run.

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// Smaller values.
    Less,
    /// Larger values.
    More,
}

/// Metric of a run that a key is meant to improve.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Figure {
    /// Name of the metric, as in `nandscape list metrics`.
    pub name: String,
    /// Direction in which the metric improves.
    pub better: Better,
    /// Value of the metric in the run.
    pub value: f64,
}

/// Metrics that rate a run; the first that applies is used: kernels of what executes them, instructions or jobs, calls
/// of programs, requests.
const FIGURES: [(&str, Better); 6] = [
    ("coprocessor.0.makespan_ns", Better::Less),
    ("accelerator.0.makespan_ns", Better::Less),
    ("gpu.0.ipc", Better::More),
    ("cpu.0.latency_ns.mean", Better::Less),
    ("cpu.0.throughput_per_s", Better::More),
    ("io.all.latency_ns.mean", Better::Less),
];

impl Figure {
    /// Metric of a run; `None` if it has done nothing.
    pub fn of(document: &Value) -> Option<Figure> {
        // Jobs of an open loop end at their arrival rate, and in a closed loop each core begins a job at once.
        let is_closed = document.pointer("/cpu/0/offered_per_s").is_none_or(Value::is_null);
        let applies = |name: &str| match name {
            "cpu.0.latency_ns.mean" => !is_closed,
            "cpu.0.throughput_per_s" => is_closed,
            _ => true,
        };
        let of = |(name, better): (&str, Better)| {
            let value = number(document, &format!("/{}", name.replace('.', "/")))?;
            (value > 0.0).then(|| Figure { name: name.to_owned(), better, value })
        };
        let found = FIGURES.into_iter().filter(|(name, _)| applies(name)).find_map(of);
        found.or_else(|| calls(document))
    }

    /// Same metric of a different run.
    pub fn again(&self, document: &Value) -> Option<f64> {
        number(document, &format!("/{}", self.name.replace('.', "/")))
    }

    /// Relative improvement of a different value; negative if it is worse.
    pub fn gain(&self, other: f64) -> f64 {
        match self.better {
            Better::Less => 1.0 - other / self.value,
            Better::More => other / self.value - 1.0,
        }
    }
}

/// Mean latency of the host programs' requests with the largest total time.
fn calls(document: &Value) -> Option<Figure> {
    let mut most: Option<(f64, Figure)> = None;
    for (h, host) in list(document, "/host").enumerate() {
        for (p, program) in list(host, "/programs").enumerate() {
            for (name, of) in program.get("requests").and_then(Value::as_object)? {
                let latency = number(of, "/latency_ns/mean");
                let Some((value, count)) = latency.zip(number(of, "/requests")) else { continue };
                if most.as_ref().is_none_or(|(time, _)| value * count > *time) {
                    let name = format!("host.{h}.programs.{p}.requests.{name}.latency_ns.mean");
                    most = Some((value * count, Figure { name, better: Better::Less, value }));
                }
            }
        }
    }
    most.map(|(_, figure)| figure)
}

#[cfg(test)]
mod tests {
    use super::{Better, Figure, percent};
    use serde_json::json;

    #[test]
    fn shares_have_two_digits_that_count() {
        let said = [1.0, 0.123, 0.05, 0.012, 0.01, 0.001, 0.0001, 0.0];
        assert_eq!(said.map(percent), ["100 %", "12 %", "5 %", "1.2 %", "1 %", "0.1 %", "0.01 %", "0 %"]);
    }

    #[test]
    fn a_run_is_told_by_what_it_does() {
        let name = |document| Figure::of(&document).map(|figure| figure.name);
        let io = json!({"all": {"latency_ns": {"mean": 5.0}}});
        assert_eq!(name(json!({"io": io})).as_deref(), Some("io.all.latency_ns.mean"));
        assert_eq!(name(json!({"io": io, "gpu": [{"ipc": 2.0}]})).as_deref(), Some("gpu.0.ipc"));
        let cpu = |offered| json!([{"throughput_per_s": 9.0, "offered_per_s": offered, "latency_ns": {"mean": 3.0}}]);
        assert_eq!(name(json!({"cpu": cpu(json!(null))})).as_deref(), Some("cpu.0.throughput_per_s"));
        assert_eq!(name(json!({"cpu": cpu(json!(8.0))})).as_deref(), Some("cpu.0.latency_ns.mean"));
        let requests = json!({"short": {"latency_ns": {"mean": 9.0}, "requests": 1}, "long": {"latency_ns": {"mean": 3.0}, "requests": 4}});
        let host = json!([{"programs": [{"requests": requests}]}]);
        let found = name(json!({"host": host}));
        assert_eq!(found.as_deref(), Some("host.0.programs.0.requests.long.latency_ns.mean"));
        assert_eq!(name(json!({"io": {"all": {"latency_ns": {"mean": null}}}})), None);
    }

    #[test]
    fn a_gain_is_less_time_or_more_work() {
        let figure = |better| Figure { name: String::new(), better, value: 4.0 };
        assert_eq!((figure(Better::Less).gain(3.0), figure(Better::More).gain(5.0)), (0.25, 0.25));
        assert!(figure(Better::Less).gain(5.0) < 0.0);
    }
}
