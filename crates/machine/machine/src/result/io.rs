//! What the host saw.

use super::tail::{SlowRequest, TailResult, slowest, tails};
use crate::machine::Machine;
use crate::parts::complex::Processor;
use engine::Time;
use requests::fio::LaidOut;
use requests::inject::{FlowStats, Recorded, Split};
use schemars::JsonSchema;
use serde::Serialize;
use ssd::port::initiator::{InitiatedFlow, Initiator};
use stats::{Histogram, OpStats, Series, Summary};
use std::borrow::Cow;

/// Requests of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OpResult {
    /// Requests completed in the measured window.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Requests a second of the measured window, from its beginning to the last completion of the run; those of a flow as well, whenever it
    /// was at work (`active` has its own time).
    pub iops: f64,
    /// Bytes a second of the measured window, as `iops`.
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
    /// How `latency_ns` is distributed; left out of single flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram_ns: Option<HistogramResult>,
    /// What the slowest requests waited for: the slowest 1 %, 0.1 % and 0.01 %, each left out where fewer than ten requests are so slow; all left out
    /// of single flows, and where `sim.explain` is off or no drive gave an account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<TailResult>,
}

/// A histogram: columns of its occupied buckets, in ascending order. A bucket is at most 0.8 % wide.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HistogramResult {
    /// The least value of each bucket.
    pub from: Vec<f64>,
    /// The largest value of each bucket.
    pub to: Vec<f64>,
    /// Requests in each bucket.
    pub requests: Vec<u64>,
}

impl HistogramResult {
    fn of(histogram: &Histogram) -> HistogramResult {
        let ns = |ps: u64| ps as f64 / 1e3;
        HistogramResult {
            from: histogram.buckets().map(|bucket| ns(bucket.low)).collect(),
            to: histogram.buckets().map(|bucket| ns(bucket.high)).collect(),
            requests: histogram.buckets().map(|bucket| bucket.count).collect(),
        }
    }
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
    /// With the distributions of their latencies, and what the slowest waited for.
    fn explained(mut self, total: &FlowStats, machine: &Machine) -> Kinds {
        let whole = all(total);
        self.all.histogram_ns = (whole.requests > 0).then(|| HistogramResult::of(&whole.latency));
        self.all.tail = tails(machine, "all");
        let kinds = [
            ("read", &mut self.read, &total.read),
            ("write", &mut self.write, &total.write),
            ("trim", &mut self.trim, &total.trim),
            ("flush", &mut self.flush, &total.flush),
        ];
        for (name, kind, stats) in kinds {
            if let Some(kind) = kind {
                kind.histogram_ns = Some(HistogramResult::of(&stats.latency));
                kind.tail = tails(machine, name);
            }
        }
        self
    }

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
    /// The drive or stripe that its requests go to; left out where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// When it was at work, and its rates over that time.
    pub active: Active,
    /// Its requests by kind, and all of them; their rates are over the whole measured window.
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

/// How long requests of a trace took where they were recorded, all that were handed to the run, with those before the measured window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordedResult {
    /// Reads that the trace has a response time of.
    pub reads: u64,
    /// Their response times as recorded, to be set beside `read`.
    pub read_latency_ns: Summary,
    /// Writes that the trace has a response time of.
    pub writes: u64,
    /// Their response times as recorded, to be set beside `write`.
    pub write_latency_ns: Summary,
}

impl RecordedResult {
    fn collect(recorded: &Recorded) -> Option<RecordedResult> {
        (!recorded.is_empty()).then(|| RecordedResult {
            reads: recorded.read.count(),
            read_latency_ns: Summary::from_ps(&recorded.read),
            writes: recorded.write.count(),
            write_latency_ns: Summary::from_ps(&recorded.write),
        })
    }
}

/// When a flow was at work: from the arrival of its first request, or the start of the measured window if that is later, to its last
/// completion; pauses between are part of it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Active {
    /// Simulated time at its beginning.
    pub from_ns: f64,
    /// Simulated time at its end.
    pub until_ns: f64,
    /// Requests a second of it.
    pub iops: f64,
    /// Bytes a second of it.
    pub bandwidth_bytes_per_s: f64,
    /// Requests a second that arrived, between the first and the last; null where the device's answers decide when requests are issued (a
    /// closed loop), and for fewer than two.
    pub offered_iops: Option<f64>,
}

/// Files that jobs go over, where they lie: a file, or several side by side of the same jobs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileResult {
    /// Name of the file, or of the first of several.
    pub name: String,
    /// The drive or stripe that they lie on; left out where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// How many files.
    pub files: u64,
    /// First byte on the drive; on the file system of a host, of the addresses of its requests.
    pub offset_bytes: u64,
    /// Bytes from there to the end of the last of them.
    pub bytes: u64,
    /// The jobs that go over them.
    pub jobs: Vec<String>,
}

impl FileResult {
    fn collect(machine: &Machine) -> Vec<FileResult> {
        let of = |(target, laid): (u16, LaidOut)| FileResult {
            name: laid.name,
            drive: machine.target_of(target).map(str::to_owned),
            files: laid.files,
            offset_bytes: laid.start,
            bytes: laid.bytes,
            jobs: laid.jobs,
        };
        machine.injector.files().into_iter().map(of).collect()
    }
}

/// What the host saw, and a GPU that reaches the flash device by itself.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Io {
    /// Requests by kind, and all of them.
    #[serde(flatten)]
    pub kinds: Kinds,
    /// How far requests fell behind their own times: the longest wait at the host for room in a submission queue and, of an open loop
    /// (a trace at its own times, a job with a rate), the longest latency beyond the shortest of its kind, which is what a backlog inside the
    /// device shows as.
    pub lag_max_ns: f64,
    /// Requests that went to the device in fragments, because `--remap compact` has put their bytes apart; left out if none did. Everywhere
    /// else in `io` such a request counts once: its latency is that of the fragment that completed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragments: Option<FragmentResult>,
    /// Response times that traces of the run have recorded; left out if none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedResult>,
    /// The slowest requests of the host, at most 16, the slowest first; left out where `sim.explain` is off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowRequest>,
    /// Each flow by itself.
    pub flows: Vec<FlowResult>,
    /// The files of fio jobs and their places; left out where every job goes over the whole drive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileResult>,
    /// Completions of all flows over time.
    pub series: Series,
}

impl Io {
    pub(super) fn collect(machine: &Machine) -> Io {
        let injector = &machine.injector;
        let by_itself =
            initiators(machine).map(|(initiator, _)| initiator.last_completion).max().unwrap_or_default();
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
        let lag = flows.iter().map(lag).max().unwrap_or_default().max(injector.held_max);
        let of_host = machine.injector.flows.len();
        let result = |(number, flow): (usize, &FlowStats)| FlowResult {
            name: flow.name.clone(),
            // Behind the host's flows stand those of processors.
            drive: machine.target_of(flow.target).filter(|_| number < of_host).map(str::to_owned),
            active: active(flow, machine.measured_from),
            kinds: kinds(flow, seconds),
        };
        let flows = flows.iter().enumerate().map(result).collect();
        let mut series = injector.series.clone();
        initiators(machine).for_each(|(initiator, _)| series.merge(&initiator.series));
        Io {
            kinds: kinds(&total, seconds).explained(&total, machine),
            slowest: slowest(machine),
            lag_max_ns: lag.as_ns_f64(),
            fragments: FragmentResult::collect(&injector.split),
            recorded: RecordedResult::collect(&injector.recorded()),
            flows,
            files: FileResult::collect(machine),
            series,
        }
    }
}

/// Percentiles of latencies that are checked, in parts of a thousand.
const CHECKED: [u32; 5] = [500, 900, 990, 999, 1000];

/// The first percentile of latencies that is wrong, in words. It must be where a sample of its rank lies if those of its bucket lie evenly
/// in it, and in the bucket of the exact sample where that is one of the slowest, which are kept.
pub(super) fn wrong_percentile(machine: &Machine) -> Option<String> {
    let injector = &machine.injector;
    let mut every = FlowStats::default();
    for flow in &injector.flows {
        every.read.merge(&flow.read);
        every.write.merge(&flow.write);
        every.trim.merge(&flow.trim);
        every.flush.merge(&flow.flush);
    }
    let every = all(&every).latency;
    let slowest: Vec<u64> = injector
        .explain
        .iter()
        .flat_map(|explain| explain.slowest())
        .map(|one| one.seen.latency().ps())
        .collect();
    // Requests that took a way without an account are not among those that are kept.
    let slowest = if slowest.first().copied() == every.max() { slowest } else { Vec::new() };
    let of_kinds = injector.flows.iter().flat_map(|flow| flow.by_kind().map(|op| (&op.latency, &[][..])));
    of_kinds.chain([(&every, &slowest[..])]).find_map(|(latency, kept)| misplaced(latency, kept))
}

/// The first percentile that is not where it must be; `kept` are the largest samples, in falling order.
fn misplaced(latency: &Histogram, kept: &[u64]) -> Option<String> {
    let count = latency.count();
    let (least, most) = latency.min().zip(latency.max())?;
    CHECKED.iter().find_map(|part| {
        let rank = (u128::from(count) * u128::from(*part)).div_ceil(1_000).max(1) as u64;
        let mut above = count;
        let bucket = latency.buckets().collect::<Vec<_>>().into_iter().rev().find(|bucket| {
            above -= bucket.count;
            above < rank
        })?;
        let halves = u128::from(2 * (rank - above) - 1) * u128::from(bucket.high - bucket.low);
        let even = bucket.low + (halves / u128::from(2 * bucket.count)) as u64;
        let due = even.clamp(least, most);
        let found = latency.percentile_unchecked(f64::from(*part) / 1e3)?;
        let exact = kept.get((count - rank) as usize).copied();
        let is_inside = exact.is_none_or(|exact| (bucket.low..=bucket.high).contains(&exact));
        (found != due || !is_inside).then(|| {
            let permille = f64::from(*part) / 10.0;
            format!(
                "{permille} % of {count}: {found} ps, due {due} ps; the exact sample, if kept, is {exact:?}"
            )
        })
    })
}

/// Initiators that reach a flash device by themselves, each with the processor in front of it.
fn initiators(machine: &Machine) -> impl Iterator<Item = (&Initiator, &Processor)> {
    machine.complexes().iter().flat_map(|complex| {
        machine.memories_on(complex).filter_map(|memory| Some((memory.flows()?, &complex.processor)))
    })
}

/// The flows of the host, and behind them those of processors.
pub(super) fn flows(machine: &Machine) -> Cow<'_, [FlowStats]> {
    let host = &machine.injector.flows;
    let of = |(initiator, processor): (&Initiator, &Processor)| -> Vec<FlowStats> {
        let named = |(flow, app): (&InitiatedFlow, u8)| FlowStats {
            name: match processor {
                Processor::Simt(simt) => format!("gpu:{}", simt.programs.program(app).name()),
                Processor::Ooo(_) => "cpu".to_owned(),
            },
            read: flow.read.clone(),
            write: flow.write.clone(),
            span: flow.span,
            ..FlowStats::default()
        };
        initiator.flows.iter().zip(0..).map(named).collect()
    };
    let of_processors: Vec<FlowStats> = initiators(machine).flat_map(of).collect();
    if of_processors.is_empty() {
        return Cow::Borrowed(host);
    }
    Cow::Owned(host.iter().cloned().chain(of_processors).collect())
}

/// By how much the longest latency of an open loop exceeds the shortest of its kind; nothing for a closed loop.
fn lag(flow: &FlowStats) -> Time {
    let beyond = |op: &OpStats| op.latency.max().zip(op.latency.min()).map_or(0, |(max, min)| max - min);
    let of = |op: &OpStats| if flow.open { Time::from_ps(beyond(op)) } else { Time::ZERO };
    flow.by_kind().map(of).into_iter().max().unwrap_or_default()
}

/// The share of its requests' own rate at which a flow was served below which it was overloaded: *chosen*, so that the latency of the
/// last requests of a short trace is not taken for a backlog.
const SERVED: f64 = 0.9;
/// How many times its shortest latency a flow must lag to be overloaded, *chosen* for the same reason.
const LAG: u64 = 3;

/// What a reader must know of open loops whose requests came faster than they were served.
pub(super) fn overloads(machine: &Machine) -> Vec<String> {
    let flows = machine.injector.flows.iter().filter(|flow| flow.open);
    let overloaded = |flow: &&FlowStats| {
        let shortest = flow.by_kind().iter().filter_map(|op| op.latency.min()).min().unwrap_or(0);
        let (came, took) = (flow.span.arrivals(), flow.span.active(Time::ZERO));
        came.as_s_f64() < SERVED * took.as_s_f64() && lag(flow) > Time::from_ps(shortest).times(LAG)
    };
    let line = |flow: &FlowStats| {
        let requests: u64 = flow.by_kind().iter().map(|op| op.requests).sum();
        format!(
            "overloaded: the {requests} requests of `{}` arrived within {} and took {}; they lagged by up to {}",
            flow.name,
            flow.span.arrivals(),
            flow.span.active(Time::ZERO),
            lag(flow)
        )
    };
    flows.filter(overloaded).map(line).collect()
}

fn active(flow: &FlowStats, window: Time) -> Active {
    let (span, ops) = (&flow.span, flow.by_kind());
    let requests: u64 = ops.iter().map(|op| op.requests).sum();
    let bytes: u64 = ops.iter().map(|op| op.bytes).sum();
    let per_second = |n: u64, time: Time| if time > Time::ZERO { n as f64 / time.as_s_f64() } else { 0.0 };
    let time = span.active(window);
    let arrivals = span.arrivals();
    Active {
        from_ns: span.last_completion.min(span.first_arrival.max(window)).as_ns_f64(),
        until_ns: span.last_completion.as_ns_f64(),
        iops: per_second(requests, time),
        bandwidth_bytes_per_s: per_second(bytes, time),
        offered_iops: (flow.open && arrivals > Time::ZERO).then(|| per_second(requests - 1, arrivals)),
    }
}

/// All requests of a flow.
fn all(flow: &FlowStats) -> OpStats {
    let mut all = OpStats::default();
    for op in flow.by_kind() {
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

pub(super) fn result(op: &OpStats, seconds: f64) -> OpResult {
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
        histogram_ns: None,
        tail: Vec::new(),
    }
}
