//! Races between calls.

use super::super::io::Errors;
use super::*;
use crate::Inode;
use crate::fs::{FsSpec, JournalMode};
use proto::file::CallError::{Io, NoSpace, ReadOnly};

fn call(call: Call) -> Next {
    Next::Call(call)
}

fn at_us(us: u64) -> Next {
    Next::Until(Time::from_us(us))
}

fn ext4(data: JournalMode) -> PathSpec {
    PathSpec { fs: OnDrives::Ext4(FsSpec { data, ..FsSpec::default() }), ..spec(256 * MIB) }
}

/// A store to a mapped page waits for the drive, while the file is truncated before it (`truncate_setsize` comes before
/// the pages are removed): the page no longer exists (`filemap_fault` answers `VM_FAULT_SIGBUS`), in memory or dirty.
#[test]
fn a_page_touched_behind_a_new_end_is_not_there() {
    let touch = call(Call::Touch { fd: Fd(0), offset: MIB - PAGE, write: true });
    let cut = call(Call::Truncate { fd: Fd(0), bytes: 0 });
    // The page arrives after 100 us and its transfer time.
    for us in [20, 50, 100] {
        let mut bench = Bench::new(
            &spec(256 * MIB),
            script(
                Some(MIB),
                vec![vec![open(), touch, Next::Compute(Time::from_us(1))], vec![at_us(us), cut]],
            ),
        );
        bench.run();
        let page = bench.outside.seen[0];
        assert!(page.op == IoOp::Read && bench.outside.times[0] < Time::from_us(us), "{us}: {page:?}");
        assert_eq!(bench.host.cache.file_pages(Inode(0)), 0, "{us}");
        assert_eq!(bench.host.cache.stats().dirtied, 0, "{us}");
    }
}

/// Without a journal, `fsync` writes the metadata blocks that a file has changed (`sync_mapping_buffers`). A block
/// whose write with older content is in flight is written again: between a file's new length and the end of its `fsync`
/// the write of its inode block begins, whatever else goes on.
#[test]
fn metadata_on_their_way_are_written_again_for_fsync() {
    let files = |bytes| ["first", "second"].map(|name| FileSpec { name: name.to_owned(), bytes, drive: 0 });
    let open =
        |fd: u16| call(Call::Open { fd: Fd(fd), file: FileId(fd.into()), flags: OpenFlags::default() });
    let fsync = |fd| call(Call::Sync { fd: Fd(fd), data_only: false });
    let cut = |fd| call(Call::Truncate { fd: Fd(fd), bytes: MIB / 2 });
    let run = |first: Vec<Next>, second: Vec<Next>| {
        let program = Script { files: files(Some(MIB)).into(), ..script(None, vec![first, second]) };
        let mut bench = Bench::new(&ext4(JournalMode::none), program);
        bench.run();
        bench
    };
    // Both inodes are in one block, which the `fsync` of either writes; each alone determines which.
    let of_fsync = |bench: &Bench, thread: usize| {
        let [.., cut, synced, _] = *bench.asked(thread) else { panic!("three calls") };
        let seen = bench.outside.seen.iter().zip(&bench.outside.times);
        let within = seen.filter(|(command, at)| command.op == IoOp::Write && **at >= cut && **at < synced);
        within.map(|(command, _)| command.offset).collect::<Vec<u64>>()
    };
    let end = Next::Compute(Time::from_us(1));
    let alone = run(vec![open(0), cut(0), fsync(0), end], vec![]);
    let other = of_fsync(&run(vec![], vec![open(1), cut(1), fsync(1), end]), 1);
    let blocks: Vec<u64> = of_fsync(&alone, 0).into_iter().filter(|block| other.contains(block)).collect();
    assert!(!blocks.is_empty());
    // The second file is truncated at any time while the first one's blocks are in flight.
    for us in (0..40).map(|n| 10 * n) {
        let bench = run(vec![open(0), cut(0), fsync(0)], vec![open(1), at_us(us), cut(1), fsync(1), end]);
        let begun = of_fsync(&bench, 1);
        assert!(blocks.iter().all(|block| begun.contains(block)), "{us} us: {begun:?} of {blocks:?}");
    }
}

/// No block has two writes in flight (a buffer's lock, `PG_writeback`), including the journal's superblock, written by
/// a commit and by a checkpoint (`j_checkpoint_mutex`).
#[test]
fn no_block_is_on_its_way_twice() {
    let files: Vec<FileSpec> =
        (0..4).map(|n| FileSpec { name: format!("file {n}"), bytes: Some(16 * MIB), drive: 0 }).collect();
    let thread = |n: u16| {
        let open = Call::Open { fd: Fd(n), file: FileId(n.into()), flags: OpenFlags::default() };
        let writes = (0..150u64).flat_map(move |at| {
            let bytes = (1 + (at * 7 + u64::from(n)) % 5) * PAGE;
            let write = Call::Write { fd: Fd(n), offset: at * 97 % 4096 * PAGE, bytes };
            [call(write), call(Call::Sync { fd: Fd(n), data_only: false })]
        });
        std::iter::once(call(open)).chain(writes).collect()
    };
    let mut spec = ext4(JournalMode::journal);
    let OnDrives::Ext4(fs) = &mut spec.fs else { unreachable!() };
    fs.journal_size = Some(Bytes::new(4 * MIB));
    let program = Script { files, ..script(None, (0..4).map(thread).collect()) };
    let mut bench = Bench::new(&spec, program);
    bench.run();
    let Outside { seen, times, ends, .. } = &bench.outside;
    let mut last = std::collections::BTreeMap::new();
    for ((command, at), end) in seen.iter().zip(times).zip(ends) {
        if command.op != IoOp::Write {
            continue;
        }
        for block in command.offset / PAGE..(command.offset + command.bytes) / PAGE {
            let before = last.insert(block, *end);
            assert!(
                before.is_none_or(|end| end <= *at),
                "block {block} written at {at}, but in flight until {before:?}"
            );
        }
    }
}

/// Gathered pages are written: pages that become dirty after the file's last extent meanwhile are skipped, so a flusher
/// or `sync_file_range` does not chase an appending writer (`scanned_until_end` of `mpage_prepare_extent_to_map`).
#[test]
fn write_back_does_not_follow_a_writer() {
    let (first, begin) = (1_000, Time::from_ms(20));
    let how = SyncRange { write: true, ..SyncRange::default() };
    let range = call(Call::SyncRange { fd: Fd(0), offset: 0, bytes: 0, how });
    let pieces =
        (first..first + 1_000).flat_map(|page| [Next::Compute(Time::from_us(2)), write(page * PAGE, PAGE)]);
    let threads = vec![
        vec![open(), write(0, first * PAGE), Next::Until(begin), range, Next::Compute(Time::from_us(1))],
        std::iter::once(Next::Until(begin)).chain(pieces).collect(),
    ];
    let mut bench = Bench::new(&spec(256 * MIB), script(None, threads));
    bench.run();
    // Asked again after each piece: the pages present at a time.
    let there = |at: Time| {
        let asked = bench.asked(1).iter().skip(1).filter(|asked| **asked <= at).count() as u64;
        first + asked / 2
    };
    let returned = *bench.asked(0).last().expect("it ends");
    let seen = bench.outside.seen.iter().zip(&bench.outside.times);
    let data: Vec<(u64, Time)> = seen
        .filter(|(command, at)| command.op == IoOp::Write && **at >= begin && **at <= returned)
        .map(|(command, at)| (command.bytes / PAGE, *at))
        .collect();
    let written: u64 = data.iter().map(|(pages, _)| pages).sum();
    let (gathered, later) = (there(data[0].1), there(returned));
    assert!(written >= first && written <= gathered, "{written} of {gathered}");
    assert!(later > gathered + 10, "the writer was not ahead: {later} and {gathered}");
}

// Failed calls.

fn bench(program: Script, most: u32, fails: Fails) -> Bench {
    let mut bench = Bench::new(&spec(256 * MIB), program);
    bench.outside.fails = Some((fails, most));
    bench.run();
    bench
}

fn failed(bench: &Bench) -> &[(u32, usize, CallError)] {
    &bench.host.programs[0].program.failed
}

fn open_as(fd: u16, direct: bool) -> Next {
    let flags = OpenFlags { direct, ..OpenFlags::default() };
    Next::Call(Call::Open { fd: Fd(fd), file: FileId(0), flags })
}

fn sync_of(fd: u16) -> Next {
    Next::Call(Call::Sync { fd: Fd(fd), data_only: false })
}

/// lib/errseq.c: an error is reported once to each descriptor, also to one that is opened before the first report;
/// earlier errors count with it.
#[test]
fn an_error_is_told_once_to_each() {
    let mut errors = Errors::default();
    let (mut first, mut second) = (errors.sample(), errors.sample());
    assert_eq!(errors.check(&mut first), None);
    errors.set(NoSpace);
    errors.set(Io);
    let mut third = errors.sample();
    assert_eq!((errors.check(&mut first), errors.check(&mut first)), (Some(Io), None));
    assert_eq!((errors.check(&mut third), errors.check(&mut third)), (Some(Io), None));
    let mut fourth = errors.sample();
    assert_eq!((errors.check(&mut fourth), errors.check(&mut second)), (None, Some(Io)));
    errors.set(NoSpace);
    for since in [&mut first, &mut second, &mut third, &mut fourth] {
        assert_eq!(errors.check(since), Some(NoSpace));
        assert_eq!(errors.check(since), None);
    }
}

/// Writes in pieces of 16 MiB until long after the file system is full: each write from the first that does not fit on
/// fails with `ENOSPC`. Delayed allocation leaves 4,096 blocks, less than 2 % of the drive
/// (`ext4_calculate_resv_clusters`).
#[test]
fn a_write_without_room_fails() {
    for (direct, reserved) in [(false, 4096), (true, 0)] {
        let pieces = (0..16).map(|n| write(n * 16 * MIB, 16 * MIB));
        let mut program = script(None, vec![std::iter::once(open_as(0, direct)).chain(pieces).collect()]);
        program.files.push(FileSpec { name: "full".to_owned(), bytes: Some(850 * MIB), drive: 0 });
        let mut bench = Bench::new(&spec(256 * MIB), program);
        let room = bench.host.fs(0).expect("a file system").available() - reserved;
        let fit = room / (16 * MIB / PAGE);
        assert!(
            fit > 0 && fit < 14 && room % (16 * MIB / PAGE) > 64,
            "{room} pages: the end is not told by metadata"
        );
        bench.run();
        let expected: Vec<_> = (fit as usize + 1..17).map(|call| (0, call, NoSpace)).collect();
        assert_eq!(failed(&bench), expected, "direct {direct}");
    }
}

/// A read whose page the drive could not read fails; so do a load of it and a direct read. The next read tries again.
#[test]
fn a_read_that_the_drive_fails_fails() {
    let load = || Next::Call(Call::Touch { fd: Fd(0), offset: 0, write: false });
    for (direct, call) in
        [(false, read(0, 4096)), (true, read(0, 4096)), (false, load()), (false, write(0, 100))]
    {
        let program = script(Some(MIB), vec![vec![open_as(0, direct), call, call, read(MIB / 2, 4096)]]);
        let bench = bench(program, 1, |command| command.op == IoOp::Read);
        assert_eq!(failed(&bench), [(0, 1, Io)], "{call:?}");
    }
}

/// `fsync` reports lost data once to each descriptor, but not to one opened later.
#[test]
fn fsync_says_once_that_data_are_lost() {
    let calls = vec![
        open_as(0, false),
        open_as(1, false),
        write(0, 64 << 10),
        sync_of(0),
        open_as(2, false),
        sync_of(2),
        sync_of(1),
        sync_of(1),
        sync_of(0),
    ];
    let bench =
        bench(script(None, vec![calls]), 1, |command| command.op == IoOp::Write && command.bytes == 64 << 10);
    assert_eq!(failed(&bench), [(0, 3, Io), (0, 6, Io)]);
}

/// A commit that the drive fails: an `fsync` that waits for it fails, and later changes are refused.
#[test]
fn a_journal_that_cannot_write_is_given_up() {
    let calls =
        vec![open_as(0, false), write(0, 4096), sync_of(0), write(8192, 4096), read(0, 4096), sync_of(0)];
    let bench = bench(script(None, vec![calls]), 1, |command| command.fua);
    assert_eq!(failed(&bench), [(0, 2, Io), (0, 3, ReadOnly), (0, 5, ReadOnly)]);
}

/// `fsync` fails if the drive fails its flush.
#[test]
fn a_flush_that_the_drive_fails_fails() {
    let sync = Next::Call(Call::Sync { fd: Fd(0), data_only: true });
    let calls = vec![open_as(0, true), write(0, 4096), sync, sync];
    let bench = bench(script(Some(MIB), vec![calls]), 1, |command| command.op == IoOp::Flush);
    assert_eq!(failed(&bench), [(0, 2, Io)]);
}
