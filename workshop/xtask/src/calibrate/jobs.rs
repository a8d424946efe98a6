//! The fixed list of jobs, and what host and guest tell each other of one, in two files of a shared folder.

use super::guest::Sample;
use super::options::{
    DIRECT, DIRECT_BESIDE, FITTING_MIX, FITTING_READ, LARGE_MIX, RANDOM, RANDOM_READ, RANDOM_SYNC,
    READ_BESIDE, SEQUENTIAL, SEQUENTIAL_READ, SEQUENTIAL_SYNC, SLOW_WRITER, SYNC_ALONE, SYNC_BESIDE,
    SYNC_BESIDE_TWO, TWO_WRITERS, WRITE_READ,
};
use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Job: a guest boots for it, and again for each repeat.
#[derive(Clone, Debug)]
pub(super) struct Job {
    /// Name: the letter of its group, and what is special about it.
    pub(super) name: &'static str,
    /// Description.
    pub(super) about: &'static str,
    /// Memory of the guest.
    pub(super) memory_mib: u32,
    /// Target of its requests.
    pub(super) target: Target,
    /// Settings in addition to [`COMMON_SETTINGS`].
    pub(super) settings: &'static [(&'static str, &'static str)],
    /// fio options in addition to [`COMMON_FIO`](super::options::COMMON_FIO). The files `fit` (256 MiB) and `large`
    /// (1280 MiB) exist; others are created.
    pub(super) fio: &'static [&'static str],
}

/// Settings made before every job: no work of the block layer's own, and at most 256 KiB in a request.
pub(super) const COMMON_SETTINGS: &[(&str, &str)] = &[
    ("queue.scheduler", "none"),
    ("queue.wbt_lat_usec", "0"),
    ("queue.rotational", "0"),
    ("queue.max_sectors_kb", "256"),
];

const RATIOS_10_5: &[(&str, &str)] = &[("vm.dirty_ratio", "10"), ("vm.dirty_background_ratio", "5")];
const RATIOS_40_10: &[(&str, &str)] = &[("vm.dirty_ratio", "40"), ("vm.dirty_background_ratio", "10")];
const BYTES_64_16: &[(&str, &str)] =
    &[("vm.dirty_bytes", "67108864"), ("vm.dirty_background_bytes", "16777216")];
const BYTES_32_8: &[(&str, &str)] =
    &[("vm.dirty_bytes", "33554432"), ("vm.dirty_background_bytes", "8388608")];
const BY_AGE: &[(&str, &str)] = &[
    ("vm.dirty_ratio", "60"),
    ("vm.dirty_background_ratio", "40"),
    ("vm.dirty_expire_centisecs", "300"),
    ("vm.dirty_writeback_centisecs", "100"),
];

const OWN_BLOCK_LAYER: &[(&str, &str)] = &[
    ("queue.rotational", "1"),
    ("queue.scheduler", "mq-deadline"),
    ("queue.wbt_lat_usec", "75000"),
    ("queue.max_sectors_kb", "1280"),
];

const KYBER: &[(&str, &str)] = &[("queue.scheduler", "kyber")];
const DEADLINE: &[(&str, &str)] = &[("queue.scheduler", "mq-deadline")];
/// `wbt_default_latency_nsec` of a non-rotational device.
const KYBER_WBT: &[(&str, &str)] = &[("queue.scheduler", "kyber"), ("queue.wbt_lat_usec", "2000")];
const NONE_WBT: &[(&str, &str)] = &[("queue.wbt_lat_usec", "2000")];

const fn job(
    name: &'static str,
    about: &'static str,
    memory_mib: u32,
    target: Target,
    settings: &'static [(&'static str, &'static str)],
    fio: &'static [&'static str],
) -> Job {
    Job { name, about, memory_mib, target, settings, fio }
}

/// All jobs, the most informative first.
pub(super) const JOBS: &[Job] = &[
    job(
        "law-direct",
        "the device without a page cache: direct, one at a time and eight",
        512,
        Target::Raw,
        &[],
        DIRECT,
    ),
    job("a-ratio-20-10", "sequential write, the kernel's own limits", 512, Target::Ext4, &[], SEQUENTIAL),
    job("a-ratio-10-5", "sequential write, half of them", 512, Target::Ext4, RATIOS_10_5, SEQUENTIAL),
    job(
        "a-ratio-40-10",
        "sequential write, a wide range between them",
        512,
        Target::Ext4,
        RATIOS_40_10,
        SEQUENTIAL,
    ),
    job("a-bytes-64-16", "sequential write, limits in bytes", 512, Target::Ext4, BYTES_64_16, SEQUENTIAL),
    job(
        "a-bytes-32-8",
        "sequential write, narrow limits in bytes",
        512,
        Target::Ext4,
        BYTES_32_8,
        SEQUENTIAL,
    ),
    job("a-raw-ratio-20-10", "sequential write to the device", 512, Target::Raw, &[], SEQUENTIAL),
    job(
        "a-raw-bytes-64-16",
        "sequential write to the device, limits in bytes",
        512,
        Target::Raw,
        BYTES_64_16,
        SEQUENTIAL,
    ),
    job("c-sequential", "sequential write, fsync after each 32", 512, Target::Ext4, &[], SEQUENTIAL_SYNC),
    job("c-random", "random write, fsync after each 32", 512, Target::Ext4, &[], RANDOM_SYNC),
    job(
        "c-raw-sequential",
        "sequential write to the device, fsync after each 32",
        512,
        Target::Raw,
        &[],
        SEQUENTIAL_SYNC,
    ),
    job(
        "c-raw-random",
        "random write to the device, fsync after each 32",
        512,
        Target::Raw,
        &[],
        RANDOM_SYNC,
    ),
    job(
        "d-ahead-128",
        "sequential read, the kernel's own read-ahead",
        512,
        Target::Ext4,
        &[("queue.read_ahead_kb", "128")],
        SEQUENTIAL_READ,
    ),
    job(
        "d-ahead-0",
        "sequential read without read-ahead",
        512,
        Target::Ext4,
        &[("queue.read_ahead_kb", "0")],
        SEQUENTIAL_READ,
    ),
    job(
        "d-ahead-1024",
        "sequential read, much read-ahead",
        512,
        Target::Ext4,
        &[("queue.read_ahead_kb", "1024")],
        SEQUENTIAL_READ,
    ),
    job(
        "i-by-age",
        "a writer slower than the device: written back by age alone",
        512,
        Target::Ext4,
        BY_AGE,
        SLOW_WRITER,
    ),
    job("b-ratio-20-10", "random write, the kernel's own limits", 512, Target::Ext4, &[], RANDOM),
    job("b-bytes-64-16", "random write, limits in bytes", 512, Target::Ext4, BYTES_64_16, RANDOM),
    job("e-large", "random read of a file larger than memory", 512, Target::Ext4, &[], RANDOM_READ),
    job("e-fit", "random read of a file that fits", 512, Target::Ext4, &[], FITTING_READ),
    job("f-fit", "random, 70 % reads, of a file that fits", 512, Target::Ext4, &[], FITTING_MIX),
    job("f-large", "random, 70 % reads, of a file larger than memory", 512, Target::Ext4, &[], LARGE_MIX),
    job("g-write-read", "a file larger than memory is written and read", 512, Target::Ext4, &[], WRITE_READ),
    job("h-two-writers", "two sequential writers", 512, Target::Ext4, &[], TWO_WRITERS),
    job(
        "j-direct-beside",
        "direct random writes beside a buffered sequential writer",
        512,
        Target::Ext4,
        &[],
        DIRECT_BESIDE,
    ),
    job(
        "k-own-block-layer",
        "sequential write, the block layer as the kernel sets it up for this device",
        512,
        Target::Ext4,
        OWN_BLOCK_LAYER,
        SEQUENTIAL,
    ),
    job("a-1g-ratio-20-10", "sequential write, twice the memory", 1024, Target::Ext4, &[], SEQUENTIAL),
    job(
        "a-1g-bytes-64-16",
        "sequential write, twice the memory, limits in bytes",
        1024,
        Target::Ext4,
        BYTES_64_16,
        SEQUENTIAL,
    ),
    job("b-1g-ratio-20-10", "random write, twice the memory", 1024, Target::Ext4, &[], RANDOM),
    job(
        "e-1g-large",
        "random read of a file larger than memory, twice the memory",
        1024,
        Target::Ext4,
        &[],
        RANDOM_READ,
    ),
    job("l-kyber-alone", "sequential write, fsync after each; kyber", 512, Target::Ext4, KYBER, SYNC_ALONE),
    job(
        "l-kyber",
        "a thread that calls fsync after each write, beside a sequential writer; kyber",
        512,
        Target::Ext4,
        KYBER,
        SYNC_BESIDE,
    ),
    job("l-none", "the same; none", 512, Target::Ext4, &[], SYNC_BESIDE),
    job("l-deadline", "the same; mq-deadline", 512, Target::Ext4, DEADLINE, SYNC_BESIDE),
    job("l-kyber-wbt", "the same; kyber, write-back throttled", 512, Target::Ext4, KYBER_WBT, SYNC_BESIDE),
    job("l-none-wbt", "the same; none, write-back throttled", 512, Target::Ext4, NONE_WBT, SYNC_BESIDE),
    job(
        "l-kyber-two",
        "a thread that calls fsync after each write of 128 KiB, beside two sequential writers; kyber",
        512,
        Target::Ext4,
        KYBER,
        SYNC_BESIDE_TWO,
    ),
    job(
        "m-kyber",
        "direct random reads beside a buffered sequential writer; kyber",
        512,
        Target::Ext4,
        KYBER,
        READ_BESIDE,
    ),
    job("m-none", "the same; none", 512, Target::Ext4, &[], READ_BESIDE),
    job("m-deadline", "the same; mq-deadline", 512, Target::Ext4, DEADLINE, READ_BESIDE),
    job("m-kyber-wbt", "the same; kyber, write-back throttled", 512, Target::Ext4, KYBER_WBT, READ_BESIDE),
];

/// File with the plan.
pub(super) const PLAN: &str = "plan.json";

/// File with the outcome.
pub(super) const OUTCOME: &str = "outcome.json";

/// Target of a job's requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Target {
    /// Files of an ext4 file system made with defaults, mounted with `noatime`.
    Ext4,
    /// Block device itself.
    Raw,
}

/// Plan of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// True to make the file system first; nothing is measured.
    pub(super) prepare: bool,
    /// Target of the requests.
    pub(super) target: Target,
    /// Names such as `vm.dirty_ratio` and `queue.read_ahead_kb`, with values.
    pub(super) settings: Vec<(String, String)>,
    /// fio options without the leading `--`; a `filename` is a name in the file system.
    pub(super) fio: Vec<String>,
}

/// Write that took longer than a millisecond.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Stall {
    /// Time of return, since its fio job began.
    pub(super) t_ms: u64,
    /// Duration.
    pub(super) ns: u64,
}

/// Outcome of a guest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Properties of the kernel, its memory and its block device, by name.
    pub(super) facts: BTreeMap<String, String>,
    /// Samples from the start of fio to its end.
    pub(super) samples: Vec<Sample>,
    /// Report of fio.
    pub(super) fio: serde_json::Value,
    /// Long writes of each fio job, in the order of the jobs.
    pub(super) stalls: Vec<Vec<Stall>>,
}

/// Reads a file of the shared folder.
pub(super) fn load_message<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T> {
    let text = fs::read(folder.join(name)).with_context(|| format!("no {name}"))?;
    serde_json::from_slice(&text).with_context(|| format!("{name} cannot be read"))
}

/// Writes a file of the shared folder atomically.
pub(super) fn save_message<T: Serialize>(folder: &Path, name: &str, what: &T) -> Result<()> {
    let unfinished = folder.join(format!("{name}.part"));
    let file = fs::File::create(&unfinished)?;
    serde_json::to_writer(&file, what)?;
    file.sync_all()?;
    Ok(fs::rename(unfinished, folder.join(name))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_times_are_bounded() {
        let names: BTreeSet<_> = JOBS.iter().map(|job| job.name).collect();
        assert_eq!(names.len(), JOBS.len());
        for option in JOBS.iter().flat_map(|job| job.fio).filter_map(|option| option.strip_prefix("runtime="))
        {
            assert!(option.parse::<u32>().unwrap() <= 40);
        }
    }
}
