//! What `fsync` waits for.

use super::super::Tid;
use super::*;
use crate::fs::Run;
use crate::fs::layout::group_of;

/// With every switch as Linux has it.
fn usual() -> Ext4 {
    let mut fs = small(&FsSpec::default());
    fs.exists(FILE, 1 << 20).expect("there is room");
    fs
}

/// An append of 4 KiB dirties the inode (`ext4_dirty_inode`, by its time and length), and when it is written back the bitmap and
/// the descriptor of its group (`ext4_mb_mark_diskspace_used`): three blocks, with a descriptor four in the log, and a commit
/// block with a flush before it and FUA. The journal's superblock is written before the first commit. Since the extent is born
/// unwritten, there are no ordered data.
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
    // `fdatasync` would have waited as well: the length is needed to read the page.
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
    // Across: a commit again, without the journal's superblock.
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
    fs.exists(FILE, 1 << 20).expect("there is room");
    assert_eq!(fs.fsync(FILE, false), Need::Nothing);
    write(&mut fs, FILE, 0, PAGE, jiffy(1));
    let steps = sync(&mut fs, FILE, jiffy(1));
    assert!(matches!(steps[3], Step::Commit { preflush: false, fua: false, .. }), "{steps:?}");
}

/// `jbd2_trans_will_send_data_barrier`: who comes while a transaction commits is served by its flush, unless that has been sent.
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

/// Without delayed allocation blocks count at once, and their data are written by the commit (`jbd2_submit_inode_data`).
#[test]
fn ordered_data_are_written_before_the_commit_block() {
    let fs = &mut small(&FsSpec { delalloc: false, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("there is room");
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
    // With delayed allocation and blocks that count at once, write-back has begun to write them: the commit only waits.
    let fs = &mut small(&FsSpec { dioread_nolock: false, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("there is room");
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
    fs.exists(FILE, 1 << 20).expect("there is room");
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

/// With data in the journal any `fsync` commits what is running (`ext4_force_commit`).
#[test]
fn journaled_data_go_to_the_log() {
    let mut fs = small(&FsSpec { data: JournalMode::journal, ..FsSpec::default() });
    fs.exists(FILE, 1 << 20).expect("there is room");
    fs.exists(Inode(1), 1 << 20).expect("there is room");
    write(&mut fs, FILE, 0, 8 * PAGE, jiffy(0));
    let steps = sync(&mut fs, Inode(1), jiffy(0));
    assert!(matches!(steps[1], Step::Write { count: 10, .. }), "{steps:?}");
    assert_eq!((fs.stats.log_data, fs.stats.log_metadata), (8, 1));
    assert_eq!(fs.fsync(FILE, false), Need::Nothing);
    assert_eq!(fs.dirty_metadata_count(), 9);
}

/// A new file: inode, its bitmap and the group's descriptor, the directory's block and inode. Here both inodes have one block of the table.
#[test]
fn a_new_file_commits_its_name() {
    let mut fs = usual();
    let handle = fs.start(crate::fs::NAME_CREDITS, jiffy(0)).expect("nothing is in the way");
    fs.create(&handle, Inode(7), jiffy(0)).expect("there is room");
    fs.stop(handle);
    let steps = sync(&mut fs, Inode(7), jiffy(0));
    assert!(matches!(steps[1], Step::Write { count: 5, .. }), "{steps:?}");
    assert_eq!(fs.stats.log_metadata, 4);
}

/// A direct write: over data only the time changes; behind the end there are the group's two blocks, the inode, and the super block with the
/// list of orphans, and again the inode when the data are there.
#[test]
fn direct_writes_count_when_their_data_are_there() {
    let mut fs = usual();
    let direct = |fs: &mut Ext4, offset: u64, now: Time| {
        assert!(!fs.direct_is_bare(FILE, offset, PAGE, now));
        let handle = fs.start(fs.direct_credits(FILE), now).expect("nothing is in the way");
        fs.direct_write(&handle, FILE, offset, PAGE, now).expect("there is room");
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
    let handle = fs.start(fs.direct_credits(FILE), jiffy(1)).expect("nothing is in the way");
    fs.direct_end(&handle, FILE, 1 << 20, PAGE).expect("it is there");
    fs.stop(handle);
    assert_eq!((fs.size(FILE), fs.journal.changed()), (Some((1 << 20) + PAGE), 2));
    assert!(matches!(fs.fsync(FILE, true), Need::Commit { .. }));
    // Into a hole: unwritten until the data are there.
    write(&mut fs, FILE, 2 << 20, PAGE, jiffy(1));
    direct(&mut fs, 300 * PAGE, jiffy(1));
    assert!(matches!(fs.map(FILE, 300, 2), Run { place: Place::Unwritten { .. }, pages: 1 }));
}

/// `sync` while a transaction is being committed: it flushes the drive itself if that commit has sent its flush already
/// (`ext4_sync_fs`, `jbd2_trans_will_send_data_barrier`).
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

/// A direct write behind the length that the drive knows, and before that of pages that have no blocks yet, makes the file longer on the drive
/// (`ext4_extending_io`).
#[test]
fn a_direct_write_before_delayed_pages_makes_the_file_longer_on_the_drive() {
    let mut fs = usual();
    write(&mut fs, FILE, 2 << 20, PAGE, jiffy(0));
    let (offset, end) = (3 << 19, (3 << 19) + PAGE);
    assert!(fs.direct_has_end(FILE, offset, PAGE));
    let handle = fs.start(fs.direct_credits(FILE), jiffy(0)).expect("nothing is in the way");
    fs.direct_write(&handle, FILE, offset, PAGE, jiffy(0)).expect("there is room");
    fs.direct_end(&handle, FILE, offset, PAGE).expect("it is there");
    fs.stop(handle);
    let file = fs.file(FILE).expect("it is there");
    assert_eq!((file.size, file.disk_size), ((2 << 20) + PAGE, end));
    assert!(!fs.direct_has_end(FILE, offset, PAGE));
}
