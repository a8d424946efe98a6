//! Results of the host's requests.

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

/// Results of requests of one kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OpResult {
    /// Requests completed in the measured window.
    pub requests: u64,
    /// Bytes of the requests.
    pub bytes: u64,
    /// Requests per second of the measured window, from its beginning to the last completion of the run; for a flow
    /// too, whenever it was active (`active` has rates over its own time).
    pub iops: f64,
    /// Bytes per second of the measured window, as for `iops`.
    pub bandwidth_bytes_per_s: f64,
    /// Mean number of requests in flight, from issue to completion.
    pub queue_depth_mean: f64,
    /// Latency from arrival to completion (fio's lat).
    pub latency_ns: Summary,
    /// Latency from arrival to submission (fio's slat).
    pub slat_ns: Summary,
    /// Latency from submission to completion (fio's clat).
    pub clat_ns: Summary,
    /// Latency from doorbell to the completion's interrupt.
    pub device_latency_ns: Summary,
    /// Distribution of `latency_ns`; left out of single flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub histogram_ns: Option<HistogramResult>,
    /// Causes of the slowest requests' latency: the slowest 1 %, 0.1 % and 0.01 %, each left out if it has fewer than
    /// ten requests. Left out of single flows, with `sim.explain` off, and if no drive recorded milestones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tail: Vec<TailResult>,
}

/// Histogram in columns: occupied buckets in ascending order. A bucket is at most 0.8 % wide.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HistogramResult {
    /// Least value of each bucket.
    pub from: Vec<f64>,
    /// Largest value of each bucket.
    pub to: Vec<f64>,
    /// Number of requests in each bucket.
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

/// Requests by kind. Kinds without a completion are left out.
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
    /// Adds latency distributions and the causes of slow requests.
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

    /// Names of the kinds, in order.
    pub const NAMES: [&str; 5] = ["all", "read", "write", "trim", "flush"];

    /// Returns the requests of a kind, by name.
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

/// Results of one flow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FlowResult {
    /// Name of the flow: an fio job, a trace and its stream, or `gpu:` and a program that the GPU runs.
    pub name: String,
    /// Drive or stripe that the requests go to; left out if the system has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// Active time of the flow, and its rates over that time.
    pub active: Active,
    /// Requests by kind, and all of them; rates are over the whole measured window.
    #[serde(flatten)]
    pub kinds: Kinds,
}

/// Requests split into fragments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FragmentResult {
    /// Split requests completed in the measured window.
    pub requests: u64,
    /// Fragments of split requests completed in the measured window; each is one command.
    pub fragments: u64,
    /// Latency of a fragment, from the arrival of the request to the fragment's completion.
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

/// Recorded latencies of trace requests: all requests handed to the run, including those before the measured window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RecordedResult {
    /// Reads with a recorded response time.
    pub reads: u64,
    /// Recorded response times of reads; compare with `read`.
    pub read_latency_ns: Summary,
    /// Writes with a recorded response time.
    pub writes: u64,
    /// Recorded response times of writes; compare with `write`.
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

/// Active time of a flow: from the arrival of its first request, or the start of the measured window if later, to its
/// last completion. Pauses are included.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Active {
    /// Start of the active time, in simulated time.
    pub from_ns: f64,
    /// End of the active time, in simulated time.
    pub until_ns: f64,
    /// Requests per second of active time.
    pub iops: f64,
    /// Bytes per second of active time.
    pub bandwidth_bytes_per_s: f64,
    /// Arrival rate of requests, between the first and the last. Null in a closed loop, where completions decide when
    /// requests are issued, and for fewer than two requests.
    pub offered_iops: Option<f64>,
}

/// Files that jobs access, with their places: one file, or several adjacent files of the same jobs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FileResult {
    /// Name of the file, or of the first of several.
    pub name: String,
    /// Drive or stripe that holds the files; left out if the system has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<String>,
    /// Number of files.
    pub files: u64,
    /// First byte on the drive, or in the address range of a host's file system.
    pub offset_bytes: u64,
    /// Bytes from `offset_bytes` to the end of the last file.
    pub bytes: u64,
    /// Jobs that access the files.
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

/// Results of the host's requests, and of a GPU that reaches the flash device directly.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Io {
    /// Requests by kind, and all of them.
    #[serde(flatten)]
    pub kinds: Kinds,
    /// Largest delay of requests behind their own schedule. It is the longest wait at the host for room in a submission
    /// queue. In an open loop (a trace at its own times, a job with a rate) it is also the longest latency minus the
    /// shortest of the same kind, which shows a backlog inside the device.
    pub lag_max_ns: f64,
    /// Requests that were sent in fragments, because `--remap compact` separated their bytes; left out if there were
    /// none. Elsewhere in `io`, such a request counts once, with the latency of the fragment that completed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fragments: Option<FragmentResult>,
    /// Response times recorded in the run's traces; left out if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<RecordedResult>,
    /// Slowest requests of the host, at most 16, slowest first; left out with `sim.explain` off.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowRequest>,
    /// Results of each flow.
    pub flows: Vec<FlowResult>,
    /// Files of fio jobs and their places; left out if every job covers the whole drive.
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
            // The flows of processors follow those of the host.
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

/// Latency percentiles to check, in parts of a thousand.
const CHECKED: [u32; 5] = [500, 900, 990, 999, 1000];

/// Describes the first wrong latency percentile. It must be where a sample of its rank lies if the samples of its
/// bucket are spread evenly. If the exact sample is among the slowest, which are kept, the percentile must be in its
/// bucket.
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
    // Requests whose path records no milestones are not among those kept.
    let slowest = if slowest.first().copied() == every.max() { slowest } else { Vec::new() };
    let of_kinds = injector.flows.iter().flat_map(|flow| flow.by_kind().map(|op| (&op.latency, &[][..])));
    of_kinds.chain([(&every, &slowest[..])]).find_map(|(latency, kept)| misplaced(latency, kept))
}

/// Describes the first percentile outside its place; `kept` holds the largest samples, in falling order.
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
            format!("{permille} % of {count}: {found} ps, due {due} ps; exact sample, if kept: {exact:?}")
        })
    })
}

/// Initiators that reach a flash device directly, each with the processor in front of it.
fn initiators(machine: &Machine) -> impl Iterator<Item = (&Initiator, &Processor)> {
    machine.complexes().iter().flat_map(|complex| {
        machine.memories_on(complex).filter_map(|memory| Some((memory.flows()?, &complex.processor)))
    })
}

/// Flows of the host, followed by those of processors.
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

/// Longest latency of an open loop minus the shortest of the same kind; zero for a closed loop.
fn lag(flow: &FlowStats) -> Time {
    let beyond = |op: &OpStats| op.latency.max().zip(op.latency.min()).map_or(0, |(max, min)| max - min);
    let of = |op: &OpStats| if flow.open { Time::from_ps(beyond(op)) } else { Time::ZERO };
    flow.by_kind().map(of).into_iter().max().unwrap_or_default()
}

/// Share of the arrival rate below which a flow counts as overloaded: *chosen*, so that the latency of a short trace's
/// last requests is not taken for a backlog.
const SERVED: f64 = 0.9;
/// Lag, in multiples of the shortest latency, above which a flow is overloaded: *chosen* for the same reason.
const LAG: u64 = 3;

/// Warns about open loops whose requests arrived faster than they were served.
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

/// Returns statistics of all requests of a flow.
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
