//! Transactions, room in the log, and the waits of `fsync`.

use super::super::Tid;
use super::*;
use crate::fs::{Changes, Checkpoint, CommitCause, Content, Run, TRUNCATE_CREDITS, Wait, layout::group_of};

/// Seventeen files; the one of [`OTHER`] has its inode in another block of the table than the first.
fn two_blocks() -> Ext4 {
    let mut fs = tight(JournalMode::ordered);
    (0..17).for_each(|file| fs.exists(Inode(file), PAGE).expect("the drive has room"));
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
    fs.exists(FILE, PAGE).expect("the drive has room");
    let handle = fs.start(INODE_CREDITS, jiffy(0)).expect("the handle can start");
    assert_eq!(fs.commit_due(), Some(jiffy(0) + Time::from_s(5)));
    assert!(!fs.begin_commit(jiffy(0)));
    fs.request_commit(Tid(1), CommitCause::Sync);
    assert!(fs.begin_commit(jiffy(0)));
    assert_eq!(fs.commit_step(), Step::Handles);
    assert_eq!(fs.start(INODE_CREDITS, jiffy(0)), Err(Wait::Locked));
    // A reserved handle joins the transaction as long as it is open.
    let reserved = fs.start_reserved(jiffy(0));
    assert_eq!(reserved.tid, Tid(1));
    fs.stop(handle);
    assert_eq!(fs.commit_step(), Step::Handles);
    fs.stop(reserved);
    assert_eq!(fs.commit_step(), Step::Began { tid: Tid(1) });
    let next = fs.start(INODE_CREDITS, jiffy(0)).expect("a new transaction is open");
    assert_eq!(next.tid, Tid(2));
    fs.stop(next);
}

#[test]
fn a_transaction_commits_after_five_seconds() {
    let mut fs = tight(JournalMode::ordered);
    fs.exists(FILE, PAGE).expect("the drive has room");
    write(&mut fs, FILE, 0, PAGE, jiffy(0));
    assert!(!fs.begin_commit(jiffy(0) + Time::from_ms(4999)));
    assert!(fs.begin_commit(jiffy(0) + Time::from_ms(5000)));
    assert_eq!(fs.stats.commits_interval, 1);
}

/// At most a quarter of the log (`jbd2_journal_get_max_txn_bufs`): 256 of 1,024 blocks.
#[test]
fn a_transaction_that_is_too_large_is_committed() {
    let mut fs = tight(JournalMode::ordered);
    let handle = fs.start(200, jiffy(0)).expect("the handle can start");
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
        fs.exists(FILE, 2 << 20).expect("the drive has room");
        // Plus the inode.
        write(&mut fs, FILE, 0, pages * PAGE, jiffy(0));
        let steps = sync(&mut fs, FILE, jiffy(0));
        let count = (pages + 1) as u32 + descriptors;
        assert!(matches!(steps[1], Step::Write { count: n, .. } if n == count), "{steps:?}");
    }
}

/// Blocks written home are dropped by the commit that finds that a quarter of the log can be freed. Here each commit
/// takes over the only block, so commit 88 finds that the log begins with transaction 87, 3 * 86 = 258 blocks further.
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

/// A block not written home keeps its transaction in the log. After 246 commits, 1,023 blocks less 3 for each commit
/// less 32 are fewer than the 256 that a handle may need (`__jbd2_log_wait_for_space`); the log then has to wait for
/// that block.
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

/// A transaction that does not fit before the end continues at the start.
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

/// A block that a transaction has taken again is not written home before the commit (`do_get_write_access`), and a
/// checkpoint that needs it requests the commit.
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
    // The block is taken while its write is in flight: the completion does not release the new transaction.
    touch(&mut fs, FILE, 3);
    assert_eq!(fs.write_home(block), None);
    fs.home_written(block);
    assert_eq!(fs.write_home(block), Some(Content::Home { tid: Tid(3) }));
}

/// A freed leaf block is revoked, and free itself after the commit: a file of five extents in one leaf.
#[test]
fn freed_metadata_are_revoked() {
    let mut fs = tight(JournalMode::ordered);
    fs.exists(FILE, 0).expect("the drive has room");
    for extent in 0..5 {
        write(&mut fs, FILE, 2 * extent * PAGE, PAGE, jiffy(0));
    }
    write_back(&mut fs, FILE, 0, 10, jiffy(0));
    assert_eq!(fs.tree(FILE), (5, 1));
    sync(&mut fs, FILE, jiffy(0));
    let before = fs.available();
    let handle = fs.start(TRUNCATE_CREDITS, jiffy(1)).expect("the handle can start");
    assert_eq!(fs.truncate(&handle, FILE, 0), Ok(true));
    fs.stop(handle);
    assert_eq!((fs.tree(FILE), fs.available()), ((0, 0), before));
    let steps = sync(&mut fs, FILE, jiffy(1));
    assert_eq!((fs.stats.revoked, fs.stats.log_revokes), (1, 1));
    // Revoke block, descriptor, super block, inode, bitmap and descriptor of the group.
    assert!(matches!(steps[0], Step::Write { count: 6, .. }), "{steps:?}");
    assert_eq!(fs.available(), before + 6);
}

/// `do_get_write_access`: a block being written to the log is not changed until the write has ended. Inodes 12 and 17
/// are in two blocks of the table, their groups in one descriptor block.
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
    // The inode and a log descriptor.
    assert!(matches!(fs.commit_step(), Step::Write { count: 2, .. }));
    assert!(fs.is_logged(own) && fs.is_logged(Changes::Name(OTHER)) && !fs.is_logged(other));
    // The log holds neither a bitmap nor a group descriptor.
    assert!(!fs.is_logged(Changes::Blocks(OTHER)));
    fs.log_written();
    assert!(!fs.is_logging() && !fs.is_logged(own));
}

/// A block changed before the log is written has a copy for the log (`b_frozen_data`), and may be changed further.
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

// Conditions that `fsync` waits for.

/// File system with Linux's defaults.
fn usual() -> Ext4 {
    let mut fs = small(&FsSpec::default());
    fs.exists(FILE, 1 << 20).expect("the drive has room");
    fs
}

/// An append of 4 KiB dirties the inode (`ext4_dirty_inode`, by its time and length), and when it is written back the
/// bitmap and the descriptor of its group (`ext4_mb_mark_diskspace_used`): three blocks, with a descriptor four in the
/// log, and a commit block with a flush before it and FUA. The journal's superblock is written before the first commit.
/// Since the extent is born unwritten, the commit has no ordered data.
#[test]
fn an_append_of_a_page_writes_three_blocks_of_metadata() {
    let mut fs = usual();
    let end = fs.size(FILE).expect("it exists");
    write(&mut fs, FILE, end, PAGE, jiffy(0));
    assert_eq!(fs.map(FILE, 256, 1).place, Place::Delayed);
    write_back(&mut fs, FILE, 256, 1, jiffy(0));
    let Place::Mapped { block } = fs.map(FILE, 256, 1).place else { panic!("it has a block") };
    let log = fs.layout.journal;
    assert_eq!(
        sync(&mut fs, FILE, jiffy(0)),
        [
            Step::Superblock { block: log, tail: 1, tid: Tid(1), fua: false },
            Step::Write { block: log + 1, count: 4, tid: Tid(1), index: 0, of: 4 },
            Step::Wait,
            Step::Commit { block: log + 5, tid: Tid(1), preflush: true, fua: true },
        ]
    );
    let group = group_of(block);
    let mut dirty =
        vec![fs.layout.descriptor(group), fs.layout.block_bitmap(group), fs.layout.inode_block(12)];
    dirty.sort_unstable();
    assert_eq!(fs.dirty_metadata(0).collect::<Vec<_>>(), dirty);
    assert_eq!((fs.stats.log_metadata, fs.stats.log_descriptors, fs.stats.log_commits), (3, 1, 1));
    assert_eq!((fs.stats.commits_sync, fs.stats.allocated), (1, 1));
    // `fdatasync` would also have waited: the length is needed to read the page.
    write(&mut fs, FILE, end + PAGE, PAGE, jiffy(0));
    write_back(&mut fs, FILE, 257, 1, jiffy(0));
    assert!(matches!(fs.fsync(FILE, true), Need::Commit { .. }));
}

/// An overwrite changes the inode's time only, and that once a jiffy (`file_update_time`).
#[test]
fn an_overwrite_commits_the_inode_once_a_jiffy() {
    let mut fs = usual();
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    write_back(&mut fs, FILE, 0, 1, jiffy(1));
    let steps = sync(&mut fs, FILE, jiffy(1));
    assert!(matches!(steps[1], Step::Write { count: 2, of: 2, .. }), "{steps:?}");
    assert_eq!(fs.stats.log_metadata, 1);
    // Within the same jiffy: nothing to commit, but the drive's cache is flushed (`needs_barrier`).
    write(&mut fs, FILE, 0, PAGE, jiffy(1) + Time::from_ms(1));
    assert_eq!(fs.fsync(FILE, false), Need::Flush);
    // In the next jiffy: a commit again, without the journal's superblock.
    write(&mut fs, FILE, 0, PAGE, jiffy(2));
    let steps = sync(&mut fs, FILE, jiffy(2));
    assert!(
        matches!(steps[..], [Step::Write { count: 2, .. }, Step::Wait, Step::Commit { .. }]),
        "{steps:?}"
    );
}

/// A time is not needed to read data back (`i_datasync_tid`).
#[test]
fn fdatasync_of_an_overwrite_flushes_only() {
    let mut fs = usual();
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    assert_eq!(fs.fsync(FILE, true), Need::Flush);
    assert_eq!(fs.fsync(FILE, false), Need::Commit { tid: Tid(1), flush: false });
}

#[test]
fn without_barriers_nothing_is_flushed() {
    let mut fs = small(&FsSpec { barrier: false, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("the drive has room");
    assert_eq!(fs.fsync(FILE, false), Need::Nothing);
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    let steps = sync(&mut fs, FILE, jiffy(1));
    assert!(matches!(steps[3], Step::Commit { preflush: false, fua: false, .. }), "{steps:?}");
}

/// `jbd2_trans_will_send_data_barrier`: a sync during a commit is served by the commit's flush, unless that has been
/// sent.
#[test]
fn a_commit_that_has_flushed_does_not_serve_later_data() {
    let mut fs = usual();
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    assert_eq!(fs.fsync(FILE, false), Need::Commit { tid: Tid(1), flush: false });
    assert!(fs.begin_commit(jiffy(1)));
    loop {
        let step = fs.commit_step();
        let flush = matches!(step, Step::Commit { .. });
        assert_eq!(fs.fsync(FILE, false), Need::Commit { tid: Tid(1), flush });
        if flush {
            break;
        }
    }
    assert!(!fs.is_committed(Tid(1)));
    assert_eq!(fs.commit_step(), Step::Done { tid: Tid(1) });
    assert!(fs.is_committed(Tid(1)));
}

/// Without delayed allocation blocks are valid at once, and their data are written by the commit
/// (`jbd2_submit_inode_data`).
#[test]
fn ordered_data_are_written_before_the_commit_block() {
    let fs = &mut small(&FsSpec { delalloc: false, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("the drive has room");
    write(fs, FILE, 1 << 20, 3 * PAGE, jiffy(0));
    let steps = sync(fs, FILE, jiffy(0));
    let pages = (FILE, 256, 3);
    assert!(
        matches!(steps[..], [
            Step::Superblock { .. },
            Step::Submit { inode, page, pages: count },
            Step::Write { .. },
            Step::Finish { .. },
            Step::Wait,
            Step::Commit { .. },
        ] if (inode, page, count) == pages),
        "{steps:?}"
    );
    // With delayed allocation and immediately valid blocks, write-back has begun to write them: the commit only waits.
    let fs = &mut small(&FsSpec { dioread_nolock: false, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("the drive has room");
    write(fs, FILE, 1 << 20, 3 * PAGE, jiffy(0));
    write_back(fs, FILE, 256, 3, jiffy(0));
    let steps = sync(fs, FILE, jiffy(0));
    assert!(!steps.iter().any(|step| matches!(step, Step::Submit { .. })), "{steps:?}");
    assert!(steps.iter().any(|step| matches!(step, Step::Finish { page: 256, pages: 3, .. })), "{steps:?}");
}

/// Without a journal the inode's block is written home, and then the drive flushed (`ext4_fsync_nojournal`).
#[test]
fn without_a_journal_the_inode_is_written_home() {
    let mut fs = small(&FsSpec { data: JournalMode::none, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("the drive has room");
    write(&mut fs, FILE, 1 << 20, PAGE, jiffy(0));
    write_back(&mut fs, FILE, 256, 1, jiffy(0));
    assert_eq!(fs.fsync(FILE, false), Need::Write { flush: true });
    let inode = fs.layout.inode_block(12);
    assert_eq!(fs.metadata(FILE).collect::<Vec<_>>(), [inode]);
    assert_eq!(fs.dirty_metadata_count(), 3);
    assert!(fs.write_home(inode).is_some());
    fs.home_written(inode);
    assert_eq!((fs.metadata(FILE).count(), fs.dirty_metadata_count()), (0, 2));
    assert_eq!(fs.commit_due(), None);
}

/// With data in the journal any `fsync` commits the running transaction (`ext4_force_commit`).
#[test]
fn journaled_data_go_to_the_log() {
    let mut fs = small(&FsSpec { data: JournalMode::journal, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("the drive has room");
    fs.exists(Inode(1), 1 << 20).expect("the drive has room");
    write(&mut fs, FILE, 0, 8 * PAGE, jiffy(0));
    let steps = sync(&mut fs, Inode(1), jiffy(0));
    assert!(matches!(steps[1], Step::Write { count: 10, .. }), "{steps:?}");
    assert_eq!((fs.stats.log_data, fs.stats.log_metadata), (8, 1));
    assert_eq!(fs.fsync(FILE, false), Need::Nothing);
    assert_eq!(fs.dirty_metadata_count(), 9);
}

/// A new file: inode, its bitmap and the group's descriptor, the directory's block and inode. Here both inodes have one
/// block of the table.
#[test]
fn a_new_file_commits_its_name() {
    let mut fs = usual();
    let handle = fs.start(crate::fs::NAME_CREDITS, jiffy(0)).expect("the handle can start");
    fs.create(&handle, Inode(7), jiffy(0)).expect("the drive has room");
    fs.stop(handle);
    let steps = sync(&mut fs, Inode(7), jiffy(0));
    assert!(matches!(steps[1], Step::Write { count: 5, .. }), "{steps:?}");
    assert_eq!(fs.stats.log_metadata, 4);
}

/// Direct writes. Over existing data only the time changes. After the end: the group's two blocks, the inode, the super
/// block with the orphan list, and the inode again when the data are on the drive.
#[test]
fn direct_writes_count_when_their_data_are_there() {
    let mut fs = usual();
    let direct = |fs: &mut Ext4, offset: u64, now: Time| {
        assert!(!fs.direct_is_bare(FILE, offset, PAGE, now));
        let handle = fs.start(fs.direct_credits(FILE), now).expect("the handle can start");
        fs.direct_write(&handle, FILE, offset, PAGE, now).expect("the drive has room");
        fs.stop(handle);
    };
    direct(&mut fs, 0, jiffy(1));
    assert!(fs.direct_is_bare(FILE, PAGE, PAGE, jiffy(1)) && !fs.direct_has_end(FILE, 0, PAGE));
    assert_eq!((fs.fsync(FILE, true), fs.journal.changed()), (Need::Flush, 1));
    sync(&mut fs, FILE, jiffy(1));
    direct(&mut fs, 1 << 20, jiffy(1));
    assert!(fs.direct_has_end(FILE, 1 << 20, PAGE));
    assert_eq!((fs.size(FILE), fs.journal.changed()), (Some(1 << 20), 4));
    sync(&mut fs, FILE, jiffy(1));
    let handle = fs.start(fs.direct_credits(FILE), jiffy(1)).expect("the handle can start");
    fs.direct_end(&handle, FILE, 1 << 20, PAGE).expect("it is there");
    fs.stop(handle);
    assert_eq!((fs.size(FILE), fs.journal.changed()), (Some((1 << 20) + PAGE), 2));
    assert!(matches!(fs.fsync(FILE, true), Need::Commit { .. }));
    // Into a hole: unwritten until the data are on the drive.
    write(&mut fs, FILE, 2 << 20, PAGE, jiffy(1));
    direct(&mut fs, 300 * PAGE, jiffy(1));
    assert!(matches!(fs.map(FILE, 300, 2), Run { place: Place::Unwritten { .. }, pages: 1 }));
}

/// `sync` during a commit flushes the drive itself if that commit has already sent its flush (`ext4_sync_fs`,
/// `jbd2_trans_will_send_data_barrier`).
#[test]
fn sync_flushes_behind_a_commit_that_has_flushed() {
    let mut fs = usual();
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    write_back(&mut fs, FILE, 0, 1, jiffy(1));
    assert!(matches!(fs.sync_all(), Need::Commit { flush: false, .. }));
    assert!(fs.begin_commit(jiffy(1)));
    while !matches!(fs.commit_step(), Step::Commit { .. }) {
        assert!(matches!(fs.sync_all(), Need::Commit { flush: false, .. }));
    }
    assert!(matches!(fs.sync_all(), Need::Commit { flush: true, .. }));
}

/// A direct write after the file's length on the drive, but before that of delayed pages, extends the file on the drive
/// (`ext4_extending_io`).
#[test]
fn a_direct_write_before_delayed_pages_makes_the_file_longer_on_the_drive() {
    let mut fs = usual();
    write(&mut fs, FILE, 2 << 20, PAGE, jiffy(0));
    let (offset, end) = (3 << 19, (3 << 19) + PAGE);
    assert!(fs.direct_has_end(FILE, offset, PAGE));
    let handle = fs.start(fs.direct_credits(FILE), jiffy(0)).expect("the handle can start");
    fs.direct_write(&handle, FILE, offset, PAGE, jiffy(0)).expect("the drive has room");
    fs.direct_end(&handle, FILE, offset, PAGE).expect("it is there");
    fs.stop(handle);
    let file = fs.file(FILE).expect("it is there");
    assert_eq!((file.size, file.disk_size), ((2 << 20) + PAGE, end));
    assert!(!fs.direct_has_end(FILE, offset, PAGE));
}
