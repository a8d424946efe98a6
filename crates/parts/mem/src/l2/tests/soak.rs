//! The whole cache against the promise of a memory: a read returns the last write of its line, or one that was under way
//! with it. The cache itself has no data; its moves are replayed with versions of the data. Memory takes random times,
//! and keeps the order of one bank's commands to one page only.

use super::{spec, *};
use crate::{
    cache::replace::ReplacementPolicy,
    l2::{
        L2Spec, Move, WritePolicy,
        layout::{Target, bits},
        prefetch::{Prefetching, dynamic, fixed, predicted},
    },
};
use config::units::Bytes;
use engine::{Rng, Time};
use proptest::prelude::*;
use proto::memory::{Absent, Access, AccessKind, LINE, MemCommand, PAGE};
use std::collections::{BTreeMap, BTreeSet};

/// A case on its way.
struct Soak {
    rig: Rig,
    data: Data,
    rng: Rng,
    slowest: u64,
    actions: Vec<Action>,
    /// Time at which memory executes the last command of a bank for a page.
    order: BTreeMap<(u16, u64), Time>,
    /// Commands and answers examined.
    seen: (usize, usize),
    under_way: BTreeMap<(u16, bool), u32>,
    limits: (u32, u32),
}

/// Names of the soak's events: actions come first, memory's commands from here on.
const APPLY: u32 = 1 << 16;

impl Soak {
    fn new(case: &Case) -> Soak {
        let mut cache = L2::new(&case.spec, 7).expect("a spec that fits");
        cache.attach_shadow();
        let mut world = World::default();
        let mut at = Time::ZERO;
        for (n, (delay, _)) in case.actions.iter().enumerate() {
            at += ns(*delay);
            world.queue.after(at, Happening::Soak(n as u32));
        }
        Soak {
            rig: Rig { cache, world },
            data: Data::default(),
            rng: Rng::stream(case.seed, "soak"),
            slowest: case.slowest,
            actions: case.actions.iter().map(|(_, action)| *action).collect(),
            order: BTreeMap::new(),
            seen: (0, 0),
            under_way: BTreeMap::new(),
            limits: (case.spec.registers, case.spec.write_slots),
        }
    }

    fn run(&mut self) -> Result<(), TestCaseError> {
        while let Some(happening) = self.rig.world.queue.pop() {
            match happening {
                Happening::Cache(event) => self.rig.cache.handle(event, &mut self.rig.world),
                Happening::Soak(n) if n < APPLY => self.act(self.actions[n as usize]),
                Happening::Soak(n) => self.apply((n - APPLY) as usize),
                Happening::Done(n) => {
                    let command = &mut self.rig.world.commands[n as usize].1;
                    if command.absent == Absent::Signal && self.rng.below(2) == 0 {
                        command.absent = Absent::Signalled;
                    }
                    let command = *command;
                    *self.under_way.get_mut(&(command.port, command.write)).expect("it was sent") -= 1;
                    self.data.arrive(&command, n as usize);
                    self.rig.done(n as usize);
                }
                Happening::Access(_) => unreachable!("actions send accesses"),
            }
            for step in self.rig.cache.moves.split_off(0) {
                self.data.replay(step)?;
            }
            self.look()?;
        }
        prop_assert_eq!(self.rig.cache.outstanding(), 0);
        Ok(())
    }

    fn act(&mut self, action: Action) {
        let (cache, world) = (&mut self.rig.cache, &mut self.rig.world);
        match action {
            Action::Access(mut access) => {
                access.tag = self.data.issue(&access);
                access.since = world.now();
                cache.access(cache.bank_of(access.address), access, world);
            }
            Action::Park(page, lines) => {
                cache.park(page * PAGE, lines, app_of(page * PAGE), world);
            }
            Action::Purge(app) => cache.purge(app, world),
        }
    }

    /// Memory gets to a command.
    fn apply(&mut self, n: usize) {
        let command = self.rig.world.commands[n].1;
        self.data.apply(&command, n);
        let delay = ns(self.rng.below(self.slowest));
        self.rig.world.queue.after(delay, Happening::Done(n as u32));
    }

    /// Messages sent by the cache.
    fn look(&mut self) -> Result<(), TestCaseError> {
        for n in self.seen.0..self.rig.world.commands.len() {
            let command = self.rig.world.commands[n].1;
            let count = self.under_way.entry((command.port, command.write)).or_default();
            *count += 1;
            let limit = if command.write { self.limits.1 } else { self.limits.0 };
            prop_assert!(*count <= limit, "more under way than there is room for");
            let walk = command.pc == 0;
            prop_assert!(command.lines != 0 && (command.demand | command.write | walk));
            let alone = !command.write && command.lines.count_ones() == 1;
            prop_assert!(command.absent == Absent::Wait || alone, "more than a line may be absent");
            self.data.send(&command, n);
            let now = self.rig.world.now();
            let soonest = self.order.entry((command.port, command.page)).or_default();
            let at = (now + ns(self.rng.below(self.slowest))).max(*soonest);
            *soonest = at;
            self.rig.world.queue.after(at - now, Happening::Soak(APPLY + n as u32));
        }
        for n in self.seen.1..self.rig.world.answers.len() {
            self.data.answer(&self.rig.world.answers[n].1)?;
        }
        self.seen = (self.rig.world.commands.len(), self.rig.world.answers.len());
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reads_return_what_was_written(case in cases()) {
        let mut soak = Soak::new(&case);
        soak.run()?;
        let stats = soak.rig.cache.stats;
        prop_assert_eq!(stats.reads + stats.atomics, stats.hits + stats.misses + stats.merges);
        prop_assert_eq!(stats.reads + stats.writes + stats.atomics, soak.data.answered());
        // Every line is evicted; memory has all data.
        for app in 0..APPS {
            soak.rig.cache.purge(app, &mut soak.rig.world);
        }
        for step in soak.rig.cache.moves.split_off(0) {
            soak.data.replay(step)?;
        }
        soak.look()?;
        soak.run()?;
        soak.data.finish()?;
        // The cache's own shadow agrees, and has looked at every read.
        let found = soak.rig.cache.shadowed().expect("it has one");
        prop_assert_eq!((found.wrong, found.lost), (0, 0), "{:?}", found.first);
        prop_assert_eq!(found.compared, stats.reads + stats.atomics - stats.signalled);
        let ledger = soak.rig.cache.ledger();
        let sent = soak.rig.world.commands.iter().filter(|(_, command)| command.write);
        let sent: u32 = sent.map(|(_, command)| command.lines.count_ones()).sum();
        prop_assert_eq!(ledger.dirtied + ledger.through, u64::from(sent) + soak.rig.cache.dirty());
    }
}

// Parameters of a soak.

/// Applications.
const APPS: u8 = 2;

/// Pages, and lines of them, that are accessed: few, so that accesses meet.
const PAGES: u64 = 6;

const LINES: u64 = 4;

/// The application that owns an address.
fn app_of(address: u64) -> u8 {
    (address / PAGE % u64::from(APPS)) as u8
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Access(Access),
    Park(u64, u64),
    Purge(u8),
}

#[derive(Clone, Debug)]
struct Case {
    spec: L2Spec,
    seed: u64,
    /// Memory takes less than twice this many ns.
    slowest: u64,
    actions: Vec<(u64, Action)>,
}

fn access() -> impl Strategy<Value = Action> {
    let kind = prop_oneof![
        3 => Just((AccessKind::Read, 128)),
        1 => Just((AccessKind::Own, 128)),
        2 => Just((AccessKind::Write, 128)),
        2 => Just((AccessKind::Write, 32)),
        2 => Just((AccessKind::Atomic, 4)),
    ];
    let absent = prop_oneof![2 => Just(Absent::Wait), 1 => Just(Absent::Signal)];
    (kind, 0..PAGES, 0..LINES, 0..6u16, 0..3u32, absent).prop_map(
        |((kind, bytes), page, line, warp, pc, absent)| {
            let address = page * PAGE + line * LINE;
            let app = app_of(address);
            Action::Access(Access {
                tag: 0,
                kind,
                address,
                bytes,
                app,
                port: 0,
                warp,
                pc,
                absent,
                since: Time::ZERO,
            })
        },
    )
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        30 => access(),
        4 => (0..PAGES, 1..1u64 << LINES).prop_map(|(page, lines)| Action::Park(page, lines)),
        1 => (0..APPS).prop_map(Action::Purge),
    ]
}

fn prefetching() -> impl Strategy<Value = Prefetching> {
    let chunk = prop_oneof![Just(256u64), Just(1024), Just(4096)].prop_map(Bytes::new);
    chunk.prop_flat_map(|chunk| {
        prop_oneof![
            Just(Prefetching::none),
            Just(Prefetching::fixed(fixed::Params { chunk })),
            Just(Prefetching::predicted(predicted::Params { entries: 8, cutoff: 1, chunk })),
            Just(Prefetching::dynamic(dynamic::Params {
                entries: 8,
                cutoff: 1,
                window: 2,
                ..dynamic::Params::default()
            })),
        ]
    })
}

fn specs() -> impl Strategy<Value = L2Spec> {
    let writes = prop_oneof![Just(WritePolicy::write_back), Just(WritePolicy::read_only)];
    let replacement = (0..ReplacementPolicy::all_defaults().len())
        .prop_map(|n| ReplacementPolicy::all_defaults().swap_remove(n));
    let counts = (1..4u16, 1..5u32, 1..5u32, 1..5u32, 1..4u32);
    let pages = prop_oneof![Just(0u64), 1..3u64];
    (writes, replacement, prefetching(), counts, pages, any::<bool>()).prop_map(
        |(writes, replacement, prefetch, (banks, ways, registers, merges, write_slots), pages, small)| {
            let parked = Bytes::new(pages * PAGE * u64::from(banks));
            let plain = pages == 0 && prefetch == Prefetching::none;
            L2Spec {
                banks,
                // Four sets: prefetched lines of a page push each other out.
                sets: if pages > 0 { 32 } else { 4 },
                ways: if pages > 0 { ways.max(pages as u32 + 1) } else { ways },
                registers,
                merges,
                write_slots,
                interleave: Bytes::new(if plain && small { 256 } else { PAGE }),
                replacement,
                prefetch,
                parked,
                ..spec(writes)
            }
        },
    )
}

fn cases() -> impl Strategy<Value = Case> {
    let actions = prop::collection::vec((0..20u64, action()), 1..150);
    (specs(), any::<u64>(), prop_oneof![Just(5u64), Just(100)], actions)
        .prop_map(|(spec, seed, slowest, actions)| Case { spec, seed, slowest, actions })
}

// The data that the cache would move, as versions: each write and each atomic is one.

/// State of an access, in steps of the soak.
struct Life {
    line: u64,
    kind: AccessKind,
    issued: u64,
    answered: Option<u64>,
    /// Version returned by the access.
    value: Option<u32>,
    /// True if it had no effect: its page was in flash.
    signalled: bool,
}

/// Contents of a line of the cache.
#[derive(Clone, Copy)]
struct Held {
    version: u32,
    whole: bool,
}

/// Versions of all data. Zero is the initial data in memory; access `n` writes version `n + 1`.
#[derive(Default)]
struct Data {
    step: u64,
    lives: Vec<Life>,
    memory: BTreeMap<u64, u32>,
    lines: BTreeMap<(u16, u64), (u64, Held)>,
    /// Data brought by a fetch, by bank and register.
    fetched: BTreeMap<(u16, u32), BTreeMap<u64, u32>>,
    /// Data taken by the next command, by bank and slot.
    slots: BTreeMap<(u16, u32), BTreeMap<u64, u32>>,
    /// Data carried by each command.
    carried: BTreeMap<usize, BTreeMap<u64, u32>>,
    /// Lines and versions that atomics have found.
    found: BTreeSet<(u64, u32)>,
}

fn line_of(target: Target) -> u64 {
    target.page / LINE + u64::from(target.line)
}

fn lines_of(command: &MemCommand) -> impl Iterator<Item = u64> {
    let first = command.page / LINE;
    bits(command.lines).map(move |line| first + u64::from(line))
}

impl Data {
    /// An access goes in; its tag.
    fn issue(&mut self, access: &Access) -> u32 {
        self.step += 1;
        let line = access.address / LINE;
        let (kind, issued) = (access.kind, self.step);
        self.lives.push(Life { line, kind, issued, answered: None, value: None, signalled: false });
        self.lives.len() as u32 - 1
    }

    fn held(&mut self, target: Target) -> Result<&mut Held, TestCaseError> {
        match self.lines.get_mut(&(target.bank, target.key)) {
            Some((_, held)) => Ok(held),
            None => Err(TestCaseError::fail(format!("{target:?} is not here"))),
        }
    }

    fn put(&mut self, target: Target, version: u32, whole: bool) {
        let old = self.lines.get(&(target.bank, target.key));
        // Data already here is newer, and the line becomes complete.
        let version = old.map_or(version, |(_, held)| held.version);
        let whole = whole || old.is_some_and(|(_, held)| held.whole);
        self.lines.insert((target.bank, target.key), (line_of(target), Held { version, whole }));
    }

    /// The cache moves data.
    fn replay(&mut self, step: Move) -> Result<(), TestCaseError> {
        match step {
            Move::FromLine(target, access) => {
                let held = *self.held(target)?;
                prop_assert!(held.whole, "{access:?} gets a part of a line");
                self.lives[access.tag as usize].value = Some(held.version);
            }
            Move::FromFetch(register, target, access) => {
                let value = self.fetched[&(target.bank, register)][&line_of(target)];
                self.lives[access.tag as usize].value = Some(value);
            }
            Move::Store(target, access) => {
                let full = u64::from(access.bytes) == LINE;
                self.put(target, 0, full);
                self.held(target)?.version = access.tag + 1;
            }
            Move::Fill(register, target) => {
                let version = self.fetched[&(target.bank, register)][&line_of(target)];
                self.put(target, version, true);
            }
            Move::Unload(slot, target) => {
                let version = self.held(target)?.version;
                self.slots.entry((target.bank, slot)).or_default().insert(line_of(target), version);
            }
            Move::Through(slot, register, target, access) => {
                let (line, version) = (line_of(target), access.tag + 1);
                self.slots.entry((target.bank, slot)).or_default().insert(line, version);
                if let Some(register) = register {
                    self.fetched.get_mut(&(target.bank, register)).expect("a fetch").insert(line, version);
                }
            }
            Move::Drop(target) => {
                self.lines.remove(&(target.bank, target.key));
            }
            Move::Park(target) => {
                // Flash registers hand over the present data of memory.
                let version = self.memory.get(&line_of(target)).copied().unwrap_or(0);
                self.put(target, version, true);
            }
        }
        Ok(())
    }

    /// The cache sends a command.
    fn send(&mut self, command: &MemCommand, n: usize) {
        if command.write {
            let data = self.slots.remove(&(command.port, command.tag)).expect("a write has data");
            assert!(data.keys().copied().eq(lines_of(command)), "a write carries its lines");
            self.carried.insert(n, data);
        }
    }

    /// Memory gets to a command.
    fn apply(&mut self, command: &MemCommand, n: usize) {
        if command.write {
            self.memory.extend(self.carried.remove(&n).expect("it was sent"));
        } else {
            let read = |line| (line, self.memory.get(&line).copied().unwrap_or(0));
            self.carried.insert(n, lines_of(command).map(read).collect());
        }
    }

    /// A command comes back.
    fn arrive(&mut self, command: &MemCommand, n: usize) {
        if !command.write {
            let data = self.carried.remove(&n).expect("memory got to it");
            if command.absent == Absent::Signalled {
                return;
            }
            self.fetched.insert((command.port, command.tag), data);
        }
    }

    /// Returns true if a read issued at `issued` may return a version: no write that was surely later is surely earlier
    /// than the read.
    fn check(&self, line: u64, version: u32, issued: u64) -> Result<(), TestCaseError> {
        let acknowledged = match version.checked_sub(1) {
            None => 0,
            Some(tag) => {
                prop_assert_eq!(self.lives[tag as usize].line, line, "another line's data");
                self.lives[tag as usize].answered.unwrap_or(u64::MAX)
            }
        };
        let over = self.lives.iter().position(|life| {
            life.line == line
                && matches!(life.kind, AccessKind::Write | AccessKind::Atomic)
                && !life.signalled
                && life.issued > acknowledged
                && life.answered.is_some_and(|answered| answered < issued)
        });
        prop_assert!(over.is_none(), "line {line}: version {version} was overwritten by {over:?}");
        Ok(())
    }

    /// An access comes back.
    fn answer(&mut self, access: &Access) -> Result<(), TestCaseError> {
        self.step += 1;
        let life = &mut self.lives[access.tag as usize];
        prop_assert!(life.answered.replace(self.step).is_none(), "answered twice");
        let (line, issued) = (life.line, life.issued);
        if life.kind == AccessKind::Write {
            return Ok(());
        }
        if access.absent == Absent::Signalled {
            prop_assert!(life.value.is_none(), "an answer without data took some");
            life.signalled = true;
            return Ok(());
        }
        let value = life.value.expect("a read takes its value from somewhere");
        if life.kind == AccessKind::Atomic {
            prop_assert!(
                self.found.insert((line, value)),
                "two atomics found version {value} of line {line}"
            );
        }
        self.check(line, value, issued)
    }

    /// Accesses that have come back.
    fn answered(&self) -> u64 {
        self.lives.iter().filter(|life| life.answered.is_some()).count() as u64
    }

    /// At the end memory holds everything, and the cache nothing.
    fn finish(&self) -> Result<(), TestCaseError> {
        prop_assert!(self.lives.iter().all(|life| life.answered.is_some()), "an answer is lost");
        prop_assert!(self.lines.is_empty(), "lines of purged applications are here");
        for line in self.lives.iter().map(|life| life.line).collect::<BTreeSet<u64>>() {
            self.check(line, self.memory.get(&line).copied().unwrap_or(0), u64::MAX)?;
        }
        Ok(())
    }
}
