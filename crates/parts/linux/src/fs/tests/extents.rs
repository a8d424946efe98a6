//! The tree of extents against a map of pages.

use crate::fs::extents::{Change, Extent, ExtentTree};
use engine::Rng;
use std::collections::{BTreeMap, BTreeSet};

fn extent(page: u64, pages: u64, block: u64) -> Extent {
    Extent { page, pages, block, unwritten: false }
}

/// Ends a change; what metadata it allocates are blocks counted from `next`.
fn settle(tree: &mut ExtentTree, next: &mut u64) -> Vec<Change> {
    let mut changes = Vec::new();
    let allocate = |_| {
        *next += 1;
        Some(*next)
    };
    tree.settle(allocate, |change| changes.push(change));
    changes
}

/// `ext4_ext_space_root` and `ext4_ext_space_block`: four records in the inode, 340 in a leaf, 340 leaves below an inner node, and
/// a leaf that is full is left full by an append.
#[test]
fn a_tree_grows_by_levels() {
    let (mut tree, mut next) = (ExtentTree::default(), 0);
    let mut seen = Vec::new();
    for at in 0..1361 {
        tree.set(extent(2 * at, 1, 10_000 + 2 * at));
        settle(&mut tree, &mut next);
        seen.push((tree.depth(), tree.blocks().count()));
    }
    assert_eq!(seen[3], (0, 0));
    assert_eq!((seen[4], seen[339]), ((1, 1), (1, 1)));
    assert_eq!(seen[340], (1, 2));
    assert_eq!(seen[1359], (1, 4));
    // Five leaves do not fit into the inode.
    assert_eq!(seen[1360], (2, 6));
    // What is cut off frees its blocks; four records go back into the inode (`ext4_ext_try_to_merge_up`).
    tree.remove(8, u64::MAX, |_| {});
    let freed =
        settle(&mut tree, &mut next).iter().filter(|change| matches!(change, Change::Freed(_))).count();
    assert_eq!((tree.depth(), tree.blocks().count(), freed), (0, 0, 6));
}

/// An extent has 32,768 blocks at most, an unwritten one 32,767.
#[test]
fn long_runs_are_several_records() {
    let mut tree = ExtentTree::default();
    tree.set(extent(0, 3 << 15, 0));
    assert_eq!((tree.records(), tree.iter().count()), (3, 1));
    let mut tree = ExtentTree::default();
    tree.set(Extent { unwritten: true, ..extent(0, 3 << 15, 0) });
    assert_eq!(tree.records(), 4);
    let mut converted = 0;
    tree.convert(0, u64::MAX, |extent| converted += extent.pages);
    assert_eq!((tree.records(), converted), (3, 3 << 15));
}

/// Only the leaf that is changed, and no other, goes into a transaction.
#[test]
fn a_conversion_changes_one_leaf() {
    let (mut tree, mut next) = (ExtentTree::default(), 0);
    for at in 0..341 {
        tree.set(Extent { unwritten: true, ..extent(2 * at, 1, 10_000 + 2 * at) });
        settle(&mut tree, &mut next);
    }
    tree.convert(680, 681, |_| {});
    assert_eq!(settle(&mut tree, &mut next), [Change::Changed(2)]);
    tree.convert(0, 1, |_| {});
    assert_eq!(settle(&mut tree, &mut next), [Change::Changed(1)]);
}

type Naive = BTreeMap<u64, (u64, bool)>;

fn hold_against(tree: &ExtentTree, naive: &Naive) {
    let mut pages = Naive::new();
    for extent in tree.iter() {
        for at in 0..extent.pages {
            pages.insert(extent.page + at, (extent.block + at, extent.unwritten));
        }
    }
    assert_eq!(&pages, naive);
    assert!(tree.iter().zip(tree.iter().skip(1)).all(|(one, next)| one.page + one.pages <= next.page));
}

#[test]
fn a_tree_is_a_map_of_pages() {
    let mut rng = Rng::stream(1, "host/fs/extents");
    let (mut tree, mut naive, mut next) = (ExtentTree::default(), Naive::new(), 1 << 40);
    let mut places = BTreeSet::new();
    for step in 0..3000 {
        let (page, pages) = (rng.below(4000), 1 + rng.below(6));
        let end = page + pages;
        match rng.below(10) {
            0..6 => {
                let (block, unwritten) = (page + 5000 * rng.below(3), rng.below(2) == 0);
                tree.set(Extent { page, pages, block, unwritten });
                naive.extend((0..pages).map(|at| (page + at, (block + at, unwritten))));
            }
            6..8 => {
                let mut gone = Naive::new();
                tree.remove(page, end, |extent| {
                    gone.extend(
                        (0..extent.pages).map(|at| (extent.page + at, (extent.block + at, extent.unwritten))),
                    );
                });
                let expected: Naive = naive.range(page..end).map(|(page, to)| (*page, *to)).collect();
                assert_eq!(gone, expected);
                naive.retain(|at, _| !(page..end).contains(at));
            }
            _ => {
                tree.convert(page, end, |_| {});
                naive.range_mut(page..end).for_each(|(_, (_, unwritten))| *unwritten = false);
            }
        }
        for change in settle(&mut tree, &mut next) {
            match change {
                Change::Changed(place) => places.insert(place),
                Change::Freed(place) => places.remove(&place),
            };
        }
        assert_eq!(tree.blocks().collect::<BTreeSet<_>>(), places);
        let first = tree.next(page).map(|extent| extent.page.max(page));
        assert_eq!(first, naive.range(page..).next().map(|(page, _)| *page));
        let before = tree.previous(page).map(|extent| (extent.page + extent.pages).min(page) - 1);
        assert_eq!(before, naive.range(..page).next_back().map(|(page, _)| *page));
        if step % 100 == 0 {
            hold_against(&tree, &naive);
        }
    }
    assert!(tree.depth() >= 1);
}
