//! Loads and stores of plans.

use super::super::Places;
use super::*;
use crate::vliw::GROUP;
use crate::vliw::coprocessor::plan::deal;
use crate::vliw::testing::columns;
use proto::offload::Stretch;
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of an array's groups.
fn bytes(groups: &BTreeSet<u64>, array: u64) -> u64 {
    groups.iter().map(|group| GROUP.min(array - group * GROUP)).sum()
}

/// Bytes that a plan loads and stores, by array.
fn moved(plan: &Plan) -> Vec<(u64, u64)> {
    let mut found = vec![(0, 0); plan.arrays.len()];
    for action in &plan.actions {
        match action {
            Action::Load(stretch) => found[usize::from(stretch.array)].0 += stretch.bytes,
            Action::Store(stretch) => found[usize::from(stretch.array)].1 += stretch.bytes,
            Action::Work(_) => {}
        }
    }
    found
}

/// If memory holds all, each group that a given array has, and that any access touches, comes once; each that is written, of an array that is kept, goes once; a file's last byte is the array's.
#[test]
fn what_fits_comes_once_and_goes_once() {
    for (name, _) in nest::programs().iter().filter(|(name, _)| !["nw", "path"].contains(name)) {
        let kernel = shipped(name, 140);
        let mut touched = vec![(BTreeSet::new(), BTreeSet::new()); kernel.arrays().len()];
        for microblock in 0..kernel.microblocks().len() {
            kernel.accesses(&nest::Piece::whole(microblock), &mut |access| {
                let of = &mut touched[access.array];
                of.0.insert(access.byte / GROUP);
                if access.write {
                    of.1.insert(access.byte / GROUP);
                }
            });
        }
        let mut part = Coprocessor::new(&spec(8)).expect("a coprocessor");
        let number = part.add(kernel.clone()).expect("it fits");
        let plan = part.plan(number);
        assert_eq!(
            plan.actions.iter().filter(|one| matches!(one, Action::Work(_))).count(),
            kernel.microblocks().len(),
            "{name}"
        );
        for (at, (loads, stores)) in moved(plan).into_iter().enumerate() {
            let array = &plan.arrays[at];
            let wanted = |is: bool, groups| if is { bytes(groups, array.bytes) } else { 0 };
            assert_eq!(loads, wanted(array.is_given, &touched[at].0), "{name}, {}", array.name);
            assert_eq!(stores, wanted(array.is_kept, &touched[at].1), "{name}, {}", array.name);
        }
        // The same, as the coprocessor counts orders beside its plans.
        let (part, _) = run(&spec(8), &[kernel]);
        let Moved { sent, loads, received, stores } = part.moved();
        assert_eq!((sent, received), (loads, stores), "{name}");
        assert_eq!(sent, moved(part.plan(0)).iter().map(|one| one.0).sum::<u64>(), "{name}");
    }
}

/// Room for three groups. `a` and `b` have three groups of 16,384 elements and one of 100, `c` has one. A step has a group of `a` and one of `b`, since three groups of them are less than two of each: four
/// steps. In the second, `b` takes the place of the `a` before; in the third, `a` takes that of the changed `b` of the first; and so on. The last step needs the first group of `b` again. The rest of `b`
/// is never requested.
#[test]
fn what_does_not_fit_leaves_in_the_order_of_its_last_use() {
    let text = r#"
name = "spill"
[sizes]
n = 49252
m = 16384
[arrays.a]
shape = ["n"]
element = "f32"
section = "input"
[arrays.b]
shape = ["n"]
element = "f32"
section = "scratch"
[arrays.c]
shape = ["m"]
element = "f32"
section = "output"
[[microblocks]]
split = "i"
code = "for i in 0..n { b[i] = a[i]; }"
[[microblocks]]
split = "i"
code = "for i in 0..m { c[i] = b[i]; }"
"#;
    let mut spec = spec(2);
    spec.memory.size = Bytes::from_kib(192);
    let mut part = Coprocessor::new(&spec).expect("a coprocessor");
    let number = part.add(Kernel::read(text, "spill.toml", &[]).expect("a kernel")).expect("it fits");
    let group = |array: u16, group: u64| Stretch { array, first: group * GROUP, bytes: GROUP };
    let plan = part.plan(number);
    let names: Vec<&str> = plan.arrays.iter().map(|array| array.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let wanted = [
        Action::Load(group(0, 0)),
        Action::Work(0),
        Action::Load(group(0, 1)),
        Action::Work(1),
        Action::Store(group(1, 0)),
        Action::Load(group(0, 2)),
        Action::Work(2),
        Action::Store(group(1, 1)),
        Action::Load(Stretch { bytes: 400, ..group(0, 3) }),
        Action::Work(3),
        Action::Store(group(1, 2)),
        Action::Load(group(1, 0)),
        Action::Work(4),
        Action::Store(group(2, 0)),
    ];
    assert_eq!(plan.actions, wanted);
    // In a larger memory the groups of an array come as one stretch, and only the output goes.
    spec.memory.size = Bytes::from_kib(1 << 10);
    let mut part = Coprocessor::new(&spec).expect("a coprocessor");
    part.add(Kernel::read(text, "spill.toml", &[]).expect("a kernel")).expect("it fits");
    let whole = Action::Load(Stretch { array: 0, first: 0, bytes: 4 * 49_252 });
    let wanted = [whole, Action::Work(0), Action::Work(1), Action::Store(group(2, 0))];
    assert_eq!(part.plan(0).actions, wanted);
}

/// The blocked product of a large and a small memory.
fn blocked() -> Kernel {
    with_sizes("syr2k", &[("n", 512), ("m", 512), ("t", 16), ("u", 16)])
}

fn with_frames(frames: u64, cores: u16) -> CoprocessorSpec {
    let mut spec = spec(cores);
    spec.memory.size = Bytes::new(frames * GROUP);
    spec
}

/// Whatever memory holds: what leaves and what comes before a step is what a plain list of groups says, in the order of their last use; and with two buffers nothing of that is something that the step
/// before works on.
#[test]
fn a_plan_agrees_with_a_list() {
    let kernels = [("2dcon", 400, 8), ("gemm", 192, 5), ("atax", 512, 6), ("fdtd", 200, 5)];
    let kernels = kernels.map(|(name, side, frames)| (shipped(name, side), frames));
    let kernels = kernels.into_iter().chain([(blocked(), 30)]);
    for ((kernel, frames), buffers) in kernels.flat_map(|one| [(one.clone(), 1), (one, 2)]) {
        let of_a_step = frames;
        let frames = of_a_step * u64::from(buffers);
        let (name, mut spec) = (kernel.name().to_owned(), with_frames(frames, 4));
        spec.buffers = buffers;
        let mut part = Coprocessor::new(&spec).expect("a coprocessor");
        part.add(kernel.clone()).expect("it fits");
        let plan = part.plan(0);
        let program = known(&kernel, &spec);
        let places = Places::of(&program.arrays);
        let mut actions = plan.actions.iter();
        let (mut order, mut dirty, mut filed) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut before = BTreeSet::new();
        assert_eq!(plan.ahead, buffers > 1);
        let of = |stretch: &Stretch| {
            let groups = stretch.first / GROUP..(stretch.first + stretch.bytes).div_ceil(GROUP);
            groups.map(|group| (usize::from(stretch.array), group as u32)).collect::<Vec<_>>()
        };
        for parts in (0..program.microblocks())
            .flat_map(|at| deal(&program, at, &spec, &places).expect("few sections"))
        {
            let mut needs = BTreeMap::new();
            for part in &parts {
                program.touches(part, |array, groups, _, writes| {
                    groups.for_each(|group| *needs.entry((array, group)).or_insert(false) |= writes);
                });
            }
            assert!(needs.len() as u64 <= of_a_step, "{name}");
            let (here, absent): (Vec<_>, Vec<_>) =
                needs.keys().copied().partition(|group| order.contains(group));
            order.retain(|group| !needs.contains_key(group));
            order.extend(here);
            let (mut stores, mut loads) = (BTreeSet::new(), Vec::new());
            for group in absent {
                if order.len() as u64 == frames {
                    let gone = order.remove(0);
                    if dirty.remove(&gone) {
                        stores.insert(gone);
                        filed.insert(gone);
                    }
                }
                order.push(group);
                if plan.arrays[group.0].is_given || filed.contains(&group) {
                    loads.push(group);
                }
            }
            dirty.extend(needs.iter().filter(|(_, writes)| **writes).map(|(group, _)| *group));
            let (mut stored, mut loaded) = (Vec::new(), Vec::new());
            for action in actions.by_ref() {
                match action {
                    Action::Store(stretch) => stored.extend(of(stretch)),
                    Action::Load(stretch) => loaded.extend(of(stretch)),
                    Action::Work(_) => break,
                }
            }
            let is_apart = stored.iter().chain(&loaded).all(|group| !before.contains(group));
            assert!(buffers == 1 || is_apart, "{name}");
            before = needs.keys().copied().collect();
            assert_eq!((stored, loaded), (stores.into_iter().collect(), loads), "{name}");
        }
        let left: Vec<_> = actions
            .flat_map(|action| match action {
                Action::Store(stretch) => of(stretch),
                other => panic!("{name}: {other:?} behind the last step"),
            })
            .collect();
        let kept: Vec<_> = dirty.into_iter().filter(|(array, _)| plan.arrays[*array].is_kept).collect();
        assert_eq!(left, kept, "{name}");
    }
}

/// One iteration of the split loop goes through both matrices, 16 groups each, and memory has 30: as sections as large as memory all of it would be a single core's. Four cores have a quarter of the loop each
/// instead, in as many steps, and all bodies are executed once. A step has at most four times the 7 groups of a core, and what all read at the same time comes once.
#[test]
fn a_loop_whose_iterations_are_larger_than_memory_is_shared_out_first() {
    let (kernel, spec) = (blocked(), with_frames(30, 4));
    let program = known(&kernel, &spec);
    let places = Places::of(&program.arrays);
    let steps = deal(&program, 0, &spec, &places).expect("few sections");
    assert!(steps.len() > 8 && steps.iter().all(|parts| parts.len() == 4));
    let mut all = nest::Counts::default();
    for part in steps.iter().flatten() {
        let Part::Nested(piece) = part else { panic!("a part of a nest") };
        all += kernel.counts(piece);
    }
    let whole = kernel.counts(&nest::Piece::whole(0));
    assert_eq!((all.loads, all.stores, all.multiplies), (whole.loads, whole.stores, whole.multiplies));
    let busy = run(&spec, &[kernel]).0.stats.busy;
    let (least, most) = (busy.iter().min().expect("cores"), busy.iter().max().expect("cores"));
    assert!(most.ps() as f64 / least.ps() as f64 <= 1.02, "{busy:?}");
    // With room for all of it there is one step.
    assert_eq!(deal(&program, 0, &with_frames(48, 4), &places).expect("few sections").len(), 1);
}

/// A search on its data: levels go once, nodes and edges come once.
#[test]
fn a_program_that_is_executed_on_its_data_is_planned_as_a_nest_is() {
    let nodes = 100_000_u32;
    let offsets: Vec<u32> = (0..=nodes).map(|node| 2 * node).collect();
    let edges = (0..2 * nodes).map(|edge| (edge.wrapping_mul(2_654_435_761) >> 8) % nodes).collect();
    let search: Arc<dyn Executed> = Arc::new(nest::executed::Bfs::new(offsets, edges, 0));
    let mut part = Coprocessor::new(&spec(4)).expect("a coprocessor");
    let number = part.add_executed(&search).expect("it fits");
    for ((loads, stores), array) in moved(part.plan(number)).into_iter().zip(&part.plan(number).arrays) {
        let wanted = |is: bool| if is { array.bytes } else { 0 };
        assert_eq!((loads, stores), (wanted(array.is_given), wanted(array.is_kept)), "{}", array.name);
    }
    let works = orders(part.plan(number));
    one_after_another(&mut part, works);
    assert_eq!(part.stats.short, 0);
    // The first microblock is serial, the others are split: all cores have had some of them.
    assert!(part.stats.busy.iter().all(|busy| *busy > Time::ZERO) && part.stats.busy[0] > part.stats.busy[1]);
    let mut table = spec(4);
    table.work = AcceleratorWork::table;
    let mut part = Coprocessor::new(&table).expect("a coprocessor");
    assert_eq!(part.add_executed(&search).expect_err("no table").key, "work");
}

/// Memory of 30 page groups does not hold a column of 64: a product has 2^20 elements, each of which would be three steps.
#[test]
fn a_nest_that_falls_to_pieces_is_refused() {
    let spec = with_frames(30, 8);
    let mut part = Coprocessor::new(&spec).expect("a coprocessor");
    let fault = format!("{:?}", part.add(columns()).expect_err("too many sections"));
    assert!(fault.contains("`columns` needs more than 262144 sections"), "{fault}");
}
