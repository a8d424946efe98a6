//! Paging by the operating system before a stub of a flash device: a fault's timeline by hand, and conservation by property.

use super::*;
use config::units::{Bytes, Duration};
use engine::EventQueue;
use proptest::prelude::*;
use proto::{Command, IoOp};
use std::collections::{BTreeMap, BTreeSet};

/// Times in nanoseconds, all different, so that a sum is not right by accident.
const FAULT: u64 = 1_500;
const SUBMIT: u64 = 1_410;
const COMPLETE: u64 = 2_030;
const SELECT: u64 = 1_007;
const LOCK: u64 = 203;
const BASE: u64 = 2_700;
const PER_CORE: u64 = 211;
const RESPOND: u64 = 503;
const FLASH: u64 = 50_000;

fn spec(frames: u64, free: u64) -> SwapSpec {
    let time = |ns| Duration::new(Time::from_ns(ns));
    SwapSpec {
        memory: Bytes::new(frames * PAGE),
        free: Bytes::new(free * PAGE),
        fault: time(FAULT),
        submit: time(SUBMIT),
        complete: time(COMPLETE),
        select: time(SELECT),
        lock: time(LOCK),
        shootdown: ShootdownSpec { base: time(BASE), per_core: time(PER_CORE), respond: time(RESPOND) },
        backing: SwapBacking::device,
    }
}

engine::events! {
    enum Ev {
        Part(Event),
        Flash(u32),
        Arrive(u32),
    }
}

struct Port<'a>(&'a mut EventQueue<Ev>, &'a mut Vec<Out>);

engine::context! {
    Port<'_>: Cx<Event, Out>,
    queue: |me| me.0,
    event: |_me, event| Ev::Part(event),
    out: |me, out| {
        me.1.push(out);
    },
}

/// A walk that ends at a time, and whether its page is written then if it is there.
#[derive(Clone, Copy, Debug)]
struct Walk {
    at: u64,
    core: u16,
    page: u64,
    wait: bool,
    write: bool,
}

struct Rig {
    swap: Swap,
    queue: EventQueue<Ev>,
    sent: Vec<Out>,
    /// Everything sent, with its nanosecond.
    log: Vec<(u64, Out)>,
    flash: Box<dyn FnMut() -> u64>,
    at_flash: BTreeMap<u32, Command>,
    walks: Vec<Walk>,
}

impl Rig {
    fn new(spec: &SwapSpec, cores: u16) -> Rig {
        Rig {
            swap: Swap::new(spec, cores).expect("a valid spec"),
            queue: EventQueue::new(),
            sent: Vec::new(),
            log: Vec::new(),
            flash: Box::new(|| FLASH),
            at_flash: BTreeMap::new(),
            walks: Vec::new(),
        }
    }

    fn walk(&mut self, walk: Walk) {
        self.walks.push(walk);
        self.queue.after(Time::from_ns(walk.at), Ev::Arrive(self.walks.len() as u32 - 1));
    }

    /// A walk whose thread can be halted.
    fn signal(&mut self, at: u64, core: u16, page: u64) {
        self.walk(Walk { at, core, page, wait: false, write: false });
    }

    fn settle(&mut self) {
        for out in std::mem::take(&mut self.sent) {
            self.log.push((self.queue.now().ps() / 1000, out));
            if let Out::Submit(command) = out {
                let same = |other: &Command| other.offset == command.offset;
                assert!(!self.at_flash.values().any(same), "one command for a page at a time");
                assert!(self.at_flash.insert(command.tag, command).is_none(), "a name is used once");
                self.queue.after(Time::from_ns((self.flash)()), Ev::Flash(command.tag));
            }
        }
        self.swap.check().expect("the accounts hold");
    }

    fn drain(&mut self) {
        while let Some(event) = self.queue.pop() {
            let mut port = Port(&mut self.queue, &mut self.sent);
            match event {
                Ev::Part(event) => self.swap.handle(event, &mut port),
                Ev::Flash(tag) => {
                    self.at_flash.remove(&tag);
                    let done = Completion {
                        tag,
                        to: proto::Port::default(),
                        status: Status::Success,
                        errors: 0,
                        buffer: proto::BufferState::Unknown,
                    };
                    self.swap.completed(done, &mut port);
                }
                Ev::Arrive(n) => {
                    let Walk { core, page, wait, write, .. } = self.walks[n as usize];
                    let absent = if wait { Absent::Wait } else { Absent::Signal };
                    let since = port.now();
                    let t = Translation { port: core, app: 0, page, frame: 0, absent, since };
                    self.swap.fault(t, &mut port);
                    if let (true, Some(Out::Resolve(t))) = (write, self.sent.last()) {
                        self.swap.written(t.frame as u32);
                    }
                }
            }
            self.settle();
        }
        assert_eq!(self.swap.outstanding(), 0);
    }

    fn commands(&self) -> Vec<(u64, IoOp, u64)> {
        let commands = self.log.iter().filter_map(|(at, out)| match out {
            Out::Submit(c) => Some((*at, c.op, c.offset / PAGE)),
            _ => None,
        });
        commands.collect()
    }

    fn arrivals(&self) -> Vec<(u64, u64, u16)> {
        let all = self.log.iter().filter_map(|(at, out)| match out {
            Out::Arrived { page, core } => Some((*at, *page, *core)),
            _ => None,
        });
        all.collect()
    }

    fn interrupts(&self) -> Vec<(u64, u16, u64)> {
        let all = self.log.iter().filter_map(|(at, out)| match out {
            Out::Interrupt { core, time } => Some((*at, *core, time.ps() / 1000)),
            _ => None,
        });
        all.collect()
    }

    fn evictions(&self) -> Vec<(u64, u64)> {
        let all = self.log.iter().filter_map(|(at, out)| match out {
            Out::Evict { page } => Some((*at, *page)),
            _ => None,
        });
        all.collect()
    }
}

/// From a fault to its command, and from the device's answer to the mapped page.
const ASK: u64 = FAULT + SUBMIT;
const MAP: u64 = COMPLETE + LOCK;

#[test]
fn a_fault_is_the_sum_of_its_steps() {
    let mut rig = Rig::new(&spec(8, 1), 4);
    rig.signal(100, 2, 17);
    rig.drain();
    assert_eq!(rig.commands(), [(100 + ASK, IoOp::Read, 17)]);
    let back = 100 + ASK + FLASH;
    assert_eq!(
        rig.interrupts(),
        [(100, 2, FAULT), (100 + FAULT, 2, SUBMIT), (back, 2, COMPLETE), (back + COMPLETE, 2, LOCK)]
    );
    assert_eq!(rig.arrivals(), [(back + MAP, 17, 2)]);
    assert!(matches!(rig.log[0], (100, Out::Refuse(t)) if t.page == 17 && t.port == 2));
    assert!(rig.swap.is_present(17) && rig.evictions().is_empty());
    // A thread waited from its fault to the mapping.
    let waited = u128::from((ASK + FLASH + MAP) * 1000);
    assert_eq!(rig.swap.tally.reads().iter().sum::<u128>(), waited);
    assert_eq!(rig.swap.tally.reads()[Stage::Fault as usize], waited);
    // The next walk is answered at once, and takes nothing of any core.
    let kernel = rig.swap.stats.kernel;
    rig.signal(0, 1, 17);
    rig.drain();
    assert!(matches!(rig.log.last(), Some((_, Out::Resolve(t))) if t.port == 1 && t.frame == 0));
    assert_eq!((rig.swap.stats.present, rig.swap.stats.kernel), (1, kernel));
}

#[test]
fn faults_for_one_page_share_its_read() {
    let mut rig = Rig::new(&spec(8, 1), 4);
    rig.signal(0, 0, 5);
    rig.signal(10, 1, 5);
    rig.signal(20, 1, 5);
    rig.walk(Walk { at: 30, core: 3, page: 5, wait: true, write: false });
    rig.drain();
    assert_eq!(rig.commands().len(), 1);
    let mapped = ASK + FLASH + MAP;
    assert_eq!(rig.arrivals(), [(mapped, 5, 0), (mapped, 5, 1)]);
    // A waiting translation is not refused, but answered when the page is present.
    let refused = rig.log.iter().filter(|(_, out)| matches!(out, Out::Refuse(t) if t.port != 3)).count();
    let resolved =
        rig.log.iter().filter(|(at, out)| matches!(out, Out::Resolve(t) if t.port == 3 && *at == mapped));
    assert_eq!((refused, resolved.count()), (3, 1));
    // Each of the four took its exception, one after another on core 1.
    let of = |core| rig.interrupts().into_iter().filter(move |i| i.1 == core).collect::<Vec<_>>();
    assert_eq!(of(1), [(10, 1, FAULT), (10 + FAULT, 1, FAULT)]);
    assert_eq!(of(3), [(30, 3, FAULT)]);
    assert_eq!((rig.swap.stats.faults, rig.swap.stats.merged), (1, 3));
}

#[test]
fn cores_spin_for_the_lock() {
    let mut rig = Rig::new(&spec(8, 1), 3);
    for core in 0..3 {
        rig.signal(0, core, 10 + u64::from(core));
    }
    rig.drain();
    let first = ASK + FLASH + MAP;
    let expected: Vec<_> = (0..3u64).map(|n| (first + n * LOCK, 10 + n, n as u16)).collect();
    assert_eq!(rig.arrivals(), expected);
    // The second waits for one, the third for two.
    assert_eq!(rig.swap.stats.spinning, Time::from_ns(3 * LOCK));
    assert_eq!(rig.swap.stats.kernel, Time::from_ns(3 * (ASK + MAP) + 3 * LOCK));
}

#[test]
fn a_changed_page_is_written_before_its_frame_is_free() {
    for dirty in [false, true] {
        let mut rig = Rig::new(&spec(3, 1), 2);
        for page in [1, 2] {
            rig.swap.warm(page, dirty && page == 1);
        }
        rig.signal(0, 0, 3);
        rig.drain();
        // Its own read goes first; then the clock, having passed both pages once, takes page 1.
        let shot = ASK + SELECT + LOCK + BASE + PER_CORE;
        let mut commands = vec![(ASK, IoOp::Read, 3)];
        if dirty {
            commands.push((shot + SUBMIT, IoOp::Write, 1));
        }
        assert_eq!(rig.commands(), commands);
        assert_eq!(rig.evictions(), [(shot, 1)]);
        assert_eq!([1, 2, 3].map(|page| rig.swap.is_present(page)), [false, true, true]);
        assert_eq!((rig.swap.stats.evictions, rig.swap.stats.write_backs), (1, u64::from(dirty)));
        // Core 1 answered the shoot-down.
        let other: Vec<_> = rig.interrupts().into_iter().filter(|i| i.1 == 1).collect();
        assert_eq!(other, [(shot - BASE - PER_CORE, 1, RESPOND)]);
    }
}

#[test]
fn a_shoot_down_grows_with_the_cores() {
    for cores in [1u16, 2, 3, 16, 64] {
        let mut rig = Rig::new(&spec(2, 1), cores);
        rig.swap.warm(1, false);
        rig.signal(0, 0, 2);
        rig.drain();
        let others = u64::from(cores) - 1;
        let takes = if others > 0 { BASE + PER_CORE * others } else { 0 };
        assert_eq!(rig.evictions(), [(ASK + SELECT + LOCK + takes, 1)], "{cores} cores");
        assert_eq!(rig.swap.stats.shooting, Time::from_ns(takes + others * RESPOND));
        let answered: BTreeSet<u16> =
            rig.interrupts().into_iter().filter(|i| i.2 == RESPOND).map(|i| i.1).collect();
        assert!(answered.into_iter().eq(1..cores));
    }
}

#[test]
fn a_page_that_leaves_comes_back_for_a_fault() {
    let mut rig = Rig::new(&spec(3, 1), 2);
    rig.swap.warm(1, true);
    rig.swap.warm(2, false);
    rig.signal(0, 0, 3);
    // Page 1 is chosen and written; core 1 wants it while it is.
    let written = ASK + SELECT + LOCK + BASE + PER_CORE + SUBMIT;
    rig.signal(written + 1000, 1, 1);
    rig.drain();
    let ops: Vec<_> = rig.commands().into_iter().map(|(_, op, page)| (op, page)).collect();
    assert_eq!(ops[..3], [(IoOp::Read, 3), (IoOp::Write, 1), (IoOp::Read, 1)]);
    assert!(rig.commands()[2].0 >= written + FLASH + COMPLETE);
    assert_eq!(rig.arrivals().iter().map(|a| (a.1, a.2)).collect::<Vec<_>>(), [(3, 0), (1, 1)]);
    assert!(rig.swap.is_present(1));
}

#[test]
fn faults_without_a_frame_wait_until_one_is_free() {
    // Two frames, none kept free, four pages at once.
    let mut rig = Rig::new(&spec(2, 0), 4);
    for core in 0..4 {
        rig.signal(0, core, u64::from(core));
    }
    rig.drain();
    assert_eq!(rig.swap.stats.starved, 2);
    assert_eq!(rig.commands().iter().map(|c| c.0).take(2).collect::<Vec<_>>(), [ASK, ASK]);
    // The third read: a page is mapped, then chosen, unmapped behind the second one's mapping, and shot down.
    let room = ASK + FLASH + MAP + SELECT + LOCK + BASE + 3 * PER_CORE;
    assert_eq!(rig.commands()[2].0, room + SUBMIT);
    assert_eq!(rig.arrivals().iter().map(|a| a.1).collect::<BTreeSet<_>>(), (0..4).collect());
    assert_eq!((rig.swap.stats.mapped, rig.swap.stats.evictions), (4, 2));
}

#[test]
fn warming_keeps_frames_free() {
    let mut swap = Swap::new(&spec(10, 3), 1).expect("a valid spec");
    for page in 0..100 {
        swap.warm(page, page % 2 == 0);
        swap.check().expect("the accounts hold");
    }
    assert_eq!((0..100).filter(|page| swap.is_present(*page)).count(), 7);
    assert!(swap.is_present(99) && !swap.is_present(0));
    assert_eq!(swap.frames(), 10);
}

#[test]
fn what_cannot_be_is_refused() {
    for (frames, free, key) in [(0, 0, "memory"), (4, 4, "free"), (1 << 33, 0, "memory")] {
        let error = Swap::new(&spec(frames, free), 1).err().expect("refused");
        assert_eq!(error.key, key);
    }
}

fn walks() -> impl Strategy<Value = Vec<Walk>> {
    let walk = (0u64..400_000, 0u16..4, 0u64..12, any::<bool>(), any::<bool>());
    let walk = walk.prop_map(|(at, core, page, wait, write)| Walk { at, core, page, wait, write });
    proptest::collection::vec(walk, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_fault_is_answered_and_no_core_does_two_things(
        walks in walks(),
        frames in 2u64..9,
        keep in 0u64..2,
        flash in 1u64..120_000,
    ) {
        let mut rig = Rig::new(&spec(frames, keep), 4);
        let mut n = 0u64;
        // Nothing but uneven.
        rig.flash = Box::new(move || { n += 1; flash + n * 7919 % 5000 });
        walks.iter().for_each(|walk| rig.walk(*walk));
        rig.drain();

        // Refused walks hear of their page later; others are resolved once, at once or later.
        let (mut refused, mut resolved) = (BTreeMap::<(u64, u16), u64>::new(), 0);
        for (at, out) in &rig.log {
            match out {
                Out::Refuse(t) => {
                    prop_assert!(t.absent == Absent::Signal);
                    refused.insert((t.page, t.port), *at);
                }
                Out::Resolve(_) => resolved += 1,
                Out::Arrived { page, core } => {
                    prop_assert!(refused.remove(&(*page, *core)).is_some_and(|since| since < *at));
                }
                _ => {}
            }
        }
        prop_assert!(refused.is_empty());
        let refusals = rig.log.iter().filter(|(_, out)| matches!(out, Out::Refuse(_))).count();
        prop_assert_eq!(refusals + resolved, walks.len());

        // Every page that was read came; what came and did not leave is there, in frames of its own.
        let s = rig.swap.stats.clone();
        let count = |op| rig.commands().iter().filter(|c| c.1 == op).count() as u64;
        prop_assert_eq!((count(IoOp::Read), count(IoOp::Write)), (s.mapped, s.write_backs));
        prop_assert_eq!((s.faults, s.evictions), (s.mapped, s.shootdowns));
        let there: Vec<u64> = (0..12).filter(|page| rig.swap.is_present(*page)).collect();
        prop_assert_eq!(there.len() as u64, s.mapped - s.evictions);
        prop_assert!(there.len() as u64 <= frames - keep.min(frames - 1) || s.evictions == 0);
        rig.log.clear();
        there.iter().for_each(|page| rig.signal(0, 0, *page));
        let interrupts = std::mem::take(&mut rig.log);
        rig.drain();
        let taken: BTreeSet<u64> = rig.log.iter().filter_map(|(_, out)| match out {
            Out::Resolve(t) => Some(t.frame),
            _ => None,
        }).collect();
        prop_assert!(interrupts.is_empty() && taken.len() == there.len() && taken.iter().all(|f| *f < frames));
    }

    #[test]
    fn the_kernel_of_a_core_does_one_thing_at_a_time(walks in walks(), frames in 2u64..9) {
        let mut rig = Rig::new(&spec(frames, 1), 4);
        walks.iter().for_each(|walk| rig.walk(*walk));
        rig.drain();
        let mut until = [0u64; 4];
        let mut sum = 0;
        for (at, core, time) in rig.interrupts() {
            sum += time;
            // Answers to shoot-downs come on top.
            if time != RESPOND {
                prop_assert!(at >= until[usize::from(core)]);
                until[usize::from(core)] = at + time;
            }
        }
        prop_assert_eq!(rig.swap.stats.kernel, Time::from_ns(sum));
    }
}

/// Pages that a state may have.
const PAGES: u64 = 40;

/// Saved and loaded warm state is equal, and behaves equally afterwards.
#[test]
fn a_warm_memory_goes_on_from_what_was_saved() {
    let fresh = || Swap::new(&spec(16, 2), 2).expect("a spec");
    let mut rng = engine::Rng::stream(1, "pages");
    let mut first = fresh();
    for _ in 0..200 {
        first.warm(rng.below(40), rng.below(3) == 0);
    }
    let mut saved = Vec::new();
    first.save_warm(&mut saved);
    let most = (0..PAGES).rev().find(|page| first.is_present(*page)).expect("pages are there");
    let (mut second, mut input) = (fresh(), saved.as_slice());
    assert!(second.load_warm(&mut input, PAGES).is_some() && input.is_empty());
    for step in 0..200 {
        let (page, write) = (rng.below(40), rng.below(3) == 0);
        let there = [&mut first, &mut second].map(|swap| {
            swap.warm(page, write);
            (0..40).map(|page| swap.is_present(page)).collect::<Vec<_>>()
        });
        assert_eq!(there[0], there[1], "{step}");
    }
    let [mut one, mut other] = [Vec::new(), Vec::new()];
    first.save_warm(&mut one);
    second.save_warm(&mut other);
    assert_eq!(one, other);
    for cut in 0..saved.len() {
        assert!(fresh().load_warm(&mut &saved[..cut], PAGES).is_none(), "{cut}");
    }
    assert!(Swap::new(&spec(17, 2), 2).expect("a spec").load_warm(&mut saved.as_slice(), PAGES).is_none());
    // Fewer pages than it has; a page more was stored than was changed and has gone.
    assert!(fresh().load_warm(&mut saved.as_slice(), most).is_none());
    let stored = saved.len() - 8;
    saved[stored] ^= 1;
    assert!(fresh().load_warm(&mut saved.as_slice(), PAGES).is_none());
}

/// Fixed times are what a stub that answers after them makes of it, and nothing is asked of it.
#[test]
fn pages_come_after_fixed_times_without_a_device() {
    let times = |ns| Duration::new(Time::from_ns(ns));
    let fixed = SwapBacking::fixed(Fixed { read: times(FLASH), write: times(FLASH) });
    let ends = |backing: SwapBacking| {
        let mut rig = Rig::new(&SwapSpec { backing, ..spec(2, 1) }, 2);
        for (at, page) in [(0, 1), (5_000, 2), (400_000, 3)] {
            rig.walk(Walk { at, core: (page % 2) as u16, page, wait: true, write: true });
        }
        rig.drain();
        let asked = rig.log.iter().filter(|(_, out)| matches!(out, Out::Submit(_))).count();
        let rest: Vec<_> = rig.log.into_iter().filter(|(_, out)| !matches!(out, Out::Submit(_))).collect();
        (asked, rest, rig.swap.stats.clone())
    };
    let (asked, log, stats) = ends(SwapBacking::device);
    assert!(asked > 0 && stats.mapped == 3);
    assert_eq!(ends(fixed), (0, log, stats));
}
