//! User-visible configuration of a host's path to its drives, and of the costs of kernel steps.

use super::victims::VictimizationSpec;
use crate::block::BlockSpec;
use crate::fs::FsSpec;
use crate::pagecache::PageCacheSpec;
use crate::tasks::CoresSpec;
use crate::writeback::WritebackSpec;
use config::units::{Bandwidth, Bytes, Duration};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Path from system calls to drives, as in Linux 6.1. Defaults are Linux's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathSpec {
    /// Memory available to file pages, without that of the kernel and the programs themselves.
    #[schemars(extend("x-minimum" = "16MiB", "x-maximum" = "4TiB"))]
    pub memory: Bytes,
    /// Memory available at boot, before programs took some of it. The dirty limit of writers starts at its share of
    /// this value, and follows the current limit down slowly (`writeback_set_ratelimit`, `update_dirty_limit`).
    /// Default, and minimum: `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "16MiB", "x-maximum" = "4TiB"))]
    pub memory_at_boot: Option<Bytes>,
    /// Clock ticks a second (`CONFIG_HZ`): slices, pauses and intervals end at one.
    #[schemars(extend("enum" = [100, 250, 300, 1000], "x-unit" = "Hz"))]
    pub hz: u32,
    /// Cores and their scheduler.
    pub cores: CoresSpec,
    /// Page cache.
    pub page_cache: PageCacheSpec,
    /// Write-back.
    pub writeback: WritebackSpec,
    /// Announcement of page victimizations to drives, and the reaction to their answers; none if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victimization: Option<VictimizationSpec>,
    /// Contents of the drives.
    pub fs: OnDrives,
    /// Block layer.
    pub block: BlockSpec,
    /// Driver.
    pub driver: DriverSpec,
    /// Core time of kernel steps.
    pub costs: CostsSpec,
}

/// Contents of a host's drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnDrives {
    /// ext4 file system.
    Ext4(FsSpec),
    /// No file system: each drive is one file, `/dev/nvme0n1`.
    Raw,
}

/// Driver of NVMe drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DriverSpec {
    /// Completions of a queue that trigger an interrupt before the coalescing time has passed: NVMe interrupt
    /// coalescing. 1: an interrupt for each.
    #[schemars(range(min = 1, max = 256))]
    pub coalescing_threshold: u16,
    /// Maximum time that a completion waits for others.
    #[schemars(extend("x-maximum" = "25500us"))]
    pub coalescing_time: Duration,
    /// Additional polled queues of a drive, which do not interrupt (`nvme.poll_queues`), as far as the drive has queues
    /// and the host has cores for them. They serve requests whose threads poll for the completion (`hipri` of fio with
    /// `io_uring`), and need the scheduler `none`. Default: none.
    #[schemars(range(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_queues: Option<u16>,
}

impl Default for DriverSpec {
    /// Linux disables coalescing, and has no polled queues, by default.
    fn default() -> DriverSpec {
        DriverSpec {
            coalescing_threshold: 1,
            coalescing_time: Duration::new(Time::from_us(100)),
            poll_queues: None,
        }
    }
}

impl Default for PathSpec {
    fn default() -> PathSpec {
        PathSpec {
            // Chosen: a small server.
            memory: Bytes::from_kib(16 << 20),
            memory_at_boot: None,
            // Debian's kernels.
            hz: 250,
            cores: CoresSpec::default(),
            page_cache: PageCacheSpec::default(),
            writeback: WritebackSpec::default(),
            victimization: None,
            fs: OnDrives::Ext4(FsSpec::default()),
            block: BlockSpec::default(),
            driver: DriverSpec::default(),
            costs: CostsSpec::default(),
        }
    }
}

// Core time of each kernel step.

/// Core time of the kernel's steps. Default source: Lee et al., Asynchronous I/O Stack, USENIX ATC 2019, who analysed
/// the read path of Linux 5.0 on a 3.7 GHz core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CostsSpec {
    /// System call entry and return.
    pub call: Duration,
    /// Page-cache look-up of a page.
    pub lookup: Duration,
    /// Allocation of a page.
    pub allocate: Duration,
    /// Insertion of a page into the page cache, or its removal.
    pub insert: Duration,
    /// Copy between a program and the page cache.
    pub copy: Bandwidth,
    /// Dirtying of a page: accounts, tags, the file system's part.
    pub dirty: Duration,
    /// Preparation of a dirty page for its write: lock, tags, accounts.
    pub write_page: Duration,
    /// Look-up of the blocks of an extent.
    pub map: Duration,
    /// Construction of a bio and its pass through the block layer.
    pub bio: Duration,
    /// Preparation of a request for the drive: mapping its memory, the command, the doorbell.
    pub request: Duration,
    /// Entry to and exit from an interrupt handler.
    pub interrupt: Duration,
    /// Completion of a request.
    pub complete: Duration,
    /// End of the read or write of a page.
    pub end_page: Duration,
    /// Journal handle: start, access to buffers, stop.
    pub handle: Duration,
    /// Scan of a page by reclaim.
    pub scan: Duration,
}

/// Costs of [`CostsSpec`] as times.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    pub(super) call: Time,
    pub(super) lookup: Time,
    pub(super) allocate: Time,
    pub(super) insert: Time,
    copy: u64,
    pub(super) dirty: Time,
    pub(super) write_page: Time,
    pub(super) map: Time,
    pub(super) bio: Time,
    pub(super) request: Time,
    pub(super) interrupt: Time,
    pub(super) complete: Time,
    pub(super) end_page: Time,
    pub(super) handle: Time,
    pub(super) scan: Time,
}

impl Costs {
    pub(super) fn new(spec: &CostsSpec) -> Costs {
        Costs {
            call: spec.call.time(),
            lookup: spec.lookup.time(),
            allocate: spec.allocate.time(),
            insert: spec.insert.time(),
            copy: spec.copy.bytes_per_s(),
            dirty: spec.dirty.time(),
            write_page: spec.write_page.time(),
            map: spec.map.time(),
            bio: spec.bio.time(),
            request: spec.request.time(),
            interrupt: spec.interrupt.time(),
            complete: spec.complete.time(),
            end_page: spec.end_page.time(),
            handle: spec.handle.time(),
            scan: spec.scan.time(),
        }
    }

    /// Time to copy `bytes` bytes.
    pub(super) fn copy(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.copy)
    }
}

impl Default for CostsSpec {
    fn default() -> CostsSpec {
        let ns = |ns| Duration::new(Time::from_ns(ns));
        CostsSpec {
            // Chosen: 100 to 200 ns with the usual mitigations.
            call: ns(150),
            lookup: ns(300),
            allocate: ns(190),
            insert: ns(330),
            // 4 KiB in 0.21 us.
            copy: Bandwidth::new(19_500_000_000),
            // Chosen: same as insertion.
            dirty: ns(330),
            // Chosen: same as insertion.
            write_page: ns(330),
            map: ns(90),
            bio: ns(720),
            // DMA mapping 0.29, submission 0.37.
            request: ns(660),
            // Chosen: an interrupt without the request's completion.
            interrupt: ns(500),
            // DMA unmapping 0.23, completion 0.81.
            complete: ns(1040),
            // Chosen: unlocking and tags, without waking a thread.
            end_page: ns(100),
            // Chosen: jbd2_journal_start to stop with two buffers.
            handle: ns(500),
            // Chosen: shrink_folio_list over use-once pages takes about 10 GB/s.
            scan: ns(200),
        }
    }
}
