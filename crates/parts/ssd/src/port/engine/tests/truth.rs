//! Every request is answered once, and every read with what was written before it: versions are moved along where the
//! engine says that it moves data.

use super::super::trail::Moved;
use super::super::*;
use super::rig::{Rig, page, spec};
use proptest::prelude::*;
use proto::memory::{CPU_LINE, LINE, Lines};
use std::collections::BTreeMap;

type Versions = [u32; Lines::MOST];

const UNWRITTEN: Versions = [0; Lines::MOST];

/// Sizes of lines.
const SIZES: [u64; 4] = [CPU_LINE, LINE, 256, 512];

fn lines_of(mask: u64) -> impl Iterator<Item = usize> {
    (0..Lines::MOST).filter(move |n| mask >> n & 1 == 1)
}

/// DRAM rows, flash pages and pages on their way, each line with the tag, plus one, of the write that stored it.
struct World {
    lines: Lines,
    rows: BTreeMap<u32, Versions>,
    flash: BTreeMap<u64, Versions>,
    on_the_way: BTreeMap<u64, Versions>,
    /// What each read brought.
    loaded: BTreeMap<u32, Versions>,
}

impl Step {
    /// Its lines, one at least.
    fn lines_of(&self, lines: Lines) -> u64 {
        match self.lines & lines.all() {
            0 => 1 << (self.lines.trailing_zeros() % lines.count()),
            some => some,
        }
    }
}

impl World {
    fn new(lines: Lines) -> World {
        let (rows, flash, on_the_way, loaded) =
            (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        World { lines, rows, flash, on_the_way, loaded }
    }

    fn row(&mut self, row: u32) -> &mut Versions {
        self.rows.entry(row).or_insert(UNWRITTEN)
    }

    fn take(&mut self, moved: &Moved) {
        match *moved {
            Moved::Stored { tag, row, lines: mask } => {
                lines_of(mask).for_each(|n| self.row(row)[n] = tag + 1)
            }
            Moved::Loaded { tag, row, lines: mask, newer } => {
                let mut brought = *self.row(row);
                if let Some((valid, other)) = newer {
                    let other = *self.row(other);
                    lines_of(valid).for_each(|n| brought[n] = other[n]);
                }
                let kept = self.loaded.entry(tag).or_insert(UNWRITTEN);
                lines_of(mask).for_each(|n| kept[n] = brought[n]);
            }
            Moved::Filled { page, row, lines: mask } => {
                let flash = self.flash.get(&page).copied().unwrap_or(UNWRITTEN);
                let row = self.row(row);
                lines_of(mask).for_each(|n| row[n] = flash[n]);
            }
            Moved::Out { page, row, lines: mask, rest } => {
                let mut out = *self.row(row);
                if mask != self.lines.all() {
                    let rest = *self.row(rest.expect("the missing lines come from somewhere"));
                    lines_of(!mask).for_each(|n| out[n] = rest[n]);
                }
                assert!(self.on_the_way.insert(page, out).is_none(), "two writes of page {page} at once");
            }
        }
    }

    fn programmed(&mut self, page: u64) {
        let out = self.on_the_way.remove(&page).expect("a page on its way");
        self.flash.insert(page, out);
    }
}

#[derive(Clone, Debug)]
struct Step {
    delay: u64,
    page: u64,
    /// Lines of 64 B, of which there may be fewer.
    lines: u64,
    write: bool,
}

fn step() -> impl Strategy<Value = Step> {
    // Few pages in few sets, so that everything meets; delays around those of FTL, device and bus.
    let delay = prop_oneof![Just(0), 0..200_000u64, 0..20_000_000u64];
    let lines =
        prop_oneof![(0..64).prop_map(|n| 1u64 << n), any::<u64>().prop_map(|m| m | 1), Just(u64::MAX)];
    (delay, 0..40u64, lines, prop::bool::weighted(0.6)).prop_map(|(delay, page, lines, write)| Step {
        delay,
        page,
        lines,
        write,
    })
}

/// Runs the steps and holds every answer against the last write before its read.
fn check(steps: &[Step], device: Vec<u64>, evictions: u32, prefetch: bool, lines: Lines) {
    let mut small = spec();
    small.read_buffer.capacity = config::units::Bytes::from_kib(32);
    small.evictions = evictions;
    small.prefetch = prefetch.then_some(PrefetchSpec { entries: 3, after: 2, pages: 4 });
    let mut rig = Rig::of_lines(&small, lines.bytes());
    rig.engine.set_capacity(40 * PAGE);
    let mut turn = 0;
    rig.device_time = Box::new(move |_| {
        turn += 1;
        device[turn % device.len()]
    });
    let mut delay = 0;
    for step in steps {
        delay += step.delay;
        rig.arrive(delay, page(step.page), step.lines_of(lines), step.write);
    }
    let mut world = World::new(lines);
    let mut last: BTreeMap<u64, Versions> = BTreeMap::new();
    let mut expected: BTreeMap<u32, Versions> = BTreeMap::new();
    loop {
        let done = rig.done.len();
        let Some(arrived) = rig.step() else { break };
        // A write at the device is there when it completes, before anything is made of that.
        for command in rig.done.split_off(done) {
            if command.op == IoOp::Write {
                world.programmed(command.offset / PAGE);
            }
        }
        for moved in std::mem::take(&mut rig.engine.trail) {
            world.take(&moved);
        }
        if let Some(command) = arrived {
            let versions = last.entry(command.page).or_insert(UNWRITTEN);
            if command.write {
                lines_of(command.lines).for_each(|n| versions[n] = command.tag + 1);
            } else {
                expected.insert(command.tag, *versions);
            }
        }
        assert!(rig.engine.checks().iter().all(|check| check.ok), "{:?}", rig.engine.checks());
    }
    let mut tags: Vec<u32> = rig.answers.iter().map(|(_, tag)| *tag).collect();
    tags.sort_unstable();
    let all: Vec<u32> = (0..steps.len() as u32).collect();
    assert_eq!(tags, all, "every request is answered once");
    for (tag, before) in expected {
        let (step, got) = (&steps[tag as usize], world.loaded[&tag]);
        for n in lines_of(step.lines_of(lines)) {
            // Not older than the last write before it; a later one, while it waited, is as good.
            assert!(got[n] >= before[n], "read {tag}, line {n}: {} before {}", got[n], before[n]);
            let stored = got[n] == 0 || {
                let write = &steps[got[n] as usize - 1];
                write.write && write.page == step.page && write.lines_of(lines) >> n & 1 == 1
            };
            assert!(stored, "read {tag}, line {n}: {} is another line's", got[n]);
        }
    }
    assert_eq!(rig.engine.outstanding(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn reads_bring_what_was_written(
        steps in prop::collection::vec(step(), 1..120),
        device in prop::collection::vec(100_000..60_000_000u64, 1..12),
        evictions in 1..4u32,
        prefetch in any::<bool>(),
        line in prop::sample::select(SIZES.to_vec()),
    ) {
        check(&steps, device, evictions, prefetch, Lines::of(line).expect("a size of lines"));
    }

    /// The same bytes come and go at the same times, however many lines they are.
    #[test]
    fn lines_of_all_sizes_move_the_same_bytes(
        steps in prop::collection::vec((0..200_000u64, 0..40u64, 1..256u64, any::<bool>()), 1..60),
    ) {
        let run = |line: u64| {
            let mut rig = Rig::of_lines(&spec(), line);
            let (mut delay, each) = (0, 512 / line);
            for (wait, number, pieces, write) in &steps {
                delay += wait;
                let lines = (0..PAGE / line).filter(|n| pieces >> (n / each) & 1 == 1).fold(0, |lines, n| lines | 1 << n);
                rig.arrive(delay, page(*number), lines, *write);
            }
            (rig.drain(), rig.engine.stats, rig.engine.dram_traffic())
        };
        for line in SIZES {
            prop_assert_eq!(run(line), run(512));
        }
    }
}
