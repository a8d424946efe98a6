//! The framework of programs: slots, launches, barriers, side by side.

use programs::program::{Apps, Array, Code, Emit, Kernel, Program, Slots, Space, WarpAt, census};
use proto::simt::{InstKind, Programs, Tape, WarpStart};

/// Blocks reverse their elements through a barrier: every thread reads one, and writes it only when all have read.
#[derive(Clone)]
struct Reverse {
    space: Space,
    array: Array,
    data: Vec<u32>,
    block: usize,
    launches: u32,
}

#[derive(Default)]
struct Warp {
    at: WarpAt,
    stage: u8,
    held: [u32; 32],
}

impl Reverse {
    fn new(blocks: usize, block: usize) -> Reverse {
        let mut space = Space::default();
        let array = space.array("data", 4, blocks * block);
        Reverse { space, array, data: (0..(blocks * block) as u32).collect(), block, launches: 2 }
    }
}

fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1)
}

impl Code for Reverse {
    type Warp = Warp;
    fn name(&self) -> &'static str {
        "reverse"
    }
    fn space(&self) -> &Space {
        &self.space
    }
    fn launch(&mut self) -> Option<Kernel> {
        self.launches = self.launches.checked_sub(1)?;
        Some(Kernel::over("turn", self.data.len(), self.block as u32, 8))
    }
    fn start(&mut self, at: WarpAt) -> Warp {
        Warp { at, ..Warp::default() }
    }
    fn step(&mut self, warp: &mut Warp, e: &mut Emit) -> bool {
        let (at, block) = (warp.at, self.block);
        e.lanes(at.mask);
        warp.stage += 1;
        match warp.stage {
            1 => true, // nothing to say yet: the framework goes on at once
            2 => {
                e.load(&self.array, 1, [], |lane| at.thread() + lane);
                e.barrier();
                lanes(at.mask).for_each(|lane| warp.held[lane] = self.data[at.thread() + lane]);
                true
            }
            _ => {
                e.block(1);
                let from = at.block as usize * block;
                let place = |lane| from + block - 1 - (at.thread() - from + lane);
                e.store(&self.array, [1], place);
                lanes(at.mask).for_each(|lane| self.data[place(lane)] = warp.held[lane]);
                false
            }
        }
    }
}

#[test]
fn a_barrier_holds_every_warp_of_the_block_and_of_no_other() {
    let mut program = Slots::new(Reverse { launches: 1, ..Reverse::new(40, 72) });
    let counted = census(&mut program);
    let expected: Vec<u32> = (0..40u32).flat_map(|b| (0..72).rev().map(move |i| b * 72 + i)).collect();
    assert_eq!(program.code().data, expected);
    assert_eq!((counted.barriers, counted.uneven_blocks, counted.kernels.len()), (40 * 3, 0, 1));
    assert_eq!((counted.loads.lanes, counted.stores.lanes), (40 * 72, 40 * 72));
    // 72 words of 4 B take 288 B: 32 lanes are 128 B, on one line or two as the block begins at 288 b bytes.
    let lines = |from: u32, n: u32| u64::from((from * 4 + n * 4 - 1) / 128 - from * 4 / 128 + 1);
    let block = |b: u32| lines(b * 72, 32) + lines(b * 72 + 32, 32) + lines(b * 72 + 64, 8);
    assert_eq!(counted.loads.lines, (0..40).map(block).sum::<u64>());
    assert_eq!((counted.touched_pages, counted.written_pages), (3, 3)); // 11,520 B
    assert_eq!(counted.read_ratio(), counted.loads.lines as f64 / (2 * counted.loads.lines) as f64);
}

#[test]
fn twice_reversed_is_as_before() {
    let mut program = Slots::new(Reverse::new(3, 1000));
    census(&mut program);
    assert!(program.code().data.iter().copied().eq(0..3000));
}

#[test]
fn applications_run_side_by_side_in_slots_of_their_own() {
    let programs: Vec<Box<dyn Program>> =
        vec![Box::new(Slots::new(Reverse::new(1, 32))), Box::new(Slots::new(Reverse::new(1, 64)))];
    let mut apps = Apps::new(programs);
    assert_eq!(apps.apps(), 2);
    let (first, second) = (apps.launch(0).unwrap(), apps.launch(1).unwrap());
    assert_eq!((first.number, first.blocks, first.threads), (0, 1, 32));
    assert_eq!((second.number, second.threads), (0, 64));
    apps.start(9, WarpStart { app: 0, block: 0, warp: 0 });
    apps.start(2, WarpStart { app: 1, block: 0, warp: 1 });
    let mut tape = Tape::default();
    assert!(apps.step(9, &mut tape) && apps.step(2, &mut tape));
    assert_eq!(tape.insts.len(), 4);
    assert_eq!(tape.insts[0].kind, InstKind::Load);
    assert_eq!((tape.addresses[0], tape.addresses[32]), (0, 128));
    // The same instruction of two applications stands at two addresses.
    assert_ne!(tape.insts[0].pc, tape.insts[2].pc);
    assert!(tape.insts.iter().all(|inst| inst.pc != 0));
    assert!(!apps.step(9, &mut tape) && !apps.step(2, &mut tape));
    let again = apps.launch(0).unwrap();
    assert_eq!((again.number, apps.launch(0)), (1, None));
    assert_eq!(apps.kernel_name(0, 1), "reverse.turn#1");
    assert_eq!((apps.footprint(0), apps.kernels(0).len()), (4096, 2));
}

#[test]
fn an_unknown_program_is_refused() {
    let unknown = programs::program::open(&["no-such"]).err().expect("no program is called so");
    assert!(unknown.what.contains("`no`"), "{unknown}");
}
