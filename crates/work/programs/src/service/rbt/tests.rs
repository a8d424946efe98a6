use super::*;
use crate::service::drive::{chased, drive, small};
use crate::service::requests::loaded;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Checks the rules of a binary search tree and of a red-black tree below a node; its black height. Values go to `all`.
fn rules(tree: &Tree, key: u64, parent: u64, range: (u64, u64), all: &mut BTreeMap<u64, u64>) -> u32 {
    if key == NIL {
        return 1;
    }
    let node = tree.node(key);
    assert!((range.0..range.1).contains(&key) && node.linked && node.parent == parent);
    let [left, right] = node.children;
    assert!(!node.red || node.children.iter().all(|&child| child == NIL || !tree.node(child).red));
    match node.value {
        Some(value) => assert!(all.insert(key, value).is_none()),
        None => assert!(left != NIL && right != NIL, "a routing node has two children"),
    }
    let heights =
        [rules(tree, left, key, (range.0, key), all), rules(tree, right, key, (key + 1, range.1), all)];
    assert_eq!(heights[0], heights[1], "below {key}");
    heights[0] + u32::from(!node.red)
}

fn contents(tree: &Tree) -> BTreeMap<u64, u64> {
    let mut all = BTreeMap::new();
    if tree.root() != NIL {
        assert!(!tree.node(tree.root()).red);
    }
    rules(tree, tree.root(), NIL, (0, u64::MAX), &mut all);
    all
}

/// Every job's outcome is what a map has when the job ends, whatever the others do between its pieces.
fn against_a_map(keys: u64, lookups: u64, slots: u64, jobs: u64) {
    let mut rbt = Rbt::new(&small(NODES - DATA + keys * NODE), lookups);
    let mut map: BTreeMap<u64, u64> = (0..keys).filter(|&key| loaded(key)).map(|key| (key, key)).collect();
    assert_eq!(contents(&rbt.tree), map);
    drive(&mut rbt, 0..jobs, slots, |rbt, number, job, _| {
        let before = match job.want {
            Want::Look => map.get(&job.key).copied(),
            Want::Insert => map.insert(job.key, job.value),
            Want::Delete => map.remove(&job.key),
        };
        assert_eq!(job.found, before);
        if number.is_multiple_of(50) {
            contents(&rbt.tree);
        }
    });
    assert_eq!(contents(&rbt.tree), map);
}

/// A saved tree is taken back. With a byte that is another it is refused, or a tree that keeps the rules.
#[test]
fn a_tree_that_is_loaded_keeps_the_rules() {
    let keys = 300;
    let fresh = || Rbt::new(&small(NODES - DATA + keys * NODE), 20);
    let mut rbt = fresh();
    drive(&mut rbt, 0..400, 3, |_, _, _, _| {});
    let mut saved = Vec::new();
    rbt.tree.save(&mut saved);
    let mut other = fresh();
    assert_eq!(other.tree.load(&mut saved.as_slice(), keys), Some(()));
    assert_eq!(contents(&other.tree), contents(&rbt.tree));
    let (mut refused, mut taken) = (0, 0);
    for at in 0..saved.len() {
        for flip in [1, 0x80] {
            let mut damaged = saved.clone();
            damaged[at] ^= flip;
            let mut other = fresh();
            match other.tree.load(&mut damaged.as_slice(), keys) {
                Some(()) => {
                    contents(&other.tree);
                    taken += 1;
                }
                None => refused += 1,
            }
        }
    }
    // Values, and versions, may be any.
    assert!(refused > taken && taken > 0, "{refused} refused, {taken} taken");
}

#[test]
fn it_does_what_a_map_does() {
    against_a_map(1, 20, 3, 200);
    against_a_map(1000, 50, 1, 3000);
    against_a_map(3000, 90, 8, 3000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn small_trees_under_many_changes_keep_their_rules(keys in 2u64..80, slots in 1u64..40) {
        against_a_map(keys, 10, slots, 3000);
    }
}

#[test]
fn trees_of_every_size_are_loaded_by_the_rules() {
    for keys in 1..200 {
        let map: BTreeMap<u64, u64> = (0..keys).filter(|&key| loaded(key)).map(|key| (key, key)).collect();
        assert_eq!(contents(&Tree::new(keys)), map);
    }
}

#[test]
fn a_search_of_a_tebibyte_chases_its_path() {
    let mut rbt = Rbt::new(&small(1 << 40), 90);
    let (mut longest, mut visits) = (0, 0);
    drive(&mut rbt, 0..1000, 4, |rbt, _, _, history| {
        let path = chased(history, NODES..rbt.end(), NODE);
        longest = longest.max(path.len());
        visits += path.len();
    });
    // 2^34 keys less a sixteenth: 34 levels, the mean depth one less; a restart adds to it.
    assert!((34..70).contains(&longest), "{longest}");
    assert!((30_000..36_000).contains(&visits), "{visits}");
    assert!(rbt.tree.overlay() < 1500 && rbt.tree.overlay() > 50, "{}", rbt.tree.overlay());
}
