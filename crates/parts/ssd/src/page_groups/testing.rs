//! Test specs, and an accelerator around the component.

use super::spec::{GroupLink, GroupsFlashSpec};
use super::{Event, GroupsFlash};
use crate::spec::{Built, CellSpec, ChannelSpec, Interface, PageLayout, Programming};
use config::units::{Bandwidth, Duration, Share, TransferRate};
use engine::{Recorder, Time};
use ftl::page_groups::spec::{GroupGeometry, GroupsSpec};
use ftl::page_groups::testing as control;
use ftl::page_groups::translation::GroupTranslation;
use nand::dies::arbiter::Arbitration;
use nand::dies::sched::{Scheduling, read_first};
use proto::groups::{Ask, Groups, Tell, Work};

/// MT29F64G08's times by page type, on channels of 800 MB/s behind SRIO.
fn with_media(groups: GroupsSpec) -> GroupsFlashSpec {
    let us = |all: &[u64]| all.iter().map(|n| Duration::new(Time::from_us(*n))).collect();
    GroupsFlashSpec {
        groups,
        cell: CellSpec {
            bits: 3,
            layout: PageLayout::planar,
            programming: Programming::page,
            read: us(&[58, 78, 107]),
            program: us(&[558, 2_201, 5_001]),
            erase: Duration::new(Time::from_us(2_274)),
            program_drift: Share::ZERO,
            erase_drift: Share::ZERO,
            spread: None,
            errors: None,
        },
        channel: ChannelSpec {
            interface: Interface::nv_ddr2,
            rate: TransferRate::new(800_000_000),
            width: 8,
            arbiter: Arbitration::command_first,
        },
        scheduler: Scheduling::read_first(read_first::Params::default()),
        link: GroupLink { rate: Bandwidth::new(1_830_000_000) },
        bad_blocks: None,
        energy: None,
    }
}

/// Prototype: 32 dies of 342 blocks, 171 a plane, of 384 pages of 8 KiB.
pub(super) fn prototype(translation: GroupTranslation) -> GroupsFlashSpec {
    let groups = control::prototype(2, translation);
    let geometry = GroupGeometry { blocks: 171, pages: 384, ..groups.geometry };
    with_media(GroupsSpec { geometry, ..groups })
}

/// Small spec: 1,024 groups of 512 B; a dump every 100 ms.
pub(super) fn small(translation: GroupTranslation) -> GroupsFlashSpec {
    let mut spec = with_media(control::small(translation));
    spec.groups.dump.period = Duration::new(Time::from_ms(100));
    spec
}

/// Range of groups, from the first to the last.
pub(super) fn groups(first: u32, last: u32) -> Groups {
    Groups { first, last }
}

/// Component under test, and an accelerator whose core works at once, or on request.
pub(super) struct Rig {
    pub(super) flash: GroupsFlash,
    pub(super) cx: Recorder<Event, Tell>,
    /// Messages already examined.
    seen: usize,
    /// Events run so far.
    pub(super) steps: u64,
    pub(super) works_at_once: bool,
    /// Outstanding work of the core.
    pub(super) works: Vec<(u32, Work)>,
}

impl Rig {
    /// Creates a rig with `base` initial groups and a shadow.
    pub(super) fn new(spec: &GroupsFlashSpec, base: u32) -> Rig {
        let mut rig = Rig::unwatched(spec, base, true);
        rig.flash.attach_shadow();
        rig
    }

    /// Creates a rig without a shadow; with `fold`, events without contention are folded.
    pub(super) fn unwatched(spec: &GroupsFlashSpec, base: u32, fold: bool) -> Rig {
        let context = Built { seed: 1, name: "groups".into(), fold };
        let mut flash = GroupsFlash::new(spec, &context).expect("a sound spec");
        flash.assume_written(base).expect("it fits");
        Rig { flash, cx: Recorder::default(), seen: 0, steps: 0, works_at_once: true, works: Vec::new() }
    }

    pub(super) fn now(&self) -> Time {
        self.cx.queue.now()
    }

    pub(super) fn ask(&mut self, ask: Ask) {
        self.flash.ask(ask, &mut self.cx);
        self.look();
    }

    pub(super) fn lock(&mut self, tag: u32, groups: Groups, write: bool) {
        self.ask(Ask::Lock { tag, groups, write });
    }

    /// Lets the core do some of its work.
    pub(super) fn work(&mut self, which: usize) {
        let (tag, _) = self.works.swap_remove(which);
        self.ask(Ask::Worked { tag });
    }

    fn look(&mut self) {
        while let Some((_, tell)) = self.cx.sent.get(self.seen).copied() {
            self.seen += 1;
            if let Tell::Work { tag, work } = tell {
                self.works.push((tag, work));
                if self.works_at_once {
                    self.work(self.works.len() - 1);
                }
            }
        }
    }

    /// Runs the next event. Returns false if there was none.
    pub(super) fn step(&mut self) -> bool {
        let Some(event) = self.cx.queue.pop() else { return false };
        self.steps += 1;
        self.flash.handle(event, &mut self.cx);
        self.look();
        true
    }

    /// Runs until no event is left.
    pub(super) fn run(&mut self) {
        while self.step() {}
        self.check();
    }

    /// Time at which a message was sent.
    pub(super) fn when(&self, tell: Tell) -> Option<Time> {
        self.cx.sent.iter().find(|(_, sent)| *sent == tell).map(|(at, _)| *at)
    }

    /// Sends a request, and returns the time until it is done.
    pub(super) fn time(&mut self, ask: Ask) -> Time {
        let (Ask::Read { tag, .. } | Ask::Write { tag, .. }) = ask else { panic!("no answer to {ask:?}") };
        let (from, before) = (self.now(), self.cx.sent.len());
        self.ask(ask);
        loop {
            let done = |(_, tell): &&(Time, Tell)| *tell == Tell::Done { tag, failed: 0 };
            if let Some((at, _)) = self.cx.sent[before..].iter().find(done) {
                return *at - from;
            }
            assert!(self.step(), "{ask:?} is not answered");
        }
    }

    pub(super) fn check(&self) {
        for check in self.flash.checks() {
            assert!(check.ok, "{}: {}", check.name, check.detail);
        }
    }
}
