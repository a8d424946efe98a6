//! What the device has counted.

use super::{AheadCounters, ParityCounters, SlcCounters};
use ::stats::{Breakdown, Milestones};
use engine::{Snapshot, Time};
use ftl::buffer::destage::Pace;
use ftl::page_map::Ftl;
use ftl::page_map::pages::PageCounters;
use nand::dies::Backend;
use proto::{Command, IoOp, Status};

/// What a command waits for, in the order of its life.
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
/// Milestones.
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
    /// Where the time of reads went.
    pub reads: Breakdown<COUNT>,
    /// Where the time of writes went.
    pub writes: Breakdown<COUNT>,
    /// Where the time of everything else went.
    pub others: Breakdown<COUNT>,
    /// Reads of units that hold no data.
    pub unwritten_reads: u64,
    /// Reads of old data because a unit was written in part.
    pub merge_reads: u64,
    /// Units deallocated.
    pub trimmed_units: u64,
    /// Reclaim jobs.
    pub gc_runs: u64,
    /// Units moved to even out wear.
    pub wear_units: u64,
    /// Bytes written by the host, but for writes that were refused.
    pub written_bytes: u64,
    /// Bytes of the host's writes that were refused: nothing of them was programmed.
    pub failed_bytes: u64,
    /// What has left the buffer, if a policy of its own decides.
    pub evictions: EvictionCounters,
    /// What went through the cache of one bit a cell, if there is one.
    pub slc: SlcCounters,
    /// What parity did, if there is any.
    pub parity: ParityCounters,
    /// What the parts had counted when the window began.
    pub(crate) origin: Origin,
}

/// What the parts of a device have done since the measured window began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCounts {
    /// Dies.
    pub dies: u64,
    /// Time for which they have been at work, summed, picoseconds.
    pub dies_busy_ps: u128,
    /// Bytes over channels; none where they are not known.
    pub channel_bytes: Option<u64>,
    /// Bytes over the host's link, by the time for which it was booked: at least and at most.
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
    /// Of a link that sends one way at a time.
    pub(crate) link_busy: Time,
    /// Programs of map units that the buffer owed.
    pub(crate) owed: u64,
    pub(crate) pages: PageCounters,
}

engine::snapshot!(Origin { backend, ftl, ahead, channel_busy, die_busy, link_busy, owed, pages });

/// What has left a buffer whose destaging a policy decides, and what it was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionCounters {
    /// Map units that are on flash, by [`Pace`](ftl::buffer::destage::Pace): even, foreground, background.
    pub units: [u64; Pace::COUNT],
    /// Programs that brought them there.
    pub programs: [u64; Pace::COUNT],
    /// Page victimizations that the host has announced.
    pub announcements: u64,
    /// Pages of them, of [`proto::ANNOUNCED_PAGE`] bytes.
    pub announced_pages: u64,
}
engine::snapshot!(EvictionCounters { units, programs, announcements, announced_pages });

/// What a buffer holds that is not on flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Bytes of the host, those on their way to flash among them.
    pub bytes: u64,
    /// Programs of map units that would bring them there.
    pub units: u64,
    /// The same when the measured window began.
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
    /// Commands completed in the measured window.
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

    /// Commands whose latency was recorded.
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
