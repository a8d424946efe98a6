//! The block layer against the kernel's rules, worked by hand.

mod cfq;
mod deadline;
mod flush;
mod kyber;
mod limits;
mod plug;
mod random;
mod tags;

use super::{
    Bio, BioFlags, BlockSpec, Device, Effects, Issued, Plug, Queue, SchedulerPolicy, Submitted, Woken,
};
use config::units::{Bytes, Duration};
use engine::Time;
use proto::{IoOp, Status};

pub(super) const KIB: u64 = 1 << 10;

/// A drive that takes what the driver takes, with a volatile cache.
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

/// A queue, and all that has come of it. Hardware queues are run at once, whoever should.
pub(super) struct Bench {
    pub(super) queue: Queue,
    pub(super) now: Time,
    pub(super) effects: Effects,
    /// In order, with what has been completed.
    pub(super) issued: Vec<Issued>,
    pub(super) done: Vec<u32>,
    pub(super) woken: Vec<Woken>,
}

impl Bench {
    pub(super) fn new(spec: &BlockSpec, device: Device, cores: u16) -> Bench {
        Bench {
            queue: Queue::new(spec, device, cores).expect("it can be built"),
            now: Time::from_ms(1),
            effects: Effects::default(),
            issued: Vec::new(),
            done: Vec::new(),
            woken: Vec::new(),
        }
    }

    /// Acts on what has come of a call, but for running hardware queues.
    pub(super) fn collect(&mut self) {
        self.issued.append(&mut self.effects.issued);
        self.done.extend(self.effects.done.drain(..).map(|done| done.owner));
        self.woken.append(&mut self.effects.woken);
    }

    /// Acts on all that has come of a call.
    pub(super) fn settle(&mut self) {
        self.collect();
        while !self.effects.runs.is_empty() {
            let run = self.effects.runs.remove(0);
            self.queue.dispatch(run.hctx, self.now, &mut self.effects);
            self.collect();
        }
    }

    /// Without a plug, from a core.
    pub(super) fn submit_at(&mut self, bio: Bio, core: u16) -> Submitted {
        let submitted = self.queue.submit(bio, core, bio.owner, None, self.now, &mut self.effects);
        self.settle();
        submitted
    }

    pub(super) fn submit(&mut self, bio: Bio) -> Submitted {
        self.submit_at(bio, 0)
    }

    /// Into a plug, without acting on anything but what is issued.
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

    /// Completes what was issued from a place on, and forgets it; then what that brings about, until nothing is left.
    pub(super) fn drain(&mut self) {
        while !self.issued.is_empty() {
            let issued = self.issued.remove(0);
            self.complete(issued);
        }
    }

    /// What was issued, as kind, KiB from, KiB.
    pub(super) fn commands(&self) -> Vec<(IoOp, u64, u64)> {
        self.issued.iter().map(|i| (i.op, i.offset / KIB, u64::from(i.bytes) / KIB)).collect()
    }
}

#[test]
fn the_family_keeps_its_contract() {
    config::policy::check_family::<SchedulerPolicy>().expect("the list is whole");
}

#[test]
fn the_defaults_are_linux_s() {
    let spec = BlockSpec::default();
    assert_eq!(spec.scheduler.name(), "none");
    let limits = Queue::new(&spec, DEVICE, 8).expect("it can be built").limits();
    assert_eq!((limits.bytes, limits.segments), (1280 << 10, 127));
    let target = spec.wbt_lat.time();
    assert_eq!((spec.merges, spec.nr_requests, target), (true, None, Time::from_ms(2)));
}
