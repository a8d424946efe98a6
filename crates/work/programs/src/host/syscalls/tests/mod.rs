mod clocks;
mod written;

use super::clock::Choice;
use super::{Settings, read_all};
use crate::host::tests::{Calls, Did, drive};
use crate::host::{HostProgram, open};
use engine::Time;
use proptest::prelude::*;
use proto::file::{Advice, Call, Fd, FileId, Next, OpenFlags};
use std::io::Write as _;

const SETTINGS: Settings = Settings { kept: true, clock: Choice::Auto, overhead: 0, skip: false };

/// Writes a file with a log.
fn log(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn program(text: &str, options: &str) -> Box<dyn HostProgram> {
    let file = log(text);
    open(&format!("strace:file={}{options}", file.path().display()), "t", 1).unwrap()
}

fn run(text: &str, options: &str) -> Vec<Did> {
    let calls = Calls { time: Time::from_us(10), sync: Time::ZERO };
    let file = log(text);
    let mut program = open(&format!("strace:file={}{options}", file.path().display()), "t", 1).unwrap();
    drive(program.as_mut(), &calls, Time::from_s(100))
}

fn of(done: &[Did], thread: u32) -> Vec<Next> {
    let of = done.iter().filter(|did| did.thread == thread).map(|did| did.next);
    of.filter(|next| !matches!(next, Next::Compute(_) | Next::Until(_) | Next::Wait | Next::Wake(_)))
        .collect()
}

/// Returns lines a millisecond apart, each call 100 us long.
fn lines(calls: &[&str]) -> String {
    let line = |(n, call): (usize, &&str)| format!("7 100.{n:03}000 {call} <0.000100>\n");
    calls.iter().enumerate().map(line).collect()
}

/// All calls on one file, with the offsets worked out by hand.
#[test]
fn a_log_becomes_these_calls() {
    let text = lines(&[
        r#"openat(AT_FDCWD, "a/data", O_RDWR|O_DIRECT|O_CLOEXEC) = 3"#,
        r#"read(3, "x, \") = 5"..., 4096) = 4096"#,
        r#"pread64(3, "y", 100, 8192) = 50"#,
        r#"readv(3, [{iov_base="a", iov_len=10}, {iov_base="b", iov_len=10}], 2) = 20"#,
        r#"lseek(3, -16, SEEK_CUR) = 4100"#,
        r#"write(3, "z"..., 1000) = 900"#,
        r#"dup(3) = 4"#,
        r#"close(3) = 0"#,
        r#"write(4, "z", 100) = 100"#,
        r#"pwritev(4, [{iov_base="a", iov_len=10}], 1, 70000) = 10"#,
        r#"fdatasync(4) = 0"#,
        r#"fadvise64(4, 4096, 8192, POSIX_FADV_DONTNEED) = 0"#,
        r#"ftruncate(4, 5000) = 0"#,
        r#"close(4) = 0"#,
        r#"open("a/data", O_WRONLY|O_APPEND) = 3"#,
        r#"write(3, "tail", 4) = 4"#,
        r#"fsync(3) = 0"#,
        r#"sync_file_range(3, 0, 4096, SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE) = 0"#,
        r#"unlink("./a/../a/data") = 0"#,
        r#"exit_group(0) = ?"#,
    ]);
    let (fd, file, on) = (Fd(0), FileId(0), OpenFlags { direct: true, ..OpenFlags::default() });
    let read = |offset, bytes| Next::Call(Call::Read { fd, offset, bytes });
    let write = |offset, bytes| Next::Call(Call::Write { fd, offset, bytes });
    let how = proto::file::SyncRange { wait_before: true, write: true, wait_after: false };
    let expected = [
        Next::Call(Call::Open { fd, file, flags: on }),
        read(0, 4_096),
        read(8_192, 50),
        read(4_096, 20),
        write(4_100, 900),
        write(5_000, 100),
        write(70_000, 10),
        Next::Call(Call::Sync { fd, data_only: true }),
        Next::Call(Call::Advise { fd, offset: 4_096, bytes: 8_192, advice: Advice::DontNeed }),
        Next::Call(Call::Truncate { fd, bytes: 5_000 }),
        Next::Call(Call::Close { fd }),
        Next::Call(Call::Open { fd, file, flags: OpenFlags::default() }),
        write(5_000, 4),
        Next::Call(Call::Sync { fd, data_only: false }),
        Next::Call(Call::SyncRange { fd, offset: 0, bytes: 4_096, how }),
        Next::Call(Call::Unlink { file }),
        Next::Call(Call::Close { fd }),
        Next::End,
    ];
    let done = run(&text, "");
    assert_eq!(of(&done, 0), expected);
    // Gaps are 900 us; a seek, a dup and a close that closes nothing compute for 100 us plus the gaps around them.
    let computed: Vec<u64> = done
        .iter()
        .filter_map(|did| match did.next {
            Next::Compute(time) => Some(time.ns() / 1_000),
            _ => None,
        })
        .collect();
    // The exit computes for its 100 us as well, then the file is closed.
    let expected = [900, 900, 900, 1_900, 2_900, 900, 900, 900, 900, 900, 900, 900, 900, 900, 900, 1_000];
    assert_eq!(computed, expected);
    assert_eq!(of(&run(&text, ",times=none"), 0).len(), 18);
    assert!(!run(&text, ",times=none").iter().any(|did| matches!(did.next, Next::Compute(_))));
    let less: u64 = run(&text, ",overhead=500us")
        .iter()
        .filter(|did| did.next == Next::Compute(Time::from_us(400)))
        .count() as u64;
    assert_eq!(less, 13);
}

#[test]
fn files_were_as_long_as_what_was_read_of_them() {
    let text = lines(&[
        r#"openat(AT_FDCWD, "read", O_RDONLY) = 3"#,
        r#"pread64(3, "y", 100, 9900) = 100"#,
        r#"openat(AT_FDCWD, "stat", O_RDWR) = 4"#,
        r#"newfstatat(4, "", {st_mode=S_IFREG|0644, st_size=34983, ...}, AT_EMPTY_PATH) = 0"#,
        r#"pwrite64(4, "y", 1, 99999) = 1"#,
        r#"newfstatat(4, "", {st_mode=S_IFREG|0644, st_size=100000, ...}, AT_EMPTY_PATH) = 0"#,
        r#"openat(AT_FDCWD, "new", O_RDWR|O_CREAT|O_TRUNC, 0666) = 5"#,
        r#"write(5, "abc", 3) = 3"#,
        r#"pread64(5, "abc", 3, 0) = 3"#,
        r#"openat(AT_FDCWD, "end", O_RDWR) = 6"#,
        r#"lseek(6, 0, SEEK_END) = 777"#,
        r#"openat(AT_FDCWD, "append", O_WRONLY|O_APPEND) = 7"#,
        r#"fstat(7, {st_mode=S_IFREG|0644, st_size=50, ...}) = 0"#,
        r#"write(7, "abc", 3) = 3"#,
        r#"openat(AT_FDCWD, "dir", O_RDONLY|O_NOFOLLOW) = 9"#,
        r#"openat(9, "read", O_RDONLY) = 10"#,
        r#"rename("new", "read") = 0"#,
        r#"openat(AT_FDCWD, "read", O_RDONLY) = 8"#,
    ]);
    let files = program(&text, "").files();
    let files: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    let expected = [
        ("read", Some(10_000)),
        ("stat", Some(34_983)),
        ("new", None),
        ("end", Some(777)),
        ("append", Some(50)),
        ("dir", Some(0)),
        ("dir/read", Some(0)),
    ];
    assert_eq!(files, expected);
    let done = of(&run(&text, ""), 0);
    let append = Call::Write { fd: Fd(4), offset: 50, bytes: 3 };
    assert!(done.contains(&Next::Call(append)), "{done:?}");
    // The file that took the name is opened under it.
    let opened = done.iter().rev().find_map(|next| match next {
        Next::Call(Call::Open { file, .. }) => Some(*file),
        _ => None,
    });
    assert_eq!(opened, Some(FileId(2)));
    assert!(done.contains(&Next::Call(Call::Unlink { file: FileId(0) })));
}

/// A shell that forks: the child inherits a descriptor and shares its offset, the parent waits for it.
#[test]
fn processes_begin_when_they_are_forked_and_are_waited_for() {
    let text = r#"10 100.000000 open("log", O_WRONLY|O_CREAT|O_CLOEXEC, 0644) = 3 <0.000010>
10 100.001000 write(3, "ab", 2) = 2 <0.000010>
10 100.002000 vfork( <unfinished ...>
11 100.002500 write(3, "cd", 2) = 2 <0.000010>
11 100.003000 execve("/bin/x", ["x"], 0x55 /* 39 vars */ <unfinished ...>
10 100.003100 <... vfork resumed>) = 11 <0.001100>
10 100.003200 wait4(-1,  <unfinished ...>
11 100.003300 <... execve resumed>) = 0 <0.000300>
11 100.004000 write(3, "not a file any more", 19) = -1 EBADF (Bad file descriptor) <0.000010>
11 100.005000 exit_group(0) = ?
11 100.005100 +++ exited with 0 +++
10 100.005200 <... wait4 resumed>[{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 11 <0.002000>
10 100.005300 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=11} ---
10 100.006000 write(3, "ef", 2) = 2 <0.000010>
10 100.007000 +++ exited with 0 +++
"#;
    for options in ["", ",times=none"] {
        let done = run(text, options);
        let writes: Vec<(u32, u64)> = done
            .iter()
            .filter_map(|did| match did.next {
                Next::Call(Call::Write { offset, .. }) => Some((did.thread, offset)),
                _ => None,
            })
            .collect();
        assert_eq!(writes, [(0, 0), (1, 2), (0, 4)], "{options}");
        let ends: Vec<(u32, Time)> =
            done.iter().filter(|did| did.next == Next::End).map(|did| (did.thread, did.at)).collect();
        assert_eq!((ends[0].0, ends[1].0), (1, 0));
    }
    let mut program = program(text, ",clock=absolute");
    assert_eq!(program.threads(), 2);
    drive(program.as_mut(), &Calls::default(), Time::from_s(1));
    assert_eq!(program.progress(), Some(1.0));
    assert_eq!(program.notes(), ["1 calls failed in the log: skipped"]);
    let kinds: Vec<u64> = program.measured().kinds().iter().map(|kind| kind.ops.requests).collect();
    assert_eq!(kinds, [0, 3, 0, 2]);
}

/// Two threads share descriptors: one reads what the other opens, however late that is, and it is closed after both.
#[test]
fn nobody_uses_a_descriptor_before_it_is_open_or_after_it_is_closed() {
    let mut text = String::from(
        "1 100.000000 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, stack=0x7f}, 88) = 2 <0.000010>\n",
    );
    for n in 0..50 {
        text += &format!(
            "1 100.{n:02}1000 open(\"f{n}\", O_RDONLY) = 3 <0.000900>\n\
             2 100.{n:02}2000 pread64(3, \"\", 10, 0) = 10 <0.000010>\n\
             1 100.{n:02}2100 close(3) = 0 <0.000010>\n"
        );
    }
    for options in ["", ",times=none"] {
        let mut open_now = vec![None; 64];
        for did in run(&text, options) {
            match did.next {
                Next::Call(Call::Open { fd, file, .. }) => {
                    assert_eq!(open_now[usize::from(fd.0)].replace(file), None);
                }
                Next::Call(Call::Read { fd, .. }) => assert!(open_now[usize::from(fd.0)].is_some()),
                Next::Call(Call::Close { fd }) => assert!(open_now[usize::from(fd.0)].take().is_some()),
                _ => {}
            }
        }
        assert_eq!(open_now, vec![None; 64], "{options}");
        let reads = run(&text, options)
            .iter()
            .filter(|did| matches!(did.next, Next::Call(Call::Read { .. })))
            .count();
        assert_eq!(reads, 50);
    }
}

/// A thread whose next line is far ahead sleeps until it has been read.
#[test]
fn a_long_log_is_read_in_a_window() {
    let mut text = String::from(
        "1 100.000000 open(\"a\", O_RDONLY) = 3 <0.000001>\n2 100.000001 open(\"b\", O_RDONLY) = 3 <0.000001>\n",
    );
    for n in 0..70_000 {
        text +=
            &format!("1 {}.{:06} read(3, \"\", 10) = 10 <0.000001>\n", 101 + n / 10_000, n % 10_000 * 100);
    }
    text += "2 109.000000 read(3, \"\", 10) = 10 <0.000001>\n";
    let file = log(&text);
    let mut program = open(&format!("strace:file={},times=none", file.path().display()), "t", 1).unwrap();
    let done = drive(program.as_mut(), &Calls { time: Time::from_us(1), sync: Time::ZERO }, Time::from_s(10));
    let reads = |thread| {
        of(&done, thread).iter().filter(|next| matches!(next, Next::Call(Call::Read { .. }))).count()
    };
    assert_eq!((reads(0), reads(1), program.progress()), (70_000, 1, Some(1.0)));
    assert!(done.iter().any(|did| did.thread == 1 && did.next == Next::Wait));
}

#[test]
fn bad_logs_are_refused_with_their_line() {
    let good = "7 100.000000 open(\"a\", O_RDONLY) = 3 <0.000010>\n";
    let cases = [
        ("7 12:00:00.000000 close(3) = 0 <0.000010>", "`strace -ttt`", 3),
        ("7 100.000100 close(3) = 0", "`strace -T`", 22),
        ("7 100.000100 close(3", "does not end", 19),
        ("7 100.000100 close(3) 0 <0.000010>", "no result", 22),
        ("7 100.000100 close(3) = zero <0.000010>", "not a number", 22),
        ("7 100.000100 write(3, \"abc, 3) = 3 <0.000010>", "does not end", 19),
        ("7 100.000100 <... read", "resumed>", 14),
        ("7 100.000100 raed(3, \"\", 1) = 1 <0.000010>", "did you mean `read`", 14),
        ("7 100.000100 io_uring_enter(3, 1, 1, 0, NULL, 8) = 1 <0.000010>", "unknown=skip", 14),
        ("7 100.000100 pread64(3, \"\", 10, 9223372036854775807) = 10 <0.000010>", "too large", 14),
        ("7 99999999.000000 close(3) = 0 <0.000010>", "100 days", 19),
        ("7 100.000100 nanosleep({tv_sec=9}, NULL) = 0 <8640000.000000>", "ends more than 100 days", 14),
        (
            "7 100.000100 copy_file_range(3, [9223372036854775807], 4, NULL, 9, 0) = 9 <0.000010>",
            "too large",
            14,
        ),
        ("7 100.000100 fallocate(3, 0, 9223372036854775807, 1) = 0 <0.000010>", "too large", 14),
        ("[pid 7 100.000100 close(3) = 0 <0.000010>", "without its `]`", 1),
        ("hello world", "seconds with a fraction", 1),
    ];
    for (line, says, column) in cases {
        let text = format!("{good}{line}\n");
        let refused = read_all(text.as_bytes(), SETTINGS).unwrap_err();
        let place = refused.place.clone().unwrap();
        let shown = refused.to_string();
        assert!(shown.contains(says), "{line}: {shown}");
        assert_eq!((place.line, place.source.as_str(), place.column), (2, "log", column), "{line}");
    }
    let long = format!("{good}7 100.000100 write(3, \"{}\", 3) = 3 <0.000010>\n", "x".repeat(70_000));
    assert!(read_all(long.as_bytes(), SETTINGS).unwrap_err().to_string().contains("64 KiB"));
    let refused = |text: &str| open(text, "t", 1).err().unwrap().to_string();
    assert!(refused("strace").contains("needs a log"));
    assert!(refused("strace:file=no/such.log").contains("cannot read `no/such.log`"));
    let empty = log("strace: Process 7 attached\n");
    assert!(refused(&format!("strace:file={}", empty.path().display())).contains("no system calls"));
    let skip = Settings { skip: true, ..SETTINGS };
    let text = format!(
        "{good}7 100.000100 newcall(3) = 1 <0.000010>\n7 100.000200 splice(3, NULL, 4, NULL, 5, 0) = 5 <0.000010>\n"
    );
    assert_eq!(read_all(text.as_bytes(), skip).unwrap(), 4);
}

/// Lines as strace 6.1 wrote them for real programs: gzip, sqlite3 with `-y`, a shell, Python with threads.
const REAL: &str = r#"28946 1795406806.308798 execve("/usr/bin/gzip", ["gzip", "-d", "-k", "-f", "t.txt.gz"], 0x7ffe28af6dc8 /* 39 vars */) = 0 <0.000242>
28946 1795406806.309441 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7fa31c525000 <0.000035>
28946 1795406806.309616 openat(AT_FDCWD</srv/u>, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</etc/ld.so.cache> <0.000036>
28946 1795406806.309698 newfstatat(3</etc/ld.so.cache>, "", {st_mode=S_IFREG|0644, st_size=34983, ...}, AT_EMPTY_PATH) = 0 <0.000034>
28946 1795406806.309789 mmap(NULL, 34983, PROT_READ, MAP_PRIVATE, 3</etc/ld.so.cache>, 0) = 0x7fa31c51c000 <0.000036>
28946 1795406806.309868 close(3</etc/ld.so.cache>) = 0 <0.000034>
28946 1795406806.311885 rt_sigaction(SIGINT, {sa_handler=0x5623e5fd9150, sa_mask=[HUP INT PIPE TERM XCPU XFSZ], sa_flags=SA_RESTORER, sa_restorer=0x7fa31c376050}, NULL, 8) = 0 <0.000033>
28946 1795406806.312000 write(1<pipe:[123]>, "a\n", 2) = 2 <0.000040>
28946 1795406806.312100 connect(5<socket:[9]>, {sa_family=AF_UNIX, sun_path="/var/run/nscd/socket"}, 110) = -1 ENOENT (No such file or directory) <0.000012>
28946 1795406806.312200 read(4</srv/u/t.txt.gz>, "\255\271Zs\265\346j\315\325\232\2535Wk\256\326\\\255\271"..., 262144) = 116699 <0.000040>
28946 1795406806.312300 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD <unfinished ...>
28946 1795406806.312400 <... clone resumed>, child_tidptr=0x7f674b098a10) = 28950 <0.000158>
28950 1795406806.312500 fcntl(4</srv/u/t.txt.gz>, F_DUPFD, 10) = 11</srv/u/t.txt.gz> <0.000008>
28950 1795406806.312600 copy_file_range(11, NULL, 6</srv/u/out>, [5] => [15], 9223372035781033984, 0) = 10 <0.000040>
28950 1795406806.312700 exit_group(0)   = ?
28950 1795406806.312800 +++ exited with 0 +++
28946 1795406806.312820 openat(AT_FDCWD</srv/u>, "gone", O_RDWR|O_CREAT|O_CLOEXEC, 0777) = 5</srv/u/gone> <0.000029>
28946 1795406806.312830 unlink("gone")  = 0 <0.000012>
28946 1795406806.312840 write(5</srv/u/gone>(deleted), ""..., 50) = 50 <0.000019>
28946 1795406806.312850 fallocate(5</srv/u/gone>(deleted), 0, 0, 40) = 0 <0.000032>
28946 1795406806.312860 read(9</srv/u/older (deleted)>, ""..., 60) = 60 <0.000032>
28946 1795406806.312865 write(8</memfd:buffer>(deleted), ""..., 80) = 80 <0.000032>
28946 1795406806.312870 read(7</srv/u/newer>(deleted), ""..., 70) = 70 <0.000032>
28946 1795406806.312900 renameat2(AT_FDCWD, "a", AT_FDCWD, "b", RENAME_NOREPLACE) = 0 <0.000040>
28946 1795406806.313000 --- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=28950, si_uid=0, si_status=0} ---
28946 1795406806.326857 exit_group(0)   = ?
28946 1795406806.327070 +++ killed by SIGKILL +++
"#;

#[test]
fn lines_of_real_programs_are_read() {
    let mut program = program(REAL, "");
    let files = program.files();
    let names: Vec<_> = files.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    let expected = [
        ("/etc/ld.so.cache", Some(34_983)),
        ("/srv/u/t.txt.gz", Some(116_709)),
        ("/srv/u/out", Some(0)),
        ("/srv/u/gone", None),
        ("/srv/u/older", Some(60)),
        ("/srv/u/newer", Some(70)),
        ("/srv/u/a", Some(0)),
    ];
    assert_eq!(names, expected);
    let calls = Calls { time: Time::from_us(3), sync: Time::ZERO };
    let log = log(REAL);
    let mut again = open(&format!("strace:file={}", log.path().display()), "t", 1).unwrap();
    let done = drive(again.as_mut(), &calls, Time::from_s(9));
    let reads: Vec<_> = done
        .iter()
        .filter_map(|did| match did.next {
            Next::Call(Call::Read { offset, bytes, .. }) => Some((offset, bytes)),
            Next::Call(Call::Write { offset, bytes, .. }) => Some((offset + (1 << 40), bytes)),
            _ => None,
        })
        .collect();
    assert_eq!(reads, [(0, 116_699), (116_699, 10), (5 + (1 << 40), 10), (1 << 40, 50), (0, 60), (0, 70)]);
    // A name without a directory is relative to the program's directory.
    assert!(done.iter().any(|did| did.next == Next::Call(Call::Unlink { file: FileId(3) })));
    let notes = program.notes();
    assert!(notes.iter().any(|note| note.starts_with("1 mappings of files")), "{notes:?}");
    assert!(notes.iter().any(|note| note.starts_with("2 calls on pipes")), "{notes:?}");
    program.reset_stats(Time::ZERO);
}

/// Two threads wait for the same child, as `waitid` with `WNOWAIT` allows: both go on.
#[test]
fn a_child_may_be_waited_for_twice() {
    let text = r#"1 100.000000 clone3({flags=CLONE_VM|CLONE_FILES|CLONE_THREAD}, 88) = 2 <0.000010>
1 100.000100 fork() = 3 <0.000010>
3 100.000200 sync() = 0 <0.000500>
3 100.001000 +++ exited with 0 +++
1 100.000300 waitid(P_PID, 3, {}, WEXITED|WNOWAIT, NULL) = 0 <0.000800>
1 100.001200 wait4(3, NULL, 0, NULL) = 3 <0.000010>
2 100.000300 wait4(3, NULL, 0, NULL) = 3 <0.000900>
"#;
    let done = run(text, ",times=none");
    let ended = done.iter().filter(|did| did.next == Next::End).count();
    assert_eq!(ended, 3, "{done:?}");
}

/// A thread's times are those of the log, however its lines overlap.
#[test]
fn no_time_counts_twice() {
    let text = "1 100.000000 poll([], 0, 1000) = 0 <1.000000>\n1 100.500000 poll([], 0, 1000) = 0 <1.000000>\n\
                1 100.600000 poll([], 0, 100) = 0 <0.100000>\n1 102.000000 +++ exited with 0 +++\n";
    let done = run(text, "");
    assert_eq!(done.last().map(|did| (did.at, did.next)), Some((Time::from_ms(1_500), Next::End)));
}

/// A program from which strace has detached is in the middle of a call.
#[test]
fn a_log_may_end_within_calls() {
    let text = "1 100.000000 open(\"a\", O_RDONLY) = 3 <0.000001>\n1 100.000100 read(3, \"\", 10) = 10 <0.000010>\n\
                1 100.000200 read(0,  <detached ...>\n";
    assert_eq!(of(&run(text, ""), 0).len(), 4);
}

#[test]
fn a_log_may_be_compressed() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(REAL.as_bytes()).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&packed.finish().unwrap()).unwrap();
    let program = open(&format!("strace:file={}", file.path().display()), "t", 1).unwrap();
    assert_eq!((program.threads(), program.files().len()), (2, 7));
}

/// Generates a damaged log.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = (0..REAL.len(), 0_u8..6, any::<u8>(), 1_usize..60);
    prop::collection::vec(damage, 1..6).prop_map(|damages| {
        let mut text = REAL.as_bytes().to_vec();
        for (at, how, byte, n) in damages {
            if text.is_empty() {
                break;
            }
            let at = at.min(text.len() - 1);
            let end = (at + n).min(text.len());
            match how {
                0 => text[at] = byte,
                1 => drop(text.drain(at..end)),
                2 => text.insert(at, byte),
                3 => text.truncate(at.max(1)),
                4 => text.splice(at..at, text[at..end].to_vec()).for_each(drop),
                _ => text[at..end].reverse(),
            }
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_damaged_log_is_refused_or_replayed(text in damaged(), skip: bool, kept: bool) {
        match read_all(&text, Settings { kept, clock: Choice::Auto, overhead: 5, skip }) {
            Err(refused) => prop_assert!(refused.place.is_some_and(|place| place.line > 0)),
            Ok(_) => {
                let mut file = tempfile::NamedTempFile::new().unwrap();
                file.write_all(&text).unwrap();
                let options = if skip { ",unknown=skip" } else { "" };
                if let Ok(mut program) = open(&format!("strace:file={}{options}", file.path().display()), "t", 1) {
                    let done = drive(program.as_mut(), &Calls { time: Time::from_us(3), sync: Time::ZERO }, Time::from_s(9));
                    let ended = done.iter().filter(|did| did.next == Next::End).count();
                    prop_assert!(ended <= program.threads() as usize);
                }
            }
        }
    }
}
