//! Naive cores load, store and drop lines at random; messages take random times.
//!
//! Every line has a version, which each store raises. Cores keep versions, messages with data carry them, and the bank
//! keeps the version that was written last. A core must always read the latest version.

use super::{Bench, access};
use crate::directory::Out;
use proptest::prelude::*;
use proto::memory::{Absent, Access, AccessKind};
use proto::{Probe, Probed};
use std::collections::{BTreeMap, VecDeque};

const CORES: usize = 4;
const LINES: usize = 6;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Shared,
    Exclusive,
    Modified,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    state: State,
    version: u32,
}

/// First-level cache: its state of each line, and the tag and kind of its request.
#[derive(Default)]
struct Core {
    held: [Option<Held>; LINES],
    asked: [Option<(u32, AccessKind)>; LINES],
    /// Write-backs and walks that are not answered yet.
    others: BTreeMap<u32, AccessKind>,
}

/// From a core to a directory, with the version that it carries.
enum Up {
    Access(Access),
    Probed(Probed, Option<u32>),
}

/// From a directory to a core.
enum Down {
    Probe(Probe),
    Answer(Access, Option<u32>),
}

struct World {
    bench: Bench,
    cores: [Core; CORES],
    latest: [u32; LINES],
    bank: [u32; LINES],
    up: Vec<Up>,
    /// Messages of each tile to each core, in order.
    down: BTreeMap<(u16, u16), VecDeque<Down>>,
    /// Looks that the bank has done, but whose answers are under way.
    looks: Vec<(u16, Access, u32)>,
    /// Versions of write-backs that have not come to the bank yet.
    written: BTreeMap<(u16, usize), u32>,
    /// The version that a transaction of the line has got.
    got: [Option<u32>; LINES],
    tags: u32,
    answers: u32,
    choices: Choices,
}

/// Random numbers (SplitMix64: Steele, Lea and Flood, OOPSLA 2014).
struct Choices(u64);

impl Choices {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) % end as u64) as usize
    }
}

fn address(line: usize) -> u64 {
    0x4000 + line as u64 * 64
}

fn line(address: u64) -> usize {
    ((address - 0x4000) / 64) as usize
}

fn tile(address: u64) -> u16 {
    (line(address) % 4) as u16
}

impl World {
    fn new(latency: u32, seed: u64) -> World {
        World {
            bench: Bench::new(latency),
            cores: Default::default(),
            latest: [0; LINES],
            bank: [0; LINES],
            up: Vec::new(),
            down: BTreeMap::new(),
            looks: Vec::new(),
            written: BTreeMap::new(),
            got: [None; LINES],
            tags: 0,
            answers: 0,
            choices: Choices(seed),
        }
    }

    fn send(&mut self, core: usize, kind: AccessKind, at: usize, pc: u32) -> u32 {
        self.tags += 1;
        let absent = if self.choices.below(3) == 0 { Absent::Signal } else { Absent::Wait };
        let access = Access { pc, absent, ..access(self.tags, kind, core as u16, address(at)) };
        self.up.push(Up::Access(access));
        self.tags
    }

    /// A core does something to a line.
    fn act(&mut self) {
        let (core, at) = (self.choices.below(CORES), self.choices.below(LINES));
        let asked = self.cores[core].asked[at].is_some();
        match (self.choices.below(10), self.cores[core].held[at]) {
            (0..4, None) if !asked => {
                let tag = self.send(core, AccessKind::Read, at, 1);
                self.cores[core].asked[at] = Some((tag, AccessKind::Read));
            }
            (4..7, Some(Held { state: State::Exclusive | State::Modified, .. })) => self.store(core, at),
            (4..7, _) if !asked => {
                let tag = self.send(core, AccessKind::Own, at, 1);
                self.cores[core].asked[at] = Some((tag, AccessKind::Own));
            }
            (7..9, Some(held)) if !asked => self.evict(core, at, held),
            (9, _) => {
                let tag = self.send(core, AccessKind::Read, at, 0);
                self.cores[core].others.insert(tag, AccessKind::Read);
            }
            _ => {}
        }
    }

    fn store(&mut self, core: usize, at: usize) {
        self.latest[at] += 1;
        self.cores[core].held[at] = Some(Held { state: State::Modified, version: self.latest[at] });
    }

    fn evict(&mut self, core: usize, at: usize, held: Held) {
        self.cores[core].held[at] = None;
        if held.state == State::Modified {
            let tag = self.send(core, AccessKind::Write, at, 1);
            self.cores[core].others.insert(tag, AccessKind::Write);
            assert_eq!(self.written.insert((core as u16, at), held.version), None);
        } else {
            self.bench.directory.dropped(core as u16, address(at));
        }
    }

    /// Number of other possible next events.
    fn pending(&self) -> usize {
        let inside = usize::from(!self.bench.cx.queue.is_empty());
        self.up.len() + self.looks.len() + self.down.values().filter(|d| !d.is_empty()).count() + inside
    }

    /// One of them happens.
    fn deliver(&mut self) {
        let mut choice = self.choices.below(self.pending());
        if choice < self.up.len() {
            match self.up.swap_remove(choice) {
                Up::Access(access) => {
                    self.bench.directory.access(tile(access.address), access, &mut self.bench.cx);
                    self.route(None);
                }
                Up::Probed(probed, version) => self.probed(probed, version),
            }
            return;
        }
        choice -= self.up.len();
        if choice < self.looks.len() {
            let (tile, answer, version) = self.looks.swap_remove(choice);
            if answer.kind == AccessKind::Read && !answer.is_walk() && answer.absent != Absent::Signalled {
                self.get(line(answer.address), version);
            }
            self.bench.looked_at(tile, answer);
            self.route(None);
            return;
        }
        choice -= self.looks.len();
        let ways: Vec<_> = self.down.iter().filter(|(_, d)| !d.is_empty()).map(|(key, _)| *key).collect();
        if let Some((tile, core)) = ways.get(choice) {
            let message =
                self.down.get_mut(&(*tile, *core)).and_then(VecDeque::pop_front).expect("a message");
            match message {
                Down::Probe(probe) => self.probe(probe),
                Down::Answer(access, version) => self.answer(access, version),
            }
            return;
        }
        let event = self.bench.cx.queue.pop().expect("an event");
        self.bench.directory.handle(event, &mut self.bench.cx);
        self.route(None);
    }

    /// A transaction gets the line: once.
    fn get(&mut self, at: usize, version: u32) {
        assert_eq!(self.got[at].replace(version), None, "the line came twice");
    }

    fn probed(&mut self, probed: Probed, version: Option<u32>) {
        if let Some(version) = version {
            self.get(line(probed.probe.address), version);
        }
        self.bench.directory.probed(probed, &mut self.bench.cx);
        self.route(version.filter(|_| !probed.probe.invalidate));
    }

    /// Takes what the directory has sent; the first write, if it has got a version to share, has that.
    fn route(&mut self, mut shared: Option<u32>) {
        for (_, out) in std::mem::take(&mut self.bench.cx.sent) {
            match out {
                Out::Look { tile: at_tile, access } => {
                    assert_eq!(at_tile, tile(access.address));
                    let at = line(access.address);
                    let mut answer = access;
                    if access.kind == AccessKind::Write {
                        let own = || self.written.remove(&(access.port, at)).expect("a write-back");
                        self.bank[at] = shared.take().unwrap_or_else(own);
                    } else if access.absent == Absent::Signal && self.choices.below(2) == 0 {
                        answer.absent = Absent::Signalled;
                    }
                    self.looks.push((at_tile, answer, self.bank[at]));
                }
                Out::Probe(probe) => {
                    self.down.entry((probe.tile, probe.core)).or_default().push_back(Down::Probe(probe));
                }
                Out::Answer { tile, access } => {
                    let at = line(access.address);
                    let asks = access.kind != AccessKind::Write && !access.is_walk();
                    let version = if asks { self.got[at].take() } else { None };
                    if asks {
                        assert_eq!(access.bytes != 0, version.is_some(), "bytes say whether there are data");
                    }
                    let way = self.down.entry((tile, access.port)).or_default();
                    way.push_back(Down::Answer(access, version));
                }
            }
        }
        assert_eq!(shared, None, "what a reader shares is in the bank as well");
    }

    /// A probe comes to its core.
    fn probe(&mut self, probe: Probe) {
        let held = &mut self.cores[usize::from(probe.core)].held[line(probe.address)];
        let found = held.is_some();
        let version = held.filter(|held| held.state == State::Modified).map(|held| held.version);
        *held = held.filter(|_| !probe.invalidate).map(|held| Held { state: State::Shared, ..held });
        self.up.push(Up::Probed(Probed { probe, found, dirty: version.is_some() }, version));
    }

    /// An answer comes to its core.
    fn answer(&mut self, access: Access, version: Option<u32>) {
        self.answers += 1;
        let (number, at) = (usize::from(access.port), line(access.address));
        let core = &mut self.cores[number];
        if access.kind == AccessKind::Write || access.is_walk() {
            assert_eq!(core.others.remove(&access.tag), Some(access.kind));
            return;
        }
        let (tag, kind) = core.asked[at].take().expect("it has asked");
        assert_eq!(tag, access.tag);
        if access.absent == Absent::Signalled {
            return;
        }
        let kept = core.held[at].map(|held| held.version);
        let version = version.or(kept).expect("data, or a copy that is here");
        assert_eq!(version, self.latest[at], "core {number} gets an old version of line {at}");
        let alone = access.kind == AccessKind::Own;
        let state = if alone { State::Exclusive } else { State::Shared };
        core.held[at] = Some(Held { state, version });
        if kind == AccessKind::Own {
            assert!(alone, "it has asked for the only copy");
            self.store(number, at);
        }
    }

    /// Checks that a line has one writer or many readers, and that no core reads old data.
    fn check(&self) {
        for at in 0..LINES {
            let copies: Vec<Held> = self.cores.iter().filter_map(|core| core.held[at]).collect();
            let writable = copies.iter().filter(|held| held.state != State::Shared).count();
            assert!(writable == 0 || copies.len() == 1, "line {at}: {copies:?}");
            assert!(copies.iter().all(|held| held.version == self.latest[at]), "line {at}: {copies:?}");
        }
    }

    /// Checks the idle state: every request has been answered, and the directory is exact.
    fn check_quiet(&self) {
        assert_eq!((self.bench.directory.outstanding(), self.answers), (0, self.tags));
        assert!(self.written.is_empty() && self.got == [None; LINES]);
        assert!(self.cores.iter().all(|core| core.others.is_empty() && core.asked == [None; LINES]));
        let mut entries = 0;
        for at in 0..LINES {
            let (mut sharers, mut exclusive, mut modified) = (0, false, false);
            for (number, held) in self.cores.iter().enumerate() {
                let Some(held) = held.held[at] else { continue };
                sharers |= 1 << number;
                exclusive |= held.state != State::Shared;
                modified |= held.state == State::Modified;
            }
            let (known, alone) = self.bench.directory.copies(address(at));
            assert_eq!(known, sharers, "line {at}");
            // A copy that was once shared, and is the only one now, stays shared.
            assert_eq!(alone, exclusive, "line {at}");
            assert!(modified || self.bank[at] == self.latest[at], "line {at} is lost");
            entries += usize::from(sharers != 0);
        }
        assert_eq!(self.bench.directory.entries(), entries);
    }
}

impl Bench {
    fn looked_at(&mut self, tile: u16, answer: Access) {
        self.directory.looked(tile, answer, &mut self.cx);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_writer_or_many_readers_of_the_latest_version(
        latency in 0u32..3,
        eager in 1usize..9,
        seed in any::<u64>(),
        steps in 0usize..3_000,
    ) {
        let mut world = World::new(latency, seed);
        for _ in 0..steps {
            if world.pending() == 0 || world.choices.below(10) < eager {
                world.act();
            } else {
                world.deliver();
            }
            world.check();
        }
        while world.pending() > 0 {
            world.deliver();
            world.check();
        }
        world.check_quiet();
    }
}
