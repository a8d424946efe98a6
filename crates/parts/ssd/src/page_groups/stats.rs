//! Statistics of page groups: counts, busy times of resources, and checks of the counts.

use super::{GroupsFlash, access::Purpose};
use crate::check::Check;
use engine::Time;
use ftl::page_groups::GroupCounters;
use nand::dies::op::Class;
use stats::Histogram;

/// Statistics since the window began. Times in histograms are in picoseconds.
#[derive(Clone, Debug, Default)]
pub struct GroupsFlashStats {
    /// Start of the window.
    pub since: Time,
    /// Groups read from media for kernels.
    pub groups_read: u64,
    /// Groups that were read but never written: zeroes, without media.
    pub groups_unwritten: u64,
    /// Groups programmed for kernels.
    pub groups_written: u64,
    /// Groups beyond the end of the flash, or more data than fits.
    pub groups_failed: u64,
    /// Locks requested.
    pub locks: u64,
    /// Waiting time of locks that were not free at once.
    pub lock_wait: Histogram,
    /// Waiting time of writes for reclaim, until the last of their groups had a number.
    pub space_wait: Histogram,
    /// Time of a group from its request to the accelerator's memory.
    pub group_read: Histogram,
    /// Time of a group from its number to the end of its program.
    pub group_write: Histogram,
    /// Time of a whole read.
    pub read: Histogram,
    /// Time of a whole write.
    pub write: Histogram,
    /// Steps of Storengine.
    pub steps: u64,
    /// Entries examined or changed by Storengine's core in these steps.
    pub entries: u64,
    /// Dumps delayed because the previous one was under way.
    pub dumps_late: u64,
}

impl GroupsFlashStats {
    /// Clears the statistics and keeps the memory.
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

/// Busy times of resources, summed over each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupsBusy {
    /// Dies, from a command to the end of its data.
    pub dies: Time,
    /// Channels.
    pub channels: Time,
    /// Direction of the link to the accelerator.
    pub link_in: Time,
    /// Direction of the link to the channels.
    pub link_out: Time,
}

/// Activity of dies and link since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupsCounts {
    /// Number of dies.
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

/// Counts since `origin`.
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

// Checks that hold between any two events. The two sides of an equation are counted in different components.

/// Counts since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    /// Number of reads and writes.
    pub(super) requests: u64,
    pub(super) answered: u64,
    /// Groups of these reads and writes.
    pub(super) asked: u64,
    pub(super) done: u64,
    /// Groups programmed by kernels.
    pub(super) written: u64,
    pub(super) locks: u64,
    pub(super) unlocks: u64,
    /// Steps of Storengine.
    pub(super) steps: u64,
    pub(super) steps_done: u64,
}

impl GroupsFlash {
    /// Checks that counts from different places agree.
    pub fn checks(&self) -> Vec<Check> {
        let ledger = &self.ledger;
        let open: u64 = self.requests.live().map(|(_, request)| u64::from(request.open())).sum();
        let held = self.sections.live().filter(|(_, section)| section.is_held).count() as u64;
        let mut checks = vec![
            Check::equal(
                "every read and write is answered once",
                [
                    ("asked", ledger.requests),
                    ("answered and under way", ledger.answered + self.requests.len() as u64),
                ],
            ),
            Check::equal(
                "every group that is asked for is read or written once",
                [("asked", ledger.asked), ("done and under way", ledger.done + open)],
            ),
            Check::equal(
                "every section is given back once",
                [
                    ("asked", ledger.locks),
                    ("given back, held and waiting", ledger.unlocks + self.sections.len() as u64),
                ],
            ),
            Check::equal(
                "every step of Storengine's is performed once",
                [
                    ("begun", ledger.steps),
                    ("performed and under way", ledger.steps_done + self.chores.len() as u64),
                ],
            ),
            self.sections_are_locked(held),
        ];
        checks.extend(self.media_checks());
        if let Some((media, link)) = self.backend.meter.as_ref().zip(self.link.meter.as_ref()) {
            let detail = "by activity, and over time".to_owned();
            checks.push(Check::new(
                "two accounts of energy agree",
                media.conserves() && link.conserves(),
                detail,
            ));
        }
        if let Some(shadow) = &self.shadow {
            let detail = format!("{} of {} reads were wrong", shadow.wrong, shadow.checked);
            checks.push(Check::new("reads bring what was written last", shadow.wrong == 0, detail));
        }
        checks
    }

    /// Checks the locks of sections; Storengine may have locks, too.
    fn sections_are_locked(&self, held: u64) -> Check {
        let (locked, waiting) = self.visor.locks.counts();
        let wait = self.sections.len() as u64 - held;
        let ok = held <= u64::from(locked) && wait <= u64::from(waiting);
        let detail = format!("{held} sections of {locked} locks held, {wait} of {waiting} waiting");
        Check::new("every section has its lock", ok, detail)
    }

    fn media_checks(&self) -> [Check; 4] {
        let alike = u64::from(self.media.alike.pages());
        let done = |class: Class| self.backend.counters.done[class as usize] * alike;
        let (mut writes, mut erased, mut programmed) = (0, 0, 0);
        for (_, access) in self.accesses.live() {
            let all = self.media.group_pages;
            match (access.class, access.purpose) {
                (Class::Erase, _) => {
                    erased += u64::from(all * self.media.spread) - u64::from(access.left) * alike;
                }
                (Class::HostRead | Class::GcRead, _) => {}
                (_, purpose) => {
                    writes += u64::from(matches!(purpose, Purpose::Write { .. }));
                    programmed += u64::from(access.left) * alike;
                }
            }
        }
        let pages = u64::from(self.media.group_pages);
        let counters = &self.visor.counters;
        let programs = done(Class::HostProgram) + done(Class::MapProgram) + done(Class::GcProgram);
        [
            Check::equal(
                "every number that is handed out is programmed once",
                [("handed out", counters.writes), ("programmed and under way", self.ledger.written + writes)],
            ),
            Check::equal(
                "every page that dies read crosses the link",
                [
                    ("read", done(Class::HostRead) + done(Class::GcRead)),
                    ("crossed", self.link.inward.grants() * alike),
                ],
            ),
            Check::equal(
                "every group that crosses the link is programmed",
                [
                    ("pages crossed", self.link.outward.grants() * pages),
                    ("programmed and under way", programs + programmed),
                ],
            ),
            Check::equal(
                "every block is erased as a whole",
                [
                    ("of blocks", counters.erases * pages * u64::from(self.media.spread)),
                    ("by dies", done(Class::Erase) - erased),
                ],
            ),
        ]
    }
}
