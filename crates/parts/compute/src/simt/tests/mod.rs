//! The multiprocessors alone, with scripted programs and a memory of fixed latency; specs that cannot be built.

mod dispatch;
mod issue;
mod memory;
mod random;

use super::*;
use blocks::BlockScheduling;
use config::{
    StatePower,
    units::{Bytes, Frequency, Power},
};
use engine::EventQueue;
use kernels::KernelScheduling;
use mem::cache::replace::ReplacementPolicy;
use proto::simt::{Inst, InstKind, Launch, Tape, WarpStart};
use sched::WarpScheduling;
use std::collections::BTreeMap;

/// One multiprocessor at 1 GHz: a cycle is a nanosecond.
pub(super) fn small() -> GpuSpec {
    GpuSpec {
        sms: 1,
        clock: Frequency::new(1_000_000_000),
        issue: 1,
        scheduler: WarpScheduling::loose_round_robin,
        blocks: BlockScheduling::round_robin,
        kernels: KernelScheduling::shared,
        repeat: false,
        resident: ResidentSpec {
            warps: 16,
            blocks: 8,
            threads: 512,
            block_threads: 512,
            registers: 32_768,
            shared: Bytes::from_kib(16),
        },
        alu: AluSpec { latency: 4 },
        sfu: SfuSpec { latency: 10, interval: 8 },
        shared: SharedSpec { latency: 3, banks: 32 },
        load_store: LoadStoreSpec { queue: 64, stores: 4 },
        l1: L1Spec {
            sets: 4,
            ways: 2,
            replacement: ReplacementPolicy::lru,
            latency: 2,
            miss_registers: 4,
            merges: 2,
        },
        tlb: TlbSpec { entries: 64, ways: 64, misses: 4 },
        energy: None,
    }
}

/// An instruction with its lanes' addresses.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub inst: Inst,
    pub addresses: Vec<u64>,
}

/// An instruction of one lane, without registers.
fn step(kind: InstKind, addresses: Vec<u64>) -> Step {
    let lanes = if addresses.is_empty() { 32 } else { addresses.len() as u32 };
    let mask = if lanes == 32 { u32::MAX } else { (1 << lanes) - 1 };
    let width = if addresses.is_empty() { 0 } else { 4 };
    Step { inst: Inst { kind, width, to: 0, from: [0; 3], count: 1, pc: 7, mask, addresses: 0 }, addresses }
}

impl Step {
    fn to(mut self, register: u8) -> Step {
        self.inst.to = register;
        self
    }
    fn from(mut self, register: u8) -> Step {
        self.inst.from = [0, register, 0];
        self
    }
    fn times(mut self, count: u16) -> Step {
        self.inst.count = count;
        self
    }
}

pub(super) fn alu() -> Step {
    step(InstKind::Alu, vec![])
}
pub(super) fn barrier() -> Step {
    step(InstKind::Barrier, vec![])
}
pub(super) fn load(addresses: impl IntoIterator<Item = u64>) -> Step {
    step(InstKind::Load, addresses.into_iter().collect())
}
pub(super) fn store(addresses: impl IntoIterator<Item = u64>) -> Step {
    step(InstKind::Store, addresses.into_iter().collect())
}
pub(super) fn atomic(addresses: impl IntoIterator<Item = u64>) -> Step {
    step(InstKind::Atomic, addresses.into_iter().collect())
}

/// A kernel: its launch and what each warp executes, in pieces. The last piece is empty, if the program says only then
/// that the warp has ended.
pub(super) struct Kernel {
    pub launch: Launch,
    pub program: Box<dyn Fn(u32, u32) -> Vec<Vec<Step>>>,
}

/// A kernel of `blocks` of `warps` whose warps each execute one instruction a piece.
pub(super) fn kernel(blocks: u32, warps: u32, program: impl Fn(u32, u32) -> Vec<Step> + 'static) -> Kernel {
    Kernel {
        launch: Launch { number: 0, blocks, threads: 32 * warps, registers: 16, shared: 0 },
        program: Box::new(move |block, warp| program(block, warp).into_iter().map(|s| vec![s]).collect()),
    }
}

/// Applications as lists of kernels.
#[derive(Default)]
pub(super) struct Script {
    apps: Vec<Vec<Kernel>>,
    launched: Vec<usize>,
    running: BTreeMap<u32, std::vec::IntoIter<Vec<Step>>>,
    /// Warps in the order in which they began.
    pub starts: Vec<(u32, WarpStart)>,
    /// Slots in the order in which they were stepped.
    pub steps: Vec<u32>,
}

impl Script {
    pub(super) fn new(apps: Vec<Vec<Kernel>>) -> Script {
        let launched = vec![0; apps.len()];
        Script { apps, launched, ..Script::default() }
    }
}

impl Programs for Script {
    fn apps(&self) -> u8 {
        self.apps.len() as u8
    }
    fn launch(&mut self, app: u8) -> Option<Launch> {
        let number = &mut self.launched[usize::from(app)];
        *number += 1;
        let kernel = self.apps[usize::from(app)].get(*number - 1)?;
        Some(Launch { number: *number as u32 - 1, ..kernel.launch })
    }
    fn restart(&mut self, app: u8) {
        self.launched[usize::from(app)] = 0;
    }
    fn start(&mut self, slot: u32, warp: WarpStart) {
        let app = usize::from(warp.app);
        let pieces = (self.apps[app][self.launched[app] - 1].program)(warp.block, warp.warp);
        assert!(self.running.insert(slot, pieces.into_iter()).is_none(), "slot {slot} is taken");
        self.starts.push((slot, warp));
    }
    fn step(&mut self, slot: u32, tape: &mut Tape) -> bool {
        self.steps.push(slot);
        assert!(tape.insts.is_empty() && tape.addresses.is_empty());
        let pieces = self.running.get_mut(&slot).expect("a warp that runs");
        for mut step in pieces.next().unwrap_or_default() {
            step.inst.addresses = tape.addresses.len() as u32;
            tape.addresses.extend(step.addresses);
            tape.insts.push(step.inst);
        }
        if pieces.len() == 0 {
            self.running.remove(&slot);
            return false;
        }
        true
    }
}

engine::events! {
    enum Happening {
        Gpu(Event),
        Answer(u32),
        Translated(u32),
    }
}

/// Time, and everything that has been sent.
pub(super) struct Outside {
    queue: EventQueue<Happening>,
    pub sent: Vec<(Time, Out)>,
}

engine::context! {
    Outside: Cx<Event, Out>,
    queue: |me| me.queue,
    event: |_me, event| Happening::Gpu(event),
    out: |me, out| {
        let now = me.queue.now();
        me.sent.push((now, out));
    },
}

/// Multiprocessors, their programs, and a memory.
pub(super) struct World {
    pub gpu: Gpu,
    pub script: Script,
    pub outside: Outside,
    /// Latency of the memory; zero: it never answers.
    pub latency: Time,
    pub translation: Time,
    /// Time tallied by a different part.
    pub elsewhere: Tally,
    /// Slot and cycle of each step of a program but a warp's first: the cycle in which the piece before was issued.
    pub issued: Vec<(u32, u64)>,
    served: usize,
    stepped: usize,
    begun: usize,
}

impl World {
    /// Everything at time zero, begun. Translations of the first 64 pages are known: the identity.
    pub(super) fn new(spec: &GpuSpec, apps: Vec<Vec<Kernel>>) -> World {
        let script = Script::new(apps);
        let gpu = Gpu::new(spec, script.apps(), 4096).expect("a spec that fits");
        let mut world = World {
            gpu,
            script,
            outside: Outside { queue: EventQueue::new(), sent: Vec::new() },
            latency: Time::from_ns(100),
            translation: Time::from_ns(50),
            elsewhere: Tally::default(),
            issued: Vec::new(),
            served: 0,
            stepped: 0,
            begun: 0,
        };
        for page in 0..64 {
            for app in 0..world.script.apps() {
                world.gpu.know(app, page, page);
            }
        }
        world
    }

    pub(super) fn begin(mut self) -> World {
        self.gpu.begin(&mut self.script, &mut self.outside).expect("kernels that fit");
        self.note();
        self
    }

    fn cycle(&self) -> u64 {
        self.outside.now().ns()
    }

    /// Books what has been stepped, and lets memory take what has been sent.
    fn note(&mut self) {
        let cycle = self.cycle();
        // Every warp is stepped once when it begins.
        let begun = self.script.starts[self.begun..].to_vec();
        self.begun = self.script.starts.len();
        let mut first: Vec<u32> = begun.iter().map(|(slot, _)| *slot).collect();
        for slot in &self.script.steps[self.stepped..] {
            match first.iter().position(|f| f == slot) {
                Some(at) => drop(first.remove(at)),
                None => self.issued.push((*slot, cycle)),
            }
        }
        self.stepped = self.script.steps.len();
        while self.served < self.outside.sent.len() {
            let number = self.served as u32;
            match self.outside.sent[self.served].1 {
                Out::Access(_) if self.latency > Time::ZERO => {
                    self.outside.queue.after(self.latency, Happening::Answer(number));
                }
                Out::Translate(_) if self.translation > Time::ZERO => {
                    self.outside.queue.after(self.translation, Happening::Translated(number));
                }
                _ => {}
            }
            self.served += 1;
        }
    }

    /// One event; false if there is none.
    pub(super) fn turn(&mut self) -> bool {
        let Some(event) = self.outside.queue.pop() else { return false };
        match event {
            Happening::Gpu(event) => self.gpu.handle(event, &mut self.script, &mut self.outside),
            Happening::Answer(number) => self.answer(number as usize),
            Happening::Translated(number) => self.translate(number as usize),
        }
        self.note();
        true
    }

    pub(super) fn run(&mut self) {
        while self.turn() {}
    }

    /// Runs every event before a cycle.
    pub(super) fn run_to(&mut self, cycle: u64) {
        self.outside.queue.after(Time::from_ns(cycle) - self.outside.now(), Happening::Answer(u32::MAX));
        while let Some(event) = self.outside.queue.pop() {
            match event {
                Happening::Answer(u32::MAX) => return,
                Happening::Gpu(event) => self.gpu.handle(event, &mut self.script, &mut self.outside),
                Happening::Answer(number) => self.answer(number as usize),
                Happening::Translated(number) => self.translate(number as usize),
            }
            self.note();
        }
    }

    /// An application is held, or no longer.
    pub(super) fn hold(&mut self, app: u8, held: bool) {
        self.gpu.hold(app, held, &mut self.script, &mut self.outside);
        self.note();
    }

    /// Gives a helper thread a number of instructions.
    pub(super) fn help(&mut self, thread: u32, instructions: u32) {
        let help = proto::memory::Help { tag: thread, from: proto::Port::default(), thread, instructions };
        self.gpu.help(help, &mut self.outside);
        self.note();
    }

    /// The memory answers what was sent as number `number`.
    pub(super) fn answer(&mut self, number: usize) {
        let Out::Access(mut access) = self.outside.sent[number].1 else { panic!("not an access") };
        self.elsewhere.access(Stage::Memory, &mut access, self.outside.now());
        self.gpu.answer(access, &mut self.script, &mut self.outside);
        self.note();
    }

    /// The page table answers: the identity.
    pub(super) fn translate(&mut self, number: usize) {
        let Out::Translate(mut asked) = self.outside.sent[number].1 else { panic!("not a translation") };
        self.elsewhere.reach(Stage::Walk, false, &mut asked.since, self.outside.now());
        asked.frame = asked.page;
        self.gpu.translated(asked, &mut self.script, &mut self.outside);
        self.note();
    }

    pub(super) fn accesses(&self) -> Vec<(u64, Access)> {
        let access = |(at, out): &(Time, Out)| match out {
            Out::Access(access) => Some((at.ns(), *access)),
            _ => None,
        };
        self.outside.sent.iter().filter_map(access).collect()
    }

    /// Cycles in which the warp in a slot issued, all but the last piece.
    pub(super) fn cycles_of(&self, slot: u32) -> Vec<u64> {
        self.issued.iter().filter(|(s, _)| *s == slot).map(|(_, cycle)| *cycle).collect()
    }

    /// Everything has ended, and nothing is left.
    pub(super) fn check_end(&self) {
        assert!(self.gpu.is_done() && self.gpu.outstanding() == 0 && self.outside.queue.is_empty());
        assert!(self.script.running.is_empty());
        let finished = self.outside.sent.iter().filter(|(_, out)| matches!(out, Out::Finished(_))).count();
        assert_eq!(finished, self.script.apps.len());
        let mut tally = self.gpu.tally.clone();
        tally.add(&self.elsewhere);
        let sum = self.gpu.stats.latency_sum();
        assert_eq!(tally.reads().iter().sum::<u128>(), sum.reads, "stages of reads tile their lives");
        assert_eq!(tally.writes().iter().sum::<u128>(), sum.writes, "stages of writes tile their lives");
    }
}

use crate::simt::GpuEnergySpec;
use proto::memory::Stage;

/// Runs applications to their end.
pub(super) fn run(spec: &GpuSpec, apps: Vec<Vec<Kernel>>) -> World {
    let mut world = World::new(spec, apps).begin();
    world.run();
    world.check_end();
    world
}

// Energy, against the cycles that multiprocessors count.

/// Two multiprocessors of 2 W, 5 W in cycles of a nanosecond in which they issue; 30 W beside them. Eight warps of six instructions issue
/// for 48 cycles, two at a time as it comes.
#[test]
fn cycles_with_an_instruction_cost_more() {
    let watts = |watts: u64| Power::new(watts * 1_000_000);
    let energy =
        GpuEnergySpec { multiprocessor: StatePower { idle: watts(2), busy: watts(5) }, chip_on: watts(30) };
    let spec = GpuSpec { sms: 2, energy: Some(energy), ..small() };
    let apps = || vec![vec![kernel(4, 2, |_, _| vec![alu().times(5), alu()])]];
    let world = run(&spec, apps());
    let now = Time::from_ns(200);
    assert!(world.outside.now() < now);
    let energy = world.gpu.energy(now).expect("it has a meter");
    assert!(energy.conserves());
    let busy: u64 = world.gpu.stats.sms.iter().map(|sm| sm.busy).sum();
    // A watt for a nanosecond is a nanojoule.
    let nanojoules = ["multiprocessors on", "multiprocessor issues", "chip on"]
        .map(|name| energy.of(name) / 1_000_000_000);
    assert_eq!(nanojoules, [2 * 2 * 200, 3 * u128::from(busy), 30 * 200]);
    let without = run(&GpuSpec { energy: None, ..spec }, apps());
    assert_eq!(without.issued, world.issued);
    assert_eq!(without.gpu.energy(now), None);
}

// Stages tile the lives of requests. `World::check_end` checks the sums of every test; here the parts are counted.

const FAR: u64 = 100 * 4096;

fn stages(world: &World, write: bool) -> Vec<(Stage, u128)> {
    let mut tally = world.gpu.tally.clone();
    tally.add(&world.elsewhere);
    let sums = if write { tally.writes() } else { tally.reads() };
    [Stage::L1, Stage::L1Merge, Stage::Tlb, Stage::Walk, Stage::Memory]
        .into_iter()
        .map(|stage| (stage, sums[stage as usize] / 1000))
        .filter(|(_, ns)| *ns > 0)
        .collect()
}

#[test]
fn the_load_that_asks_has_the_milestones_of_the_walk() {
    let world = run(&small(), vec![vec![kernel(1, 1, |_, _| vec![load([FAR]).to(1)])]]);
    assert_eq!(stages(&world, false), [(Stage::L1, 4), (Stage::Walk, 50), (Stage::Memory, 100)]);
    assert_eq!(world.gpu.stats.reads.sum(), 154_000);
}

#[test]
fn a_load_that_waits_beside_waits_for_the_tlb() {
    let program = |_, warp: u32| vec![load([FAR + 128 * u64::from(warp)]).to(1)];
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    // The second is issued in cycle 1, looked up in 3, translated in 52, sent in 55.
    let expected = [(Stage::L1, 4 + 2 + 3), (Stage::Tlb, 49), (Stage::Walk, 50), (Stage::Memory, 200)];
    assert_eq!(stages(&world, false), expected);
}

#[test]
fn a_translation_that_a_store_asks_for_is_a_read_of_its_own() {
    let program = |_, warp: u32| if warp == 0 { vec![store([FAR])] } else { vec![load([FAR]).to(1)] };
    let world = run(&small(), vec![vec![kernel(1, 2, program)]]);
    assert_eq!(stages(&world, true), [(Stage::L1, 4), (Stage::Tlb, 50), (Stage::Memory, 100)]);
    let reads = [(Stage::L1, 2 + 3), (Stage::Tlb, 49), (Stage::Walk, 50), (Stage::Memory, 100)];
    assert_eq!(stages(&world, false), reads);
    let stats = &world.gpu.stats;
    assert_eq!((stats.store_translations, stats.reads.sum(), stats.writes.sum()), (50_000, 154_000, 154_000));
    assert_eq!(stats.latency_sum(), LatencySum { reads: 204_000, writes: 154_000 });
}

// What can be built.

fn refused_key(change: fn(&mut GpuSpec)) -> String {
    let mut spec = small();
    change(&mut spec);
    spec.check().map_or_else(|fault| fault.key, |()| String::new())
}

#[test]
fn what_cannot_be_built_is_refused_with_its_key() {
    assert_eq!(refused_key(|_| ()), "");
    assert_eq!(refused_key(|s| s.sms = 0), "sms");
    assert_eq!(refused_key(|s| s.clock = Frequency::new(0)), "clock");
    assert_eq!(refused_key(|s| s.clock = Frequency::new(2_000_000_000_000)), "clock");
    assert_eq!(refused_key(|s| s.issue = 0), "issue");
    assert_eq!(refused_key(|s| s.resident.warps = 129), "resident.warps");
    assert_eq!(refused_key(|s| s.sms = 5000), "resident.warps");
    assert_eq!(refused_key(|s| s.alu.latency = 0), "alu.latency");
    assert_eq!(refused_key(|s| s.sfu.interval = 5000), "sfu.interval");
    assert_eq!(refused_key(|s| s.shared.banks = 24), "shared.banks");
    assert_eq!(refused_key(|s| s.load_store.stores = 0), "load_store.stores");
    assert_eq!(refused_key(|s| s.l1.miss_registers = 0), "l1.miss_registers");
    assert_eq!(refused_key(|s| s.tlb.ways = 5), "tlb.ways");
    assert_eq!(refused_key(|s| s.tlb.misses = 0), "tlb.misses");
    assert_eq!(Gpu::new(&small(), 1, 4095).err().map(|fault| fault.key), Some("tlb".into()));
    assert_eq!(Gpu::new(&small(), 1, 0).err().map(|fault| fault.key), Some("tlb".into()));
    assert!(Gpu::new(&small(), 1, 384 * 4096).is_ok());
}
