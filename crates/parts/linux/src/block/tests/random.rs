//! Random bios: every byte of each goes to the drive once, and every limit is kept.

use super::*;
use crate::block::{Run, kind};
use engine::Rng;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of every kind, as the sum of begins and ends at each position: equal for two sets of extents that cover each
/// byte equally often.
#[derive(Default, PartialEq, Debug)]
struct Cover(BTreeMap<(usize, u64), i64>);

impl Cover {
    fn add(&mut self, op: IoOp, offset: u64, bytes: u32) {
        for (at, by) in [(offset, 1), (offset + u64::from(bytes), -1)] {
            *self.0.entry((kind(op), at)).or_default() += by;
        }
        self.0.retain(|_, sum| *sum != 0);
    }
}

/// Submitted bio, and its time.
struct Asked {
    flags: BioFlags,
    /// Commands issued before it was submitted.
    after: usize,
}

struct World {
    queue: Queue,
    device: Device,
    rng: Rng,
    now: Time,
    effects: Effects,
    at_drive: Vec<(usize, Issued)>,
    /// Numbers of completed flush commands.
    flushed: BTreeSet<usize>,
    commands: usize,
    woken: Vec<Woken>,
    later: Vec<Run>,
    plugs: Vec<Plug>,
    asked: Vec<Asked>,
    ended: BTreeSet<u32>,
    wanted: Cover,
    sent: Cover,
}

impl World {
    fn new(spec: &BlockSpec, device: Device, cores: u16, seed: u64) -> World {
        World {
            queue: Queue::new(spec, device, cores).expect("the spec is valid"),
            device,
            rng: Rng::stream(seed, "test"),
            now: Time::ZERO,
            effects: Effects::default(),
            at_drive: Vec::new(),
            flushed: BTreeSet::new(),
            commands: 0,
            woken: Vec::new(),
            later: Vec::new(),
            plugs: (0..cores).map(|_| Plug::default()).collect(),
            asked: Vec::new(),
            ended: BTreeSet::new(),
            wanted: Cover::default(),
            sent: Cover::default(),
        }
    }

    fn sent(&mut self, issued: Issued) {
        let limits = self.queue.limits();
        assert!(issued.bytes <= limits.of(issued.op), "{issued:?}");
        let segments = issued.bytes.div_ceil(4096);
        assert!(!matches!(issued.op, IoOp::Read | IoOp::Write) || segments <= limits.segments, "{issued:?}");
        let same = |other: &Issued| (other.hctx, other.tag) == (issued.hctx, issued.tag);
        assert!(!self.at_drive.iter().any(|(_, other)| same(other)), "a tag is used twice");
        assert!(issued.tag < self.device.queue_depth);
        if issued.op == IoOp::Flush {
            assert_eq!(issued.bytes, 0);
        } else {
            self.sent.add(issued.op, issued.offset, issued.bytes);
        }
        self.at_drive.push((self.commands, issued));
        self.commands += 1;
    }

    fn ended(&mut self, owner: u32) {
        assert!(self.ended.insert(owner), "{owner} ends twice");
        let asked = &self.asked[owner as usize];
        if asked.flags.preflush && self.device.write_cache {
            assert!(self.flushed.range(asked.after..).next().is_some(), "{owner} without its flush");
        }
    }

    /// Handles the effects of a call; workers take their time.
    fn settle(&mut self) {
        loop {
            let mut effects = std::mem::take(&mut self.effects);
            effects.issued.drain(..).for_each(|issued| self.sent(issued));
            effects.done.drain(..).for_each(|done| self.ended(done.owner));
            self.woken.append(&mut effects.woken);
            let mut now = Vec::new();
            for run in effects.runs.drain(..) {
                if run.later { self.later.push(run) } else { now.push(run) }
            }
            self.effects = effects;
            if now.is_empty() {
                return;
            }
            for run in now {
                self.queue.dispatch(run.hctx, self.now, &mut self.effects);
            }
        }
    }

    fn flush_plug(&mut self, core: usize, from_schedule: bool) {
        let plug = &mut self.plugs[core];
        self.queue.flush_plug(plug, from_schedule, self.now, &mut self.effects);
        self.settle();
    }

    /// Flushes the plug of a task that has to wait.
    fn answered(&mut self, submitted: Submitted, core: usize) {
        self.settle();
        if submitted != Submitted::Queued {
            self.flush_plug(core, true);
        }
    }

    fn ask(&mut self) {
        let rng = &mut self.rng;
        let op = match rng.below(20) {
            0..=7 => IoOp::Read,
            8..=16 => IoOp::Write,
            17 => IoOp::Trim,
            18 => IoOp::WriteZeroes,
            _ => IoOp::Flush,
        };
        let mut one_in = |n: u64| rng.below(n) == 0;
        let mut flags = BioFlags {
            sync: one_in(2),
            idle: one_in(3),
            background: one_in(3),
            meta: one_in(9),
            prio: one_in(9),
            ..BioFlags::default()
        };
        if op == IoOp::Write {
            (flags.preflush, flags.fua) = (one_in(12), one_in(12));
        }
        let long = one_in(8);
        let unit = if one_in(6) { 512 } else { 4096 };
        let bytes = if op == IoOp::Flush { 0 } else { (1 + rng.below(if long { 300 } else { 4 })) * unit };
        let offset = rng.below(64) * unit;
        let owner = self.asked.len() as u32;
        let bio = Bio { op, offset, bytes: bytes as u32, flags, owner, announced: 0 };
        if op == IoOp::Flush {
            flags.preflush = true;
        } else {
            self.wanted.add(op, offset, bio.bytes);
        }
        self.asked.push(Asked { flags, after: self.commands });
        let core = self.rng.below(self.plugs.len() as u64) as usize;
        let plug = (self.rng.below(2) == 0).then_some(&mut self.plugs[core]);
        let answer = self.queue.submit(bio, core as u16, owner, plug, self.now, &mut self.effects);
        self.answered(answer, core);
    }

    fn step(&mut self) {
        self.now += Time::from_us(self.rng.below(400));
        match self.rng.below(16) {
            0..=6 => self.ask(),
            7 => {
                let core = self.rng.below(self.plugs.len() as u64) as usize;
                let from_schedule = self.rng.below(2) == 0;
                self.flush_plug(core, from_schedule);
            }
            8 => self.queue.writer_paused(self.now),
            9..=12 => self.complete(),
            _ => self.go_on(),
        }
        if self.queue.next_timer().is_some_and(|at| at <= self.now) {
            self.queue.timer(self.now, &mut self.effects);
            self.settle();
        }
    }

    fn complete(&mut self) {
        if self.at_drive.is_empty() {
            return;
        }
        let at = self.rng.below(self.at_drive.len() as u64) as usize;
        let (number, issued) = self.at_drive.remove(at);
        if issued.op == IoOp::Flush {
            self.flushed.insert(number);
        }
        self.queue.complete(issued.hctx, issued.tag, Status::Success, self.now, &mut self.effects);
        self.settle();
    }

    /// A worker runs a queue, or a woken task goes on.
    fn go_on(&mut self) {
        if !self.later.is_empty() {
            let run = self.later.remove(0);
            self.queue.dispatch(run.hctx, self.now, &mut self.effects);
            self.settle();
        } else if !self.woken.is_empty() {
            let woken = self.woken.remove(0);
            let core = self.rng.below(self.plugs.len() as u64) as usize;
            let plug = Some(&mut self.plugs[core]);
            let answer = self.queue.resume(woken.stalled, core as u16, plug, self.now, &mut self.effects);
            self.answered(answer, core);
        }
    }

    /// Completes all submitted bios.
    fn drain(&mut self) {
        for core in 0..self.plugs.len() {
            self.flush_plug(core, false);
        }
        for _ in 0..20_000 {
            if self.queue.is_idle() {
                return;
            }
            self.go_on();
            self.complete();
            for core in 0..self.plugs.len() {
                self.flush_plug(core, false);
            }
            if let Some(timer) = self.queue.next_timer()
                && self.at_drive.is_empty()
            {
                self.now = self.now.max(timer);
                self.queue.timer(self.now, &mut self.effects);
                self.settle();
            }
        }
        panic!("it hangs: {} at the drive, {} woken", self.at_drive.len(), self.woken.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn nothing_is_lost_and_nothing_exceeds_its_limit(
        seed in any::<u64>(),
        scheduler in 0..SchedulerPolicy::all_defaults().len(),
        (queue_depth, requests) in prop_oneof![Just((1, 4)), Just((4, 8)), Just((64, 64)), Just((1023, 256))],
        (cores, queues) in prop_oneof![Just((1, 1)), Just((4, 4)), Just((4, 1)), Just((5, 2))],
        (write_cache, fua, merges, throttled) in any::<(bool, bool, bool, bool)>(),
        max_transfer in prop_oneof![Just(0), Just(64 * KIB)],
    ) {
        let scheduler = SchedulerPolicy::all_defaults().swap_remove(scheduler);
        let wbt_lat = Duration::new(Time::from_us(if throttled { 300 } else { 0 }));
        let nr_requests = Some(requests);
        let mut spec = BlockSpec { nr_requests, merges, wbt_lat, ..super::spec(scheduler) };
        let device = Device { max_transfer, queues, queue_depth, write_cache, fua, ..DEVICE };
        if Queue::new(&spec, device, cores).is_err() {
            spec.nr_requests = Some(queue_depth);
        }
        let mut world = World::new(&spec, device, cores, seed);
        for _ in 0..400 {
            world.step();
        }
        world.drain();
        prop_assert_eq!(&world.sent, &world.wanted);
        prop_assert_eq!(world.ended.len(), world.asked.len());
        prop_assert!(world.woken.is_empty() && world.queue.is_idle());
        let stats = world.queue.stats();
        prop_assert_eq!((stats.in_flight.value(), stats.queued.value()), (0, 0));
        let bios: u64 = stats.bios.iter().sum();
        prop_assert_eq!(bios as usize, world.asked.len());
    }
}
