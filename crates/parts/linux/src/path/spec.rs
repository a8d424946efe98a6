//! What a user writes about a host's path to its drives, and about the costs of each step of the kernel.

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

/// The path from system calls to drives, as Linux 6.1 has it. What is left out has Linux's defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PathSpec {
    /// Memory that pages of files may take: what the kernel and the programs themselves need is not counted.
    #[schemars(extend("x-minimum" = "16MiB", "x-maximum" = "4TiB"))]
    pub memory: Bytes,
    /// The same when the kernel began, before programs took some of it. Writers are held to a limit that begins with the part of this that may be dirty,
    /// and follows what may be dirty down only slowly (`writeback_set_ratelimit`, `update_dirty_limit`). Left out, or less: as `memory`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-minimum" = "16MiB", "x-maximum" = "4TiB"))]
    pub memory_at_boot: Option<Bytes>,
    /// Ticks of the kernel's clock in a second (`CONFIG_HZ`): slices, pauses and intervals end with one.
    #[schemars(extend("enum" = [100, 250, 300, 1000], "x-unit" = "Hz"))]
    pub hz: u32,
    /// Cores, and who runs on them.
    pub cores: CoresSpec,
    /// The page cache.
    pub page_cache: PageCacheSpec,
    /// Write-back.
    pub writeback: WritebackSpec,
    /// What the host tells its drives of the pages that it will write, and does about what they answer; left out, nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub victimization: Option<VictimizationSpec>,
    /// What is on the drives.
    pub fs: OnDrives,
    /// The block layer.
    pub block: BlockSpec,
    /// The driver.
    pub driver: DriverSpec,
    /// What the kernel's steps cost.
    pub costs: CostsSpec,
}

/// What is on a host's drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum OnDrives {
    /// ext4.
    Ext4(FsSpec),
    /// Nothing: each drive is one file, `/dev/nvme0n1`.
    Raw,
}

/// The driver of NVMe drives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DriverSpec {
    /// Completions of a queue that make an interrupt, if the time for it does not end before: interrupt coalescing of NVMe. One: each does.
    #[schemars(range(min = 1, max = 256))]
    pub coalescing_threshold: u16,
    /// How long a completion waits for others.
    #[schemars(extend("x-maximum" = "25500us"))]
    pub coalescing_time: Duration,
    /// Queues of a drive beside the others that do not interrupt (`nvme.poll_queues`), as far as it has queues and the host has cores for them: for
    /// requests whose threads look for the completion themselves (`hipri` of fio with `io_uring`). They need the scheduler `none`. Left out: none.
    #[schemars(range(max = 1024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_queues: Option<u16>,
}

impl Default for DriverSpec {
    /// Linux leaves coalescing off, and has no queues without interrupts.
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

// What each step of the kernel costs on a core.

/// Core time of the kernel's steps. Where nothing else is said: Lee et al., Asynchronous I/O Stack, USENIX ATC 2019, who took the read path of
/// Linux 5.0 apart on a 3.7 GHz core.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CostsSpec {
    /// Into a system call and back.
    pub call: Duration,
    /// Finding a page in the page cache.
    pub lookup: Duration,
    /// Allocating a page.
    pub allocate: Duration,
    /// Putting a page into the page cache, or taking it out.
    pub insert: Duration,
    /// Copying between a program and the page cache.
    pub copy: Bandwidth,
    /// Making a page dirty: accounts, tags, the file system's part.
    pub dirty: Duration,
    /// Preparing a dirty page for being written: lock, tags, accounts.
    pub write_page: Duration,
    /// Finding the blocks of an extent.
    pub map: Duration,
    /// Building a bio and passing it through the block layer.
    pub bio: Duration,
    /// Preparing a request for the drive: mapping its memory, the command, the doorbell.
    pub request: Duration,
    /// Entering and leaving the handler of an interrupt.
    pub interrupt: Duration,
    /// A request's completion.
    pub complete: Duration,
    /// The end of reading or writing a page, by page.
    pub end_page: Duration,
    /// A handle of the journal: start, access to buffers, stop.
    pub handle: Duration,
    /// Looking at a page for reclaim.
    pub scan: Duration,
}

/// The same as times.
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

    /// Copying so many bytes.
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
            // Chosen, as inserting.
            dirty: ns(330),
            // Chosen, as inserting.
            write_page: ns(330),
            map: ns(90),
            bio: ns(720),
            // DMA mapping 0.29, submission 0.37.
            request: ns(660),
            // Chosen: what an interrupt takes beside the request's completion.
            interrupt: ns(500),
            // DMA unmapping 0.23, completion 0.81.
            complete: ns(1040),
            // Chosen: unlocking, tags, waking nobody.
            end_page: ns(100),
            // Chosen: jbd2_journal_start to stop with two buffers.
            handle: ns(500),
            // Chosen: shrink_folio_list over use-once pages takes about 10 GB/s.
            scan: ns(200),
        }
    }
}
