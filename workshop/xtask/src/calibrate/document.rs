//! The document of measurements.

use super::Law;
use super::figures::{self, Figures};
use super::plan::Target;
use super::sample::Sample;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Points of a series at most.
const POINTS: usize = 150;

/// All of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// How it was made.
    pub(super) made: Made,
    /// The block device.
    pub(super) device: DeviceFacts,
    /// What was measured, in the order of the list of jobs.
    #[serde(default)]
    pub(super) job: Vec<Measured>,
}

/// How a document was made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Made {
    pub(super) by: String,
    pub(super) kernel: String,
    pub(super) kernel_version: String,
    pub(super) time: String,
    pub(super) fio: String,
    /// Options of the kernel.
    pub(super) config: BTreeMap<String, String>,
    /// fio's options of every job.
    pub(super) common_fio: Vec<String>,
    /// Settings of every job.
    pub(super) common_settings: BTreeMap<String, String>,
}

/// The block device as the guest has it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceFacts {
    pub(super) law: Law,
    pub(super) bytes: u64,
    pub(super) depth: u32,
    pub(super) request_max_kib: u32,
}

/// One job: figures of all its runs, and the series of one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    pub(super) name: String,
    pub(super) about: String,
    /// The day in UTC, and what the host was doing: its load of one minute before each run.
    pub(super) day: String,
    pub(super) load: Vec<f64>,
    pub(super) memory_mib: u32,
    pub(super) target: Target,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) fio: Vec<String>,
    pub(super) runs: usize,
    /// Of the guest in its first run.
    pub(super) facts: BTreeMap<String, String>,
    pub(super) figures: BTreeMap<String, Spread>,
    pub(super) series: Series,
}

/// A figure over the runs; in the document `[median, least, greatest]`.
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

/// Counters over time, of the run whose volume is the median; counters since boot count from the job's begin.
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
    /// At most [`POINTS`], evenly picked, with the last one.
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

/// Of each figure that any run has; a run without it counts as zero.
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

/// Which run has the median of the bytes that were read and written.
pub(super) fn median_run(runs: &[Figures]) -> usize {
    let volume = |run: &Figures| -> u64 {
        run.iter().filter(|(name, _)| name.ends_with("_bytes")).map(|(_, value)| value).sum()
    };
    let mut order: Vec<_> = (0..runs.len()).collect();
    order.sort_by_key(|run| volume(&runs[*run]));
    order[order.len() / 2]
}

/// The samples of a job for its series.
pub(super) fn series(samples: &[Sample]) -> Series {
    Series::of(&figures::during(samples))
}

/// Reads a document, if there is one.
pub(super) fn load(path: &Path) -> Result<Option<Document>> {
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read_to_string(path)?;
    Ok(Some(toml::from_str(&text).with_context(|| format!("{} is no such document", path.display()))?))
}

/// Writes a document; those who read it along the way see the old one or the new one.
pub(super) fn save(path: &Path, document: &Document) -> Result<()> {
    let head = "# Measured by `cargo xtask calibrate-pagecache`; what it means is in docs/pagecache-calibration.md.\n\n";
    let text = format!("{head}{}", toml::to_string(document)?);
    let unfinished = path.with_extension("part");
    fs::write(&unfinished, text)?;
    Ok(fs::rename(unfinished, path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
