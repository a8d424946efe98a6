//! Block layer against the kernel's rules, worked by hand.

mod queue;
mod random;

use super::{
    Bio, BioFlags, BlockSpec, Device, Effects, Issued, Plug, Queue, SchedulerPolicy, Submitted, Woken,
};
use crate::block::{Limits, Map, sched::cfq::Params};
use config::units::{Bytes, Duration};
use engine::Time;
use proto::{IoOp, Status};
use std::collections::BTreeMap;

pub(super) const KIB: u64 = 1 << 10;

/// Drive with the driver's maximum limits, and a volatile cache.
pub(super) const DEVICE: Device =
    Device { max_transfer: 0, block: 512, queues: 128, queue_depth: 1023, write_cache: true, fua: true };

/// Linux's defaults, without throttling, in memory of single pages: each page is a segment.
pub(super) fn spec(scheduler: SchedulerPolicy) -> BlockSpec {
    BlockSpec {
        scheduler,
        wbt_lat: Duration::new(Time::ZERO),
        contiguous: Bytes::from_kib(4),
        ..BlockSpec::default()
    }
}

pub(super) fn bio(op: IoOp, offset: u64, bytes: u64, owner: u32) -> Bio {
    Bio { op, offset, bytes: bytes as u32, flags: BioFlags::default(), owner, announced: 0 }
}

pub(super) fn read(offset: u64, bytes: u64, owner: u32) -> Bio {
    bio(IoOp::Read, offset, bytes, owner)
}

pub(super) fn write(offset: u64, bytes: u64, owner: u32) -> Bio {
    bio(IoOp::Write, offset, bytes, owner)
}

/// Queue with its collected effects. Hardware queues are run at once, by whichever side should.
pub(super) struct Bench {
    pub(super) queue: Queue,
    pub(super) now: Time,
    pub(super) effects: Effects,
    /// Issued commands in order, including completed ones.
    pub(super) issued: Vec<Issued>,
    pub(super) done: Vec<u32>,
    pub(super) woken: Vec<Woken>,
}

impl Bench {
    pub(super) fn new(spec: &BlockSpec, device: Device, cores: u16) -> Bench {
        Bench {
            queue: Queue::new(spec, device, cores).expect("the spec is valid"),
            now: Time::from_ms(1),
            effects: Effects::default(),
            issued: Vec::new(),
            done: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// Collects the effects of a call, except runs of hardware queues.
    pub(super) fn collect(&mut self) {
        self.issued.append(&mut self.effects.issued);
        self.done.extend(self.effects.done.drain(..).map(|done| done.owner));
        self.woken.append(&mut self.effects.woken);
    }

    /// Handles all effects of a call.
    pub(super) fn settle(&mut self) {
        self.collect();
        while !self.effects.runs.is_empty() {
            let run = self.effects.runs.remove(0);
            self.queue.dispatch(run.hctx, self.now, &mut self.effects);
            self.collect();
        }
    }

    /// Submits a bio from a core, without a plug.
    pub(super) fn submit_at(&mut self, bio: Bio, core: u16) -> Submitted {
        let submitted = self.queue.submit(bio, core, bio.owner, None, self.now, &mut self.effects);
        self.settle();
        submitted
    }

    pub(super) fn submit(&mut self, bio: Bio) -> Submitted {
        self.submit_at(bio, 0)
    }

    /// Submits a bio into a plug; only issued commands are collected.
    pub(super) fn gather(&mut self, plug: &mut Plug, bio: Bio, core: u16) {
        let submitted = self.queue.submit(bio, core, bio.owner, Some(plug), self.now, &mut self.effects);
        assert_eq!(submitted, Submitted::Queued);
        self.collect();
    }

    pub(super) fn flush(&mut self, plug: &mut Plug, from_schedule: bool) {
        self.queue.flush_plug(plug, from_schedule, self.now, &mut self.effects);
    }

    pub(super) fn complete(&mut self, issued: Issued) {
        self.queue.complete(issued.hctx, issued.tag, Status::Success, self.now, &mut self.effects);
        self.settle();
    }

    /// Completes and removes the issued commands until none is left.
    pub(super) fn drain(&mut self) {
        while !self.issued.is_empty() {
            let issued = self.issued.remove(0);
            self.complete(issued);
        }
    }

    /// Issued commands as kind, offset in KiB, length in KiB.
    pub(super) fn commands(&self) -> Vec<(IoOp, u64, u64)> {
        self.issued.iter().map(|i| (i.op, i.offset / KIB, u64::from(i.bytes) / KIB)).collect()
    }
}

#[test]
fn the_family_keeps_its_contract() {
    config::policy::check_family::<SchedulerPolicy>().expect("the list is complete");
}

#[test]
fn the_defaults_are_linux_s() {
    let spec = BlockSpec::default();
    assert_eq!(spec.scheduler.name(), "none");
    let limits = Queue::new(&spec, DEVICE, 8).expect("the spec is valid").limits();
    assert_eq!((limits.bytes, limits.segments), (1280 << 10, 127));
    let target = spec.wbt_lat.time();
    assert_eq!((spec.merges, spec.nr_requests, target), (true, None, Time::from_ms(2)));
}

// Limits of a request, and bios that exceed them.

/// `nvme_set_queue_limits`: pages of the transfer plus one, at most 127; `blk_queue_max_hw_sectors`: at most 1280 KiB.
#[test]
fn limits_of_nvme() {
    let limits = |max_transfer| Limits::new(&BlockSpec::default(), &Device { max_transfer, ..DEVICE });
    let bytes_and_segments = |kib: u64| (limits(kib * KIB).bytes / 1024, limits(kib * KIB).segments);
    assert_eq!(bytes_and_segments(128), (128, 33));
    assert_eq!(bytes_and_segments(512), (512, 127));
    assert_eq!(bytes_and_segments(2048), (1280, 127));
    assert_eq!((bytes_and_segments(0), limits(0).zeroes), ((1280, 127), 4 << 20));
    let spec = BlockSpec { max_sectors: config::units::Bytes::from_kib(64), ..BlockSpec::default() };
    assert_eq!(Limits::new(&spec, &DEVICE).bytes, 64 << 10);
}

/// Contiguous memory pages are one segment: 127 of 8 KiB are 1016 KiB, of 64 KiB more than `max_sectors`
/// (`bio_split_rw`).
#[test]
fn pages_side_by_side_are_one_segment() {
    let limits = |kib| {
        let spec = BlockSpec { contiguous: config::units::Bytes::from_kib(kib), ..BlockSpec::default() };
        Limits::new(&spec, &Device { max_transfer: 0, ..DEVICE })
    };
    let unsplit = [4, 8, 64].map(|kib| limits(kib).unsplit(IoOp::Write) / 1024);
    assert_eq!(unsplit, [508, 1016, 1280]);
    assert_eq!(limits(8).segments_of(IoOp::Read, 20 << 10), 3);
}

/// `bio_split_rw`: 1 MiB is 508 + 508 + 8 KiB by 127 segments, and eight times 128 KiB by such a transfer. The owner is
/// notified once.
#[test]
fn a_bio_is_split_by_the_limits() {
    for (max_transfer, parts) in [(0, vec![508, 508, 8]), (128 * KIB, vec![128; 8])] {
        let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { max_transfer, ..DEVICE }, 1);
        let announced = Bio { announced: 256, ..write(64 * KIB, 1024 * KIB, 7) };
        assert_eq!(bench.submit(announced), Submitted::Queued);
        let mut offset = 64;
        for (issued, part) in bench.issued.iter().zip(&parts) {
            assert_eq!((issued.offset / KIB, u64::from(issued.bytes) / KIB), (offset, *part));
            offset += part;
        }
        assert_eq!(bench.issued.iter().map(|issued| issued.announced).sum::<u32>(), 256);
        assert_eq!((bench.issued.len(), bench.issued[0].announced), (parts.len(), 256));
        assert_eq!(bench.queue.stats().splits, parts.len() as u64 - 1);
        for issued in bench.issued.clone() {
            assert!(bench.done.is_empty());
            bench.complete(issued);
        }
        assert_eq!((bench.done.as_slice(), bench.queue.is_idle()), ([7].as_slice(), true));
    }
}

/// An error of one part is reported for the bio.
#[test]
fn the_first_error_of_the_parts_is_told() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    assert_eq!(bench.submit(read(0, 1024 * KIB, 7)), Submitted::Queued);
    let status = [Status::Success, Status::UnrecoveredRead, Status::Success];
    for (issued, status) in bench.issued.clone().iter().zip(status) {
        bench.queue.complete(issued.hctx, issued.tag, status, bench.now, &mut bench.effects);
    }
    let told: Vec<_> = bench.effects.done.iter().map(|done| (done.owner, done.status)).collect();
    assert_eq!(told, [(7, Status::UnrecoveredRead)]);
}

/// Eight cores on three queues: the first two queues have one core more.
#[test]
fn cores_are_spread_over_queues() {
    let map = Map::new(8, 3);
    assert_eq!((0..8).map(|core| map.hctx(core)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 1, 2, 2]);
    for cores in 1..20 {
        for hctxs in 1..=cores {
            let map = Map::new(cores, hctxs);
            let all: Vec<_> =
                (0..hctxs).flat_map(|hctx| map.cores_of(hctx).map(move |core| (core, hctx))).collect();
            assert!(
                all.iter().copied().eq((0..cores).map(|core| (core, map.hctx(core)))),
                "{cores} on {hctxs}"
            );
        }
    }
}

// `cfq`, by `cfq_may_dispatch` and `cfq_scaled_cfqq_slice`.

/// Drive that takes 32 commands behind the scheduler, like SATA.
fn cfq() -> Bench {
    let spec = BlockSpec { nr_requests: Some(4096), ..spec(SchedulerPolicy::cfq(Params::default())) };
    Bench::new(&spec, Device { queues: 1, queue_depth: 32, ..DEVICE }, 1)
}

/// Threads that keep `depth` reads in flight each on a drive that completes 4 commands a millisecond. Returns the run
/// lengths of consecutive commands of each thread at the drive, and the maximum in flight, after a second in which all
/// have had their turn.
fn turns(threads: u32, depth: u32) -> (Vec<u32>, usize) {
    let mut bench = cfq();
    let mut next = 0u64;
    let mut ask = |bench: &mut Bench, task: u32| {
        next = (next + 7919) % 100_000;
        assert_eq!(bench.submit(read(next * 4 * KIB, 4 * KIB, task)), Submitted::Queued);
    };
    (0..threads).for_each(|task| (0..depth).for_each(|_| ask(&mut bench, task)));
    let (mut runs, mut last, mut most) = (Vec::new(), u32::MAX, 0);
    for done in 0..8000 {
        bench.now += Time::from_us(250);
        let first = bench.issued.remove(0);
        bench.complete(first);
        for task in std::mem::take(&mut bench.done) {
            match runs.last_mut() {
                Some(run) if last == task => *run += 1,
                _ => runs.push(1),
            }
            last = task;
            ask(&mut bench, task);
        }
        if done > 4000 {
            most = most.max(bench.issued.len());
        }
    }
    (runs, most)
}

/// Two processes that always have waiting requests have 100 ms each; four have 75, since all should have their turn in
/// 300; eight have 37.5. While others wait a process has 8 requests at the drive, besides a few of the process before.
#[test]
fn processes_that_keep_the_scheduler_busy_take_turns() {
    for (threads, ms) in [(2, 100.0), (4, 75.0), (8, 37.5)] {
        let (runs, most) = turns(threads, 32);
        let middle = &runs[threads as usize..runs.len() - 1];
        let long: Vec<f64> = middle.iter().map(|run| f64::from(*run) / 4.0).filter(|ms| *ms > 5.0).collect();
        assert!(long.len() >= 6, "{runs:?}");
        for took in long {
            assert!((took / ms - 1.0).abs() < 0.12, "{took} ms of {ms}: {runs:?}");
        }
        assert!((8..=16).contains(&most), "{most}");
    }
}

/// One process alone has as many requests at the drive as it takes; so do several that have all their requests there.
#[test]
fn a_process_alone_is_not_held_back() {
    assert_eq!(turns(1, 64).1, 32);
    assert_eq!(turns(16, 2).1, 32);
    let (runs, most) = turns(32, 2);
    assert_eq!(most, 32);
    let mut lengths: BTreeMap<u32, u32> = BTreeMap::new();
    runs.iter().for_each(|run| *lengths.entry(*run).or_default() += 1);
    assert!(lengths.keys().all(|run| *run <= 8), "{lengths:?}");
}

/// Sixty-four threads with one read in flight each, on a drive that takes 32. A thread whose read has ended asks again
/// while the previous thread has no waiting request, and goes first. Thirty-two threads take turns, and the others wait
/// as long as that continues.
#[test]
fn threads_that_have_just_been_served_go_before_those_that_wait() {
    let mut bench = cfq();
    let mut next = 0;
    let mut ask = |bench: &mut Bench, task: u32| {
        next = (next + 7919) % 100_000;
        assert_eq!(bench.submit(read(next * 4 * KIB, 4 * KIB, task)), Submitted::Queued);
    };
    (0..64).for_each(|task| ask(&mut bench, task));
    let mut served = [0; 64];
    for _ in 0..6400 {
        bench.now += Time::from_us(14);
        let first = bench.issued.remove(0);
        bench.complete(first);
        for task in std::mem::take(&mut bench.done) {
            served[task as usize] += 1;
            ask(&mut bench, task);
        }
    }
    assert_eq!(bench.issued.len(), 32);
    let often = served.iter().filter(|times| **times > 150).count();
    assert!((31..=34).contains(&often), "{served:?}");
}

// Flushes and force unit access, by block/blk-flush.c.

/// Command as a letter: flush, write, write with force unit access.
fn letter(issued: &Issued) -> char {
    match (issued.op, issued.fua) {
        (IoOp::Flush, false) => 'f',
        (IoOp::Write, false) => 'w',
        (IoOp::Write, true) => 'u',
        _ => '?',
    }
}

fn asking(preflush: bool, fua: bool, bytes: u64, owner: u32) -> Bio {
    let flags = BioFlags { preflush, fua, ..BioFlags::default() };
    Bio { flags, ..write(u64::from(owner) * 1024 * KIB, bytes, owner) }
}

/// Sequence of commands at the drive for one bio.
fn told(bench: &mut Bench, bio: Bio) -> String {
    let mut told = String::new();
    assert_eq!(bench.submit(bio), Submitted::Queued);
    while !bench.issued.is_empty() {
        assert_eq!((bench.issued.len(), bench.done.len()), (1, 0));
        told.push(letter(&bench.issued[0]));
        let issued = bench.issued.remove(0);
        bench.complete(issued);
    }
    assert_eq!((bench.done.as_slice(), bench.queue.is_idle()), ([bio.owner].as_slice(), true));
    bench.done.clear();
    told
}

/// `blk_flush_policy` of the four kinds of drives: volatile cache or not, force unit access or not.
#[test]
fn sequences_of_the_four_kinds_of_drives() {
    let asked = [(true, true, 4), (true, false, 4), (false, true, 4), (true, false, 0)];
    let kinds = [
        (true, true, ["fu", "fw", "u", "f"]),
        (true, false, ["fwf", "fw", "wf", "f"]),
        (false, true, ["w", "w", "w", ""]),
        (false, false, ["w", "w", "w", ""]),
    ];
    for scheduler in SchedulerPolicy::all_defaults() {
        for (write_cache, fua, expected) in kinds {
            let device = Device { write_cache, fua, ..DEVICE };
            let mut bench = Bench::new(&spec(scheduler.clone()), device, 1);
            for ((preflush, force, kib), expected) in asked.into_iter().zip(expected) {
                let bio = asking(preflush, force, kib * KIB, 3);
                assert_eq!(told(&mut bench, bio), expected, "{} {device:?} {bio:?}", scheduler.name());
            }
            let expected = if write_cache { "f" } else { "" };
            assert_eq!(told(&mut bench, bio(IoOp::Flush, 0, 0, 3)), expected);
        }
    }
}

/// Flushes that arrive while one is at the drive share the next one.
#[test]
fn flushes_share_one() {
    for scheduler in SchedulerPolicy::all_defaults() {
        let mut bench = Bench::new(&spec(scheduler), DEVICE, 1);
        for owner in 0..5 {
            assert_eq!(bench.submit(asking(true, false, 0, owner)), Submitted::Queued);
        }
        assert_eq!(bench.issued.len(), 1);
        bench.complete(bench.issued[0]);
        assert_eq!((bench.done.as_slice(), bench.issued.len()), ([0].as_slice(), 2));
        bench.complete(bench.issued[1]);
        assert_eq!((bench.done.len(), bench.issued.len()), (5, 2));
        let stats = bench.queue.stats();
        assert_eq!((stats.flushes_asked, stats.requests[crate::block::kind(IoOp::Flush)]), (5, 2));
        assert!(bench.queue.is_idle());
    }
}

/// C2 and C3 of `blk_kick_flush`: while data of a sequence is at the drive, a flush waits for it and serves its second
/// flush as well, for at most five seconds.
#[test]
fn a_flush_waits_for_data_of_a_sequence() {
    for seconds in [4, 5] {
        let mut bench = Bench::new(&spec(SchedulerPolicy::none), Device { fua: false, ..DEVICE }, 1);
        let letters = |bench: &Bench| bench.issued.iter().map(letter).collect::<String>();
        assert_eq!(bench.submit(asking(false, true, 4 * KIB, 0)), Submitted::Queued);
        assert_eq!(bench.submit(asking(true, false, 0, 1)), Submitted::Queued);
        assert_eq!(letters(&bench), "w");
        bench.now += Time::from_s(seconds);
        assert_eq!(bench.submit(asking(true, false, 0, 2)), Submitted::Queued);
        if seconds == 4 {
            assert_eq!(letters(&bench), "w");
            bench.complete(bench.issued[0]);
            assert_eq!(letters(&bench), "wf");
            bench.complete(bench.issued[1]);
            assert_eq!(bench.done, [1, 2, 0]);
        } else {
            assert_eq!(letters(&bench), "wf");
            bench.complete(bench.issued[1]);
            assert_eq!(bench.done, [1, 2]);
            bench.complete(bench.issued[0]);
            assert_eq!(letters(&bench), "wff");
            bench.complete(bench.issued[2]);
            assert_eq!(bench.done, [1, 2, 0]);
        }
        assert!(bench.queue.is_idle());
    }
}

/// A failed flush ends the requests it covers, and their data is not written.
#[test]
fn a_flush_that_fails_ends_the_sequence() {
    let mut bench = Bench::new(&spec(SchedulerPolicy::none), DEVICE, 1);
    assert_eq!(bench.submit(asking(true, true, 4 * KIB, 9)), Submitted::Queued);
    let flush = bench.issued[0];
    bench.queue.complete(flush.hctx, flush.tag, Status::WriteFault, bench.now, &mut bench.effects);
    assert_eq!(bench.effects.done[0].status, Status::WriteFault);
    bench.settle();
    assert_eq!((bench.issued.len(), bench.queue.is_idle()), (1, true));
}

/// One tag: the flush uses that of its write, without a scheduler and with one.
#[test]
fn a_flush_borrows_its_tag() {
    for scheduler in SchedulerPolicy::all_defaults() {
        let device = Device { queue_depth: 1, fua: false, ..DEVICE };
        let mut bench = Bench::new(&spec(scheduler), device, 1);
        assert_eq!(told(&mut bench, asking(true, true, 4 * KIB, 1)), "fwf");
    }
}
