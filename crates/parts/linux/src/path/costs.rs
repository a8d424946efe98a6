//! What each step of the kernel costs on a core.

use super::{Event, Host, Out};
use crate::{
    Inode,
    block::BlockSpec,
    fs::FsSpec,
    pagecache::PageCacheSpec,
    tasks::{CoresSpec, Task},
    writeback::{DirtyBounds, WritebackSpec},
};
use config::{
    SpecError,
    units::{Bandwidth, Bytes, Duration, Share},
};
use engine::{Cx, Mutant, Time, planted_nth};
use proto::{BufferState, file::Program};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

// What a user writes about a host's path to its drives.

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

// What a host and its drive tell each other of page victimizations: FastDrain (Zhang et al., 2020), sections 3.2 and 3.3.
//
// *Detection.* Before a flusher writes, it is known how many dirty pages the inodes have that are on its lists; before `fsync` does, how many its inode
// has. They are announced with the next command (`Command::announced`). The paper counts `fsync` as foreground victimization; who watches flushers alone misses it.
//
// *Adaptive ratios.* While a drive says that its buffer is full, other dirty ratios hold for the host. They hold from the completion that says so, so that nothing
// changes while none is under way. `dirty_ratio` is the host's: one full drive slows the writers of all.

/// What a host tells its drives of the pages that it will write, and does about what they answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VictimizationSpec {
    /// Whether the host announces how many pages it is about to write.
    pub announce: bool,
    /// Dirty ratios while a drive's buffer is full; left out, a full buffer changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<RatiosSpec>,
}

/// Dirty ratios, each of the memory that may hold dirty pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RatiosSpec {
    /// Dirty memory from which flushers write in the background.
    pub dirty_background_ratio: Share,
    /// Dirty memory that writers must not exceed.
    pub dirty_ratio: Share,
}

/// The two sides of a conversation with drives.
#[derive(Debug)]
pub(super) struct Victims {
    announces: bool,
    /// The bounds while all drives have room, and while one is full.
    room: DirtyBounds,
    full: Option<DirtyBounds>,
    /// By disk: whether it has said that it is full, and pages that its flusher has announced and not submitted.
    is_full: Vec<bool>,
    left: Vec<u64>,
}

impl Victims {
    /// # Errors
    /// A ratio that is no whole number of per cent.
    pub(super) fn new(
        spec: Option<&VictimizationSpec>,
        room: DirtyBounds,
        disks: usize,
    ) -> Result<Victims, SpecError> {
        let full = spec
            .and_then(|spec| spec.full)
            .map(|full| DirtyBounds::of_ratios(full.dirty_background_ratio, full.dirty_ratio))
            .transpose()
            .map_err(|error| error.within("victimization.full"))?;
        let announces = spec.is_some_and(|spec| spec.announce);
        Ok(Victims { announces, room, full, is_full: vec![false; disks], left: vec![0; disks] })
    }
}

impl<P: Program> Host<P> {
    /// A flusher is about to write: what its lists hold beyond what it has announced goes with the next command.
    pub(super) fn announce_flush(&mut self, task: Task, disk: u16) {
        if !self.victims.announces {
            return;
        }
        let queued = self.writeback.queued_pages(disk);
        let left = &mut self.victims.left[usize::from(disk)];
        let more = queued.saturating_sub(*left);
        *left = (*left).max(queued);
        self.announce(task, more);
    }

    /// A flusher has submitted pages.
    pub(super) fn announced_come(&mut self, disk: u16, pages: u64) {
        let left = &mut self.victims.left[usize::from(disk)];
        *left = left.saturating_sub(pages);
    }

    /// `fsync` is about to write the dirty pages of an inode.
    pub(super) fn announce_sync(&mut self, task: Task, inode: Inode) {
        if self.victims.announces {
            let pages = self.cache.dirty_pages(inode);
            self.announce(task, pages);
        }
    }

    fn announce(&mut self, task: Task, pages: u64) {
        let announced = &mut self.thread(task).announced;
        *announced = announced.saturating_add(pages.min(u64::from(u32::MAX)) as u32);
        self.stats.announced += pages;
    }

    /// Whether the dirty ratios are those of what drives have said.
    #[cfg(any(test, feature = "soak"))]
    pub(super) fn ratios_follow(&self) -> bool {
        let full = self.victims.full.filter(|_| self.victims.is_full.contains(&true));
        self.writeback.bounds() == full.unwrap_or(self.victims.room)
    }

    /// What a drive says of its buffer in a completion.
    pub(super) fn buffer_says(&mut self, disk: u16, buffer: BufferState, cx: &mut impl Cx<Event, Out>) {
        let buffer = match buffer {
            BufferState::Room if planted_nth(Mutant::CorruptedHead, 16) => BufferState::Full,
            BufferState::Full if planted_nth(Mutant::CorruptedHead, 16) => BufferState::Room,
            buffer => buffer,
        };
        self.shadow_heard(buffer);
        let Some(full) = self.victims.full else { return };
        let is_full = match buffer {
            BufferState::Unknown => return,
            BufferState::Room => false,
            BufferState::Full => true,
        };
        let was = self.victims.is_full.contains(&true);
        self.victims.is_full[usize::from(disk)] = is_full;
        let is = self.victims.is_full.contains(&true);
        if is == was {
            return;
        }
        self.stats.ratio_changes += 1;
        let avail = self.dirtyable();
        self.writeback.set_bounds(if is { full } else { self.victims.room }, avail);
        if !is {
            // What was held back is written now, as soon as a flusher looks.
            self.flusher_due(disk, cx);
        }
    }
}
