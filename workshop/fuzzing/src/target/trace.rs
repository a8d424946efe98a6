//! Block traces: detection, every reader, decompression, inspection, conversion. Logs of host programs: those written
//! by `strace` and fio, and the calls that a replay makes of them.

use super::{Target, texts};
use config::Diagnostic;
use engine::Time;
use programs::host::{HostProgram, open};
use proto::file::{Call, Fd, Next};
use requests::trace::{TraceOptions, TraceReader, formats, fuzz_one};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::io::Cursor;

pub(super) const TARGET: Target = Target {
    name: "trace",
    about: "block traces in every format",
    run: |bytes| fuzz_one(bytes, programs::FILES),
    examples,
    reads,
    cases: 7_000,
};

/// Example of each format after the byte that names it.
fn examples() -> Vec<Vec<u8>> {
    let named = |n: usize| (n as u8) << 1 | 1;
    formats().enumerate().map(|(n, info)| [&[named(n)], &info.content()[..]].concat()).collect()
}

fn reads(bytes: &[u8]) -> bool {
    let Some((choice, content)) = bytes.split_first() else { return false };
    let format = formats().nth(usize::from(choice >> 1)).map(|info| info.name.to_owned());
    let options = TraceOptions { format, others: programs::FILES, ..TraceOptions::default() };
    TraceReader::from_read("example", Cursor::new(content.to_vec()), &options).is_ok()
}

pub(super) const STRACE: Target = Target {
    name: "strace",
    about: "logs of system calls, and their replay",
    run: |bytes| {
        ["", ",unknown=skip,times=none"].into_iter().for_each(|options| run("strace", bytes, options))
    },
    examples: || texts(&[SHELL, THREADS, CALLS]),
    reads: |bytes| take("strace", bytes, "").is_ok(),
    cases: 400,
};

pub(super) const IOLOG: Target = Target {
    name: "iolog",
    about: "fio's logs of what a job did to files, and their replay",
    run: |bytes| ["", ",times=none,direct=yes"].into_iter().for_each(|options| run("iolog", bytes, options)),
    examples: || texts(&[TWO, THREE]),
    reads: |bytes| take("iolog", bytes, "").is_ok(),
    cases: 400,
};

const SHELL: &str = r#"10 100.000000 open("log", O_WRONLY|O_CREAT|O_CLOEXEC, 0644) = 3 <0.000010>
10 100.001000 write(3, "ab", 2) = 2 <0.000010>
10 100.002000 vfork( <unfinished ...>
11 100.002500 write(3, "cd", 2) = 2 <0.000010>
11 100.003000 execve("/bin/x", ["x"], 0x55 /* 39 vars */ <unfinished ...>
10 100.003100 <... vfork resumed>) = 11 <0.001100>
10 100.003200 wait4(-1,  <unfinished ...>
11 100.003300 <... execve resumed>) = 0 <0.000300>
11 100.004000 write(3, "no file", 19) = -1 EBADF (Bad file descriptor) <0.000010>
11 100.005000 exit_group(0) = ?
11 100.005100 +++ exited with 0 +++
10 100.005200 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11 <0.002000>
10 100.005300 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=11} ---
10 100.006000 write(3, "ef", 2) = 2 <0.000010>
10 100.007000 +++ exited with 0 +++
"#;

const THREADS: &str = r#"1 100.000000 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD, stack=0x7f}, 88) = 2 <0.000010>
1 100.001000 open("f", O_RDONLY) = 3 <0.000900>
2 100.002000 pread64(3, "", 10, 0) = 10 <0.000010>
2 100.002050 futex(0x7f, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>
1 100.002100 close(3) = 0 <0.000010>
1 100.002200 futex(0x7f, FUTEX_WAKE_PRIVATE, 1) = 1 <0.000010>
2 100.002300 <... futex resumed>) = 0 <0.000250>
"#;

const CALLS: &str = r#"7 100.000000 openat(AT_FDCWD</srv/u>, "a/data", O_RDWR|O_DIRECT|O_CLOEXEC) = 3</srv/u/a/data> <0.000010>
7 100.001000 newfstatat(3</srv/u/a/data>, "", {st_mode=S_IFREG|0644, st_size=34983, ...}, AT_EMPTY_PATH) = 0 <0.000034>
7 100.002000 readv(3</srv/u/a/data>, [{iov_base="a", iov_len=10}, {iov_base="b", iov_len=10}], 2) = 20 <0.000010>
7 100.003000 lseek(3</srv/u/a/data>, -16, SEEK_CUR) = 4 <0.000010>
7 100.004000 write(3</srv/u/a/data>, "\255x\"z"..., 1000) = 900 <0.000010>
7 100.005000 dup(3</srv/u/a/data>) = 4</srv/u/a/data> <0.000010>
7 100.006000 fadvise64(4</srv/u/a/data>, 4096, 8192, POSIX_FADV_DONTNEED) = 0 <0.000010>
7 100.007000 ftruncate(4</srv/u/a/data>, 5000) = 0 <0.000010>
7 100.008000 copy_file_range(4, NULL, 3</srv/u/a/data>, [5] => [15], 9223372035781033984, 0) = 10 <0.000040>
7 100.009000 sync_file_range(3</srv/u/a/data>, 0, 4096, SYNC_FILE_RANGE_WRITE) = 0 <0.000010>
7 100.010000 fallocate(3</srv/u/a/data>, 0, 0, 65536) = 0 <0.000010>
7 100.011000 renameat2(AT_FDCWD, "a/data", AT_FDCWD, "b", RENAME_NOREPLACE) = 0 <0.000040>
7 100.012000 mmap(NULL, 34983, PROT_READ, MAP_PRIVATE, 3</srv/u/a/data>, 0) = 0x7fa31c51c000 <0.000036>
7 100.013000 sendfile(1<pipe:[123]>, 3</srv/u/a/data>, NULL, 100) = 100 <0.000010>
7 100.014000 unlink("/srv/u/./a/../b") = 0 <0.000010>
7 100.015000 +++ killed by SIGKILL +++
"#;

const TWO: &str = "fio version 2 iolog\na add\na open\na wait 500 0\na read 0 4096\na wait 200 0\na write 0 512\na sync 0 0\na close\n";

const THREE: &str = "fio version 3 iolog\n0 a add\n10 a open\n50 a read 4096 8192\n60 a write 0 4096\n70 b sync 0 0\n\
                     900 a datasync 0 0\n901 a trim 0 4096\n902 a close\n";

/// Reads the bytes as a file.
fn take(program: &str, bytes: &[u8], options: &str) -> Result<Box<dyn HostProgram>, Diagnostic> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("log");
    std::fs::write(&path, bytes).expect("a file");
    let mut replay = open(&format!("{program}:file={}{options}", path.display()), "fuzz", 1)?;
    replayed(replay.as_mut());
    Ok(replay)
}

fn run(program: &str, bytes: &[u8], options: &str) {
    match take(program, bytes, options) {
        Ok(replay) => assert_eq!(replay.progress(), Some(1.0), "{:?}", replay.notes()),
        Err(fault) => {
            let whole = ["cannot read", "has no system calls", "has no requests"];
            let of_the_whole = whole.iter().any(|what| fault.what.contains(what));
            assert!(of_the_whole || fault.place.as_ref().is_some_and(|place| place.line > 0), "{fault}");
            assert!(fault.help.is_some() && fault.also.is_empty(), "{fault}");
        }
    }
}

/// Runs a program whose calls take no time to its end, which every thread must reach.
fn replayed(program: &mut dyn HostProgram) {
    let (files, threads) = (program.files().len(), program.threads());
    let mut descriptors = BTreeSet::new();
    let mut ready: BinaryHeap<_> = (0..threads).map(|thread| Reverse((Time::ZERO, thread))).collect();
    let (mut waits, mut left) = (vec![false; threads as usize], threads);
    while let Some(Reverse((now, thread))) = ready.pop() {
        match program.next(thread, now) {
            Next::Compute(time) => ready.push(Reverse((now + time, thread))),
            Next::Until(time) => ready.push(Reverse((time.max(now), thread))),
            Next::Wait => waits[thread as usize] = true,
            Next::End => left -= 1,
            Next::Wake(other) => {
                if std::mem::take(&mut waits[other as usize]) {
                    ready.push(Reverse((now, other)));
                }
                ready.push(Reverse((now, thread)));
            }
            Next::Order { order, .. } => panic!("a log has no orders: {order:?}"),
            Next::Call(call) => {
                called(call, files, &mut descriptors);
                ready.push(Reverse((now, thread)));
            }
        }
    }
    assert_eq!(left, 0, "threads that wait for ever");
}

/// Checks that a call is on an open descriptor, and within the size of a file.
fn called(call: Call, files: usize, descriptors: &mut BTreeSet<u16>) {
    let is_open = |Fd(number): Fd| assert!(descriptors.contains(&number), "{call:?}");
    let most = i64::MAX as u64;
    match call {
        Call::Open { fd, file, .. } => {
            assert!((file.0 as usize) < files && descriptors.insert(fd.0), "{call:?}");
        }
        Call::Close { fd } => assert!(descriptors.remove(&fd.0), "{call:?}"),
        Call::Read { fd, offset, bytes } | Call::Write { fd, offset, bytes } => {
            is_open(fd);
            assert!(offset.checked_add(bytes).is_some_and(|end| end <= most), "{call:?}");
        }
        Call::Truncate { fd, bytes } => {
            is_open(fd);
            assert!(bytes <= most, "{call:?}");
        }
        Call::Touch { fd, .. }
        | Call::Sync { fd, .. }
        | Call::SyncRange { fd, .. }
        | Call::Advise { fd, .. } => is_open(fd),
        Call::Unlink { file } => assert!((file.0 as usize) < files, "{call:?}"),
        Call::SyncAll => {}
    }
}
