//! The shared cache alone, with a memory that the test plays.

mod absent;
mod parking;
mod prefetching;
mod soak;
mod timing;
mod writes;

use super::prefetch::{Prefetching, fixed};
use super::*;
use crate::cache::replace::ReplacementPolicy;
use config::units::{Bytes, Frequency};
use engine::EventQueue;
use proto::memory::{Absent, AccessKind, LINE, PAGE};
use std::collections::BTreeSet;

/// A cycle at 1 GHz is a nanosecond: reads take 1 ns, writes 5 ns.
pub(super) fn spec(writes: WritePolicy) -> L2Spec {
    L2Spec {
        banks: 1,
        sets: 64,
        ways: 4,
        line: Bytes::new(LINE),
        clock: Frequency::new(1_000_000_000),
        read_latency: 1,
        write_latency: 5,
        interleave: Bytes::new(PAGE),
        registers: 8,
        merges: 8,
        write_slots: 8,
        replacement: ReplacementPolicy::lru,
        writes,
        prefetch: Prefetching::none,
        parked: Bytes::new(0),
    }
}

pub(super) fn fixed(bytes: u64) -> Prefetching {
    Prefetching::fixed(fixed::Params { chunk: Bytes::new(bytes) })
}

engine::events! {
    pub(super) enum Happening {
        Cache(Event),
        Access(u32),
        Done(u32),
        /// The soak's own.
        Soak(u32),
    }
}

/// The outside world of one cache.
#[derive(Default)]
pub(super) struct World {
    queue: EventQueue<Happening>,
    accesses: Vec<Access>,
    pub(super) commands: Vec<(Time, MemCommand)>,
    pub(super) answers: Vec<(Time, Access)>,
    /// How long memory takes; without, commands stay unanswered.
    memory: Option<Time>,
    /// Pages in flash: fetches of their lines that are not to wait bring nothing.
    pub(super) in_flash: BTreeSet<u64>,
}

engine::context! {
    World: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Happening::Cache(event),
    out: |me, out| {
        let now = me.queue.now();
        match out {
            Out::Answer(access) => me.answers.push((now, access)),
            Out::Command(command) => {
                if let Some(delay) = me.memory {
                    me.queue.after(delay, Happening::Done(me.commands.len() as u32));
                }
                me.commands.push((now, command));
            }
        }
    },
}

/// A cache in its world.
pub(super) struct Rig {
    pub(super) cache: L2,
    pub(super) world: World,
}

pub(super) fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

impl Rig {
    /// With a memory that takes `memory` ns.
    pub(super) fn new(spec: &L2Spec, memory: u64) -> Rig {
        let world = World { memory: Some(ns(memory)), ..World::default() };
        Rig { cache: L2::new(spec, 1).expect("a spec that fits"), world }
    }

    /// Sends an access `delay` ns from now; its tag counts accesses.
    pub(super) fn send(&mut self, delay: u64, kind: AccessKind, address: u64, bytes: u8) -> u32 {
        self.send_for(0, delay, kind, address, bytes)
    }

    pub(super) fn send_for(&mut self, app: u8, delay: u64, kind: AccessKind, address: u64, bytes: u8) -> u32 {
        let since = self.world.queue.now() + ns(delay);
        let absent = Absent::Wait;
        self.put(Access { tag: 0, kind, address, bytes, app, port: 3, warp: 0, pc: 8, absent, since })
    }

    /// As [`Rig::send`], of an access that does not wait for an absent page.
    pub(super) fn signal(&mut self, delay: u64, kind: AccessKind, address: u64, bytes: u8) -> u32 {
        let (absent, since) = (Absent::Signal, self.world.queue.now() + ns(delay));
        self.put(Access { tag: 0, kind, address, bytes, app: 0, port: 3, warp: 0, pc: 8, absent, since })
    }

    fn put(&mut self, access: Access) -> u32 {
        let tag = self.world.accesses.len() as u32;
        let delay = access.since - self.world.queue.now();
        self.world.accesses.push(Access { tag, ..access });
        self.world.queue.after(delay, Happening::Access(tag));
        tag
    }

    pub(super) fn read(&mut self, delay: u64, address: u64) -> u32 {
        self.send(delay, AccessKind::Read, address, LINE as u8)
    }

    pub(super) fn write(&mut self, delay: u64, address: u64, bytes: u64) -> u32 {
        self.send(delay, AccessKind::Write, address, bytes as u8)
    }

    pub(super) fn atomic(&mut self, delay: u64, address: u64) -> u32 {
        self.send(delay, AccessKind::Atomic, address, 4)
    }

    /// Plays on until nothing happens any more.
    pub(super) fn run(&mut self) {
        while self.step() {}
    }

    /// The next thing that happens; false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let happening = self.world.queue.pop();
        match happening {
            None => {}
            Some(Happening::Cache(event)) => self.cache.handle(event, &mut self.world),
            Some(Happening::Access(n)) => {
                let access = self.world.accesses[n as usize];
                let bank = self.cache.bank_of(access.address);
                self.cache.access(bank, access, &mut self.world);
            }
            Some(Happening::Done(n)) => self.done(n as usize),
            Some(Happening::Soak(_)) => unreachable!("only the soak schedules it"),
        }
        happening.is_some()
    }

    /// Memory has done the n-th command.
    pub(super) fn done(&mut self, n: usize) {
        let mut command = self.world.commands[n].1;
        command.since = self.world.now();
        if command.absent == Absent::Signal && self.world.in_flash.contains(&command.page) {
            command.absent = Absent::Signalled;
        }
        self.cache.done(command, &mut self.world);
    }

    /// When the access of a tag was answered, in ps.
    pub(super) fn answered(&self, tag: u32) -> Option<u64> {
        let mut found = self.world.answers.iter().filter(|(_, access)| access.tag == tag);
        let at = found.next().map(|(time, _)| time.ps());
        assert!(found.next().is_none(), "access {tag} has been answered twice");
        at
    }

    /// Each command as (write, page, lines).
    pub(super) fn commands(&self) -> Vec<(bool, u64, u64)> {
        self.world.commands.iter().map(|(_, c)| (c.write, c.page, c.lines)).collect()
    }
}
