//! A core whose requests for data are answered by hand.
//!
//! A cycle is a nanosecond, the width is four, a look-up takes two cycles. Translations and instructions are answered at once: text is
//! asked for at zero and found missing after its look-up, so that the first operations are dispatched in cycle 2 and may be
//! executed in cycle 3.

use super::super::event::WRITE_BACK;
use super::super::*;
use super::op;
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
    /// Everything that the core has said, with the time in nanoseconds.
    pub(super) log: Vec<(u64, Out)>,
    /// Text is answered by hand as well.
    pub(super) text_by_hand: bool,
    /// Where the page of text lies, if not where its virtual address says.
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
        let answer = answers::write_back(0, line, Time::from_ns(ns));
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
