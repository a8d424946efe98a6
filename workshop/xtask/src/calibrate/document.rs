//! The document of measurements, and the way from what a guest has seen to its figures: whole numbers by name, with
//! the unit last.

use super::Law;
use super::guest::Sample;
use super::jobs::{Outcome, Stall, Target};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Maximum number of points of a series.
const POINTS: usize = 150;

/// Calibration document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// Conditions of the measurement.
    pub(super) made: Made,
    /// Block device.
    pub(super) device: DeviceFacts,
    /// Measured jobs, in the order of the list of jobs.
    #[serde(default)]
    pub(super) job: Vec<Measured>,
}

/// Conditions of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    pub(super) by: String,
    pub(super) kernel: String,
    pub(super) kernel_version: String,
    pub(super) time: String,
    pub(super) fio: String,
    /// Kernel options.
    pub(super) config: BTreeMap<String, String>,
    /// fio options of every job.
    pub(super) common_fio: Vec<String>,
    /// Settings of every job.
    pub(super) common_settings: BTreeMap<String, String>,
}

/// Block device as seen by the guest.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceFacts {
    pub(super) law: Law,
    pub(super) bytes: u64,
    pub(super) depth: u32,
    pub(super) request_max_kib: u32,
}

/// Job: metrics of all its runs, and the series of one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) about: String,
    /// Day in UTC, and the host's load over one minute before each run.
    pub(super) day: String,
    pub(super) load: Vec<f64>,
    pub(super) memory_mib: u32,
    pub(super) target: Target,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) fio: Vec<String>,
    pub(super) runs: usize,
    /// State of the guest in its first run.
    pub(super) facts: BTreeMap<String, String>,
    pub(super) figures: BTreeMap<String, Spread>,
    pub(super) series: Series,
}

/// Metric over the runs; in the document `[median, least, greatest]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "[u64; 3]", into = "[u64; 3]")]
pub(super) struct Spread {
    pub(super) median: u64,
    pub(super) low: u64,
    pub(super) high: u64,
}

impl From<[u64; 3]> for Spread {
    fn from([median, low, high]: [u64; 3]) -> Self {
        Self { median, low, high }
    }
}

impl From<Spread> for [u64; 3] {
    fn from(spread: Spread) -> Self {
        [spread.median, spread.low, spread.high]
    }
}

/// Counters over time, of the run with the median volume; counters since boot start at the job's beginning.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Series {
    pub(super) t_ms: Vec<u64>,
    pub(super) dirty_pages: Vec<u64>,
    pub(super) writeback_pages: Vec<u64>,
    pub(super) dirtied_pages: Vec<u64>,
    pub(super) written_pages: Vec<u64>,
    pub(super) cached_kib: Vec<u64>,
    pub(super) read_kib: Vec<u64>,
}

impl Series {
    /// At most [`POINTS`] points, evenly chosen, including the last one.
    pub(super) fn of(samples: &[Sample]) -> Self {
        let Some(first) = samples.first() else { return Self::default() };
        let stride = samples.len().div_ceil(POINTS - 1);
        let last = samples.len() - 1;
        let picked: Vec<_> = samples
            .iter()
            .enumerate()
            .filter(|(at, _)| at % stride == 0 || *at == last)
            .map(|(_, sample)| sample)
            .collect();
        let column = |of: &dyn Fn(&Sample) -> u64| picked.iter().map(|sample| of(sample)).collect();
        Self {
            t_ms: column(&|sample| sample.t_ms),
            dirty_pages: column(&|sample| sample.dirty),
            writeback_pages: column(&|sample| sample.writeback),
            dirtied_pages: column(&|sample| sample.dirtied - first.dirtied),
            written_pages: column(&|sample| sample.written - first.written),
            cached_kib: column(&|sample| sample.cached_kib + sample.buffers_kib),
            read_kib: column(&|sample| (sample.read_sectors - first.read_sectors) / 2),
        }
    }
}

/// Combines each metric of any run; a run without it counts as zero.
pub(super) fn spread(runs: &[Figures]) -> BTreeMap<String, Spread> {
    let names = runs.iter().flat_map(|figures| figures.keys());
    names
        .map(|name| {
            let mut values: Vec<_> = runs.iter().map(|run| run.get(name).copied().unwrap_or(0)).collect();
            values.sort_unstable();
            let spread =
                Spread { median: values[values.len() / 2], low: values[0], high: values[values.len() - 1] };
            (name.clone(), spread)
        })
        .collect()
}

/// Index of the run with the median of the bytes read and written.
pub(super) fn median_run(runs: &[Figures]) -> usize {
    let volume = |run: &Figures| -> u64 {
        run.iter().filter(|(name, _)| name.ends_with("_bytes")).map(|(_, value)| value).sum()
    };
    let mut order: Vec<_> = (0..runs.len()).collect();
    order.sort_by_key(|run| volume(&runs[*run]));
    order[order.len() / 2]
}

/// Samples of a job for its series.
pub(super) fn series(samples: &[Sample]) -> Series {
    Series::of(&during(samples))
}

/// Reads a document, if it exists.
pub(super) fn load(path: &Path) -> Result<Option<Document>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path)?;
    Ok(Some(
        toml::from_str(&text).with_context(|| format!("{} is not a calibration document", path.display()))?,
    ))
}

/// Writes a document atomically: readers see the old one or the new one.
pub(super) fn save(path: &Path, document: &Document) -> Result<()> {
    let head = "# Measured by `cargo xtask calibrate-pagecache`; what it means is in docs/pagecache-calibration.md.\n\n";
    let text = format!("{head}{}", toml::to_string(document)?);
    let unfinished = path.with_extension("part");
    fs::write(&unfinished, text)?;
    Ok(fs::rename(unfinished, path)?)
}

/// Metrics of one run.
pub(super) type Figures = BTreeMap<String, u64>;

/// Duration from which a write counts as a pause: shorter ones may be due to a loaded machine.
const PAUSE_NS: u64 = 5_000_000;

/// Samples of the job itself, starting at time zero: from the last one before any activity to the last in which it
/// dirtied or read.
///
/// Later write-back is cut off: the last close of a block device waits for it.
pub(super) fn during(samples: &[Sample]) -> Vec<Sample> {
    let first = samples.windows(2).position(|pair| pair[0].moved(&pair[1])).unwrap_or(0);
    let asks =
        |pair: &[Sample]| (pair[0].dirtied, pair[0].read_sectors) != (pair[1].dirtied, pair[1].read_sectors);
    let dirties =
        samples.first().zip(samples.last()).is_some_and(|(first, last)| last.dirtied - first.dirtied >= 64);
    let last = samples.windows(2).rposition(asks).filter(|_| dirties).map_or(samples.len(), |at| at + 2);
    let begin = samples.get(first).map_or(0, |sample| sample.t_ms);
    let cut = samples.get(first..last).unwrap_or_default();
    cut.iter().map(|sample| Sample { t_ms: sample.t_ms - begin, ..*sample }).collect()
}

/// All metrics of a run.
pub(super) fn figures_of(outcome: &Outcome) -> Result<Figures> {
    let mut figures = Figures::new();
    let samples = during(&outcome.samples);
    of_samples(&samples, &mut figures).context("too few samples")?;
    let jobs = outcome.fio["jobs"].as_array().context("fio reports no jobs")?;
    for job in jobs {
        of_fio(job, &mut figures).context("fio reports no name for a job")?;
    }
    let direct = |options: &Value| options["direct"] == "1";
    for (job, stalls) in jobs.iter().zip(&outcome.stalls) {
        // A direct write waits for the device: that does not count as a pause.
        if direct(&outcome.fio["global options"]) || direct(&job["job options"]) {
            continue;
        }
        of_stalls(job["jobname"].as_str().unwrap_or_default(), stalls, &mut figures);
    }
    Ok(figures)
}

/// Adds metrics from the kernel's counters. A steady value is the median of the later half of the time.
fn of_samples(samples: &[Sample], figures: &mut Figures) -> Option<()> {
    let (first, last) = (samples.first()?, samples.last()?);
    let half = &samples[samples.partition_point(|sample| sample.t_ms * 2 < last.t_ms)..];
    let begin = half.first()?;
    let mut note = |name: &str, value: u64| figures.insert(name.to_owned(), value);
    let steady = |of: fn(&Sample) -> u64| median(half.iter().map(of).collect());
    let per_s = |pages: u64| pages * 4096 * 1000 / (last.t_ms - begin.t_ms).max(1);
    note("duration_ms", last.t_ms);
    note("dirty_steady_pages", steady(|sample| sample.dirty));
    note("dirty_max_pages", samples.iter().map(|sample| sample.dirty).max()?);
    note("writeback_steady_pages", steady(|sample| sample.writeback));
    note("threshold_steady_pages", steady(|sample| sample.threshold));
    note("background_steady_pages", steady(|sample| sample.background));
    note("threshold_first_pages", first.threshold);
    note("background_first_pages", first.background);
    note("dirtied_pages", last.dirtied - first.dirtied);
    note("written_pages", last.written - first.written);
    note("dirtied_steady_bytes_per_s", per_s(last.dirtied - begin.dirtied));
    note("written_steady_bytes_per_s", per_s(last.written - begin.written));
    note("cached_first_kib", first.cached_kib);
    note("cached_last_kib", last.cached_kib);
    note("available_first_kib", first.available_kib);
    let (writes, reads) = (last.writes - first.writes, last.reads - first.reads);
    note("disk_writes", writes);
    note("disk_write_merges", last.write_merges - first.write_merges);
    note(
        "disk_write_mean_bytes",
        ((last.write_sectors - first.write_sectors) * 512).checked_div(writes).unwrap_or(0),
    );
    note("disk_reads", reads);
    note("disk_read_merges", last.read_merges - first.read_merges);
    note(
        "disk_read_mean_bytes",
        ((last.read_sectors - first.read_sectors) * 512).checked_div(reads).unwrap_or(0),
    );
    Some(())
}

/// Adds metrics of one fio job: bandwidth and latencies of reads, writes and syncs, where present.
fn of_fio(job: &Value, figures: &mut Figures) -> Option<()> {
    let name = job["jobname"].as_str()?;
    let mut note = |what: &str, value: &Value| {
        if let Some(value) = value.as_u64().or(value.as_f64().map(|value| value as u64)) {
            figures.insert(format!("{name}.{what}"), value);
        }
    };
    for way in ["read", "write"] {
        let side = &job[way];
        if side["total_ios"].as_u64().unwrap_or(0) == 0 {
            continue;
        }
        note(&format!("{way}_bytes_per_s"), &side["bw_bytes"]);
        note(&format!("{way}_bytes"), &side["io_bytes"]);
        note(&format!("{way}_calls"), &side["total_ios"]);
        note(&format!("{way}_p50_ns"), &side["clat_ns"]["percentile"]["50.000000"]);
        note(&format!("{way}_p99_ns"), &side["clat_ns"]["percentile"]["99.000000"]);
        note(&format!("{way}_mean_ns"), &side["clat_ns"]["mean"]);
        note(&format!("{way}_max_ns"), &side["clat_ns"]["max"]);
    }
    let sync = &job["sync"];
    if sync["total_ios"].as_u64().unwrap_or(0) > 0 {
        note("sync_calls", &sync["total_ios"]);
        note("sync_p50_ns", &sync["lat_ns"]["percentile"]["50.000000"]);
        note("sync_p90_ns", &sync["lat_ns"]["percentile"]["90.000000"]);
        note("sync_mean_ns", &sync["lat_ns"]["mean"]);
        note("sync_p99_ns", &sync["lat_ns"]["percentile"]["99.000000"]);
        note("sync_max_ns", &sync["lat_ns"]["max"]);
    }
    Some(())
}

/// Adds metrics of long writes of a fio job.
fn of_stalls(name: &str, stalls: &[Stall], figures: &mut Figures) {
    if stalls.is_empty() {
        return;
    }
    let mut note = |what: &str, value: u64| figures.insert(format!("{name}.{what}"), value);
    note("writes_above_1ms", stalls.len() as u64);
    let pauses: Vec<_> = stalls.iter().filter(|stall| stall.ns >= PAUSE_NS).collect();
    if let Some(first) = pauses.first() {
        // When it began: the log has its end.
        note("first_pause_ms", first.t_ms.saturating_sub(first.ns / 1_000_000));
        note("pauses", pauses.len() as u64);
        note("pause_p50_ns", median(pauses.iter().map(|stall| stall.ns).collect()));
        note("pause_total_ms", pauses.iter().map(|stall| stall.ns).sum::<u64>() / 1_000_000);
    }
}

/// Median; of an even number the greater of the middle two.
fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_series_is_short_and_ends_with_the_last_sample() {
        let samples: Vec<_> =
            (0..1000).map(|at| Sample { t_ms: at * 100, dirtied: 50 + at, ..Sample::default() }).collect();
        let series = Series::of(&samples);
        assert!(series.t_ms.len() <= POINTS);
        assert_eq!((series.t_ms[0], *series.t_ms.last().unwrap()), (0, 99_900));
        assert_eq!((series.dirtied_pages[0], *series.dirtied_pages.last().unwrap()), (0, 999));
        assert_eq!(Series::of(&samples[..3]).t_ms, [0, 100, 200]);
    }

    #[test]
    fn a_spread_has_median_and_ends_and_zero_for_what_a_run_lacks() {
        let runs =
            [("a", 5), ("a", 1), ("b", 9)].map(|(name, value)| Figures::from([(name.to_owned(), value)]));
        let spread = spread(&runs);
        assert_eq!(spread["a"], Spread { median: 1, low: 0, high: 5 });
        assert_eq!(spread["b"], Spread { median: 0, low: 0, high: 9 });
    }

    #[test]
    fn the_run_of_a_series_is_the_one_in_the_middle() {
        let runs = [30, 10, 20].map(|bytes| {
            Figures::from([("w.write_bytes".to_owned(), bytes), ("x_ns".to_owned(), 99 - bytes)])
        });
        assert_eq!(median_run(&runs), 2);
    }

    fn at(t_ms: u64, dirty: u64, dirtied: u64, writes: u64) -> Sample {
        Sample { t_ms, dirty, dirtied, writes, write_sectors: writes * 16, ..Sample::default() }
    }

    fn times(samples: &[Sample]) -> Vec<u64> {
        during(samples).iter().map(|sample| sample.t_ms).collect()
    }

    #[test]
    fn a_job_begins_with_the_last_sample_before_anything_moves() {
        let samples = [at(0, 5, 7, 0), at(100, 5, 8, 0), at(200, 6, 80, 0), at(300, 6, 81, 0)];
        assert_eq!(times(&samples), [0, 100, 200]);
        assert!(during(&[]).is_empty());
    }

    #[test]
    fn a_job_that_dirties_ends_with_it_and_one_that_does_not_with_the_samples() {
        let samples = [
            at(0, 0, 0, 0),
            at(100, 90, 90, 0),
            at(200, 50, 99, 40),
            at(300, 10, 99, 80),
            at(400, 0, 99, 90),
        ];
        assert_eq!(times(&samples), [0, 100, 200]);
        let direct = [at(0, 0, 0, 0), at(100, 0, 0, 400), at(200, 0, 0, 800)];
        assert_eq!(times(&direct), [0, 100, 200]);
    }

    #[test]
    fn steady_is_the_median_of_the_later_half() {
        let samples =
            [at(0, 0, 0, 0), at(100, 90, 10, 1), at(200, 10, 20, 2), at(300, 30, 30, 3), at(400, 20, 120, 4)];
        let mut figures = Figures::new();
        of_samples(&samples, &mut figures).unwrap();
        assert_eq!(figures["dirty_steady_pages"], 20);
        assert_eq!(figures["dirty_max_pages"], 90);
        // 100 pages in 200 ms.
        assert_eq!(figures["dirtied_steady_bytes_per_s"], 100 * 4096 * 5);
        assert_eq!(figures["disk_write_mean_bytes"], 16 * 512);
        assert_eq!(figures["disk_read_mean_bytes"], 0);
    }

    #[test]
    fn only_what_a_job_has_done_has_figures() {
        let side = json!({"total_ios": 3, "bw_bytes": 12, "io_bytes": 36,
            "clat_ns": {"mean": 7.9, "max": 9, "percentile": {"50.000000": 5, "99.000000": 8}}});
        let job = json!({"jobname": "w", "read": {"total_ios": 0}, "write": side, "sync": {"total_ios": 0}});
        let mut figures = Figures::new();
        of_fio(&job, &mut figures).unwrap();
        let expected = [
            ("bytes", 36),
            ("bytes_per_s", 12),
            ("calls", 3),
            ("max_ns", 9),
            ("mean_ns", 7),
            ("p50_ns", 5),
            ("p99_ns", 8),
        ];
        assert_eq!(
            figures,
            expected.iter().map(|(name, value)| (format!("w.write_{name}"), *value)).collect()
        );
    }

    #[test]
    fn a_pause_begins_before_its_line_in_the_log() {
        let mut figures = Figures::new();
        let stalls = [(3, 2_000_000), (40, 10_000_000), (60, 20_000_000), (90, 12_000_000)];
        of_stalls("w", &stalls.map(|(t_ms, ns)| Stall { t_ms, ns }), &mut figures);
        assert_eq!(figures["w.writes_above_1ms"], 4);
        assert_eq!(figures["w.first_pause_ms"], 30);
        assert_eq!(figures["w.pause_p50_ns"], 12_000_000);
        assert_eq!(figures["w.pause_total_ms"], 42);
    }
}
