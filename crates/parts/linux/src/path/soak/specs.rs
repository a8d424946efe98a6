//! Hosts of a soak.

use super::{Plan, TO_THE_END};
use crate::block::sched::{kyber, mq_deadline};
use crate::block::{Device, SchedulerPolicy};
use crate::fs::{FsSpec, JournalMode};
use crate::pagecache::reclaim::ReclaimPolicy;
use crate::path::{OnDrives, PathSpec, RatiosSpec, VictimizationSpec};
use config::units::{Bytes, Duration, Share};
use engine::{Rng, Time};

impl Plan {
    /// A plan drawn from a seed: how the file system, reclaim, write-back, block layer and driver are, and when the power goes.
    pub fn draw(seed: u64) -> Plan {
        let rng = &mut Rng::stream(seed, "host/path/soak/plan");
        let data = match rng.below(8) {
            0..4 => JournalMode::ordered,
            4 => JournalMode::writeback,
            5..7 => JournalMode::journal,
            _ => JournalMode::none,
        };
        let fs = FsSpec {
            data,
            delalloc: rng.below(3) > 0,
            dioread_nolock: rng.below(3) > 0,
            auto_da_alloc: rng.below(2) > 0,
            commit: duration(rng, 1_000, 20_000),
            barrier: true,
            journal_size: Some(Bytes::new(4 << 20)),
        };
        let mut spec = PathSpec { memory: Bytes::new((2 << 20) + rng.below(3 << 20)), ..PathSpec::default() };
        spec.fs = OnDrives::Ext4(fs);
        spec.hz = [100, 250, 1000][rng.below(3) as usize];
        spec.cores.count = 1 + rng.below(4) as u16;
        spec.page_cache.reclaim =
            if rng.below(2) > 0 { ReclaimPolicy::two_lists } else { ReclaimPolicy::mglru };
        spec.page_cache.workingset = rng.below(4) > 0;
        spec.page_cache.min_free_kbytes = Some(Bytes::new(128 << 10));
        spec.page_cache.read_ahead_kb = Bytes::new(rng.below(3) * (64 << 10));
        let limit = 4 + rng.below(60) as u8;
        spec.writeback.dirty_ratio = Some(Share::percent(limit));
        spec.writeback.dirty_background_ratio =
            Some(Share::percent(1 + rng.below(u64::from(limit) / 2) as u8));
        spec.writeback.dirty_expire = duration(rng, 2_000, 50_000);
        spec.writeback.dirty_writeback = duration(rng, 1_000, 20_000);
        spec.block.scheduler = match rng.below(3) {
            0 => SchedulerPolicy::none,
            1 => SchedulerPolicy::mq_deadline(mq_deadline::Params::default()),
            _ => SchedulerPolicy::kyber(kyber::Params::default()),
        };
        spec.block.merges = rng.below(4) > 0;
        spec.block.wbt_lat =
            if rng.below(2) > 0 { duration(rng, 50, 2_000) } else { Duration::new(Time::ZERO) };
        if rng.below(3) == 0 {
            spec.driver.coalescing_threshold = 1 + rng.below(8) as u16;
        }
        spec.victimization = (rng.below(2) > 0).then(|| VictimizationSpec {
            announce: rng.below(2) > 0,
            full: (rng.below(3) > 0).then(|| RatiosSpec {
                dirty_background_ratio: Share::percent(1),
                dirty_ratio: Share::percent(4),
            }),
        });
        let device = Device {
            max_transfer: [0, 64 << 10][rng.below(2) as usize],
            block: 512,
            queues: 1 + rng.below(4) as u16,
            queue_depth: 1 + rng.below(64) as u32,
            write_cache: true,
            fua: rng.below(4) > 0,
        };
        if spec.block.scheduler != SchedulerPolicy::none && rng.below(2) > 0 {
            spec.block.nr_requests = Some(4 + rng.below(u64::from(device.queue_depth.max(28)) - 4) as u32);
        }
        let (threads, calls) = (1 + rng.below(5) as u32, 200);
        // Some are let run to their end.
        let events = if rng.below(10) == 0 { TO_THE_END } else { 100 + rng.below(6_000) };
        let calls = if events == TO_THE_END { 60 } else { calls };
        Plan { spec, device, bytes: 96 << 20, seed, threads, calls, events }
    }
}

/// From so many microseconds to so many.
fn duration(rng: &mut Rng, least: u64, most: u64) -> Duration {
    Duration::new(Time::from_us(least + rng.below(most - least)))
}
