//! What a user writes about the block layer.

use super::sched::SchedulerPolicy;
use config::units::{Bytes, Duration};
use engine::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The block layer of a host in front of one drive. What is left out is as in Linux 6.1 for an NVMe drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BlockSpec {
    /// Which request goes to the drive next.
    pub scheduler: SchedulerPolicy,
    /// Requests that a hardware queue holds; at most the drive's queue depth if the scheduler is `none`. Left out: that depth with `none`, else
    /// twice the smaller of it and 128.
    #[schemars(range(min = 4, max = 65_536))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nr_requests: Option<u32>,
    /// Most bytes of a request, as far as the drive takes as many.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "4MiB", "x-multiple-of" = "4KiB"))]
    pub max_sectors: Bytes,
    /// Memory of pages that follow each other in a file lies in pieces of so many bytes, each of which is one segment of a request, and one of the 256
    /// entries of a bio (`bio_add_page`). Tens of KiB where memory has been used before, 4 KiB where it is in single pages; megabytes after a boot.
    #[schemars(extend("x-minimum" = "4KiB", "x-maximum" = "8MiB", "x-multiple-of" = "4KiB"))]
    pub contiguous: Bytes,
    /// Whether a request takes up what lies beside it.
    pub merges: bool,
    /// Lowest read latency of a window above which write-back is throttled; zero throttles nothing.
    #[schemars(extend("x-maximum" = "10s"))]
    pub wbt_lat: Duration,
    /// Hardware queues, as far as the drive and the number of cores allow. Left out: as many as both allow.
    #[schemars(range(min = 1, max = 1_024))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hardware_queues: Option<u16>,
}

impl Default for BlockSpec {
    /// `none` is the scheduler of a drive of several queues (`elevator_get_default`); `BLK_DEF_MAX_SECTORS`; `wbt_default_latency_nsec` of a
    /// drive that does not rotate. Pieces of memory are the least power of two in what Linux 6.1 had in memory used a second time, 25 to 90 KiB
    /// (`l-kyber`, docs/pagecache-calibration.md).
    fn default() -> BlockSpec {
        BlockSpec {
            scheduler: SchedulerPolicy::default(),
            nr_requests: None,
            max_sectors: Bytes::from_kib(1280),
            contiguous: Bytes::from_kib(32),
            merges: true,
            wbt_lat: Duration::new(Time::from_ms(2)),
            hardware_queues: None,
        }
    }
}
