//! Trees against sorted maps.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const FILE: Inode = Inode(7);

fn index() -> Index {
    Index::new(1 << 20)
}

/// Leaf of a page in memory.
fn leaf(index: &Index, page: u64) -> u32 {
    index.leaf(FILE, page as u32).expect("it is in memory")
}

#[test]
fn a_file_of_ten_terabytes_costs_what_is_cached_of_it() {
    let (mut index, last) = (index(), 10_000_000_000_000 / crate::PAGE);
    index.insert(FILE, last, 1);
    // 2.4 billion pages are five levels of 64 and a root of four slots: one node of each.
    assert_eq!((index.nodes.len(), index.files.len(), size_of::<Node>()), (6, 1, 320));
    assert_eq!((index.find(FILE, last), index.next_present(FILE, 0)), (Some(1), Some(last)));
    index.insert(FILE, 0, 2);
    // A leaf at the beginning, and four nodes above it below the root.
    assert_eq!(index.nodes.len(), 11);
    index.remove(leaf(&index, last), last, None);
    index.remove(leaf(&index, 0), 0, None);
    assert_eq!((index.nodes.len(), index.files.len()), (0, 0));
}

#[test]
fn a_file_that_grows_keeps_what_it_has() {
    let mut index = index();
    for (folio, page) in (0..).zip([3, 64, 4096, 1 << 18, u32::MAX.into()]) {
        let (leaf, _) = index.insert(FILE, page, folio);
        index.set_tag(leaf, page, Tag::Dirty, page != 64);
    }
    let dirty: Vec<u64> = std::iter::successors(index.next_tagged(FILE, 0, Tag::Dirty), |page| {
        index.next_tagged(FILE, page + 1, Tag::Dirty)
    })
    .collect();
    assert_eq!(dirty, [3, 4096, 1 << 18, u32::MAX.into()]);
    assert_eq!(index.find(FILE, 64), Some(1));
    // To the end, wherever that is.
    let mut runs = Vec::new();
    index.tagged_runs(FILE, (0, u64::MAX), Tag::Dirty, u64::MAX, &mut runs);
    assert_eq!(runs.iter().map(|run| run.pages).sum::<u64>(), 4);
    index.tag_towrite(FILE, 4, u64::MAX);
    assert_eq!(index.next_tagged(FILE, 0, Tag::ToWrite), Some(4096));
    let last = u64::from(u32::MAX);
    assert_eq!(
        (index.next_miss(FILE, last, 32), index.next_missing(FILE, last, u64::MAX)),
        (last + 1, Some(last + 1))
    );
    assert_eq!((index.find(FILE, last + 1), index.next_present(FILE, last + 1)), (None, None));
    index.check(5).expect("sound");
}

#[test]
fn shadow_entries_are_bounded_by_leaves() {
    // A memory of 32 pages: four leaves of shadow entries.
    let mut index = Index::new(32);
    for number in 0..5 {
        let (leaf, _) = index.insert(FILE, number * 64, number as u32);
        index.remove(leaf, number * 64, Some(Shadow(number as u32)));
    }
    index.check(0).expect("sound");
    assert_eq!(index.insert(FILE, 0, 9).1, None, "the oldest is gone");
    assert_eq!(index.insert(FILE, 64, 10).1, Some(Shadow(1)));
    // A leaf with a folio is not one of them.
    assert_eq!(index.shadows.len(), 3);
    index.forget_range(FILE, 65, 200);
    assert_eq!(index.insert(FILE, 128, 11).1, None);
    assert_eq!(index.insert(FILE, 256, 12).1, Some(Shadow(4)));
    index.check(4).expect("sound");
}

/// Last page checked if none is missing, as left by `xas_next` and `xas_prev`.
#[test]
fn gaps_as_the_kernel_finds_them() {
    let mut index = index();
    for page in 10..200 {
        index.insert(FILE, page, page as u32);
    }
    assert_eq!(
        [index.next_miss(FILE, 5, 8), index.next_miss(FILE, 10, 8), index.next_miss(FILE, 195, 32)],
        [5, 17, 200]
    );
    assert_eq!(
        [index.prev_miss(FILE, 150, 32), index.prev_miss(FILE, 20, 32), index.prev_miss(FILE, 300, 4)],
        [119, 9, 300]
    );
    for page in 0..10 {
        index.insert(FILE, page, page as u32);
    }
    assert_eq!([index.prev_miss(FILE, 9, 10), index.prev_miss(FILE, 9, 11)], [0, u64::MAX]);
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64),
    Remove(u64, bool),
    Tag(u64, u8, bool),
    ToWrite(u64, u64),
    Forget(u64, u64),
}

/// Pages in a few clusters, up to the end of a file.
fn page() -> impl Strategy<Value = u64> {
    prop_oneof![0..150u64, 4050..4150u64, 262_100..262_200u64, (1u64 << 32) - 70..1 << 32]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => page().prop_map(Step::Insert),
        3 => (page(), any::<bool>()).prop_map(|(page, shadow)| Step::Remove(page, shadow)),
        5 => (page(), 0..3u8, any::<bool>()).prop_map(|(page, tag, on)| Step::Tag(page, tag, on)),
        1 => (page(), page()).prop_map(|(from, to)| Step::ToWrite(from, to)),
        1 => (page(), page()).prop_map(|(from, to)| Step::Forget(from, to)),
    ];
    prop::collection::vec(step, 0..400)
}

const TAGS: [Tag; 3] = [Tag::Dirty, Tag::Writeback, Tag::ToWrite];

#[derive(Default)]
struct Model {
    pages: BTreeMap<u64, u32>,
    /// Leaf of each page, as returned on insertion.
    leaves: BTreeMap<u64, u32>,
    shadows: BTreeMap<u64, u32>,
    tags: [BTreeSet<u64>; 3],
}

impl Model {
    fn step(&mut self, number: u32, step: Step, index: &mut Index) -> Result<(), TestCaseError> {
        match step {
            Step::Insert(page) if !self.pages.contains_key(&page) => {
                let shadow = self.shadows.remove(&page).map(Shadow);
                let (leaf, before) = index.insert(FILE, page, number);
                prop_assert_eq!(before, shadow);
                self.pages.insert(page, number);
                self.leaves.insert(page, leaf);
            }
            Step::Remove(page, shadow) if self.pages.remove(&page).is_some() => {
                index.remove(self.leaves[&page], page, shadow.then_some(Shadow(number)));
                if shadow {
                    self.shadows.insert(page, number);
                }
                for tag in &mut self.tags {
                    tag.remove(&page);
                }
            }
            Step::Tag(page, tag, on) if self.pages.contains_key(&page) => {
                index.set_tag(self.leaves[&page], page, TAGS[usize::from(tag)], on);
                let set = &mut self.tags[usize::from(tag)];
                if on {
                    set.insert(page)
                } else {
                    set.remove(&page)
                };
            }
            Step::ToWrite(from, to) if from <= to => {
                index.tag_towrite(FILE, from, to);
                let dirty: Vec<u64> = self.tags[0].range(from..=to).copied().collect();
                self.tags[2].extend(dirty);
            }
            Step::Forget(from, to) if from <= to => {
                index.forget_range(FILE, from, to);
                self.shadows.retain(|page, _| !(from..=to).contains(page));
            }
            _ => {}
        }
        Ok(())
    }

    fn runs(pages: impl Iterator<Item = u64>, most: u64) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        for page in pages.take(most as usize) {
            match runs.last_mut() {
                Some(run) if run.end() == page => run.pages += 1,
                _ => runs.push(Run { first: page, pages: 1 }),
            }
        }
        runs
    }

    fn compare(&self, index: &Index, from: u64, to: u64) -> Result<(), TestCaseError> {
        prop_assert_eq!(index.find(FILE, from), self.pages.get(&from).copied());
        prop_assert_eq!(
            index.next_present(FILE, from),
            self.pages.range(from..).next().map(|(page, _)| *page)
        );
        for (tag, set) in TAGS.into_iter().zip(&self.tags) {
            prop_assert_eq!(index.next_tagged(FILE, from, tag), set.range(from..).next().copied());
            prop_assert_eq!(index.has_tag(FILE, from, tag), set.contains(&from));
            if from <= to {
                for most in [1, 10, u64::MAX] {
                    let mut runs = Vec::new();
                    index.tagged_runs(FILE, (from, to), tag, most, &mut runs);
                    prop_assert_eq!(runs, Model::runs(set.range(from..=to).copied(), most));
                }
            }
        }
        let end = (from + 100).min(1 << 32);
        let missing = || (from..end).filter(|page| !self.pages.contains_key(page));
        prop_assert_eq!(index.next_missing(FILE, from, end - 1), missing().next());
        let mut runs = Vec::new();
        index.missing_runs(FILE, from, end - from, &mut runs);
        prop_assert_eq!(runs, Model::runs(missing(), u64::MAX));
        for most in [1, 32, 100] {
            let mut looked = (0..most).map(|n| from.checked_sub(n));
            let gap = looked.find(|page| page.is_none_or(|page| !self.pages.contains_key(&page)));
            let expected = gap.map_or(from.wrapping_sub(most - 1), |page| page.unwrap_or(u64::MAX));
            prop_assert_eq!(index.prev_miss(FILE, from, most), expected, "{} pages to {}", most, from);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) })]
    #[test]
    fn like_a_sorted_map(steps in steps(), looks in prop::collection::vec((page(), page()), 20)) {
        let (mut index, mut model) = (index(), Model::default());
        for (number, step) in (0..).zip(steps) {
            model.step(number, step, &mut index)?;
        }
        prop_assert_eq!(index.pages(FILE), model.pages.len() as u64);
        index.check(model.pages.len() as u64).map_err(TestCaseError::fail)?;
        for (from, to) in looks {
            model.compare(&index, from, to)?;
        }
    }
}
