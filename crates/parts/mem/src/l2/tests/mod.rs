//! The shared cache alone, with a memory that the test plays.

mod by_hand;
mod soak;

use super::prefetch::{Prefetching, fixed};
use super::*;
use crate::{
    cache::replace::ReplacementPolicy,
    l2::prefetch::{dynamic, predicted},
};
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
    /// Latency of memory; without it, commands stay unanswered.
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

    /// Runs until no event is left.
    pub(super) fn run(&mut self) {
        while self.step() {}
    }

    /// Runs the next event; returns false if there is none.
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

    /// Completes the n-th command of memory.
    pub(super) fn done(&mut self, n: usize) {
        let mut command = self.world.commands[n].1;
        command.since = self.world.now();
        if command.absent == Absent::Signal && self.world.in_flash.contains(&command.page) {
            command.absent = Absent::Signalled;
        }
        self.cache.done(command, &mut self.world);
    }

    /// Answer time of the access with a tag, in ps.
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

// Prefetchers at work in the cache.

/// All lines of a page.
const ALL: u64 = (1 << 32) - 1;

#[test]
fn the_rest_of_a_page_comes_once_its_instruction_has_stayed_in_it() {
    let mut spec = spec(WritePolicy::read_only);
    spec.prefetch = Prefetching::predicted(predicted::Params::default());
    let mut rig = Rig::new(&spec, 50);
    for line in 0..20 {
        rig.read(100 * line, line * 128);
    }
    rig.run();
    // Thirteen re-accesses are above the cutoff of 12: the read of line 13 brings what is not here yet.
    let alone = (0..13).map(|line| (false, 0, 1 << line));
    assert!(rig.commands().into_iter().eq(alone.chain([(false, 0, ALL << 13 & ALL)])));
    let stats = rig.cache.stats;
    assert_eq!((stats.hits, stats.used_prefetched_lines, stats.prefetch.tests), (6, 6, 14));
}

#[test]
fn prefetched_lines_that_leave_unread_halve_the_granularity() {
    let mut spec = spec(WritePolicy::read_only);
    (spec.sets, spec.ways) = (32, 1);
    let params = dynamic::Params { cutoff: 0, window: 33, ..dynamic::Params::default() };
    spec.prefetch = Prefetching::dynamic(params);
    let mut rig = Rig::new(&spec, 50);
    // The second read is a re-access and brings the page; two lines of the page were read, thirty were not.
    rig.read(0, 0);
    rig.read(100, 128);
    // Page 1, read by another warp at another instruction, takes all its places, with the same pattern.
    for (delay, line) in [(1000, 0), (1100, 1)] {
        let tag = rig.read(delay, PAGE + line * 128) as usize;
        (rig.world.accesses[tag].pc, rig.world.accesses[tag].warp) = (9, 1);
    }
    rig.run();
    let page = (false, 0, ALL << 1 & ALL);
    assert_eq!(rig.commands(), [(false, 0, 1), page, (false, PAGE, 1), (false, PAGE, ALL << 1 & ALL)]);
    let stats = rig.cache.stats;
    // Lines 0 and 1 were missed, not prefetched: of 32 evicted lines, thirty were prefetched without use.
    assert_eq!((stats.evictions, stats.unused_evictions, stats.prefetch.evaluations), (32, 30, 0));
    // One more makes 33, of which 30 are more than 0.3; the next prefetch has half the granularity.
    rig.read(0, 2 * PAGE + 5 * 128);
    rig.read(1000, 2 * PAGE + 6 * 128);
    rig.run();
    assert_eq!((rig.cache.stats.prefetch.evaluations, rig.cache.stats.prefetch.halvings), (1, 1));
    assert_eq!(rig.commands()[5..], [(false, 2 * PAGE, 0xffff & !(1 << 5))]);
}

// Fetches that come back without data.

/// Each answer as (tag, ns, whether it brought nothing), in order.
fn answers(rig: &Rig) -> Vec<(u32, u64, bool)> {
    let answer =
        |(at, access): &(Time, Access)| (access.tag, at.ps() / 1000, access.absent == Absent::Signalled);
    rig.world.answers.iter().map(answer).collect()
}

fn in_flash(spec: &L2Spec) -> Rig {
    let mut rig = Rig::new(spec, 100);
    rig.world.in_flash.insert(0);
    rig
}

#[test]
fn nothing_is_filled_and_all_who_asked_for_it_are_told() {
    let mut spec = spec(WritePolicy::write_back);
    spec.prefetch = fixed(4096);
    let mut rig = in_flash(&spec);
    let tags = [0, 1].map(|delay| rig.signal(delay, AccessKind::Read, 0, 128));
    // Another page is in memory: its data come, its line alone.
    let other = rig.signal(2, AccessKind::Own, PAGE, 128);
    rig.run();
    assert_eq!(answers(&rig), [(tags[0], 101, true), (tags[1], 101, true), (other, 103, false)]);
    assert_eq!(rig.commands(), [(false, 0, 1), (false, PAGE, 1)]);
    // The page has come meanwhile: a miss again. The fill of the other line takes the bank until 108 ns.
    rig.world.in_flash.clear();
    let (again, there) =
        (rig.signal(0, AccessKind::Read, 0, 128), rig.signal(0, AccessKind::Read, PAGE, 128));
    rig.run();
    assert!(answers(&rig)[3..] == [(there, 110, false), (again, 209, false)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.signalled, stats.misses, stats.merges, stats.hits), (2, 3, 1, 1));
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn who_waits_has_the_line_fetched_again() {
    let mut rig = in_flash(&spec(WritePolicy::write_back));
    let told = rig.signal(0, AccessKind::Read, 0, 128);
    let waits = [10, 20].map(|delay| rig.read(delay, 0));
    let told_too = rig.signal(30, AccessKind::Read, 0, 128);
    // It meets the second fetch, and waits with it.
    let late = rig.signal(150, AccessKind::Read, 0, 128);
    rig.run();
    let expected = [
        (told, 101, true),
        (told_too, 101, true),
        (waits[0], 201, false),
        (waits[1], 201, false),
        (late, 201, false),
    ];
    assert_eq!(answers(&rig), expected);
    let absent: Vec<Absent> = rig.world.commands.iter().map(|(_, command)| command.absent).collect();
    assert_eq!(absent, [Absent::Signal, Absent::Wait]);
    // Memory's 200 ns are its own; the rest of every life is here.
    let here: u128 = rig.cache.tally.reads().iter().sum();
    let lives = 101 + (201 - 10) + (201 - 20) + (101 - 30) + (201 - 150);
    assert_eq!(here, u128::from(ns(lives - 100 - 100).ps()));
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn what_was_held_for_an_atomic_is_given_up() {
    // One set of one way: the place that the atomic has must be free again.
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 1);
    let mut rig = in_flash(&spec);
    let atomic = rig.signal(0, AccessKind::Atomic, 0, 8);
    rig.run();
    assert_eq!(answers(&rig), [(atomic, 106, true)]);
    let write = rig.write(0, PAGE, 128);
    rig.run();
    assert_eq!(answers(&rig)[1..], [(write, 111, false)]);
    assert_eq!(rig.cache.stats.evictions, 0);

    // Where writes go through, it is a write slot.
    spec.writes = WritePolicy::read_only;
    spec.write_slots = 1;
    let mut rig = in_flash(&spec);
    let atomic = rig.signal(0, AccessKind::Atomic, 0, 8);
    rig.run();
    let write = rig.write(0, PAGE, 128);
    rig.run();
    assert_eq!(answers(&rig), [(atomic, 101, true), (write, 202, false)]);
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn what_was_written_to_part_of_the_line_stays() {
    let mut rig = in_flash(&spec(WritePolicy::write_back));
    rig.write(0, 0, 32);
    rig.signal(10, AccessKind::Read, 0, 128);
    rig.run();
    // The line is dirty and lacks the rest: another read fetches it, a purge writes it.
    rig.world.in_flash.clear();
    rig.read(0, 0);
    rig.run();
    rig.cache.purge(0, &mut rig.world);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (false, 0, 1), (true, 0, 1)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.signalled, stats.write_backs, stats.purged_lines), (1, 1, 1));
}

// Write policies, by hand.

#[test]
fn written_lines_stay_and_go_when_they_make_room() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 2);
    let mut rig = Rig::new(&spec, 1000);
    for (n, line) in [0u64, 1, 2].into_iter().enumerate() {
        rig.write(100 * n as u64, line * 128, 128);
    }
    let read = rig.read(300, 2 * 128);
    rig.run();
    assert_eq!(rig.commands(), [(true, 0, 1)], "line 0 goes, no line is fetched");
    let (at, write) = rig.world.commands[0];
    assert_eq!((at, write.demand, write.pc), (ns(205), false, 0));
    assert_eq!(rig.answered(read), Some(301_000));
    let stats = rig.cache.stats;
    assert_eq!((stats.write_backs, stats.written_lines, stats.evictions, stats.hits), (1, 1, 1, 1));
}

#[test]
fn a_line_written_in_part_is_fetched_when_it_is_read() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 1);
    let mut rig = Rig::new(&spec, 1000);
    let write = rig.write(0, 0, 32);
    let reads = [rig.read(10, 0), rig.read(2000, 0)];
    rig.run();
    assert_eq!(rig.answered(write), Some(5_000));
    assert_eq!(reads.map(|tag| rig.answered(tag)), [Some(1_011_000), Some(2_001_000)]);
    assert_eq!(rig.commands(), [(false, 0, 1)]);
    // It is still dirty.
    rig.write(0, 128, 128);
    rig.run();
    assert_eq!(rig.commands()[1..], [(true, 0, 1)]);
}

#[test]
fn without_a_write_slot_a_write_waits_for_room() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways, spec.write_slots) = (1, 1, 1);
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.write(0, 0, 128), rig.write(10, 128, 128), rig.write(20, 256, 128)];
    rig.run();
    // The second sends line 0 to memory at 15, which frees the slot at 1015. Reading line 0 took 1 ns.
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(5_000), Some(15_000), Some(1_015_000)]);
    assert_eq!(rig.commands(), [(true, 0, 1), (true, 0, 2)]);
    assert_eq!(rig.cache.stats.stalls, 1);
}

#[test]
fn read_only_writes_go_through_and_drop_the_copy() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    rig.read(0, 0);
    let write = rig.write(2000, 0, 4);
    let again = rig.read(4000, 0);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (true, 0, 1), (false, 0, 1)]);
    assert!(rig.world.commands[1].1.demand);
    // The look-up takes the read latency, the cells are not written.
    assert_eq!([write, again].map(|tag| rig.answered(tag)), [Some(3_001_000), Some(5_001_000)]);
    let stats = rig.cache.stats;
    assert_eq!((stats.write_throughs, stats.invalidations, stats.write_hits, stats.misses), (1, 1, 1, 2));
}

#[test]
fn a_write_that_passes_a_fetch_makes_it_old() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let before = rig.read(0, 0);
    rig.write(10, 0, 4);
    let after = rig.read(20, 0);
    let later = rig.read(3000, 0);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (true, 0, 1), (false, 0, 1)]);
    let times = [before, after, later].map(|tag| rig.answered(tag).expect("answered"));
    assert_eq!(times, [1_001_000, 1_021_000, 3_001_000]);
    assert_eq!((rig.cache.stats.merges, rig.cache.stats.hits), (0, 1));
}

#[test]
fn atomics_stay_where_writes_stay() {
    let mut spec = spec(WritePolicy::write_back);
    (spec.sets, spec.ways) = (1, 1);
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.atomic(0, 0), rig.atomic(0, 0), rig.atomic(2000, 0)];
    rig.run();
    // Look-up with its write, then the fetch; a hit takes both latencies.
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(1_006_000), Some(1_006_000), Some(2_006_000)]);
    assert_eq!(rig.commands(), [(false, 0, 1)]);
    rig.write(0, 128, 128);
    rig.run();
    assert_eq!(rig.commands()[1..], [(true, 0, 1)], "they made the line dirty");
}

#[test]
fn read_only_atomics_read_and_write_through() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    let tags = [rig.atomic(0, 0), rig.atomic(0, 0)];
    rig.read(3000, 0);
    let hit = rig.atomic(5000, 0);
    rig.run();
    // One fetch for both, their writes together; the line is not kept, so the read fetches it.
    let (fetch, write) = ((false, 0, 1), (true, 0, 1));
    assert_eq!(rig.commands(), [fetch, write, write, fetch, write]);
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(2_001_000), Some(2_001_000)]);
    assert_eq!(rig.answered(hit), Some(6_001_000));
    assert_eq!((rig.cache.stats.hits, rig.cache.stats.misses, rig.cache.stats.merges), (1, 2, 1));
}

#[test]
fn a_slot_is_kept_for_an_atomic_whose_line_is_fetched() {
    let mut spec = spec(WritePolicy::read_only);
    spec.write_slots = 1;
    let mut rig = Rig::new(&spec, 1000);
    let tags = [rig.atomic(0, 0), rig.write(0, 4096, 4)];
    rig.run();
    // Fetch, write of the atomic, and only then the other write.
    assert_eq!(tags.map(|tag| rig.answered(tag)), [Some(2_001_000), Some(3_001_000)]);
    assert_eq!(rig.cache.outstanding(), 0);
}

#[test]
fn a_write_waits_for_an_atomic_of_its_line() {
    let mut rig = Rig::new(&spec(WritePolicy::read_only), 1000);
    rig.atomic(0, 0);
    let write = rig.write(10, 0, 4);
    rig.run();
    assert_eq!(rig.commands(), [(false, 0, 1), (true, 0, 1), (true, 0, 1)]);
    assert_eq!(rig.world.commands[2].0, ns(1001));
    assert_eq!(rig.answered(write), Some(2_001_000));
}
