//! Nests on a GPU, lane by lane, against their sequential execution, and counts against formulas.

use crate::kernels::{self, Program as Offloaded};
use crate::program::{Allocation, Census, Program, WarpAt, census, open};
use nest::{Access, Kernel, Piece};
use proto::simt::{InstKind, Tape};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of reads and writes of each address.
type Accesses = BTreeMap<(u64, bool), u64>;

fn program(text: &str) -> Box<dyn Program> {
    let mut programs = open(&[text]).unwrap_or_else(|fault| panic!("{fault}"));
    assert_eq!(programs.len(), 1);
    programs.pop().expect("a program")
}

/// Returns the nest of a text.
fn nest_of(text: &str) -> Kernel {
    let mut applications = kernels::open(text).unwrap_or_else(|fault| panic!("{fault}"));
    match applications.pop().map(|one| one.program) {
        Some(Offloaded::Nest(kernel)) => kernel,
        _ => panic!("{text} is not a nest"),
    }
}

/// Executes all kernels of a program, one after another, each warp alone.
fn executed(program: &mut dyn Program) -> Vec<Accesses> {
    let (mut all, mut tape) = (Vec::new(), Tape::default());
    while let Some(kernel) = program.launch() {
        let mut seen = Accesses::new();
        for block in 0..kernel.blocks {
            for warp in 0..kernel.threads.div_ceil(32) {
                program.start(0, WarpAt::new(block, warp, kernel.threads));
                loop {
                    tape.clear();
                    let more = program.step(0, 0, &mut tape);
                    for inst in &tape.insts {
                        if !matches!(inst.kind, InstKind::Load | InstKind::Store) {
                            continue;
                        }
                        let from = inst.addresses as usize;
                        for address in &tape.addresses[from..from + inst.mask.count_ones() as usize] {
                            *seen.entry((*address, inst.kind == InstKind::Store)).or_default() += 1;
                        }
                    }
                    if !more {
                        break;
                    }
                }
            }
        }
        all.push(seen);
    }
    all
}

/// Returns a name with small sizes, all different, and blocks of 4 and 3 rows.
fn small(name: &str) -> String {
    let size = |(at, (size, _)): (usize, &(String, i64))| match size.as_str() {
        "t" | "tj" => format!("{size}=4"),
        "u" | "ti" => format!("{size}=3"),
        _ => format!("{size}={}", 33 + 4 * at),
    };
    let sizes: Vec<String> = nest_of(name).sizes().iter().enumerate().map(size).collect();
    format!("{name}:{}", sizes.join(","))
}

#[test]
fn lanes_together_touch_what_a_sequential_execution_does() {
    for (name, _) in nest::programs() {
        let text = small(name);
        let nest = nest_of(&text);
        for block in ["", ",block=64"] {
            let mut program = program(&format!("{text}{block}"));
            let bases: Vec<u64> = program.space().allocations().iter().map(|one| one.base).collect();
            let kernels = executed(program.as_mut());
            assert_eq!(kernels.len(), nest.microblocks().len());
            for (at, seen) in kernels.into_iter().enumerate() {
                let mut alone = Accesses::new();
                nest.accesses(&Piece::whole(at), &mut |Access { array, byte, write, .. }| {
                    *alone.entry((bases[array] + byte, write)).or_default() += 1;
                });
                assert!(seen == alone, "{text}{block}, microblock {at}");
            }
        }
    }
}

fn counted(text: &str) -> Census {
    census(program(text).as_mut())
}

/// One row per thread, then one column per thread: each has 4 instructions for its number and 2 for the comparison,
/// and one at its end. A row: zero, then n times loads of A, x and tmp, a store, a multiplication and an addition, an
/// address, and three of the loop. A column: the same, with y in the loop.
#[test]
fn atax_counts_what_its_nest_counts() {
    let (m, n) = (70, 90);
    let census = counted("atax:m=70,n=90");
    let shapes: Vec<_> = census.kernels.iter().map(|kernel| (kernel.blocks, kernel.threads)).collect();
    assert_eq!(shapes, [(1, 70), (1, 90)]);
    assert_eq!((census.loads.lanes, census.stores.lanes), (2 * 3 * m * n, m + m * n + n + n * m));
    assert_eq!(census.loads.bytes, 4 * census.loads.lanes);
    // In the second kernel, the loop over rows is executed by each thread; the loop over columns is distributed to
    // threads.
    let own = 2 * m * n * (1 + 2) + 2 * 3 * m * n;
    assert_eq!(census.thread_arithmetic, 7 * (m + n) + own);
}

/// A column of three rows per thread: tiles of 32 columns, eight blocks of rows per block, or two. Threads beyond the
/// matrix only end.
#[test]
fn gemm_has_a_thread_for_each_column_of_a_block_of_rows() {
    for (block, blocks, threads) in [("", 2 * 2, 256), (",block=64", 2 * 6, 64)] {
        let census = counted(&format!("gemm:ni=35,nj=64,nk=20,t=7,u=3{block}"));
        assert_eq!((census.kernels[0].blocks, census.kernels[0].threads), (blocks, threads));
        let elements = 35 * 64;
        assert_eq!(census.loads.lanes, elements * (1 + 3 * 20));
        assert_eq!(census.stores.lanes, elements * (1 + 20));
        // 12 blocks of rows, the last of two, three of the contraction: loops over rows (twice), over blocks, over the contraction.
        let loops = 35 * 64 + 12 * 64 * 3 + 35 * 64 * 3 + 35 * 64 * 20;
        let values = elements * (1 + 3 * 20) + elements * (1 + 3 * 20);
        let numbers = u64::from(blocks * threads) * (2 * 4 + 2 * 2 + 1);
        assert_eq!(census.thread_arithmetic, values + 3 * loops + numbers);
    }
}

/// A division is its reciprocal and eight more, a root the inverse root and six.
#[test]
fn divisions_and_roots_are_several_instructions() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    let own = |value: &str| {
        let text = format!(
            "name = \"own\"\n[sizes]\nn = 40\n[arrays.y]\nshape = [\"n\"]\nelement = \"f64\"\nsection = \"inout\"\n\
             [[microblocks]]\ncode = \"for i in 0..n {{ y[i] = {value}; }}\"\n"
        );
        std::fs::write(&file, text).expect("a file");
        counted(&format!("nest:file={}", file.display()))
    };
    let copy = own("y[i]");
    assert_eq!((copy.loads.bytes, copy.stores.bytes, copy.thread_arithmetic), (320, 320, 40 * 7));
    for (value, more) in [("y[i] / 3", 9), ("sqrt(y[i])", 7), ("-y[i]", 1), ("y[i] < 2 ? y[i] : 1", 2)] {
        assert_eq!(own(value).thread_arithmetic, 40 * (7 + more), "{value}");
    }
    // Forty sums: more static instructions than a basic block has.
    let long = own(&["y[i]"; 41].join(" + "));
    assert_eq!((long.thread_arithmetic, long.loads.lanes), (40 * (7 + 40), 40 * 41));
}

#[test]
fn instances_and_other_programs_run_side_by_side() {
    assert_eq!(open(&["atax:m=64,n=64,instances=3"]).expect("three").len(), 3);
    let both = open(&["path-fast-gemm"]).err().expect("no such program");
    assert!(both.what.contains("`fast`"), "{}", both.what);
    let both = open(&["gaus-gemm"]).expect("two programs");
    assert_eq!(both.iter().map(|one| one.name()).collect::<Vec<_>>(), ["gaus", "gemm"]);
    assert_eq!(open(&["mx1"]).expect("a mix").len(), 24);
}

#[test]
fn what_no_gpu_runs_is_refused() {
    for (text, said) in [
        ("bfs:nodes=100", "bfs1"),
        ("atax:block=33", "a multiple of 32 up to 1024"),
        ("atax:block=0", "a multiple of 32 up to 1024"),
        ("path:rows=2,columns=549755813000,block=32", "blocks"),
    ] {
        let refused = open(&[text]).err().unwrap_or_else(|| panic!("{text} is taken"));
        assert!(refused.to_string().contains(said), "{refused}");
    }
}

/// Addresses that are read and written, and total counts.
#[derive(Default)]
struct Touched {
    places: [BTreeSet<u64>; 2],
    times: [i64; 2],
}

impl Touched {
    fn add(&mut self, address: u64, write: bool, times: u64) {
        self.places[usize::from(write)].insert(address);
        self.times[usize::from(write)] += times as i64;
    }
}

/// Returns how many more loads and stores the nest has than the GPU program, which touches the same data.
fn more(gpu: &str, text: &str) -> [i64; 2] {
    let mut program = program(gpu);
    let mut applications = kernels::of_programs(text).unwrap_or_else(|fault| panic!("{fault}"));
    let Some(Offloaded::Nest(kernel)) = applications.pop().map(|one| one.program) else { panic!("a nest") };
    let allocations = program.space().allocations().to_vec();
    assert_eq!(kernel.arrays().len(), allocations.len(), "{gpu}");
    let base = |array: &nest::Array| {
        let same = |one: &&Allocation| one.name == array.name && one.bytes == array.bytes();
        allocations.iter().find(same).unwrap_or_else(|| panic!("{gpu} has no {}", array.name)).base
    };
    let bases: Vec<u64> = kernel.arrays().iter().map(base).collect();
    let (mut own, mut of_gpu) = (Touched::default(), Touched::default());
    for at in 0..kernel.microblocks().len() {
        kernel.accesses(&Piece::whole(at), &mut |one| own.add(bases[one.array] + one.byte, one.write, 1));
    }
    for ((address, write), times) in executed(program.as_mut()).into_iter().flatten() {
        of_gpu.add(address, write, times);
    }
    assert!(own.places[1] == of_gpu.places[1], "{gpu}: stores");
    assert!(own.places[0].is_superset(&of_gpu.places[0]), "{gpu}: loads");
    // Additional reads of the nest are those of its sums.
    assert!(
        own.places[0].difference(&of_gpu.places[0]).all(|sum| own.places[1].contains(sum)),
        "{gpu}: loads"
    );
    [0, 1].map(|n| own.times[n] - of_gpu.times[n])
}

/// A GPU program keeps a sum in a register, its nest in memory: this is their only difference.
#[test]
fn programs_of_a_gpu_and_their_nests_touch_the_same() {
    assert_eq!(more("gaus:n=37,pivots=5", "gaus:n=37,pivots=5"), [0, 0]);
    assert_eq!(more("FDT:n=34,launches=6", "FDT:n=34,steps=2"), [0, 0]);
    let n = 35;
    let (mut loads, mut stores) = (0, 0);
    for behind in [n - 1, n - 2, n - 3] {
        // The norm: zeroed, its root stored; each product names its factor twice, and the sum. The projections: their sums.
        loads += 2 * n + 1 + n * behind;
        stores += 1 + n;
    }
    assert_eq!(more("gram:n=35,columns=3", "gram:n=35,columns=3"), [loads, stores]);
}

#[test]
fn what_is_no_nest_is_told_with_what_is() {
    let told = kernels::of_programs("betw:scale=10").expect_err("a graph").to_string();
    assert!(told.contains("gaus, FDT, gram"), "{told}");
    assert_eq!(kernels::of_programs("gaus-atax-gram").expect("three").len(), 3);
    assert!(kernels::of_programs("gaus:pivot=3").expect_err("no such size").to_string().contains("pivots"));
}
