//! Power failures: random programs on a whole host with a drive whose cache is lost, until the power fails. The
//! recovered state is then compared with a naive record of the promises of system calls.
//!
//! Every store into a page gives it a new version. The checks are:
//!
//! * A program always reads the newest version, whether the page has stayed in memory or was reclaimed and read again.
//! * Data acknowledged by `fsync`, `fdatasync`, `sync`, `O_SYNC` and `O_DSYNC`, or later data, is there after the
//!   failure, unless it was truncated or removed since. So is the file's length.
//! * The journal's log can be replayed, and with ordered or journaled data no file exposes old content of its blocks.
//! * The host follows the buffer states that the drive reports in completions.
//! * Programs that may run to their end do, and nothing is left in flight.
//!
//! # Unacknowledged data
//!
//! Unacknowledged data may be lost. Which part of it may be present depends on the journal
//! (`Documentation/filesystems/ext4`, `fs/jbd2/commit.c`):
//!
//! * `ordered`: each page of 4 KiB that had a block before is independently old or new. A page that gets its block
//!   shows its data or is not part of the file: a transaction does not commit before the data that it makes visible.
//! * `writeback`: like `ordered`, but a page that gets its block may expose the old content of the block.
//! * `journal`: a page is as in some transaction, and pages of one handle appear together.
//! * `none`: like `writeback`, and metadata themselves may be torn. Only a file unchanged since its last sync is safe.
//!
//! The drive keeps any subset of its cache, block by block; it honours flush and force unit access.

mod promises;
mod work;

use super::shadow::Shadow;
use super::{DiskSpec, Event, Host, OnDrives, Out, PathSpec};
use crate::fs::media::Cell;
use crate::fs::{FsSpec, JournalMode};
use crate::{
    block::{
        Device, SchedulerPolicy,
        sched::{kyber, mq_deadline},
    },
    pagecache::reclaim::ReclaimPolicy,
    path::{RatiosSpec, VictimizationSpec},
};
use config::{
    SpecError,
    units::{Bytes, Duration, Share},
};
use engine::{EventQueue, Rng, Time};
use promises::Promises;
use proto::{BufferState, Command, Completion, Port, Status};
use work::Work;

/// Number of files.
const FILES: u32 = 4;
/// Blocks in the drive's cache at which it reports a full buffer.
const FULL: usize = 96;

/// Number of events after which all work of a plan of this length is over, even on a drive that is slow under throttled
/// write-back.
const TO_THE_END: u64 = 400_000;

/// Work that a power failure ends.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Host.
    pub spec: PathSpec,
    /// Properties that its drive reports to the driver.
    pub device: Device,
    /// Bytes of the drive.
    pub bytes: u64,
    /// Random seed.
    pub seed: u64,
    /// Threads that make system calls.
    pub threads: u32,
    /// Number of calls of each thread.
    pub calls: u32,
    /// Number of events before the power failure, unless the work ends first.
    pub events: u64,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// First few violations, as text.
    pub faults: Vec<String>,
    /// Pages that expose old content of their blocks.
    pub stale: u64,
    /// Files made durable by a system call.
    pub acknowledged: u64,
    /// Pages promised when the power failed.
    pub promised: u64,
    /// Pages that were compared when they were read.
    pub compared: u64,
    /// Transactions replayed.
    pub replayed: u32,
    /// True if the power failed before the work was over.
    pub was_cut: bool,
    /// Number of events.
    pub events: u64,
    /// Pages freed by reclaim.
    pub reclaimed: u64,
}

engine::events! {
    enum Happens {
        /// Event on the host.
        Host(Event),
        /// Completion of a command by the drive.
        Done(u32),
    }
}

/// Time, and the host's output.
#[derive(Default)]
struct Outside {
    queue: EventQueue<Happens>,
    said: Vec<Command>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |at| at.queue,
    event: |_at, event| Happens::Host(event),
    out: |at, out| if let Out::Submit { command, .. } = out { at.said.push(command) },
}

struct World {
    spec: PathSpec,
    host: Host<Work>,
    outside: Outside,
    rng: Rng,
    promises: Promises,
    /// Reports of the drive's buffer state: whether it makes them, and counts of room and of a full buffer.
    tells: bool,
    said: [u64; 2],
    faults: Vec<String>,
    outcome: Outcome,
}

/// Works until the power fails, and checks the recovered state.
///
/// # Errors
/// If the host cannot be built.
pub fn run(plan: &Plan) -> Result<Outcome, SpecError> {
    let mut world = World::new(plan)?;
    world.work(plan.events);
    Ok(world.end())
}

impl World {
    fn new(plan: &Plan) -> Result<World, SpecError> {
        let disk = DiskSpec { bytes: plan.bytes, device: plan.device, scheduler: None };
        let mut host = Host::new(&plan.spec, &[disk])?;
        let mut shadow =
            Shadow::new(matches!(&plan.spec.fs, OnDrives::Ext4(fs) if fs.data == JournalMode::journal));
        if let Some(fs) = &mut host.disks[0].fs {
            fs.remember();
        }
        let work = Work::new(Rng::stream(plan.seed, "host/path/soak/work"), plan.threads, plan.calls);
        host.add_program(work).map_err(|unfit| SpecError::new("bytes", unfit.to_string()))?;
        for inode in host.programs[0].inodes.clone() {
            let Some(fs) = &host.disks[0].fs else { break };
            for extent in fs.extents(inode) {
                for page in extent.page..extent.page + extent.pages {
                    shadow.versions += 1;
                    let version = shadow.versions;
                    shadow.newest.insert((inode, page), version);
                    let cell = Cell::Page { file: inode.0 as usize, page, version };
                    shadow.media.put(extent.block + (page - extent.page), cell);
                }
            }
        }
        host.shadow = Some(Box::new(shadow));
        Ok(World {
            spec: plan.spec.clone(),
            host,
            outside: Outside::default(),
            rng: Rng::stream(plan.seed, "host/path/soak/drive"),
            promises: Promises::default(),
            tells: plan.spec.victimization.is_some(),
            said: [0; 2],
            faults: Vec::new(),
            outcome: Outcome::default(),
        })
    }

    /// Runs until the number of events is reached, the work is over, or a violation is found.
    fn work(&mut self, events: u64) {
        self.host.begin(&mut self.outside);
        self.after(0);
        while self.outcome.events < events {
            let Some(event) = self.outside.queue.pop() else {
                self.check_idle();
                return;
            };
            self.outcome.events += 1;
            let versions = self.host.shadow.as_ref().expect("it has one").versions;
            match event {
                Happens::Host(event) => self.host.handle(event, &mut self.outside),
                Happens::Done(tag) => self.complete(tag),
            }
            self.after(versions);
            if !self.host.shadow.as_ref().expect("it has one").faults.is_empty() {
                return;
            }
        }
        if events == TO_THE_END {
            // A timer of the block layer may go on for ever.
            self.check_idle();
        }
        self.outcome.was_cut = true;
    }

    /// Handles the effects of an event.
    fn after(&mut self, versions: u32) {
        let marks = std::mem::take(&mut self.host.programs[0].program.marks);
        marks.into_iter().for_each(|mark| self.note(mark, versions));
        for command in std::mem::take(&mut self.outside.said) {
            self.host.shadow.as_mut().expect("it has one").arrives(&command);
            let latency = match self.rng.below(8) {
                0 => Time::from_us(self.rng.below(3_000)),
                _ => Time::from_us(20 + self.rng.below(120)),
            };
            self.outside.queue.after(latency, Happens::Done(command.tag));
        }
    }

    fn complete(&mut self, tag: u32) {
        let shadow = self.host.shadow.as_mut().expect("it has one");
        shadow.done(tag);
        let is_full = shadow.media.cached() > FULL;
        self.said[usize::from(is_full)] += u64::from(self.tells);
        let buffer = match (self.tells, is_full) {
            (false, _) => BufferState::Unknown,
            (true, false) => BufferState::Room,
            (true, true) => BufferState::Full,
        };
        let completion = Completion { tag, to: Port::default(), status: Status::Success, errors: 0, buffer };
        self.host.completed(completion, &mut self.outside);
    }

    fn end(mut self) -> Outcome {
        self.check_running();
        self.cut_power();
        let shadow = self.host.shadow.as_mut().expect("it has one");
        self.outcome.faults = std::mem::take(&mut shadow.faults);
        self.outcome.faults.append(&mut self.faults);
        self.outcome.faults.truncate(8);
        self.outcome.compared = shadow.compared;
        self.outcome.acknowledged = self.promises.acknowledged;
        self.outcome.reclaimed = self.host.cache.stats().evicted;
        self.outcome
    }
}

// Hosts of a soak.

impl Plan {
    /// Draws a plan from a seed: file system, reclaim, write-back, block layer, driver, and time of the power failure.
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
        // Some plans run to their end.
        let events = if rng.below(10) == 0 { TO_THE_END } else { 100 + rng.below(6_000) };
        let calls = if events == TO_THE_END { 60 } else { calls };
        Plan { spec, device, bytes: 96 << 20, seed, threads, calls, events }
    }
}

/// Draws a duration between two bounds in microseconds.
fn duration(rng: &mut Rng, least: u64, most: u64) -> Duration {
    Duration::new(Time::from_us(least + rng.below(most - least)))
}

#[cfg(test)]
mod tests {
    // A few power failures; the long soak has more.
    use super::{Outcome, Plan, run};
    use engine::Mutant;
    use engine::mutant::arm;

    /// Runs drawn plans, all of which must be sound; returns the sum of their results.
    fn soak(seeds: std::ops::Range<u64>) -> Outcome {
        let mut sum = Outcome::default();
        for seed in seeds {
            let outcome = run(&Plan::draw(seed)).expect("it can be built");
            assert_eq!(outcome.faults, [""; 0], "seed {seed}: {:?}", Plan::draw(seed));
            sum.stale += outcome.stale;
            sum.acknowledged += outcome.acknowledged;
            sum.promised += outcome.promised;
            sum.compared += outcome.compared;
            sum.replayed += outcome.replayed;
            sum.reclaimed += outcome.reclaimed;
            sum.events += outcome.events;
        }
        sum
    }

    #[test]
    fn what_is_promised_survives_a_cut_of_power() {
        let sum = soak(0..300);
        // Many pages were promised, replayed, reclaimed and read again.
        assert!(sum.acknowledged > 10_000 && sum.promised > 30_000, "{sum:?}");
        assert!(sum.replayed > 2_000 && sum.reclaimed > 10_000 && sum.compared > 100_000, "{sum:?}");
        // Where the journal allows it.
        assert!(sum.stale > 0, "{sum:?}");
    }

    /// Rare plans, and what each has shown.
    const RARE: [(u64, &str); 9] = [
        (1_518, "a page read before the blocks of a direct write have data, and kept"),
        (22_934, "overlapping direct writes, of which the drive takes the older one last"),
        (151_174, "data on their way to blocks while the metadata that were there are"),
        (177_133, "the same, found after the cut"),
        (154_395, "a synchronous write in front of data without blocks"),
        (517_137, "the same, while another thread gives them blocks"),
        (681, "a page that is seen before a write's data are in it"),
        (2_184, "the same"),
        (410_215, "a file with the number of one that the flusher is still at"),
    ];

    #[test]
    fn what_few_plans_meet() {
        for (seed, what) in RARE {
            println!("{seed}: {what}");
            soak(seed..seed + 1);
        }
    }

    #[test]
    #[ignore = "10,000 cuts take a minute: `cargo xtask soak` runs it"]
    fn ten_thousand_cuts_of_power() {
        let setting =
            |name, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"));
        let (first, cuts) = (setting("SOAK_SEED", 1), setting("SOAK_CUTS", 10_000));
        let sum = soak(first..first + cuts);
        println!("{cuts} cuts: {sum:?}");
    }

    /// First plan in which a mutant is found, and the violation.
    #[cfg(debug_assertions)]
    fn found(mutant: Mutant) -> Option<(u64, String)> {
        let _armed = arm(mutant);
        (0..300).find_map(|seed| {
            let outcome = run(&Plan::draw(seed)).expect("it can be built");
            Some((seed, outcome.faults.into_iter().next()?))
        })
    }

    #[test]
    #[cfg(debug_assertions)]
    fn mutants_are_found() {
        for (mutant, says) in [
            (Mutant::EarlyCommit, "before"),
            (Mutant::UnflushedSync, "promised"),
            // A read finds it, or the check after the power failure.
            (Mutant::ReclaimedDirty, "was "),
            (Mutant::CorruptedHead, "the drive has reported"),
        ] {
            let (seed, fault) = found(mutant).unwrap_or_else(|| panic!("{mutant:?} survives"));
            println!("{mutant:?}: plan {seed}: {fault}");
            assert!(fault.contains(says), "{mutant:?}, plan {seed}: {fault}");
        }
    }
}
