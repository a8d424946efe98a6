//! What happened, and how busy resources were.

use super::GroupsFlash;
use engine::Time;
use ftl::page_groups::GroupCounters;
use stats::Histogram;

/// What happened since the window began. Times in histograms are in picoseconds.
#[derive(Clone, Debug, Default)]
pub struct GroupsFlashStats {
    /// When the window began.
    pub since: Time,
    /// Groups read from media for kernels.
    pub groups_read: u64,
    /// Groups that were read and never written: zeroes, without media.
    pub groups_unwritten: u64,
    /// Groups programmed for kernels.
    pub groups_written: u64,
    /// Groups behind the end of the flash, or more data than fits.
    pub groups_failed: u64,
    /// Locks asked for.
    pub locks: u64,
    /// How long those waited that were not free at once.
    pub lock_wait: Histogram,
    /// How long writes waited for reclaim, until the last of their groups had a number.
    pub space_wait: Histogram,
    /// Time of a group from its request to the accelerator's memory.
    pub group_read: Histogram,
    /// Time of a group from its number to the end of its program.
    pub group_write: Histogram,
    /// Time of a whole read.
    pub read: Histogram,
    /// Time of a whole write.
    pub write: Histogram,
    /// Steps of Storengine's.
    pub steps: u64,
    /// Entries that its core looked at or changed for them.
    pub entries: u64,
    /// Dumps that were put off because the one before was under way.
    pub dumps_late: u64,
}

impl GroupsFlashStats {
    /// Forgets everything and keeps the memory.
    pub(super) fn reset(&mut self, now: Time) {
        let histogram = |old: &mut Histogram| {
            old.clear();
            std::mem::take(old)
        };
        *self = GroupsFlashStats {
            since: now,
            lock_wait: histogram(&mut self.lock_wait),
            space_wait: histogram(&mut self.space_wait),
            group_read: histogram(&mut self.group_read),
            group_write: histogram(&mut self.group_write),
            read: histogram(&mut self.read),
            write: histogram(&mut self.write),
            ..GroupsFlashStats::default()
        };
    }
}

/// How long resources have been busy, summed over those of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupsBusy {
    /// Dies, from a command to the end of its data.
    pub dies: Time,
    /// Channels.
    pub channels: Time,
    /// The link, to the accelerator.
    pub link_in: Time,
    /// The link, to the channels.
    pub link_out: Time,
}

/// What dies and link have done since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupsCounts {
    /// Dies.
    pub dies: u64,
    /// Pages read.
    pub read: u64,
    /// Pages programmed.
    pub programmed: u64,
    /// Blocks of a plane erased.
    pub erased: u64,
    /// Bytes over channels.
    pub channel_bytes: u64,
    /// Bytes over the link.
    pub link_bytes: u64,
}

impl GroupsBusy {
    pub(super) fn since(&self, origin: &GroupsBusy) -> GroupsBusy {
        GroupsBusy {
            dies: self.dies - origin.dies,
            channels: self.channels - origin.channels,
            link_in: self.link_in - origin.link_in,
            link_out: self.link_out - origin.link_out,
        }
    }
}

impl GroupsFlash {
    pub(super) fn busy_so_far(&self, now: Time) -> GroupsBusy {
        let alike = u64::from(self.media.alike.back_ends);
        let sum = |all: Vec<Time>| all.into_iter().fold(Time::ZERO, |sum, time| sum + time).times(alike);
        GroupsBusy {
            dies: sum(self.backend.die_busy(now)),
            channels: sum(self.backend.channel_busy(now)),
            link_in: self.link.inward.busy(now),
            link_out: self.link.outward.busy(now),
        }
    }
}

/// What was counted since `origin`.
pub(super) fn between(now: &GroupCounters, origin: &GroupCounters) -> GroupCounters {
    GroupCounters {
        lookups: now.lookups - origin.lookups,
        updates: now.updates - origin.updates,
        writes: now.writes - origin.writes,
        overtaken: now.overtaken - origin.overtaken,
        examined: now.examined - origin.examined,
        weighed: now.weighed - origin.weighed,
        moves: now.moves - origin.moves,
        overwritten: now.overwritten - origin.overwritten,
        metadata: now.metadata - origin.metadata,
        dumped: now.dumped - origin.dumped,
        dumps: now.dumps - origin.dumps,
        erases: now.erases - origin.erases,
    }
}
