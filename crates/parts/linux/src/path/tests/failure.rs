//! Calls that fail.

use super::super::failure::Errors;
use super::*;
use proto::file::CallError::{Io, NoSpace, ReadOnly};

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

/// lib/errseq.c: an error is told to each descriptor once, and to one that is opened before anybody has looked at it; what comes before that counts
/// with it.
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

/// Writes in pieces of 16 MiB until long after the file system is full: each fails from the first on that does not fit, with `ENOSPC`. Delayed allocation
/// leaves 4,096 blocks, which is less than 2 % of the drive (`ext4_calculate_resv_clusters`).
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

/// A read whose page the drive could not read fails, as a load of it does, and one past the page cache; the next tries again.
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

/// `fsync` says once that data could not be written, to each descriptor; who opens the file later is not told.
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

/// A commit that the drive fails: `fsync` fails that waits for it, and nothing can be changed from then on.
#[test]
fn a_journal_that_cannot_write_is_given_up() {
    let calls =
        vec![open_as(0, false), write(0, 4096), sync_of(0), write(8192, 4096), read(0, 4096), sync_of(0)];
    let bench = bench(script(None, vec![calls]), 1, |command| command.fua);
    assert_eq!(failed(&bench), [(0, 2, Io), (0, 3, ReadOnly), (0, 5, ReadOnly)]);
}

/// A flush that the drive fails fails `fsync`.
#[test]
fn a_flush_that_the_drive_fails_fails() {
    let sync = Next::Call(Call::Sync { fd: Fd(0), data_only: true });
    let calls = vec![open_as(0, true), write(0, 4096), sync, sync];
    let bench = bench(script(Some(MIB), vec![calls]), 1, |command| command.op == IoOp::Flush);
    assert_eq!(failed(&bench), [(0, 2, Io)]);
}
