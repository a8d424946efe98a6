//! Statistics of a trace: one pass over the file unchanged, in the order of its lines.

mod show;
mod tally;

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use config::Diagnostic;
use proto::IoOp;
use serde::Serialize;
use stats::{Histogram, Summary};

use crate::inject::Recorded;
use crate::trace::inspect::tally::{Footprint, PeakRate, Sizes, Stream};
use crate::trace::options::{Align, Remap, TimeScale, TraceOptions, Volumes};
use crate::trace::order::Disorder;
use crate::trace::record::{FaultKind, RawRequest, Skipped};
use crate::trace::scan::Scan;
use crate::trace::together::{parts, too_long};

pub(crate) use tally::mix;

/// Number of streams that an inspection lists.
const STREAMS: usize = 10;

/// Statistics of a trace. They describe the unchanged file: nothing is sorted, clipped, scaled or moved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Name of the file.
    pub source: String,
    /// Format as which it was read.
    pub format: &'static str,
    /// Other formats that the content fits.
    pub also_fits: Vec<&'static str>,
    /// Compression of the file.
    pub compression: &'static str,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Number of lines.
    pub lines: u64,
    /// Number of requests of all kinds.
    pub requests: u64,
    /// Number of reads.
    pub reads: u64,
    /// Number of writes, including zeroing writes.
    pub writes: u64,
    /// Number of deallocations.
    pub trims: u64,
    /// Number of flushes.
    pub flushes: u64,
    /// Number of requests with force unit access.
    pub fua: u64,
    /// Share of reads in all requests.
    pub read_share: f64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Bytes deallocated.
    pub trim_bytes: u64,
    /// Time from the earliest request to the latest, in seconds.
    pub span_s: f64,
    /// Requests per second over the span; `None` if the span is zero.
    pub rate_per_s: Option<f64>,
    /// Requests in the busiest second of the trace's clock.
    pub peak_per_s: u64,
    /// Activity over time; `None` if all requests come at one instant.
    pub activity: Option<Activity>,
    /// Recorded response times of reads, if the trace has them.
    pub recorded_read_ns: Option<Summary>,
    /// Recorded response times of writes, as `recorded_read_ns`.
    pub recorded_write_ns: Option<Summary>,
    /// Bytes of distinct 4 KiB pages read or written, counted separately for each stream.
    pub footprint_bytes: u64,
    /// True if the footprint is exact, not an estimate (beyond 7 million touched chunks of 256 KiB).
    pub footprint_exact: bool,
    /// Lowest byte addressed.
    pub address_min: u64,
    /// End of the highest byte range addressed.
    pub address_end: u64,
    /// Sizes of requests that move data.
    pub sizes: SizeSummary,
    /// Share of requests that start where the previous one of their stream ended.
    pub sequential_share: f64,
    /// Number of streams (devices, volumes, files).
    pub stream_count: u64,
    /// Streams with the most requests.
    pub streams: Vec<FlowSummary>,
    /// Number of requests that come after a later one.
    pub unsorted: u64,
    /// Largest delay of such a request, in seconds.
    pub lateness_s: f64,
    /// Sort window that sorts the trace; zero if it is in order.
    pub sort_window_needed: u64,
    /// Number of bad lines by kind.
    pub errors: BTreeMap<FaultKind, Skipped>,
    /// Reasons of the first bad lines, one line each.
    pub bad_lines: Vec<String>,
}

/// Distribution of request sizes in bytes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeSummary {
    /// Smallest size.
    pub min: u64,
    /// Median size; the lower of the two middle ones.
    pub median: u64,
    /// Mean size.
    pub mean: f64,
    /// Largest size.
    pub max: u64,
    /// Most frequent sizes, with their shares.
    pub top: Vec<(u64, f64)>,
    /// True if every size was counted exactly (up to 65,536 distinct ones).
    pub exact: bool,
}

/// A stream of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowSummary {
    /// Name of the stream.
    pub name: String,
    /// Number of its requests.
    pub requests: u64,
    /// Bytes that its requests move or deallocate.
    pub bytes: u64,
}

/// Reads a trace, by its name ([`parts`]), once and returns its statistics. Bad lines are counted, never an error.
///
/// Memory is bounded: about 140 MiB for the largest footprint, little otherwise.
///
/// # Errors
/// If a file cannot be read or recognised, holds no request, or its compressed data is damaged; if an option changes
/// how a trace is replayed, as it has no effect here.
pub fn inspect(path: impl AsRef<Path>, options: &TraceOptions) -> Result<Inspection, Diagnostic> {
    let name = path.as_ref();
    let files = parts(name)?;
    let source = name.display().to_string();
    inspect_scan(source, options, |options| Scan::open(&files, options))
}

/// Runs [`inspect`] on any input; `source` is its name in diagnostics.
///
/// # Errors
/// As [`inspect`].
pub fn inspect_read(
    source: &str,
    input: impl Read + Send + 'static,
    options: &TraceOptions,
) -> Result<Inspection, Diagnostic> {
    inspect_scan(source.to_owned(), options, |options| Scan::new(source, input, options))
}

fn inspect_scan(
    source: String,
    options: &TraceOptions,
    open: impl FnOnce(&TraceOptions) -> Result<Scan, Diagnostic>,
) -> Result<Inspection, Diagnostic> {
    refuse_replay_options(options)?;
    let options = TraceOptions { lenient: true, ..options.clone() };
    let mut scan = open(&options)?;
    let mut counts = Counts::new(scan.info().whole_seconds);
    while options.max_requests.is_none_or(|limit| counts.requests < limit) {
        match scan.next()? {
            Some(request) => counts.add(&request),
            None => break,
        }
    }
    if let Some(diagnostic) = scan.nothing_found() {
        return Err(diagnostic);
    }
    let mut inspection = counts.finish(&scan);
    inspection.source = source;
    Ok(inspection)
}

fn refuse_replay_options(options: &TraceOptions) -> Result<(), Diagnostic> {
    let given = [
        (options.time_scale != TimeScale::ONE, "--time-scale"),
        (options.start.is_some(), "--start"),
        (options.end.is_some(), "--end"),
        (options.remap != Remap::Error, "--remap"),
        (options.align != Align::Clock, "--align"),
        (options.volumes != Volumes::Apart, "--volumes"),
        (options.capacity.is_some(), "a device capacity"),
    ];
    match given.iter().find(|(is_given, _)| *is_given) {
        None => Ok(()),
        Some((_, option)) => Err(Diagnostic::new(format!("{option} has no effect on an inspection"))
            .help("an inspection describes the file as it is; use `trace convert` to change it first")),
    }
}

/// Running counts of a pass.
struct Counts {
    requests: u64,
    by_op: BTreeMap<IoOp, (u64, u64)>,
    fua: u64,
    sequential: u64,
    first: u128,
    last: u128,
    address_min: u64,
    address_end: u64,
    sizes: Sizes,
    peak: PeakRate,
    footprint: Footprint,
    disorder: Disorder,
    streams: Vec<Stream>,
    activity: Intervals,
    recorded: Recorded,
}

impl Counts {
    fn new(whole_seconds: bool) -> Counts {
        Counts {
            requests: 0,
            by_op: BTreeMap::new(),
            fua: 0,
            sequential: 0,
            first: u128::MAX,
            last: 0,
            address_min: u64::MAX,
            address_end: 0,
            sizes: Sizes::default(),
            peak: PeakRate::default(),
            footprint: Footprint::new(),
            disorder: Disorder::new(),
            streams: Vec::new(),
            activity: Intervals::new(whole_seconds),
            recorded: Recorded::default(),
        }
    }

    fn add(&mut self, request: &RawRequest) {
        self.requests += 1;
        self.fua += u64::from(request.fua);
        self.first = self.first.min(request.at);
        self.last = self.last.max(request.at);
        self.peak.add(request.at);
        self.activity.add(request.at, request.bytes);
        if let Some(ps) = request.response {
            self.recorded.add(request.op, ps);
        }
        self.disorder.add(request.at);
        let of_op = self.by_op.entry(request.op).or_default();
        of_op.0 += 1;
        of_op.1 = of_op.1.saturating_add(request.bytes);
        let flow = usize::from(request.flow);
        if self.streams.len() <= flow {
            self.streams.resize(flow + 1, Stream::default());
        }
        let stream = &mut self.streams[flow];
        stream.requests += 1;
        stream.bytes = stream.bytes.saturating_add(request.bytes);
        if request.op == IoOp::Flush {
            return;
        }
        let end = request.offset + request.bytes;
        self.sequential += u64::from(stream.end == Some(request.offset));
        stream.end = Some(end);
        self.address_min = self.address_min.min(request.offset);
        self.address_end = self.address_end.max(end);
        self.sizes.add(request.bytes);
        if matches!(request.op, IoOp::Read | IoOp::Write) {
            self.footprint.add(request.flow, request.offset, request.bytes);
        }
    }

    fn finish(self, scan: &Scan) -> Inspection {
        let notes = scan.notes();
        let of = |op: IoOp| self.by_op.get(&op).copied().unwrap_or_default();
        let (writes, zeroes) = (of(IoOp::Write), of(IoOp::WriteZeroes));
        let span_s = (self.last - self.first) as f64 / 1e12;
        let requests = self.requests as f64;
        let mut warnings = notes.warnings();
        if self.disorder.unsorted() > 0 {
            warnings.push(format!(
                "{} requests are out of order: a replay sorts them with a sort window of {} or more",
                self.disorder.unsorted(),
                self.disorder.window()
            ));
        }
        warnings.extend(too_long(self.last.saturating_sub(self.first), &TraceOptions::default()));
        Inspection {
            source: scan.source().to_owned(),
            format: notes.format,
            also_fits: notes.also_fits.clone(),
            compression: notes.compression,
            warnings,
            lines: notes.lines,
            requests: self.requests,
            reads: of(IoOp::Read).0,
            writes: writes.0 + zeroes.0,
            trims: of(IoOp::Trim).0,
            flushes: of(IoOp::Flush).0,
            fua: self.fua,
            read_share: of(IoOp::Read).0 as f64 / requests,
            read_bytes: of(IoOp::Read).1,
            write_bytes: writes.1.saturating_add(zeroes.1),
            trim_bytes: of(IoOp::Trim).1,
            span_s,
            rate_per_s: (span_s > 0.0).then(|| requests / span_s),
            peak_per_s: self.peak.peak(),
            activity: self.activity.finish(),
            recorded_read_ns: summary(&self.recorded.read),
            recorded_write_ns: summary(&self.recorded.write),
            footprint_bytes: self.footprint.bytes(),
            footprint_exact: self.footprint.is_exact(),
            address_min: self.address_min.min(self.address_end),
            address_end: self.address_end,
            sizes: SizeSummary {
                min: self.sizes.min(),
                median: self.sizes.median(),
                mean: self.sizes.mean(),
                max: self.sizes.max(),
                top: self.sizes.top(5),
                exact: self.sizes.is_exact(),
            },
            sequential_share: self.sequential as f64 / requests,
            stream_count: self.streams.iter().filter(|s| s.requests > 0).count() as u64,
            streams: busiest(&self.streams, scan),
            unsorted: self.disorder.unsorted(),
            lateness_s: self.disorder.lateness() as f64 / 1e12,
            sort_window_needed: self.disorder.window(),
            errors: notes.skipped.clone(),
            bad_lines: notes.bad_lines.clone(),
        }
    }
}

fn summary(recorded: &Histogram) -> Option<Summary> {
    (recorded.count() > 0).then(|| Summary::from_ps(recorded))
}

fn busiest(streams: &[Stream], scan: &Scan) -> Vec<FlowSummary> {
    let mut order: Vec<usize> = (0..streams.len()).filter(|n| streams[*n].requests > 0).collect();
    order.sort_by_key(|n| (std::cmp::Reverse(streams[*n].requests), *n));
    order.truncate(STREAMS);
    let summary = |n: usize| FlowSummary {
        name: scan.notes().flows.name(n as u16).to_owned(),
        requests: streams[n].requests,
        bytes: streams[n].bytes,
    };
    order.into_iter().map(summary).collect()
}

// Activity of a trace over time, in a bounded number of intervals.

/// Maximum number of intervals; at least half as many once a trace is long enough.
const INTERVALS: usize = 512;

/// Initial width of an interval in picoseconds: a microsecond, or a second if the trace counts in seconds.
const FINEST: u128 = 1_000_000;

const SECOND: u128 = 1_000_000_000_000;

/// Requests and bytes of a trace over time, from its first request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Activity {
    /// Length of an interval in seconds: the span in 256 to 512 intervals, a power of two of microseconds, or of seconds where times are
    /// whole seconds.
    pub interval_s: f64,
    /// Number of requests in each interval; those before the first request of the file count in the first.
    pub requests: Vec<u64>,
    /// Bytes moved in each interval.
    pub bytes: Vec<u64>,
    /// Share of intervals without a request.
    pub idle_share: f64,
    /// Requests per second in the intervals that have any.
    pub busy_rate_per_s: f64,
}

/// Running counts of the intervals.
pub(crate) struct Intervals {
    first: Option<u128>,
    width: u128,
    counts: Vec<(u64, u64)>,
}

impl Intervals {
    pub(crate) fn new(whole_seconds: bool) -> Intervals {
        let width = if whole_seconds { SECOND } else { FINEST };
        Intervals { first: None, width, counts: Vec::new() }
    }

    pub(crate) fn add(&mut self, at: u128, bytes: u64) {
        let since = at.saturating_sub(*self.first.get_or_insert(at));
        while since / self.width >= INTERVALS as u128 {
            let pairs = self.counts.chunks(2);
            self.counts = pairs
                .map(|pair| {
                    pair.iter().fold((0, 0), |sum, one| (sum.0 + one.0, u64::saturating_add(sum.1, one.1)))
                })
                .collect();
            self.width *= 2;
        }
        // Below the number of intervals.
        let at = (since / self.width) as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, (0, 0));
        }
        self.counts[at].0 += 1;
        self.counts[at].1 = self.counts[at].1.saturating_add(bytes);
    }

    /// Returns the activity; `None` if all requests are in one interval.
    pub(crate) fn finish(self) -> Option<Activity> {
        let busy = self.counts.iter().filter(|(requests, _)| *requests > 0).count();
        let requests: u64 = self.counts.iter().map(|(requests, _)| requests).sum();
        let interval_s = self.width as f64 / 1e12;
        (self.counts.len() > 1).then(|| Activity {
            interval_s,
            idle_share: 1.0 - busy as f64 / self.counts.len() as f64,
            busy_rate_per_s: requests as f64 / (busy as f64 * interval_s),
            requests: self.counts.iter().map(|(requests, _)| *requests).collect(),
            bytes: self.counts.iter().map(|(_, bytes)| *bytes).collect(),
        })
    }
}

impl Activity {
    /// Draws the requests over time as a row of bars, in eighths of the tallest; a dot is an interval without
    /// requests.
    pub(crate) fn bars(&self, columns: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let width = self.requests.len().div_ceil(columns);
        let sums: Vec<u64> = self.requests.chunks(width).map(|chunk| chunk.iter().sum()).collect();
        let most = sums.iter().copied().max().unwrap_or_default().max(1);
        let bar = |sum: &u64| match sum {
            0 => '.',
            sum => BARS[((u128::from(*sum) * 8).div_ceil(u128::from(most)) - 1) as usize],
        };
        sums.iter().map(bar).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;

    const S: u128 = 1_000_000_000_000;

    /// A thousand seconds, with requests in the first hundred alone and one at the end.
    #[test]
    fn intervals_stay_bounded_and_count_everything_once() {
        let mut intervals = Intervals::new(false);
        (0..1000).for_each(|n| intervals.add(5 * S + n * S / 10, 512));
        intervals.add(1005 * S, 512);
        let activity = intervals.finish().unwrap();
        assert!((256..=512).contains(&activity.requests.len()), "{}", activity.requests.len());
        assert_eq!(activity.requests.iter().sum::<u64>(), 1001);
        assert_eq!(activity.bytes.iter().sum::<u64>(), 1001 * 512);
        // Busy for 100 s of 1000 s, to an interval or two.
        assert!((activity.idle_share - 0.9).abs() < 2.0 * activity.interval_s / 1000.0 + 0.001);
        assert!((activity.busy_rate_per_s / 10.0 - 1.0).abs() < 0.05, "{}", activity.busy_rate_per_s);
        let bars = activity.bars(20);
        assert!(bars.starts_with("██") && bars.contains("....") && bars.ends_with('▁'), "{bars}");
    }

    #[test]
    fn one_instant_has_no_activity() {
        let mut intervals = Intervals::new(false);
        intervals.add(7, 1);
        intervals.add(7, 1);
        assert!(intervals.finish().is_none());
    }
}
