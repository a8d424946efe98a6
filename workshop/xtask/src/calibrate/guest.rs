//! The side that runs inside of the guest: sets the kernel up, runs fio, and samples the kernel's counters in
//! `/proc` beside it.

use super::jobs::{self, OUTCOME, Outcome, PLAN, Plan, Stall, Target};
use anyhow::{Context, Result, bail};
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

/// Path under which the init script makes folders: the file system of devices is writable.
const FILES: &str = "/dev/cal/fs";
const LOGS: &str = "/dev/cal/log";
const DEVICE: &str = "/dev/vda";
const SAMPLE_EVERY: Duration = Duration::from_millis(100);

/// Runs the plan in the shared folder.
pub(super) fn run(folder: &Path) -> Result<()> {
    let plan: Plan = jobs::load_message(folder, PLAN)?;
    for (name, value) in &plan.settings {
        let path = setting(name);
        fs::write(&path, value).with_context(|| format!("{name} = {value}"))?;
    }
    if plan.prepare {
        call("mkfs.ext4", &["-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", DEVICE])?;
    }
    if plan.target == Target::Ext4 {
        call("mount", &["-t", "ext4", "-o", "noatime", DEVICE, FILES])?;
    }
    call("sync", &[])?;
    fs::write("/proc/sys/vm/drop_caches", "3")?;
    let facts = facts();
    let (samples, report) = measure(&plan)?;
    if plan.prepare {
        call("umount", &[FILES])?;
    }
    jobs::save_message(folder, OUTCOME, &Outcome { facts, samples, fio: report, stalls: stalls()? })
}

/// File of a setting.
fn setting(name: &str) -> PathBuf {
    match name.split_once('.') {
        Some(("queue", key)) => Path::new("/sys/block/vda/queue").join(key),
        _ => Path::new("/proc/sys").join(name.replace('.', "/")),
    }
}

fn call(program: &str, arguments: &[&str]) -> Result<()> {
    let status =
        Command::new(program).args(arguments).status().with_context(|| format!("{program} did not start"))?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    Ok(())
}

/// Properties of the kernel, its memory and its block device.
fn facts() -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut note = |name: &str, text: Option<String>| {
        if let Some(text) = text {
            facts.insert(name.to_owned(), text.trim().to_owned());
        }
    };
    for name in ["ostype", "osrelease", "version"] {
        note(&format!("kernel.{name}"), fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok());
    }
    let options = config().unwrap_or_default();
    for name in
        ["HZ", "PREEMPT_NONE", "NO_HZ_IDLE", "HIGH_RES_TIMERS", "LRU_GEN", "CGROUP_WRITEBACK", "NR_CPUS"]
    {
        let value = options.lines().find_map(|line| line.strip_prefix(&format!("CONFIG_{name}=")));
        note(&format!("config.{name}"), Some(value.unwrap_or("n").to_owned()));
    }
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    for name in ["MemTotal", "MemFree", "MemAvailable", "Cached"] {
        note(
            &format!("memory.{name}"),
            memory.lines().find_map(|line| line.strip_prefix(&format!("{name}:"))).map(str::to_owned),
        );
    }
    for name in [
        "scheduler",
        "nr_requests",
        "max_sectors_kb",
        "max_segments",
        "max_segment_size",
        "read_ahead_kb",
        "rotational",
        "wbt_lat_usec",
        "write_cache",
    ] {
        note(&format!("queue.{name}"), fs::read_to_string(setting(&format!("queue.{name}"))).ok());
    }
    for name in [
        "dirty_ratio",
        "dirty_background_ratio",
        "dirty_bytes",
        "dirty_background_bytes",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
        "min_free_kbytes",
        "swappiness",
    ] {
        note(&format!("vm.{name}"), fs::read_to_string(setting(&format!("vm.{name}"))).ok());
    }
    facts
}

/// Build options of the kernel.
fn config() -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open("/proc/config.gz").ok()?).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Runs fio and samples until it ends.
fn measure(plan: &Plan) -> Result<(Vec<Sample>, serde_json::Value)> {
    let _ = fs::remove_dir_all(LOGS);
    fs::create_dir_all(LOGS)?;
    let (begin, over) = (Instant::now(), AtomicBool::new(false));
    let (samples, output) = thread::scope(|scope| {
        let sampler = scope.spawn(|| sample(begin, &over));
        let output = Command::new("fio").args(options(plan)).stderr(Stdio::inherit()).output();
        over.store(true, Ordering::Relaxed);
        (sampler.join(), output)
    });
    let output = output.context("fio did not start")?;
    if !output.status.success() {
        bail!("fio failed: {}\n{}", output.status, String::from_utf8_lossy(&output.stdout));
    }
    let samples = samples.map_err(|_| anyhow::anyhow!("the sampler died"))??;
    Ok((samples, serde_json::from_slice(&output.stdout).context("fio's output is not JSON")?))
}

/// Command line of fio, with paths instead of names.
fn options(plan: &Plan) -> Vec<String> {
    let place = |option: &String| match (option.strip_prefix("filename="), plan.target) {
        (Some(name), Target::Ext4) => format!("--filename={FILES}/{name}"),
        (Some(_), Target::Raw) => format!("--filename={DEVICE}"),
        (None, _) => format!("--{option}"),
    };
    let mut options = vec!["--output-format=json+".to_owned(), "--eta=never".to_owned()];
    if !plan.prepare {
        options.push(format!("--write_lat_log={LOGS}/log"));
    }
    options.extend(plan.fio.iter().map(place));
    options
}

fn sample(begin: Instant, over: &AtomicBool) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    let mut next = Duration::ZERO;
    loop {
        let last = over.load(Ordering::Relaxed);
        let t_ms = begin.elapsed().as_millis() as u64;
        let [vmstat, memory, stat] =
            ["/proc/vmstat", "/proc/meminfo", "/sys/block/vda/stat"].map(fs::read_to_string);
        samples.push(Sample::parse(t_ms, &vmstat?, &memory?, &stat?)?);
        if last {
            return Ok(samples);
        }
        next += SAMPLE_EVERY;
        thread::sleep(next.saturating_sub(begin.elapsed()));
    }
}

/// Reads long writes from fio's logs of completion latencies, one file per job.
fn stalls() -> Result<Vec<Vec<Stall>>> {
    (1..)
        .map(|job| Path::new(LOGS).join(format!("log_clat.{job}.log")))
        .take_while(|path| path.exists())
        .map(|path| Ok(long_writes(&fs::read_to_string(path)?)))
        .collect()
}

/// Parses lines of: time in ms, latency in ns, direction (1: write), length, offset, priority.
fn long_writes(log: &str) -> Vec<Stall> {
    log.lines()
        .filter_map(|line| {
            let mut fields = line.split(',').map(|field| field.trim().parse::<u64>().ok());
            let (t_ms, ns, direction) = (fields.next()??, fields.next()??, fields.next()??);
            (direction == 1 && ns > 1_000_000).then_some(Stall { t_ms, ns })
        })
        .collect()
}

/// Counters of the guest's kernel at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Time since the job's program was started, in milliseconds.
    pub(super) t_ms: u64,
    /// `nr_dirty` of `/proc/vmstat`, in pages, as are the next three.
    pub(super) dirty: u64,
    /// `nr_writeback`.
    pub(super) writeback: u64,
    /// `nr_dirtied`, since boot.
    pub(super) dirtied: u64,
    /// `nr_written`, since boot.
    pub(super) written: u64,
    /// `nr_dirty_threshold`, in pages.
    pub(super) threshold: u64,
    /// `nr_dirty_background_threshold`, in pages.
    pub(super) background: u64,
    /// `Cached` of `/proc/meminfo`, in KiB.
    pub(super) cached_kib: u64,
    /// `Buffers` of `/proc/meminfo`, in KiB: pages of block devices.
    pub(super) buffers_kib: u64,
    /// `MemAvailable` of `/proc/meminfo`, in KiB.
    pub(super) available_kib: u64,
    /// Reads that the device has completed, since boot.
    pub(super) reads: u64,
    /// Reads merged into others.
    pub(super) read_merges: u64,
    /// Sectors of 512 bytes read.
    pub(super) read_sectors: u64,
    /// Writes that the device has completed.
    pub(super) writes: u64,
    /// Writes merged into others.
    pub(super) write_merges: u64,
    /// Sectors of 512 bytes written.
    pub(super) write_sectors: u64,
}

impl Sample {
    /// Parses the text of `/proc/vmstat`, of `/proc/meminfo`, and of the device's `stat`
    /// (Documentation/block/stat.rst).
    ///
    /// # Errors
    /// A counter is missing.
    pub(super) fn parse(t_ms: u64, vmstat: &str, meminfo: &str, stat: &str) -> Result<Self> {
        let page = |name| value(vmstat, name).with_context(|| format!("no {name} in /proc/vmstat"));
        let memory = |name| value(meminfo, name).with_context(|| format!("no {name} in /proc/meminfo"));
        let mut fields = stat.split_ascii_whitespace().map(str::parse);
        let mut field = || {
            fields
                .next()
                .context("the device's stat has too few fields")?
                .context("the device's stat is not numeric")
        };
        let [reads, read_merges, read_sectors, _, writes, write_merges, write_sectors] =
            [field()?, field()?, field()?, field()?, field()?, field()?, field()?];
        Ok(Self {
            t_ms,
            dirty: page("nr_dirty")?,
            writeback: page("nr_writeback")?,
            dirtied: page("nr_dirtied")?,
            written: page("nr_written")?,
            threshold: page("nr_dirty_threshold")?,
            background: page("nr_dirty_background_threshold")?,
            cached_kib: memory("Cached:")?,
            buffers_kib: memory("Buffers:")?,
            available_kib: memory("MemAvailable:")?,
            reads,
            read_merges,
            read_sectors,
            writes,
            write_merges,
            write_sectors,
        })
    }

    /// Returns whether a job is active between `self` and `next`: at least 64 pages were dirtied, or read or written by
    /// the device. A mount moves a few.
    pub(super) fn moved(&self, next: &Self) -> bool {
        let sectors = (next.read_sectors - self.read_sectors) + (next.write_sectors - self.write_sectors);
        next.dirtied - self.dirtied + sectors / 8 >= 64
    }
}

/// The number after a name that begins a line.
fn value(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next()? == name).then_some(words.next()?)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_writes_above_a_millisecond_are_stalls() {
        let log = "5, 2000000, 1, 4096, 0, 0\n6, 1000000, 1, 4096, 0, 0\n7, 3000000, 0, 4096, 0, 0\n8, 1000001, 1, 4096, 0, 0\n";
        assert_eq!(long_writes(log), [Stall { t_ms: 5, ns: 2_000_000 }, Stall { t_ms: 8, ns: 1_000_001 }]);
    }

    #[test]
    fn a_setting_is_a_file_of_proc_or_of_the_queue() {
        assert_eq!(setting("vm.dirty_ratio"), Path::new("/proc/sys/vm/dirty_ratio"));
        assert_eq!(setting("queue.read_ahead_kb"), Path::new("/sys/block/vda/queue/read_ahead_kb"));
    }

    #[test]
    fn names_of_files_become_places() {
        let plan = |target| Plan {
            prepare: true,
            target,
            settings: vec![],
            fio: vec!["name=a".into(), "filename=fit".into()],
        };
        assert_eq!(options(&plan(Target::Ext4))[2..], ["--name=a", "--filename=/dev/cal/fs/fit"]);
        assert_eq!(options(&plan(Target::Raw))[2..], ["--name=a", "--filename=/dev/vda"]);
    }

    const VMSTAT: &str = "nr_free_pages 1\nnr_dirty 10\nnr_writeback 11\nnr_writeback_temp 99\nnr_dirtied 12\n\
        nr_written 13\nnr_dirty_threshold 14\nnr_dirty_background_threshold 15\n";

    const MEMINFO: &str =
        "MemTotal:  9 kB\nMemAvailable:    70 kB\nBuffers:  6 kB\nCached:   8 kB\nSwapCached: 3 kB\n";

    // reads, merges, sectors, ms, writes, merges, sectors, ms, in flight, ...
    const STAT: &str = "  1  2  3  4  5  6  7  8  0  9 10 11 12 13 14 15 16\n";

    #[test]
    fn each_counter_comes_from_its_line() {
        let expected = Sample {
            t_ms: 100,
            dirty: 10,
            writeback: 11,
            dirtied: 12,
            written: 13,
            threshold: 14,
            background: 15,
            cached_kib: 8,
            buffers_kib: 6,
            available_kib: 70,
            reads: 1,
            read_merges: 2,
            read_sectors: 3,
            writes: 5,
            write_merges: 6,
            write_sectors: 7,
        };
        assert_eq!(Sample::parse(100, VMSTAT, MEMINFO, STAT).unwrap(), expected);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = Sample::parse(0, "nr_dirty 1\n", MEMINFO, STAT).unwrap_err().to_string();
        assert_eq!(error, "no nr_writeback in /proc/vmstat");
        assert!(Sample::parse(0, VMSTAT, MEMINFO, "1 2 3").is_err());
    }

    #[test]
    fn only_work_counts_as_movement() {
        let still = Sample { t_ms: 9, cached_kib: 4, dirtied: 63, read_sectors: 7, ..Sample::default() };
        assert!(!Sample::default().moved(&still));
        assert!(still.moved(&Sample { dirtied: 63 + 64, ..still }));
        // 64 pages of 8 sectors, in both directions together.
        assert!(still.moved(&Sample { read_sectors: 7 + 256, write_sectors: 256, ..still }));
        assert!(!still.moved(&Sample { read_sectors: 7 + 511, ..still }));
    }
}
