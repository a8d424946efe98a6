//! What is loaded and stored.

use super::*;
use crate::vliw::GROUP;
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
/// steps. In the second, `b` takes the place of the `a` before; in the third, `a` takes that of the changed `b` of the first; and so on. The last step needs the first group of `b` again. What is left of `b`
/// nobody asks for.
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

/// Whatever memory holds: what a step needs is there, as walking through the plan shows, and never more than there is room for; what is loaded has been in a file.
#[test]
fn a_plan_never_lacks_what_a_step_touches() {
    for (name, side, frames) in
        [("2dcon", 700, 20), ("gemm", 256, 7), ("atax", 800, 9), ("fdtd", 300, 12), ("3mm", 256, 9)]
    {
        let mut spec = spec(4);
        spec.memory.size = Bytes::new(frames * GROUP);
        let kernel = shipped(name, side);
        let mut part = Coprocessor::new(&spec).expect("a coprocessor");
        part.add(kernel.clone()).expect("it fits");
        let plan = part.plan(0);
        let program = known(&kernel, &spec);
        let mut sections = Vec::new();
        for microblock in 0..program.microblocks() {
            let [screen] = program.screens(microblock, 1)[..] else { panic!("one screen") };
            let mut own = BTreeSet::new();
            program.touches(&screen, |array, groups, _, _| own.extend(groups.map(|group| (array, group))));
            if own.len() as u64 <= frames {
                sections.push(screen);
            } else {
                program.sections(screen, frames * GROUP, &mut sections);
            }
        }
        let of = |stretch: &Stretch| {
            let groups = stretch.first / GROUP..(stretch.first + stretch.bytes).div_ceil(GROUP);
            groups.map(|group| (usize::from(stretch.array), group as u32)).collect::<Vec<_>>()
        };
        let mut here: BTreeMap<(usize, u32), bool> = BTreeMap::new();
        let mut filed: BTreeSet<(usize, u32)> = BTreeSet::new();
        let mut steps = sections.iter();
        for action in &plan.actions {
            match action {
                Action::Load(stretch) => {
                    for group in of(stretch) {
                        assert!(
                            plan.arrays[group.0].is_given || filed.contains(&group),
                            "{name}: {group:?} was never written"
                        );
                        here.insert(group, false);
                    }
                }
                Action::Store(stretch) => {
                    for group in of(stretch) {
                        // Left, or left over at the end; either way it was here and changed.
                        assert_eq!(here.remove(&group), Some(true), "{name}: {group:?}");
                        filed.insert(group);
                    }
                }
                Action::Work(_) => {
                    let section = steps.next().expect("as many steps as sections");
                    let mut own = BTreeSet::new();
                    program.touches(section, |array, groups, _, writes| {
                        for group in groups {
                            let at = (array, group);
                            let is_old = plan.arrays[array].is_given || filed.contains(&at);
                            assert!(!is_old || here.contains_key(&at), "{name}: {at:?} is not there");
                            *here.entry(at).or_default() |= writes;
                            own.insert(at);
                        }
                    });
                    assert!(own.len() as u64 <= frames, "{name}");
                }
            }
        }
        assert!(steps.next().is_none(), "{name}");
        let left = here.iter().filter(|((array, _), dirty)| **dirty && plan.arrays[*array].is_kept).count();
        assert_eq!(left, 0, "{name}: changed, kept and never stored");
    }
}

/// A search on its data: levels go once, nodes and edges come once.
#[test]
fn a_program_that_is_executed_on_its_data_is_planned_as_a_nest_is() {
    let nodes = 100_000_u32;
    let offsets: Vec<u32> = (0..=nodes).map(|node| 2 * node).collect();
    let edges = (0..2 * nodes).map(|edge| (edge.wrapping_mul(2_654_435_761) >> 8) % nodes).collect();
    let search = nest::executed::Bfs::new(offsets, edges, 0);
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
