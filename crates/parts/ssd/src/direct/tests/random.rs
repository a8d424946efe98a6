//! Random commands against the shadow and the conservation checks, with a shared cache that parks pages.

use super::{Rig, small};
use crate::direct::spec::{DirectHelper, DirectRedirect, DirectSpec, Transfer};
use crate::direct::{Direct, Out};
use config::units::{Duration, Share};
use engine::{Rng, Time};
use nand::dies::sched::Scheduling;
use nand::planes::spec::FlashNetwork;
use nand::registers::RegisterNetwork;
use net::mesh::{MeshSpec, Switching};
use proptest::prelude::*;
use proto::memory::{Absent, CPU_LINE, LINE, Lines, MemCommand, PAGE};
use std::collections::BTreeMap;

/// Shared cache that keeps parked pages and requests absent ones.
struct Cache {
    rig: Rig,
    rng: Rng,
    /// Size of a line in bytes, and of the pieces of pages that are read and written: one or several lines.
    line: u64,
    piece: u64,
    /// Lines parked, by page.
    parked: BTreeMap<u64, u64>,
    /// Writes outstanding, by page.
    writes: BTreeMap<u64, u32>,
    /// Time at which each command was sent, by tag.
    sent: BTreeMap<u32, (Time, MemCommand)>,
    tags: u32,
    /// Work that the helper thread has not executed yet.
    helps: Vec<u32>,
    seen: usize,
    /// Total time in picoseconds of reads, and of writes with a waiting core.
    latency: [u128; 2],
}

impl Cache {
    /// With lines of `line` bytes, that come and go in pieces of `piece`.
    fn new(spec: &DirectSpec, seed: u64, line: u64, piece: u64) -> Cache {
        let (rig, rng) = (Rig::of_lines(spec, line), Rng::stream(seed, "test"));
        let (parked, writes, sent) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let helps = Vec::new();
        Cache { rig, rng, line, piece, parked, writes, sent, tags: 0, helps, seen: 0, latency: [0; 2] }
    }

    fn send(&mut self, page: u64, lines: u64, write: bool, demand: bool) {
        let lines = lines & !self.parked.get(&page).copied().unwrap_or(0);
        if lines == 0 {
            return;
        }
        self.tags += 1;
        // A page belongs to one application.
        let (tag, app, since) = (self.tags, (page / PAGE % 3) as u8, self.rig.now());
        let command = MemCommand {
            from: proto::Port::default(),
            tag,
            page,
            lines,
            write,
            demand,
            app,
            port: 0,
            pc: 0,
            absent: Absent::Wait,
            since,
        };
        *self.writes.entry(page).or_default() += u32::from(write);
        self.sent.insert(tag, (since, command));
        self.rig.direct.command(command, &mut self.rig.cx);
        self.answer();
    }

    /// Sends a random command; pages are few, so that they meet.
    fn any(&mut self) {
        let spread = if self.rng.below(4) == 0 { 256 } else { 24 };
        let page = self.rng.below(spread) * PAGE;
        let all = Lines::of(self.piece).expect("a size of lines").all();
        let pieces = match self.rng.below(3) {
            0 => all,
            1 => 1 << self.rng.below(4),
            _ => ((self.rng.below(1 << 16) + 1) & all).max(1),
        };
        let lines = in_lines(pieces, self.piece, self.line);
        let (write, demand) = (self.rng.below(2) == 0, self.rng.below(4) > 0);
        match self.parked.first_key_value().map(|(page, lines)| (*page, *lines)) {
            Some((page, lines)) if self.rng.below(6) == 0 => {
                self.parked.remove(&page);
                self.send(page, lines, true, false);
            }
            _ => self.send(page, lines, write, demand),
        }
    }

    /// Takes the component's messages. A page with a write under way is not parked: the write is newer.
    fn answer(&mut self) {
        while let Some((time, out)) = self.rig.cx.sent.get(self.seen).copied() {
            self.seen += 1;
            match out {
                Out::Done(command) => {
                    let (sent, was) = self.sent.remove(&command.tag).expect("answered once");
                    assert_eq!((was.page, was.lines), (command.page, command.lines));
                    assert_eq!(command.since, time);
                    *self.writes.entry(command.page).or_default() -= u32::from(command.write);
                    if command.demand {
                        self.latency[usize::from(command.write)] += u128::from((time - sent).ps());
                    }
                }
                Out::Park { page, lines, app } => {
                    let written = self.writes.get(&page).is_some_and(|n| *n > 0);
                    if written || self.parked.len() == 4 || self.rng.below(5) == 0 {
                        self.rig.direct.refused(page, lines, app, &mut self.rig.cx);
                    } else {
                        *self.parked.entry(page).or_default() |= lines;
                    }
                }
                Out::Help(help) => self.helps.push(help.tag),
                Out::Reclaim { .. } => {}
            }
        }
    }

    /// An event, or something that the helper thread has executed.
    fn step(&mut self) -> bool {
        let first = !self.helps.is_empty() && self.rng.below(2) == 0;
        let mut stepped = !first && self.rig.step();
        if !stepped && let Some(tag) = self.helps.pop() {
            stepped = true;
            self.rig.direct.helped(tag, &mut self.rig.cx);
        }
        self.answer();
        stepped
    }

    fn run(mut self, commands: u32, depth: usize) -> Direct {
        for n in 0..commands {
            self.any();
            while self.sent.len() >= depth {
                assert!(self.step(), "deadlock");
            }
            if self.rng.below(3) == 0 {
                self.step();
            }
            if n % 500 == 0 {
                self.rig.check();
            }
        }
        while self.step() {}
        self.rig.check();
        assert!(self.sent.is_empty(), "{} commands are never answered", self.sent.len());
        let tally = &self.rig.direct.tally;
        let tiles = [tally.reads().iter().sum::<u128>(), tally.writes().iter().sum()];
        assert_eq!(tiles, self.latency, "stages tile latencies");
        let gone: u64 = self.rig.direct.shadow.as_ref().map_or(0, |s| s.checked);
        assert!(gone > 0);
        self.rig.direct
    }
}

/// Pieces of a page as lines of it.
fn in_lines(pieces: u64, piece: u64, line: u64) -> u64 {
    let each = piece / line;
    (0..PAGE / line).filter(|n| pieces >> (n / each) & 1 == 1).fold(0, |lines, n| lines | 1 << n)
}

/// Sizes of lines.
const SIZES: [u64; 4] = [CPU_LINE, LINE, 256, 512];

/// A spec drawn from all policies, with times close to each other so that everything meets.
fn any_spec(rng: &mut Rng) -> DirectSpec {
    let mut spec = small();
    // As few blocks as there may be: 8 of data, 4 logs, 2 for a merge.
    spec.geometry.blocks = 14;
    let networks = RegisterNetwork::all_defaults();
    spec.registers.network = networks[rng.below(networks.len() as u64) as usize].clone();
    spec.registers.count = 2 + rng.below(3) as u32;
    spec.array.scheduler = if rng.below(2) == 0 { Scheduling::oldest } else { Scheduling::priority };
    spec.array.merge_reads = rng.below(4) > 0;
    spec.transfer = if rng.below(2) == 0 { Transfer::page } else { Transfer::lines };
    spec.redirect =
        (rng.below(2) == 0).then_some(DirectRedirect { window: 8, threshold: Share::percent(20) });
    spec.controller.count = 1 + rng.below(2) as u32;
    let time = |ns| Duration::new(Time::from_ns(ns));
    spec.array.program = time(2_000 + 8_000 * rng.below(2));
    spec.array.erase = time(20_000);
    if rng.below(3) == 0 {
        spec.network = FlashNetwork::bus(Default::default());
        spec.geometry.ports = 1;
    } else if rng.below(2) == 0 {
        let switching = Switching::store_and_forward;
        spec.network = FlashNetwork::mesh(MeshSpec { rows: 2, columns: 1, switching, ..MeshSpec::default() });
    }
    spec.helper = (rng.below(2) == 0).then_some(DirectHelper { page: 1, block: rng.below(2) as u32 });
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_read_brings_what_was_written(seed: u64, line in prop::sample::select(SIZES.to_vec())) {
        let mut rng = Rng::stream(seed, "spec");
        let spec = any_spec(&mut rng);
        Cache::new(&spec, seed, line, line).run(1_500, 1 + rng.below(40) as usize);
    }
}

/// Equal bytes of equal pages come and go: the number of lines only affects the count of lines.
#[test]
fn lines_of_all_sizes_move_the_same_bytes() {
    for seed in 0..6 {
        let run = |line| {
            let spec = any_spec(&mut Rng::stream(seed, "spec"));
            let direct = Cache::new(&spec, seed, line, 512).run(1_000, 16);
            let dirty = direct.dirty();
            let given_up = direct.lines_given_up() * line;
            (direct.stats, direct.tally, dirty.registers, dirty.lines * line, given_up)
        };
        let reference = run(LINE);
        assert!(reference.0.bytes_out > PAGE && reference.0.bytes_in > PAGE);
        for line in SIZES {
            assert_eq!(run(line), reference, "lines of {line} B");
        }
    }
}

/// The mechanisms covered by the property do occur.
#[test]
fn everything_happens_in_random_runs() {
    let (mut merges, mut parked, mut refused, mut moves, mut partial, mut blocked) = (0, 0, 0, 0, 0, 0);
    for seed in 0..24 {
        let spec = any_spec(&mut Rng::stream(seed, "spec"));
        let stats = Cache::new(&spec, seed, LINE, LINE).run(1_500, 24).stats;
        merges += stats.gc_runs;
        parked += stats.parked - stats.refused;
        refused += stats.refused;
        moves += stats.moves;
        partial += stats.partial_reads.min(stats.merged_reads);
        blocked += stats.blocked;
    }
    let all = [merges, parked, refused, moves, partial, blocked];
    assert!(all.iter().all(|n| *n > 100), "{all:?}");
}

/// Two runs with the same seed are equal to the picosecond.
#[test]
fn a_seed_gives_one_run() {
    let run = || {
        let spec = any_spec(&mut Rng::stream(3, "spec"));
        let direct = Cache::new(&spec, 3, LINE, LINE).run(1_000, 16);
        (direct.stats, direct.tally)
    };
    assert_eq!(run(), run());
}
