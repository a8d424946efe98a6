//! Transactions and room in the log.

use super::super::Tid;
use super::*;
use crate::fs::{Changes, Checkpoint, CommitCause, Content, TRUNCATE_CREDITS, Wait};

/// Seventeen files; the one of [`OTHER`] has its inode in another block of the table than the first.
fn two_blocks() -> Ext4 {
    let mut fs = tight(JournalMode::ordered);
    (0..17).for_each(|file| fs.exists(Inode(file), PAGE).expect("there is room"));
    // Inodes begin with number 12, and 16 of them share a block.
    assert_ne!(fs.layout.inode_block(12), fs.layout.inode_block(17));
    fs
}
const OTHER: Inode = Inode(5);

/// A transaction that changes one inode: three blocks of the log.
fn touch(fs: &mut Ext4, inode: Inode, number: u64) -> Vec<Step> {
    write(fs, inode, 0, PAGE, jiffy(number));
    sync(fs, inode, jiffy(number))
}

#[test]
fn a_commit_waits_for_open_handles() {
    let mut fs = tight(JournalMode::ordered);
    fs.exists(FILE, PAGE).expect("there is room");
    let handle = fs.start(INODE_CREDITS, jiffy(0)).expect("nothing is in the way");
    assert_eq!(fs.commit_due(), Some(jiffy(0) + Time::from_s(5)));
    assert!(!fs.begin_commit(jiffy(0)));
    fs.request_commit(Tid(1), CommitCause::Sync);
    assert!(fs.begin_commit(jiffy(0)));
    assert_eq!(fs.commit_step(), Step::Handles);
    assert_eq!(fs.start(INODE_CREDITS, jiffy(0)), Err(Wait::Locked));
    // A reserved one joins the transaction as long as it is open.
    let reserved = fs.start_reserved(jiffy(0));
    assert_eq!(reserved.tid, Tid(1));
    fs.stop(handle);
    assert_eq!(fs.commit_step(), Step::Handles);
    fs.stop(reserved);
    assert_eq!(fs.commit_step(), Step::Began { tid: Tid(1) });
    let next = fs.start(INODE_CREDITS, jiffy(0)).expect("there is another transaction now");
    assert_eq!(next.tid, Tid(2));
    fs.stop(next);
}

#[test]
fn a_transaction_commits_after_five_seconds() {
    let mut fs = tight(JournalMode::ordered);
    fs.exists(FILE, PAGE).expect("there is room");
    write(&mut fs, FILE, 0, PAGE, jiffy(0));
    assert!(!fs.begin_commit(jiffy(0) + Time::from_ms(4999)));
    assert!(fs.begin_commit(jiffy(0) + Time::from_ms(5000)));
    assert_eq!(fs.stats.commits_interval, 1);
}

/// A quarter of the log at most (`jbd2_journal_get_max_txn_bufs`): 256 of 1,024 blocks.
#[test]
fn a_transaction_that_is_too_large_is_committed() {
    let mut fs = tight(JournalMode::ordered);
    let handle = fs.start(200, jiffy(0)).expect("nothing is in the way");
    let other = fs.start(56, jiffy(0)).expect("that is all");
    assert_eq!(fs.start(1, jiffy(0)), Err(Wait::Locked));
    fs.stop(handle);
    fs.stop(other);
    assert!(fs.begin_commit(jiffy(0)));
    assert_eq!(fs.stats.commits_space, 1);
}

/// A descriptor has 253 tags: (4096 - 12 - 16 - 16 n) B are left after n of them, and 36 are needed for one more.
#[test]
fn a_descriptor_has_253_tags() {
    let left = |tags: i32| 4096 - 12 - 16 - 16 * tags;
    assert!(left(252) >= 36 && left(253) < 36);
    for (pages, descriptors) in [(252, 1), (253, 2)] {
        let mut fs = small(&FsSpec { data: JournalMode::journal, ..FsSpec::default() });
        fs.exists(FILE, 2 << 20).expect("there is room");
        // And the inode.
        write(&mut fs, FILE, 0, pages * PAGE, jiffy(0));
        let steps = sync(&mut fs, FILE, jiffy(0));
        let count = (pages + 1) as u32 + descriptors;
        assert!(matches!(steps[1], Step::Write { count: n, .. } if n == count), "{steps:?}");
    }
}

/// What has been written home is forgotten by the commit that finds that a quarter of the log can be freed: here each
/// commit takes over the only block, so that commit 88 finds the log to begin with transaction 87, 3 * 86 = 258 blocks on.
#[test]
fn a_commit_frees_the_log_behind_it() {
    let mut fs = two_blocks();
    for number in 1..88 {
        let steps = touch(&mut fs, FILE, number);
        let superblocks = steps.iter().filter(|step| matches!(step, Step::Superblock { .. })).count();
        assert_eq!(superblocks, usize::from(number == 1), "commit {number}");
    }
    let steps = touch(&mut fs, FILE, 88);
    let block = fs.layout.journal;
    assert_eq!(steps.last(), Some(&Step::Superblock { block, tail: 259, tid: Tid(87), fua: true }));
    assert_eq!(fs.stats.checkpoints, 0);
}

/// A block that is not written home keeps its transaction in the log. 1,023 blocks less 3 for each commit less 32 are fewer than
/// the 256 that a handle may need after 246 commits (`__jbd2_log_wait_for_space`); the log then has to wait for that block.
#[test]
fn the_log_wraps_when_blocks_are_home() {
    let mut fs = two_blocks();
    touch(&mut fs, OTHER, 1);
    for number in 2..=246 {
        assert_eq!(fs.journal.checkpoint(&mut Vec::new(), &mut fs.stats), Checkpoint::Done);
        touch(&mut fs, FILE, number);
    }
    assert_eq!(fs.start(INODE_CREDITS, jiffy(247)), Err(Wait::Space));
    let mut blocks = Vec::new();
    assert_eq!(fs.checkpoint(&mut blocks), Checkpoint::Write);
    assert_eq!(blocks, [fs.layout.inode_block(17)]);
    assert_eq!(fs.write_home(blocks[0]), Some(Content::Home { tid: Tid(1) }));
    assert_eq!(fs.checkpoint(&mut blocks), Checkpoint::Wait);
    fs.home_written(blocks[0]);
    // 246 begins behind 245 transactions of three blocks.
    let (block, tail, tid) = (fs.layout.journal, 1 + 3 * 245, Tid(246));
    assert_eq!(fs.checkpoint(&mut blocks), Checkpoint::Tail { block, tail, tid, flush: true });
    fs.tail_written(tail, tid);
    assert_eq!(fs.checkpoint(&mut blocks), Checkpoint::Done);
    assert_eq!((fs.stats.checkpoints, fs.stats.checkpoint_blocks), (1, 1));
    // 341 transactions fill the log; the next begins at its start again.
    for number in 247..=341 {
        touch(&mut fs, FILE, number);
    }
    let steps = touch(&mut fs, FILE, 342);
    let first = Step::Write { block: block + 1, count: 2, tid: Tid(342), index: 0, of: 2 };
    assert_eq!(steps[0], first);
}

/// A transaction that does not fit before the end goes on at the start.
#[test]
fn a_transaction_may_lie_around_the_end() {
    let mut fs = two_blocks();
    // Five blocks, and then three for each: 5 + 339 * 3 = 1,022.
    write(&mut fs, FILE, PAGE, PAGE, jiffy(0));
    write_back(&mut fs, FILE, 1, 1, jiffy(0));
    sync(&mut fs, FILE, jiffy(0));
    let mut blocks: Vec<u64> = fs.dirty_metadata(0).collect();
    for block in blocks.drain(..) {
        fs.write_home(block);
        fs.home_written(block);
    }
    (1..=339).for_each(|number| drop(touch(&mut fs, FILE, number)));
    let (block, tid) = (fs.layout.journal, Tid(341));
    let steps = touch(&mut fs, FILE, 340);
    assert_eq!(steps[0], Step::Write { block: block + 1023, count: 1, tid, index: 0, of: 2 });
    assert_eq!(steps[1], Step::Write { block: block + 1, count: 1, tid, index: 1, of: 2 });
    assert_eq!(steps[3], Step::Commit { block: block + 2, tid, preflush: true, fua: true });
}

/// A block that a transaction has taken again is not written home before that has committed (`do_get_write_access`), and a
/// checkpoint that needs it asks for the commit.
#[test]
fn a_block_in_a_transaction_stays_out_of_its_home() {
    let mut fs = two_blocks();
    touch(&mut fs, FILE, 1);
    let block = fs.layout.inode_block(12);
    assert_eq!(fs.dirty_metadata(0).collect::<Vec<_>>(), [block]);
    write(&mut fs, FILE, 0, PAGE, jiffy(2));
    assert_eq!(fs.dirty_metadata_count(), 0);
    assert_eq!(fs.write_home(block), None);
    sync(&mut fs, FILE, jiffy(2));
    assert_eq!(fs.write_home(block), Some(Content::Home { tid: Tid(2) }));
    // It is taken while it is on its way: that it has arrived says nothing of the new transaction.
    touch(&mut fs, FILE, 3);
    assert_eq!(fs.write_home(block), None);
    fs.home_written(block);
    assert_eq!(fs.write_home(block), Some(Content::Home { tid: Tid(3) }));
}

/// A leaf block that is freed is revoked, and it is free itself when that is committed: a file of five extents in one leaf.
#[test]
fn freed_metadata_are_revoked() {
    let mut fs = tight(JournalMode::ordered);
    fs.exists(FILE, 0).expect("there is room");
    for extent in 0..5 {
        write(&mut fs, FILE, 2 * extent * PAGE, PAGE, jiffy(0));
    }
    write_back(&mut fs, FILE, 0, 10, jiffy(0));
    assert_eq!(fs.tree(FILE), (5, 1));
    sync(&mut fs, FILE, jiffy(0));
    let before = fs.available();
    let handle = fs.start(TRUNCATE_CREDITS, jiffy(1)).expect("nothing is in the way");
    assert_eq!(fs.truncate(&handle, FILE, 0), Ok(true));
    fs.stop(handle);
    assert_eq!((fs.tree(FILE), fs.available()), ((0, 0), before));
    let steps = sync(&mut fs, FILE, jiffy(1));
    assert_eq!((fs.stats.revoked, fs.stats.log_revokes), (1, 1));
    // Revoke block, descriptor, super block, inode, bitmap and descriptor of the group.
    assert!(matches!(steps[0], Step::Write { count: 6, .. }), "{steps:?}");
    assert_eq!(fs.available(), before + 6);
}

/// `do_get_write_access`: a block on its way to the log is not changed until it is there. Inodes 12 and 17 are in two blocks of the table, their groups in one
/// block of descriptors.
#[test]
fn a_block_that_is_being_logged_is_not_changed() {
    let mut fs = two_blocks();
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    assert!(matches!(fs.fsync(FILE, false), Need::Commit { .. }));
    assert!(fs.begin_commit(jiffy(1)));
    let [own, other] = [FILE, OTHER].map(Changes::Inode);
    for step in [fs.commit_step(), fs.commit_step()] {
        assert!(matches!(step, Step::Began { .. } | Step::Superblock { .. }), "{step:?}");
        assert!(!fs.is_logged(own));
    }
    // The inode and a descriptor of the log's.
    assert!(matches!(fs.commit_step(), Step::Write { count: 2, .. }));
    assert!(fs.is_logged(own) && fs.is_logged(Changes::Name(OTHER)) && !fs.is_logged(other));
    // No bitmap is in the log, nor a descriptor of groups.
    assert!(!fs.is_logged(Changes::Blocks(OTHER)));
    fs.log_written();
    assert!(!fs.is_logging() && !fs.is_logged(own));
}

/// What was changed before the log is written has a copy for the log (`b_frozen_data`), and may go on changing.
#[test]
fn a_block_that_was_changed_before_it_is_logged_may_change() {
    let mut fs = two_blocks();
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    assert!(matches!(fs.fsync(FILE, false), Need::Commit { .. }));
    assert!(fs.begin_commit(jiffy(1)));
    while !matches!(fs.commit_step(), Step::Superblock { .. }) {}
    write(&mut fs, FILE, 0, PAGE, jiffy(2));
    assert!(matches!(fs.commit_step(), Step::Write { .. }));
    assert!(fs.is_logging() && !fs.is_logged(Changes::Inode(FILE)));
}
