//! What a user writes about a host's path to its drives.

use super::costs::CostsSpec;
use super::victims::VictimizationSpec;
use crate::block::BlockSpec;
use crate::fs::FsSpec;
use crate::pagecache::PageCacheSpec;
use crate::tasks::CoresSpec;
use crate::writeback::WritebackSpec;
use config::units::{Bytes, Duration};
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
