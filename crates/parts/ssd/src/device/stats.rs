//! Statistics of the device.

use super::{AheadCounters, ParityCounters, SlcCounters};
use ::stats::{Breakdown, Milestones};
use engine::{Snapshot, Time};
use ftl::buffer::destage::Pace;
use ftl::page_map::Ftl;
use ftl::page_map::pages::PageCounters;
use nand::dies::Backend;
use proto::{Command, IoOp, Status};

/// Milestones of a command, in the order of its life: each is something it waits for.
pub const MILESTONES: [&str; COUNT] = [
    "submission",
    "controller",
    "host_transfer",
    "mapping",
    "buffer",
    "merge",
    "space",
    "die_wait",
    "array",
    "channel_wait",
    "channel",
    "durable",
];
/// Number of milestones.
pub(super) const COUNT: usize = proto::MILESTONES;

/// Indexes into [`MILESTONES`].
pub mod milestone {
    /// Doorbell, arbitration and fetch.
    pub const SUBMISSION: usize = 0;
    /// A controller core.
    pub const CONTROLLER: usize = 1;
    /// The host link, data and completion.
    pub const HOST_TRANSFER: usize = 2;
    /// Mapping pages from flash.
    pub const MAPPING: usize = 3;
    /// Room in the buffer, and its access.
    pub const BUFFER: usize = 4;
    /// Old data of units that are written in part.
    pub const MERGE: usize = 5;
    /// Free space in flash.
    pub const SPACE: usize = 6;
    /// The die.
    pub const DIE_WAIT: usize = 7;
    /// The array.
    pub const ARRAY: usize = 8;
    /// The channel, waiting.
    pub const CHANNEL_WAIT: usize = 9;
    /// The channel, moving data.
    pub const CHANNEL: usize = 10;
    /// Everything written before, on flash.
    pub const DURABLE: usize = 11;
}

/// Counters of one measured window.
#[derive(Clone, Debug)]
pub struct DeviceStats {
    /// Breakdown of read time.
    pub reads: Breakdown<COUNT>,
    /// Breakdown of write time.
    pub writes: Breakdown<COUNT>,
    /// Breakdown of the time of all other commands.
    pub others: Breakdown<COUNT>,
    /// Reads of units that hold no data.
    pub unwritten_reads: u64,
    /// Reads of old data because a unit was written in part.
    pub merge_reads: u64,
    /// Units deallocated.
    pub trimmed_units: u64,
    /// Number of reclaim jobs.
    pub gc_runs: u64,
    /// Units moved to level wear.
    pub wear_units: u64,
    /// Bytes written by the host, without refused writes.
    pub written_bytes: u64,
    /// Bytes of refused host writes: none of them was programmed.
    pub failed_bytes: u64,
    /// Evictions of the buffer, if a policy decides on them.
    pub evictions: EvictionCounters,
    /// Traffic of the SLC cache, if any.
    pub slc: SlcCounters,
    /// Counters of parity, if any.
    pub parity: ParityCounters,
    /// Counters of the parts when the window began.
    pub(crate) origin: Origin,
}

/// Activity of a device's parts since the measured window began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Number of dies.
    pub dies: u64,
    /// Busy time of the dies, summed, in picoseconds.
    pub dies_busy_ps: u128,
    /// Bytes over channels; `None` if unknown.
    pub channel_bytes: Option<u64>,
    /// Bytes over the host's link, minimum and maximum consistent with its busy time.
    pub link_bytes: Option<[u64; 2]>,
}

/// Counters of the parts at the beginning of the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(crate) backend: nand::dies::BackendCounters,
    pub(crate) ftl: ftl::page_map::FtlCounters,
    pub(crate) ahead: AheadCounters,
    pub(crate) channel_busy: Vec<Time>,
    pub(crate) die_busy: Vec<Time>,
    /// Busy time of a half-duplex link.
    pub(crate) link_busy: Time,
    /// Programs of map units owed by the buffer.
    pub(crate) owed: u64,
    pub(crate) pages: PageCounters,
}

engine::snapshot!(Origin { backend, ftl, ahead, channel_busy, die_busy, link_busy, owed, pages });

/// Evictions of a buffer whose write-back a policy decides, and announcements to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounters {
    /// Map units on flash, by [`Pace`](ftl::buffer::destage::Pace): even, foreground, background.
    pub units: [u64; Pace::COUNT],
    /// Programs of these map units, by pace.
    pub programs: [u64; Pace::COUNT],
    /// Page victimizations announced by the host.
    pub announcements: u64,
    /// Announced pages, of [`proto::ANNOUNCED_PAGE`] bytes.
    pub announced_pages: u64,
}
engine::snapshot!(EvictionCounters { units, programs, announcements, announced_pages });

/// Buffered data that is not on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Bytes of the host, including those in flight to flash.
    pub bytes: u64,
    /// Programs of map units needed to bring them there.
    pub units: u64,
    /// Programs needed at the start of the measured window.
    pub units_before: u64,
}

impl Default for DeviceStats {
    fn default() -> DeviceStats {
        DeviceStats {
            reads: Breakdown::new(MILESTONES),
            writes: Breakdown::new(MILESTONES),
            others: Breakdown::new(MILESTONES),
            unwritten_reads: 0,
            merge_reads: 0,
            trimmed_units: 0,
            gc_runs: 0,
            wear_units: 0,
            written_bytes: 0,
            failed_bytes: 0,
            evictions: EvictionCounters::default(),
            slc: SlcCounters::default(),
            parity: ParityCounters::default(),
            origin: Origin::default(),
        }
    }
}

impl DeviceStats {
    /// Number of commands completed in the measured window.
    pub fn commands(&self) -> u64 {
        [&self.reads, &self.writes, &self.others].map(Breakdown::tasks).iter().sum()
    }

    #[inline]
    pub(super) fn completed(
        &mut self,
        command: &Command,
        status: Status,
        life: &Milestones<COUNT>,
        now: Time,
    ) {
        match command.op {
            IoOp::Read => self.reads.record(life, now),
            IoOp::Write => {
                let bytes = match status {
                    Status::Success => &mut self.written_bytes,
                    _ => &mut self.failed_bytes,
                };
                *bytes += command.bytes;
                self.writes.record(life, now);
            }
            IoOp::Trim | IoOp::WriteZeroes | IoOp::Flush => self.others.record(life, now),
        }
    }

    /// Number of commands whose latency was recorded.
    pub fn recorded(&self) -> u64 {
        [&self.reads, &self.writes, &self.others].iter().map(|b| b.tasks()).sum()
    }

    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let DeviceStats {
            reads,
            writes,
            others,
            unwritten_reads,
            merge_reads,
            trimmed_units,
            gc_runs,
            wear_units,
            written_bytes,
            failed_bytes,
            evictions,
            slc,
            parity,
            origin,
        } = self;
        [reads, writes, others].into_iter().for_each(|b| b.save(out));
        let counts =
            [unwritten_reads, merge_reads, trimmed_units, gc_runs, wear_units, written_bytes, failed_bytes];
        counts.into_iter().for_each(|n| n.save(out));
        evictions.save(out);
        slc.save(out);
        parity.save(out);
        origin.save(out);
    }

    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        for breakdown in [&mut self.reads, &mut self.writes, &mut self.others] {
            breakdown.load(input)?;
        }
        self.unwritten_reads = u64::load(input)?;
        self.merge_reads = u64::load(input)?;
        self.trimmed_units = u64::load(input)?;
        self.gc_runs = u64::load(input)?;
        self.wear_units = u64::load(input)?;
        self.written_bytes = u64::load(input)?;
        self.failed_bytes = u64::load(input)?;
        self.evictions = EvictionCounters::load(input)?;
        self.slc = SlcCounters::load(input)?;
        self.parity = ParityCounters::load(input)?;
        self.origin = Origin::load(input)?;
        Some(())
    }

    pub(super) fn starting(
        now: Time,
        ftl: &Ftl,
        backend: &Backend,
        link_busy: Time,
        owed: u64,
        ahead: AheadCounters,
    ) -> DeviceStats {
        let origin = Origin {
            ahead,
            backend: backend.counters.clone(),
            ftl: ftl.counters,
            channel_busy: backend.channel_busy(now),
            die_busy: backend.die_busy(now),
            link_busy,
            owed,
            pages: ftl.page_counters().unwrap_or_default().0,
        };
        DeviceStats { origin, ..DeviceStats::default() }
    }
}
