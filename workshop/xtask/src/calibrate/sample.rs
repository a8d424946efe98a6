//! What is read of `/proc` again and again while a job runs.

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// Counters of the guest's kernel at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sample {
    /// Since the job's program was started, in milliseconds.
    pub(super) t_ms: u64,
    /// `nr_dirty` of `/proc/vmstat`, in pages; so are the next three.
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
    /// From the text of `/proc/vmstat`, of `/proc/meminfo`, and of the device's `stat` (Documentation/block/stat.rst).
    ///
    /// # Errors
    /// If something is missing in them.
    pub(super) fn parse(t_ms: u64, vmstat: &str, meminfo: &str, stat: &str) -> Result<Self> {
        let page = |name| value(vmstat, name).with_context(|| format!("no {name} in /proc/vmstat"));
        let memory = |name| value(meminfo, name).with_context(|| format!("no {name} in /proc/meminfo"));
        let mut fields = stat.split_ascii_whitespace().map(str::parse);
        let mut field =
            || fields.next().context("the device's stat is short")?.context("the device's stat is odd");
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

    /// Whether a job is at work between `self` and `next`: 64 pages or more were dirtied, or read or written by the device. A mount moves a few.
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
