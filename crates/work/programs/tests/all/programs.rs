//! Programs from outside: their list, their slots and launches side by side, and refused files and sizes.

use programs::{
    FILES,
    kernels::{self, OnData, Room, fits},
    program::{Apps, Array, Code, Emit, Kernel, Program, Slots, Space, WarpAt, census, entries, open},
};
use proto::simt::{InstKind, Programs, Tape, WarpStart};
use requests::trace::{TraceOptions, inspect_read};
use std::collections::BTreeSet;

/// Program whose blocks reverse their elements through a barrier: every thread reads one, and writes it only when all
/// have read.
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
    // The same instruction of two applications has two addresses.
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

// Files of programs, as distinguished by a reader of request traces.

#[test]
fn what_a_program_reads_is_told_apart_from_a_trace_of_requests() {
    let options = TraceOptions { others: FILES, ..TraceOptions::default() };
    for (content, what, help) in [
        (&b"-kernel name = _Z6vecAdd\n-kernel id = 1\n"[..], "a trace of a GPU", "--workload"),
        (b"l 0x1fffff50 1\ns 0x1fffff58 0\n", "a recorded program of a CPU", "--workload"),
        (b"7 read(3, \"\", 4096) = 0\n", "a log of strace", "--workload strace:file=t"),
        (b"\x08\x0a\x3a\x04\x0a\x02\x0a\x00", "an ONNX model", "--workload onnx:file=t"),
    ] {
        let error = inspect_read("t", content, &options).unwrap_err().to_string();
        assert!(error.contains(what) && error.contains(help), "{what}: {error}");
    }
}

// Programs on data that are too large for an accelerator: refused by their sizes, before their data are made.

fn on_data(text: &str) -> std::sync::Arc<OnData> {
    match &kernels::open(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))[0].program {
        kernels::Program::Executed(on_data) => on_data.clone(),
        kernels::Program::Nest(_) => panic!("{text} is a nest"),
    }
}

/// Page groups that the largest piece touches.
struct Touched {
    group: u64,
    piece: BTreeSet<(usize, u64)>,
    most: u64,
}

impl Touched {
    fn by(program: &OnData, group: u64) -> u64 {
        let mut touched = Touched { group, piece: BTreeSet::new(), most: 0 };
        program.program().execute(&mut touched);
        nest::executed::Watch::piece(&mut touched);
        touched.most
    }
}

impl nest::executed::Watch for Touched {
    fn microblock(&mut self, _: bool) {}
    fn piece(&mut self) {
        self.most = self.most.max(self.piece.len() as u64);
        self.piece.clear();
    }
    fn body(&mut self, _: usize, _: u64, _: u64) {}
    fn access(&mut self, array: usize, byte: u64, _: bool) {
        self.piece.insert((array, byte / self.group));
    }
}

/// Every program on its data: if it is refused before its data are made, it does have a piece that is too large, and
/// if it is too large by more than a share, it is refused. Groups are small, so that small data have many. For a
/// text, only the records of the fullest bucket are counted beforehand.
#[test]
fn programs_that_are_too_large_are_refused_by_their_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let records = folder.path().join("r.txt");
    let record = format!("{:27} 30.0  90.0{:10}\n", "1950  1  1 12    0 STORM", "");
    assert_eq!(record.len(), 49);
    std::fs::write(&records, record.repeat(9_000)).expect("a file");
    let file = format!("nn:file={}", records.display());
    let all = [
        ("bfs:nodes=60000", 256, 0.95),
        ("bfs:nodes=100000,seed=5,source=77", 1024, 0.95),
        ("bfs:nodes=40000,degree=8", 128, 0.85),
        ("bfs:nodes=30000,degree=20,seed=3", 128, 0.5),
        ("nn:records=20000", 1024, 0.9),
        ("nn:records=4100", 4096, 0.9),
        (file.as_str(), 512, 0.9),
        ("wc:bytes=300kB,words=40", 256, 0.25),
        ("wc:bytes=500kB,words=3,seed=4", 1024, 0.25),
    ];
    for (text, group, share) in all {
        let largest = Touched::by(&on_data(text), group);
        let fits = |groups: u64| fits(text, Room { bytes: groups * group, group });
        fits(largest).unwrap_or_else(|told| panic!("{text} has {largest} groups: {}", told.what));
        assert!(fits(0).is_err(), "{text} is never refused");
        let (mut least, mut above) = (0, largest);
        while above - least > 1 {
            let middle = least.midpoint(above);
            if fits(middle).is_err() { least = middle } else { above = middle }
        }
        assert!(least as f64 >= share * (largest - 1) as f64, "{text}: from {least} on, of {largest}");
    }
    // No graph of 16,000,000 nodes is made: 6 B per node are 1,464 groups of 64 KiB. The sections of FlashAbacus have
    // 1 GiB / 12 = 85 MiB.
    let room = |mib: u64| Room { bytes: mib << 20, group: 64 << 10 };
    let told = fits("bfs:nodes=16000000", room(85)).expect_err("too many");
    assert!(told.what.contains("a piece of `bfs` touches more than 85MiB"), "{}", told.what);
    fits("bfs:nodes=14000000", room(85)).expect("it may fit");
    assert!(fits("bfs:nodes=1", room(85)).expect_err("a value").what.contains("`1`"));
}

// The list of programs: names, parameters, programs side by side.

#[test]
fn names_are_distinct_and_say_what_they_are() {
    let names: Vec<&str> = entries().map(|entry| entry.name).collect();
    for (n, name) in names.iter().enumerate() {
        assert!(!names[..n].contains(name), "{name} twice");
        // A dash or a colon would be read as a separator of names.
        assert!(name.bytes().all(|b| b.is_ascii_alphanumeric()), "{name}");
    }
    for entry in entries() {
        assert!(!entry.what.is_empty() && !entry.suite.is_empty(), "{}", entry.name);
        for (n, key) in entry.keys.iter().enumerate() {
            assert!(!key.what.is_empty() && !entry.keys[..n].contains(key), "{}: {}", entry.name, key.name);
        }
    }
}

#[test]
fn the_graph_programs_of_table_two_are_there() {
    // ZnG, Table II: read ratio and kernels.
    let table = [
        ("betw", 0.98, 11),
        ("bfs1", 0.95, 7),
        ("bfs2", 0.99, 9),
        ("bfs3", 0.88, 10),
        ("bfs4", 0.97, 12),
        ("bfs5", 0.99, 6),
        ("bfs6", 0.97, 7),
        ("gc1", 0.98, 8),
        ("gc2", 0.99, 10),
        ("sssp3", 0.98, 8),
        ("deg", 1.0, 1),
        ("pr", 0.99, 53),
    ];
    for (name, read_ratio, kernels) in table {
        let entry = entries().find(|entry| entry.name == name).expect(name);
        let row = entry.table.expect(name);
        assert_eq!((row.read_ratio, row.kernels), (read_ratio, kernels), "{name}");
    }
}

#[test]
fn programs_side_by_side_are_those_named() {
    let apps = Apps::new(open(&["deg:scale=4", "bfs1:scale=4,seed=2"]).unwrap());
    assert_eq!((apps.program(0).name(), apps.program(1).name()), ("deg", "bfs1"));
    let wrong = |text: &str| open(&[text]).err().expect(text).to_string();
    assert!(wrong("bfs9").contains("did you mean `bfs"), "{}", wrong("bfs9"));
    assert!(wrong("deg-betv").contains("did you mean `betw`?"), "{}", wrong("deg-betv"));
    assert!(wrong("deg:scal=4").contains("did you mean `scale`?"));
    assert!(wrong("deg:scale=99").contains("a whole number from 1 to 24"));
    assert!(wrong("deg:scale=4,mirrored=maybe").contains("yes, no"));
    assert!(wrong("bfs1:scale=4,root=16").contains("from 0 to 15"));
    assert!(wrong("deg:graph=no-such.txt").contains("no-such.txt"));
    assert!(wrong("betw:scale=4,sources=17").contains("from 1 to 16"));
}

#[test]
fn a_graph_may_come_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("triangle.txt");
    std::fs::write(&path, "1 2\n2 3\n3 1\n").unwrap();
    let text = format!("deg:graph={},mirrored=no", path.display());
    let counted = census(open(&[text]).unwrap()[0].as_mut());
    // One atomic addition per edge.
    assert_eq!((counted.atomics.lanes, counted.kernels.len()), (3, 1));
    let text = format!("deg:graph={}", path.display());
    assert_eq!(census(open(&[text]).unwrap()[0].as_mut()).atomics.lanes, 6);
}

#[test]
fn bounds_are_kept() {
    let kernels = |text: &str| census(open(&[text]).unwrap()[0].as_mut()).kernels.len();
    assert_eq!(kernels("pr:scale=5,iterations=3"), 6);
    assert_eq!(kernels("gc1:scale=8,rounds=2"), 2);
    assert!(kernels("gc1:scale=8,rounds=0") > 8);
    let of_one = kernels("betw:scale=6,sources=1");
    assert!(kernels("betw:scale=6,sources=3") >= of_one + 6);
}

/// The default cost and size of every program are in the list's documentation; this one is small enough to run here.
#[test]
fn degree_centrality_only_reads_as_table_two_says() {
    let counted = census(open(&["deg:scale=10"]).unwrap()[0].as_mut());
    assert_eq!((counted.read_ratio(), counted.kernels.len(), counted.stores.lines), (1.0, 1, 0));
    assert!(counted.load_ratio() < 0.9, "its atomics write");
    assert_eq!(counted.touched(), counted.footprint);
}
