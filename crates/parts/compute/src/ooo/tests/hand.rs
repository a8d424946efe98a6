//! A core whose requests for data are answered by hand.
//!
//! A cycle is a nanosecond, the width is four, a look-up takes two cycles. Translations and instructions are answered at once: text is
//! asked for at zero and found missing after its look-up, so that the first operations are dispatched in cycle 2 and may be
//! executed in cycle 3.

use super::super::core::WRITE_BACK;
use super::op;
use super::{super::*, ThreadScheduling, spec};
use engine::EventQueue;
use proto::cpu::{Op, OpKind};
use std::collections::BTreeMap;

engine::events! {
    enum Happening {
        Cores(Event),
        Until(u16),
    }
}

#[derive(Default)]
struct Outside {
    queue: EventQueue<Happening>,
    said: Vec<Out>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Happening::Cores(event),
    out: |me, out| me.said.push(out),
}

/// The first jobs, by number; those that follow have nothing to do with memory, and do not end.
struct Jobs {
    first: Vec<Vec<Op>>,
    running: BTreeMap<u32, u64>,
}

impl Service for Jobs {
    fn footprint(&self) -> u64 {
        1 << 30
    }
    fn text(&self) -> u32 {
        256
    }
    fn start(&mut self, slot: u32, job: u64) {
        self.running.insert(slot, job);
    }
    fn step(&mut self, slot: u32, tape: &mut Vec<Op>) -> bool {
        let job = self.first.get(self.running[&slot] as usize);
        tape.extend_from_slice(job.unwrap_or(&vec![op(OpKind::Chain, 60_000, [0, 0], 0)]));
        job.is_none()
    }
    fn save(&self, _out: &mut Vec<u8>) {}
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

/// A request for data: when it left, its line, its kind, and what is to become of it if its page is in flash.
pub(super) type Asked = (u64, u64, AccessKind, Absent);

/// One core.
pub(super) struct Hand {
    pub(super) cores: Cores,
    jobs: Jobs,
    outside: Outside,
    /// Outputs of the core, with the time in nanoseconds.
    pub(super) log: Vec<(u64, Out)>,
    /// Text is answered by hand as well.
    pub(super) text_by_hand: bool,
    /// Frame of the page of text, if not where its virtual address says.
    pub(super) text_frame: Option<u64>,
}

impl Hand {
    pub(super) fn new(spec: &CpuSpec, first: Vec<Vec<Op>>) -> Hand {
        Hand {
            cores: Cores::new(spec, 4096, 1).expect("sound"),
            jobs: Jobs { first, running: BTreeMap::new() },
            outside: Outside::default(),
            log: Vec::new(),
            text_by_hand: false,
            text_frame: None,
        }
    }

    /// A core that has begun at zero.
    pub(super) fn begun(spec: &CpuSpec, first: Vec<Vec<Op>>) -> Hand {
        let mut hand = Hand::new(spec, first);
        hand.begin();
        hand
    }

    pub(super) fn begin(&mut self) {
        self.cores.begin(&mut self.jobs, &mut self.outside);
        self.serve();
    }

    /// All that happens up to a time, in nanoseconds.
    pub(super) fn until(&mut self, ns: u64) -> &mut Hand {
        self.outside.queue.late(Time::from_ns(ns) - self.outside.queue.now(), Happening::Until(0));
        while let Some(Happening::Cores(event)) = self.outside.queue.pop() {
            self.cores.handle(event, &mut self.jobs, &mut self.outside);
            self.serve();
        }
        self
    }

    fn serve(&mut self) {
        while !self.outside.said.is_empty() {
            for out in std::mem::take(&mut self.outside.said) {
                self.log.push((self.outside.queue.now().ns(), out));
                match out {
                    Out::Translate(translation) => {
                        let text = translation.page >= (1 << 30) / 4096;
                        let frame = self.text_frame.filter(|_| text).unwrap_or(translation.page);
                        let answer = Translation { frame, ..translation };
                        self.cores.translated(answer, &mut self.jobs, &mut self.outside);
                    }
                    Out::Access(access) if access.tag & TEXT != 0 && !self.text_by_hand => {
                        self.cores.answer(access, &mut self.jobs, &mut self.outside);
                    }
                    _ => {}
                }
            }
        }
    }

    /// The requests for data so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        let asked = self.log.iter().filter_map(|(at, out)| match out {
            Out::Access(access) if access.tag & (TEXT | WRITE_BACK) == 0 => {
                Some((*at, access.address / LINE, access.kind, access.absent))
            }
            _ => None,
        });
        asked.collect()
    }

    /// Lines given up without a change, and lines written back.
    pub(super) fn gone(&self) -> (Vec<u64>, Vec<u64>) {
        let (mut dropped, mut written) = (Vec::new(), Vec::new());
        for (_, out) in &self.log {
            match out {
                Out::Dropped { address, .. } => dropped.push(address / LINE),
                Out::Access(access) if access.tag & WRITE_BACK != 0 => written.push(access.address / LINE),
                _ => {}
            }
        }
        (dropped, written)
    }

    fn latest(&self, line: u64) -> Access {
        let of_line = self.log.iter().rev().find_map(|(_, out)| match out {
            Out::Access(access) if access.address == line * LINE && access.tag & WRITE_BACK == 0 => {
                Some(*access)
            }
            _ => None,
        });
        of_line.expect("the line has been asked for")
    }

    /// The latest request for a line is answered at a time.
    pub(super) fn answer(&mut self, ns: u64, line: u64, kind: AccessKind) -> &mut Hand {
        self.until(ns);
        let answer = Access { kind, ..self.latest(line) };
        self.cores.answer(answer, &mut self.jobs, &mut self.outside);
        self.serve();
        self
    }

    /// The same: its page is in flash.
    pub(super) fn signal(&mut self, ns: u64, line: u64) -> &mut Hand {
        self.until(ns);
        let answer = Access { absent: Absent::Signalled, ..self.latest(line) };
        self.cores.answer(answer, &mut self.jobs, &mut self.outside);
        self.serve();
        self
    }

    /// A line that was sent back has arrived.
    pub(super) fn written(&mut self, ns: u64, line: u64) -> &mut Hand {
        self.until(ns);
        let answer = execute::write_back(0, line, Time::from_ns(ns));
        self.cores.answer(answer, &mut self.jobs, &mut self.outside);
        self.serve();
        self
    }

    /// The core is told that a page has come.
    pub(super) fn arrived(&mut self, ns: u64, page: u64) -> &mut Hand {
        self.until(ns);
        self.cores.arrived(page, &mut self.jobs, &mut self.outside);
        self.serve();
        self
    }

    /// The kernel takes the core.
    pub(super) fn interrupt(&mut self, ns: u64, time: Time) -> &mut Hand {
        self.until(ns);
        self.cores.interrupt(0, time, &self.outside);
        self
    }

    /// Another core wants a line at a time: whether it is here, and whether it was changed here.
    pub(super) fn probe(&mut self, ns: u64, line: u64, invalidate: bool) -> (bool, bool) {
        self.until(ns);
        let probe = Probe { tag: 0, core: 0, tile: 0, address: line * LINE, invalidate };
        self.cores.probe(probe, &mut self.outside);
        match self.outside.said.pop() {
            Some(Out::Probed(answer)) => (answer.found, answer.dirty),
            other => unreachable!("a probe is answered at once, not by {other:?}"),
        }
    }
}

// Pages that come before a job is halted, and a core that the kernel takes.

/// Page 2 is in flash, page 3 is not: its line comes late, at 60, so that what is younger cannot be halted before.
fn halted_late(kind: OpKind, arrived: Option<u64>) -> Hand {
    let mut spec = spec();
    (spec.threads.count, spec.threads.pending, spec.load.jobs) = (2, 2, 100);
    spec.threads.scheduler = ThreadScheduling::notified;
    let access = |page: u64| op(kind, 1, [0, 0], page * 4096);
    let mut hand = Hand::begun(&spec, vec![vec![access(3), access(2)], vec![access(5)]]);
    hand.signal(20, 128);
    assert_eq!((hand.asked().len(), hand.cores.stats().halts), (2, 0));
    if let Some(page) = arrived {
        hand.arrived(30, page);
    }
    hand.answer(60, 192, AccessKind::Own);
    assert_eq!((hand.cores.stats().halts, hand.cores.cores[0].early.len()), (1, 0));
    hand.until(190);
    hand
}

/// The load before it is there at 60 and retires in that cycle; halted at 61, flushed in 10 cycles, switched in 100: dispatched in
/// 171, its address a cycle later, its look-up two.
#[test]
fn a_page_that_came_before_its_load_was_halted_counts_as_told() {
    let hand = halted_late(OpKind::Load, Some(2));
    assert_eq!(hand.asked()[2..], [(174, 128, AccessKind::Read, Absent::Wait)]);
    assert_eq!(hand.cores.jobs_begun(), 1);
}

/// The store before it is done at 60, when it is halted: dispatched in 170, its result two cycles later; it retires in 172 and goes to
/// the cache in 173.
#[test]
fn a_page_that_came_before_its_store_was_halted_counts_as_told() {
    let hand = halted_late(OpKind::Store, Some(2));
    assert_eq!(hand.asked()[2..], [(175, 128, AccessKind::Own, Absent::Wait)]);
    assert_eq!(hand.cores.jobs_begun(), 1);
}

#[test]
fn a_page_that_the_job_has_not_missed_does_not_count() {
    for arrived in [None, Some(3), Some(7)] {
        for kind in [OpKind::Load, OpKind::Store] {
            let hand = halted_late(kind, arrived);
            // The next job runs.
            assert_eq!((hand.cores.jobs_begun(), hand.asked()[2].1), (2, 320));
            assert!(!hand.cores.cores[0].halted[0].arrived);
        }
    }
}

#[test]
fn a_page_that_comes_while_nothing_runs_wakes_its_job_only() {
    let mut spec = spec();
    (spec.threads.count, spec.threads.pending) = (2, 2);
    spec.threads.scheduler = ThreadScheduling::notified;
    // The second job comes after the end of what is looked at.
    spec.load.arrivals =
        Arrivals::poisson(Poisson { interval: config::units::Duration::new(Time::from_s(1)) });
    spec.load.jobs = 2;
    let mut hand = Hand::new(&spec, vec![vec![op(OpKind::Load, 1, [0, 0], 8192)]]);
    hand.begin();
    let begun = hand.cores.shared.load.next(0).expect("a job comes").ns();
    let came = begun + 10;
    hand.signal(came + 20, 128).arrived(came + 400, 3).until(came + 500);
    assert_eq!((hand.asked().len(), hand.cores.cores[0].early.len()), (1, 0));
    hand.arrived(came + 600, 2).until(came + 800);
    // Switched to in 100 cycles, dispatched, executed in the next, looked up in two.
    assert_eq!(hand.asked()[1..], [(came + 703, 128, AccessKind::Read, Absent::Wait)]);
}

/// A job of 1,000 cycles.
fn long() -> Vec<Vec<proto::cpu::Op>> {
    vec![vec![op(OpKind::Compute, 4, [0, 0], 0); 1000]]
}

#[test]
fn a_core_that_the_kernel_has_begins_later() {
    let end = |kernel: &[u64]| {
        let mut hand = Hand::new(&spec(), long());
        for time in kernel {
            hand.interrupt(0, Time::from_ns(*time));
        }
        hand.begin();
        hand.until(5000);
        let spent = hand.cores.stats().spent[Spent::Kernel as usize];
        (hand.cores.over_at().expect("the job has ended").ns(), spent)
    };
    let (free, nothing) = end(&[]);
    assert_eq!(nothing, 0);
    // Two pieces of the kernel's work follow each other.
    assert_eq!(end(&[300]), (free + 300, 300 * 4));
    assert_eq!(end(&[300, 200]), (free + 500, 500 * 4));
}

#[test]
fn a_running_core_is_held_up_from_where_it_has_got_to() {
    let mut hand = Hand::begun(&spec(), long());
    hand.until(5000);
    let free = hand.cores.over_at().expect("the job has ended").ns();
    let mut hand = Hand::begun(&spec(), long());
    hand.interrupt(500, Time::from_ns(400)).until(5000);
    let end = hand.cores.over_at().expect("the job has ended").ns();
    // It has run ahead: the kernel takes it from there.
    assert_eq!(end, free + 400);
    // The last operation before it retires in its first two cycles; the first one after takes as long to do so.
    let spent = hand.cores.stats().spent[Spent::Kernel as usize];
    assert!((398 * 4..=400 * 4).contains(&spent), "{spent}");
}

/// A window ends within a quantum, the longest operation (a count of 16 bits), and what the kernel has taken in advance at most.
#[test]
fn what_the_kernel_takes_in_advance_bounds_how_far_a_core_is_ahead() {
    let ahead = |lead: u64| (100 + 65_536 + lead) * 4;
    let mut hand = Hand::begun(&spec(), long());
    assert_eq!(hand.cores.ahead(), ahead(0));
    // Nothing has been dispatched at zero.
    hand.interrupt(0, Time::from_ns(10));
    assert_eq!(hand.cores.ahead(), ahead(10));
    // Then from where it has got to.
    hand.until(4);
    let reached = hand.cores.cores[0].dispatch.div_ceil(4);
    assert!(reached > 10);
    hand.interrupt(4, Time::from_ns(5));
    assert_eq!(hand.cores.ahead(), ahead(reached + 1));
    // Begun cycles count whole; the second from the end of the first. The longest stays.
    hand.interrupt(14, Time::from_ps(3200));
    assert_eq!((hand.cores.ahead(), hand.cores.cores[0].kernel), (ahead(reached + 1), reached + 9));
    let two = CpuSpec { cores: 2, ..spec() };
    assert_eq!(Hand::begun(&two, long()).cores.ahead(), 2 * ahead(0));
}
