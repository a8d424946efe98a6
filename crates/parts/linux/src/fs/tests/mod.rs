//! Worked examples, and power failures.

mod allocation;
mod journal;

use super::{Ext4, FsSpec, INODE_CREDITS, JournalMode, Need, Place, Step};
use crate::{
    Inode, PAGE,
    fs::{
        extents::{Change, Extent, ExtentTree},
        layout::{GROUP, Layout, blocks_of},
        mballoc::Space,
        soak::{Outcome, Plan, run},
    },
};
use config::units::Bytes;
use engine::{Mutant, Rng, Time, mutant::arm};
use std::collections::{BTreeMap, BTreeSet};

/// File system of 1 GiB, with a journal of 8,192 blocks.
fn small(spec: &FsSpec) -> Ext4 {
    Ext4::new(spec, 1 << 30).expect("the spec is valid")
}

/// File system with the smallest journal: 1,024 blocks.
fn tight(data: JournalMode) -> Ext4 {
    small(&FsSpec { data, journal_size: Some(Bytes::new(4 << 20)), ..FsSpec::default() })
}

const FILE: Inode = Inode(0);

/// Writes to the page cache.
fn write(fs: &mut Ext4, inode: Inode, offset: u64, bytes: u64, now: Time) {
    if fs.write_is_bare(inode, offset, bytes, now) {
        fs.write(None, inode, offset, bytes, now).expect("the drive has room");
    } else {
        let handle = fs.start(fs.write_credits(inode, bytes), now).expect("the handle can start");
        fs.write(Some(&handle), inode, offset, bytes, now).expect("the drive has room");
        fs.stop(handle);
    }
}

/// Writes pages back, 2,048 at a time, and converts the unwritten ones.
fn write_back(fs: &mut Ext4, inode: Inode, first: u64, pages: u64, now: Time) {
    let mut page = first;
    while page < first + pages {
        let count = (first + pages - page).min(super::WRITEPAGES_MOST);
        let handle = fs.start(fs.writepages_credits(inode), now).expect("the handle can start");
        fs.writepages(&handle, inode, page, count).expect("the drive has room");
        fs.stop(handle);
        if fs.needs_end_io(inode, page, count) {
            let handle = fs.start_reserved(now);
            fs.end_io(&handle, inode, page, count).expect("it is there");
            fs.stop(handle);
        }
        page += count;
    }
}

/// Commits the requested transaction; returns the steps without the first and the last.
fn commit(fs: &mut Ext4, now: Time) -> Vec<Step> {
    assert!(fs.begin_commit(now));
    let mut steps = Vec::new();
    loop {
        match fs.commit_step() {
            Step::Done { .. } => return steps,
            Step::Began { .. } => {}
            step => steps.push(step),
        }
    }
}

/// Syncs a file whose pages are clean.
fn sync(fs: &mut Ext4, inode: Inode, now: Time) -> Vec<Step> {
    assert!(matches!(fs.fsync(inode, false), Need::Commit { flush: false, .. }));
    commit(fs, now)
}

/// Time in the middle of a jiffy.
fn jiffy(number: u64) -> Time {
    Time::from_ms(4 * number + 2)
}

// Metadata layout, as `mke2fs` 1.47 makes it on files of these sizes (`dumpe2fs`, and `debugfs` for the journal).

/// Bytes of a drive; its blocks, blocks of metadata (`Overhead clusters`), block bitmap and inode table of the first
/// group, first block of the journal and its number of blocks.
const MEASURED: [(u64, u64, u64, u64, u64, u64, u64); 7] = [
    (1 << 30, 262_144, 12_949, 129, 145, 131_072, 8192),
    (8 << 30, 2_097_152, 58_505, 1025, 1057, 1_081_344, 16_384),
    (100 << 30, 26_214_400, 557_842, 1038, 1070, 13_139_968, 131_072),
    (480_103_981_056, 117_212_886, 2_120_694, 1081, 1113, 58_228_736, 262_144),
    (800_000_000_000, 195_312_500, 3_346_240, 1119, 1151, 97_550_336, 262_144),
    (2_000_398_934_016, 488_378_646, 7_947_216, 1258, 1290, 243_826_688, 262_144),
    (10 << 40, 2_684_354_560, 21_446_680, 2049, 2081, 1_342_210_048, 262_144),
];

#[test]
fn metadata_lie_where_mke2fs_puts_them() {
    for (bytes, blocks, overhead, bitmap, table, journal, journal_blocks) in MEASURED {
        let found = FsSpec::default().journal_blocks(blocks_of(bytes)).expect("it fits");
        assert_eq!(found, journal_blocks, "{bytes}");
        let layout = Layout::new(blocks_of(bytes), found).expect("it fits");
        let taken: u64 = layout.fixed().map(|(_, blocks)| blocks).sum::<u64>() + found;
        assert_eq!((layout.blocks, taken), (blocks, overhead), "{bytes}");
        assert_eq!((layout.block_bitmap(0), layout.inode_block(1)), (bitmap, table), "{bytes}");
        assert_eq!(layout.journal, journal, "{bytes}");
    }
}

/// Layout for 800 GB, as `dumpe2fs` prints the first groups.
#[test]
fn bitmaps_and_tables_of_sixteen_groups_lie_together() {
    let layout = Layout::new(195_312_500, 262_144).expect("it fits");
    assert_eq!((layout.block_bitmap(0), layout.bitmap_of_inode(1)), (1119, 1135));
    assert_eq!((layout.block_bitmap(1), layout.bitmap_of_inode(8193)), (1120, 1136));
    assert_eq!(
        (layout.inode_block(1), layout.inode_block(8193), layout.inode_block(16_385)),
        (1151, 1663, 2175)
    );
    // Sixteen inodes of a block, 64 descriptors of one.
    assert_eq!((layout.inode_block(16), layout.inode_block(17)), (1151, 1152));
    assert_eq!((layout.descriptor(63), layout.descriptor(64)), (1, 2));
}

#[test]
fn what_does_not_fit_is_refused() {
    assert!(Ext4::new(&FsSpec::default(), 4 << 20).is_err());
    let spec = FsSpec { journal_size: Some(Bytes::new(1 << 20)), ..FsSpec::default() };
    assert_eq!(Ext4::new(&spec, 1 << 30).err().expect("it is too small").key, "journal_size");
    let spec = FsSpec { journal_size: Some(Bytes::new(600 << 20)), ..FsSpec::default() };
    assert_eq!(Ext4::new(&spec, 1 << 30).err().expect("it is too large").key, "journal_size");
    let spec = FsSpec { data: JournalMode::none, ..spec };
    assert!(Ext4::new(&spec, 1 << 30).is_ok());
}

// Power failures in all modes.

fn spec(data: JournalMode) -> FsSpec {
    FsSpec { data, journal_size: Some(Bytes::new(4 << 20)), ..FsSpec::default() }
}

/// Runs of growing length, all sound; returns the sum of their results.
fn soak(spec: &FsSpec, cuts: u64) -> Outcome {
    let mut sum = Outcome::default();
    for seed in 0..cuts {
        let plan =
            Plan { spec: spec.clone(), bytes: 96 << 20, seed, actions: 50 + (seed as u32 * 37) % 1500 };
        let outcome = run(&plan).expect("the spec is valid");
        assert_eq!(outcome.faults, [""; 0], "{plan:?}");
        sum.stale += outcome.stale;
        sum.acknowledged += outcome.acknowledged;
        sum.promised += outcome.promised;
        sum.replayed += outcome.replayed;
        sum.commits += outcome.commits;
        sum.checkpoints += outcome.checkpoints;
    }
    // Some data was promised, and some had to be replayed.
    assert!(sum.acknowledged > cuts / 2 && sum.promised > cuts, "{sum:?}");
    assert!(spec.data == JournalMode::none || (sum.replayed > 0 && sum.commits > cuts), "{sum:?}");
    sum
}

#[test]
fn ordered_data_survive() {
    assert_eq!(soak(&spec(JournalMode::ordered), 150).stale, 0);
}

#[test]
fn ordered_data_survive_without_delayed_allocation() {
    assert_eq!(soak(&FsSpec { delalloc: false, ..spec(JournalMode::ordered) }, 150).stale, 0);
}

#[test]
fn ordered_data_survive_in_blocks_that_count_at_once() {
    assert_eq!(soak(&FsSpec { dioread_nolock: false, ..spec(JournalMode::ordered) }, 150).stale, 0);
}

#[test]
fn journaled_data_survive() {
    assert_eq!(soak(&spec(JournalMode::journal), 150).stale, 0);
}

/// Freed blocks can be reused before the commit (`ext4_free_blocks`), and without delayed allocation blocks are valid
/// before they are written.
#[test]
fn with_writeback_files_may_show_what_was_in_their_blocks() {
    assert!(soak(&spec(JournalMode::writeback), 100).stale > 0);
    assert!(soak(&FsSpec { delalloc: false, ..spec(JournalMode::writeback) }, 100).stale > 0);
}

/// Long enough to fill the smallest journal a few times. (With metadata only, each commit takes over most blocks of the
/// previous one, so the log frees itself.)
#[test]
fn what_is_promised_survives_a_full_log() {
    let mut checkpoints = 0;
    for seed in 0..6 {
        let plan = Plan { spec: spec(JournalMode::journal), bytes: 96 << 20, seed, actions: 10_000 };
        let outcome = run(&plan).expect("the spec is valid");
        assert_eq!(outcome.faults, [""; 0], "{plan:?}");
        checkpoints += outcome.checkpoints;
    }
    assert!(checkpoints > 60, "{checkpoints}");
}

#[test]
fn without_a_journal_what_was_synced_survives() {
    soak(&spec(JournalMode::none), 150);
}

#[test]
fn without_barriers_promises_are_broken() {
    let spec = FsSpec { barrier: false, ..spec(JournalMode::ordered) };
    let broken = (0..40).filter(|seed| {
        let plan = Plan { spec: spec.clone(), bytes: 96 << 20, seed: *seed, actions: 600 };
        !run(&plan).expect("the spec is valid").faults.is_empty()
    });
    assert!(broken.count() > 20);
}

/// Returns whether a fault is found in any of several runs.
fn is_found(mutant: Mutant, spec: &FsSpec) -> bool {
    let _armed = arm(mutant);
    (0..200).any(|seed| {
        let plan = Plan { spec: spec.clone(), bytes: 96 << 20, seed, actions: 200 + 2 * seed as u32 };
        !run(&plan).expect("the spec is valid").faults.is_empty()
    })
}

#[test]
#[cfg(debug_assertions)]
fn mutants_are_found() {
    assert!(is_found(Mutant::EarlyCommit, &FsSpec { delalloc: false, ..spec(JournalMode::ordered) }));
    assert!(is_found(Mutant::UnflushedSync, &FsSpec { delalloc: false, ..spec(JournalMode::ordered) }));
    assert!(is_found(Mutant::UnflushedSync, &spec(JournalMode::ordered)));
}

// Free runs against a bitmap.

const GROUPS: u64 = 3;

/// Bitmap of free blocks.
struct Bitmap(Vec<bool>);

impl Bitmap {
    fn is_free(&self, block: u64, blocks: u64) -> bool {
        self.0[block as usize..(block + blocks) as usize].iter().all(|free| *free)
    }

    fn set(&mut self, block: u64, blocks: u64, free: bool) {
        self.0[block as usize..(block + blocks) as usize].fill(free);
    }

    /// First of the smallest buddies of at least an order: a buddy is free and its parent is not.
    fn buddy(&self, group: u64, order: u32) -> Option<u64> {
        (order..=13).find_map(|size| {
            let at = (0..GROUP >> size).map(|at| group * GROUP + (at << size));
            let parent = |block: u64| block >> (size + 1) << (size + 1);
            at.into_iter().find(|block| {
                let whole = size < 13 && self.is_free(parent(*block), 2 << size);
                self.is_free(*block, 1 << size) && !whole
            })
        })
    }

    /// Free runs of a group.
    fn runs(&self, group: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for block in (group * GROUP..(group + 1) * GROUP).filter(|block| self.0[*block as usize]) {
            match runs.last_mut() {
                Some((start, len)) if *start + *len == block => *len += 1,
                _ => runs.push((block, 1)),
            }
        }
        runs
    }

    fn find(&self, group: u64, wanted: u64) -> Option<(u64, u64)> {
        let groups: Vec<u64> = (group..GROUPS).chain(0..group).collect();
        if wanted.is_power_of_two() && (2..=8192).contains(&wanted) {
            let buddy = groups.iter().find_map(|group| self.buddy(*group, wanted.ilog2()));
            if let Some(block) = buddy {
                return Some((block, wanted));
            }
        }
        let runs: Vec<(u64, u64)> = groups.iter().flat_map(|group| self.runs(*group)).collect();
        if let Some((start, _)) = runs.iter().find(|(_, len)| *len >= wanted) {
            return Some((*start, wanted));
        }
        let looked_at = &runs[..runs.len().min(200)];
        let longest = looked_at.iter().map(|(_, len)| *len).max()?;
        looked_at.iter().find(|(_, len)| *len == longest).copied()
    }
}

#[test]
fn runs_are_found_as_in_a_bitmap() {
    let mut rng = Rng::stream(1, "host/fs/space");
    let mut space = Space::new(GROUPS * GROUP);
    let mut bitmap = Bitmap(vec![true; (GROUPS * GROUP) as usize]);
    let mut taken: Vec<(u64, u64)> = Vec::new();
    for _ in 0..400 {
        let wanted = match rng.below(3) {
            0 => 1 << rng.below(14),
            1 => 1 + rng.below(300),
            _ => 1 + rng.below(12_000),
        };
        let group = rng.below(GROUPS);
        if rng.below(5) < 3 || taken.is_empty() {
            let found = space.find(group, wanted);
            assert_eq!(found, bitmap.find(group, wanted), "{wanted} from {group}");
            let Some((block, blocks)) = found else { continue };
            space.take(block, blocks);
            bitmap.set(block, blocks, false);
            // Parts of it are freed, now or later.
            let part = 1 + rng.below(blocks);
            taken.extend([(block, part), (block + part, blocks - part)]);
        } else {
            let (block, blocks) = taken.swap_remove(rng.below(taken.len() as u64) as usize);
            if blocks > 0 {
                space.give(block, blocks);
                bitmap.set(block, blocks, true);
            }
        }
        let free = bitmap.0.iter().filter(|free| **free).count() as u64;
        assert_eq!(space.free(), free);
    }
}

#[test]
fn a_fragmented_space_gives_its_longest_run() {
    let mut space = Space::new(GROUP);
    for block in (0..GROUP).step_by(4) {
        space.take(block, if block == 400 { 1 } else { 2 });
    }
    assert_eq!(space.find(0, 100), Some((401, 3)));
    assert_eq!(space.free_from(401), 3);
    assert_eq!(space.free_from(404), 0);
}

// Extent tree against a map of pages.

fn extent(page: u64, pages: u64, block: u64) -> Extent {
    Extent { page, pages, block, unwritten: false }
}

/// Ends a change; allocated metadata blocks are counted from `next`.
fn settle(tree: &mut ExtentTree, next: &mut u64) -> Vec<Change> {
    let mut changes = Vec::new();
    let allocate = |_| {
        *next += 1;
        Some(*next)
    };
    tree.settle(allocate, |change| changes.push(change));
    changes
}

/// `ext4_ext_space_root` and `ext4_ext_space_block`: four records in the inode, 340 in a leaf, 340 leaves below an
/// inner node, and a leaf that is full is left full by an append.
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
    // Truncation frees blocks; four records return to the inode (`ext4_ext_try_to_merge_up`).
    tree.remove(8, u64::MAX, |_| {});
    let freed =
        settle(&mut tree, &mut next).iter().filter(|change| matches!(change, Change::Freed(_))).count();
    assert_eq!((tree.depth(), tree.blocks().count(), freed), (0, 0, 6));
}

/// An extent has at most 32,768 blocks, an unwritten one 32,767.
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

/// Only the changed leaf goes into a transaction.
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
