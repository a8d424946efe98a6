//! `cargo xtask calibrate-pagecache`: what the page cache of a real Linux does with fixed fio jobs, for the model to be
//! compared with.
//!
//! A guest of User-Mode Linux boots anew for each run, on a block device whose speed follows a law of few numbers.

mod boot;
mod disk;
mod document;
mod guest;
mod jobs;
mod options;
mod ring;
mod vhost;

use crate::workspace;
use anyhow::{Context, Result, bail};
use boot::Programs;
use clap::Args;
use document::{DeviceFacts, Document, Made, Measured};
use jobs::{COMMON_SETTINGS, JOBS, Job, Outcome, Plan, Target};
use options::{COMMON_FIO, PREPARE_FIO};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Speed low enough that the host's own speed does not matter.
const LAW: Law = Law { bytes_per_s: 40_000_000, latency_us: 200 };
const COMMITTED: &str = "tests/calibration/pagecache/uml-6.1.toml";
const PREPARE_LIMIT: Duration = Duration::from_secs(120);
const RUN_LIMIT: Duration = Duration::from_secs(100);

/// Arguments of `cargo xtask calibrate-pagecache`.
#[derive(Args)]
pub(crate) struct Options {
    /// Document to update instead of the committed one; measured jobs replace those of the same name
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only these jobs, or groups of jobs by their letter
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    jobs: Vec<String>,
    /// Number of runs of each job
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=9))]
    repeats: u32,
    /// User-Mode Linux binary, if it is not in the path
    #[arg(long, value_name = "PATH")]
    uml: Option<PathBuf>,
    /// Run as the guest, with this folder shared with the host
    #[arg(long, value_name = "FOLDER", hide = true)]
    guest: Option<PathBuf>,
}

/// Measures the selected jobs.
pub(crate) fn run(options: &Options) -> Result<bool> {
    if let Some(folder) = &options.guest {
        return guest::run(folder).map(|()| true);
    }
    let jobs = chosen(&options.jobs)?;
    let programs = Programs::find(options.uml.as_deref())?;
    let out = options.out.clone().unwrap_or_else(|| workspace::root().join(COMMITTED));
    let mut document = document::load(&out)?;
    if !go_first() {
        println!("note: cannot raise the priority; other work on this machine disturbs more");
    }
    println!("preparing the device");
    let (_, prepared) = boot::run(&programs, 1024, &prepare(), None, Store::default(), PREPARE_LIMIT)?;
    for job in jobs {
        let (outcomes, measured) = measure(&programs, job, options.repeats, &prepared.store)?;
        let facts = made(&outcomes[0]);
        let document =
            document.get_or_insert_with(|| Document { made: facts.clone(), device: device(), job: vec![] });
        if document.device != device() || document.made != facts {
            bail!("{} was made under different conditions: give a different --out", out.display());
        }
        put(&mut document.job, measured);
        document::save(&out, document)?;
    }
    Ok(true)
}

/// Jobs of a list; all jobs for an empty one.
fn chosen(list: &[String]) -> Result<Vec<&'static Job>> {
    let is = |job: &Job, wanted: &str| job.name == wanted || job.name.split('-').next() == Some(wanted);
    if let Some(odd) = list.iter().find(|wanted| !JOBS.iter().any(|job| is(job, wanted))) {
        bail!(
            "unknown job `{odd}`; jobs: {}",
            JOBS.iter().map(|job| job.name).collect::<Vec<_>>().join(", ")
        );
    }
    Ok(JOBS.iter().filter(|job| list.is_empty() || list.iter().any(|wanted| is(job, wanted))).collect())
}

/// Raises the priority of this program and its children, as far as the user may.
fn go_first() -> bool {
    let own = std::process::id().to_string();
    let status =
        Command::new("renice").args(["-n", "-20", "-p", &own]).stdout(std::process::Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn prepare() -> Plan {
    let fio = COMMON_FIO.iter().chain(PREPARE_FIO).map(ToString::to_string).collect();
    Plan { prepare: true, target: Target::Ext4, settings: vec![], fio }
}

/// Runs a job repeatedly, each time in a guest that boots with the prepared device.
fn measure(
    programs: &Programs,
    job: &Job,
    repeats: u32,
    prepared: &Store,
) -> Result<(Vec<Outcome>, Measured)> {
    let settings = COMMON_SETTINGS.iter().chain(job.settings);
    let plan = Plan {
        prepare: false,
        target: job.target,
        settings: settings.map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        fio: COMMON_FIO.iter().chain(job.fio).map(ToString::to_string).collect(),
    };
    let (mut outcomes, mut runs, mut load) = (Vec::new(), Vec::new(), Vec::new());
    for repeat in 1..=repeats {
        load.push(load_of_host());
        let (outcome, served) =
            boot::run(programs, job.memory_mib, &plan, Some(LAW), prepared.clone(), RUN_LIMIT)?;
        let mut figures = document::figures_of(&outcome)?;
        if let Some(most) = served.lateness_us.last() {
            figures
                .insert("device_late_p99_us".into(), served.lateness_us[served.lateness_us.len() * 99 / 100]);
            figures.insert("device_late_max_us".into(), *most);
        }
        println!(
            "{} {repeat}/{repeats}: {} ms, {} dirty pages of {}, load {}",
            job.name,
            figures["duration_ms"],
            figures["dirty_steady_pages"],
            figures["threshold_steady_pages"],
            load[load.len() - 1]
        );
        runs.push(figures);
        outcomes.push(outcome);
    }
    let of_kernel = |name: &str| ["kernel.", "config."].iter().any(|prefix| name.starts_with(prefix));
    let measured = Measured {
        name: job.name.into(),
        about: job.about.into(),
        day: day(),
        load,
        memory_mib: job.memory_mib,
        target: job.target,
        settings: job.settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        fio: job.fio.iter().map(ToString::to_string).collect(),
        runs: runs.len(),
        facts: outcomes[0].facts.clone().into_iter().filter(|(name, _)| !of_kernel(name)).collect(),
        figures: document::spread(&runs),
        series: document::series(&outcomes[document::median_run(&runs)].samples),
    };
    Ok((outcomes, measured))
}

/// Conditions shared by all jobs of a document.
fn made(outcome: &Outcome) -> Made {
    let fact = |name: &str| outcome.facts.get(name).cloned().unwrap_or_default();
    let config =
        |(name, value): (&String, &String)| Some((name.strip_prefix("config.")?.to_owned(), value.clone()));
    Made {
        by: "cargo xtask calibrate-pagecache".into(),
        kernel: format!("{} {}, User-Mode Linux", fact("kernel.ostype"), fact("kernel.osrelease")),
        kernel_version: fact("kernel.version"),
        time: "real".into(),
        fio: outcome.fio["fio version"].as_str().unwrap_or_default().into(),
        config: outcome.facts.iter().filter_map(config).collect(),
        common_fio: COMMON_FIO.iter().map(ToString::to_string).collect(),
        common_settings: COMMON_SETTINGS
            .iter()
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect(),
    }
}

fn device() -> DeviceFacts {
    DeviceFacts { law: LAW, bytes: boot::DEVICE_BYTES, depth: boot::DEPTH, request_max_kib: 256 }
}

/// Replaces the job of the same name, keeping the order of the list.
fn put(jobs: &mut Vec<Measured>, measured: Measured) {
    jobs.retain(|job| job.name != measured.name);
    jobs.push(measured);
    let places: BTreeMap<_, _> = JOBS.iter().enumerate().map(|(place, job)| (job.name, place)).collect();
    jobs.sort_by_key(|job| places.get(job.name.as_str()).copied().unwrap_or(usize::MAX));
}

/// Load over the last minute.
fn load_of_host() -> f64 {
    let text = std::fs::read_to_string(Path::new("/proc/loadavg")).unwrap_or_default();
    text.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}

/// Current day in UTC.
fn day() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

// The guest's memory: files that it shares, by physical address.

/// Region of memory backed by a file.
struct Region {
    /// First address.
    address: u64,
    /// Length in bytes.
    bytes: u64,
    /// Offset in the file.
    offset: u64,
    /// Backing file.
    file: File,
}

/// Memory of the guest.
struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    /// Creates the memory from its regions.
    fn new(regions: Vec<Region>) -> Self {
        Self { regions }
    }

    /// Reads bytes from an address on.
    ///
    /// # Errors
    /// The bytes are not all in one region.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<()> {
        let (file, offset) = self.find(address, into.len())?;
        Ok(file.read_exact_at(into, offset)?)
    }

    /// Writes bytes from an address on.
    ///
    /// # Errors
    /// The bytes are not all in one region.
    fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let (file, offset) = self.find(address, bytes.len())?;
        Ok(file.write_all_at(bytes, offset)?)
    }

    /// Slice of this many bytes at an address.
    ///
    /// # Errors
    /// The errors of [`Self::read`].
    fn array<const N: usize>(&self, address: u64) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Ok(bytes)
    }

    fn find(&self, address: u64, length: usize) -> Result<(&File, u64)> {
        let has = |region: &&Region| {
            let at = address.checked_sub(region.address);
            at.is_some_and(|at| at.checked_add(length as u64).is_some_and(|end| end <= region.bytes))
        };
        let region = self.regions.iter().find(has);
        let region = region
            .with_context(|| format!("{length} bytes at {address:#x} are outside the guest's memory"))?;
        Ok((&region.file, address - region.address + region.offset))
    }
}

// The law of the block device: few numbers, so that a simulated device can have the same.
//
// Requests are served one at a time in the order in which they come. Each takes a fixed latency and its bytes at a
// fixed bandwidth; the device is idle only when nothing waits.

/// Law of the time of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Law {
    /// Bandwidth in bytes per second.
    bytes_per_s: u64,
    /// Time of a request in addition to its bytes.
    latency_us: u64,
}

impl Law {
    /// Time of one request in nanoseconds, rounded up.
    fn service_ns(self, bytes: u64) -> u64 {
        self.latency_us * 1000 + (bytes * 1_000_000_000).div_ceil(self.bytes_per_s)
    }
}

/// Device that follows a law.
struct Device {
    law: Law,
    free_at_ns: u64,
}

impl Device {
    /// Creates a device that is idle at time zero.
    fn new(law: Law) -> Self {
        Self { law, free_at_ns: 0 }
    }

    /// Completion time of a request that arrives at `arrival_ns`. Requests come in order of arrival.
    fn complete(&mut self, arrival_ns: u64, bytes: u64) -> u64 {
        self.free_at_ns = arrival_ns.max(self.free_at_ns) + self.law.service_ns(bytes);
        self.free_at_ns
    }
}

// What a device holds, in memory: blocks of zeros take none, so that files of zeros of any length are free.

const BLOCK: usize = 4096;

/// Contents of a device. Unwritten bytes are zero.
#[derive(Clone, Default)]
struct Store {
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
}

impl Store {
    /// Reads bytes from `offset` on.
    fn read(&self, offset: u64, into: &mut [u8]) {
        for (block, from, piece) in pieces(offset, into.len()) {
            match self.blocks.get(&block) {
                Some(held) => {
                    let length = piece.len();
                    into[piece].copy_from_slice(&held[from..from + length]);
                }
                None => into[piece].fill(0),
            }
        }
    }

    /// Writes `data` at `offset`.
    fn write(&mut self, offset: u64, data: &[u8]) {
        for (block, from, piece) in pieces(offset, data.len()) {
            let part = &data[piece];
            let zeros = part.iter().all(|byte| *byte == 0);
            if zeros && part.len() == BLOCK {
                self.blocks.remove(&block);
            } else if !zeros || self.blocks.contains_key(&block) {
                let held = self.blocks.entry(block).or_insert_with(|| Box::new([0; BLOCK]));
                held[from..from + part.len()].copy_from_slice(part);
            }
        }
    }
}

/// Blocks of a range: number, first byte inside, and position in the range's buffer.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < length).then(|| {
            let place = offset + at as u64;
            let from = (place % BLOCK as u64) as usize;
            let piece = at..length.min(at + BLOCK - from);
            at = piece.end;
            (place / BLOCK as u64, from, piece)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_jobs_or_groups() {
        let names = |list: &[&str]| -> Vec<_> {
            let list: Vec<_> = list.iter().map(ToString::to_string).collect();
            chosen(&list).unwrap().iter().map(|job| job.name).collect()
        };
        assert_eq!(names(&["d-ahead-0", "i"]), ["d-ahead-0", "i-by-age"]);
        assert_eq!(names(&[]).len(), JOBS.len());
        let error = chosen(&["d-ahead".to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with("unknown job `d-ahead`; jobs: law-direct, "), "{error}");
    }

    #[test]
    fn the_committed_measurement_is_of_this_device_and_has_every_job() {
        let document = document::load(&workspace::root().join(COMMITTED)).unwrap().unwrap();
        assert_eq!(document.device, device());
        let names: Vec<_> = document.job.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, JOBS.iter().map(|job| job.name).collect::<Vec<_>>());
        for job in &document.job {
            let series = &job.series;
            let columns = [
                &series.dirty_pages,
                &series.writeback_pages,
                &series.dirtied_pages,
                &series.written_pages,
                &series.cached_kib,
                &series.read_kib,
            ];
            assert!(columns.iter().all(|column| column.len() == series.t_ms.len()), "{}", job.name);
            assert!(series.t_ms.is_sorted(), "{}", job.name);
            assert!(
                job.figures
                    .values()
                    .all(|spread| spread.low <= spread.median && spread.median <= spread.high)
            );
        }
    }

    // 40 bytes a microsecond.
    const LAW: Law = Law { bytes_per_s: 40_000_000, latency_us: 200 };

    #[test]
    fn a_request_takes_its_latency_and_its_bytes() {
        // 4096 / 40 = 102.4 us; 262144 / 40 = 6553.6 us.
        assert_eq!(LAW.service_ns(4096), 302_400);
        assert_eq!(LAW.service_ns(262_144), 6_753_600);
        assert_eq!(LAW.service_ns(0), 200_000);
    }

    #[test]
    fn a_fraction_of_a_nanosecond_is_rounded_up() {
        // 10 bytes at 3 GB/s: 3.33 ns.
        assert_eq!(Law { bytes_per_s: 3_000_000_000, latency_us: 0 }.service_ns(10), 4);
    }

    #[test]
    fn requests_wait_for_each_other_and_the_device_rests_between_bursts() {
        let mut device = Device::new(LAW);
        // Two at once, one while the second is served, one long after.
        let arrivals = [(1_000, 4096), (1_000, 4096), (400_000, 0), (5_000_000, 8192)];
        let done = arrivals.map(|(at, bytes)| device.complete(at, bytes));
        // 1000 + 302400; + 302400; + 200000; 5000000 + 200000 + 204800.
        assert_eq!(done, [303_400, 605_800, 805_800, 5_404_800]);
    }

    #[test]
    fn what_was_written_is_read_across_blocks_and_all_else_is_zero() {
        let mut store = Store::default();
        store.write(4000, &[7; 200]);
        let mut bytes = [1; 300];
        store.read(3950, &mut bytes);
        let expected: Vec<u8> =
            (3950..4250).map(|at| if (4000..4200).contains(&at) { 7 } else { 0 }).collect();
        assert_eq!(bytes.as_slice(), expected);
        assert_eq!(store.blocks.len(), 2);
    }

    #[test]
    fn zeros_take_no_memory_and_overwrite() {
        let mut store = Store::default();
        store.write(0, &[0; 3 * BLOCK]);
        assert!(store.blocks.is_empty());
        store.write(0, &[9; 2 * BLOCK]);
        store.write(512, &[0; BLOCK]);
        assert_eq!(store.blocks.len(), 2);
        let mut bytes = [1; 2];
        store.read(511, &mut bytes);
        assert_eq!(bytes, [9, 0]);
        store.write(0, &[0; 2 * BLOCK]);
        assert!(store.blocks.is_empty());
    }
}
