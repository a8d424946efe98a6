//! Lines of strace: process and time, if present, then a call; and the kind of each call by its name.

use super::Fault;
use super::clock::{Stamp, span};
use std::sync::LazyLock;

const RECORD: &str = "a line is `PID SECONDS.MICROS name(arguments) = result <SECONDS>`, as `strace -f -ttt -T -o FILE` writes it";

impl Fault {
    /// Returns the fault of a line that strace does not write.
    pub(super) fn new(what: impl Into<String>, at: usize) -> Fault {
        Fault { what: what.into(), at, help: RECORD, word: None }
    }
}

/// Content of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said<'a> {
    /// A call from its name to its duration.
    Whole(&'a [u8]),
    /// A call that has begun, without the mark.
    Begun(&'a [u8]),
    /// Rest of the thread's unfinished call.
    Resumed(&'a [u8]),
    /// The thread has ended.
    Ended,
    /// A signal.
    Signal,
}

/// A line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'a> {
    /// Thread; zero if the log does not give it, as there is only one.
    pub(super) pid: u32,
    /// Time, and its position in the line in bytes; none if the line has no time.
    pub(super) time: Option<(Stamp, usize)>,
    /// Content.
    pub(super) said: Said<'a>,
}

/// Largest process number (Linux's `PID_MAX_LIMIT`): a larger number at the start is a time in whole seconds.
const PID_MOST: u64 = 1 << 22;

/// Reads a line; none if it is not about the program.
///
/// # Errors
/// If strace does not write such a line, or not with these options.
pub(super) fn read(line: &[u8]) -> Result<Option<Line<'_>>, Fault> {
    let text = line.trim_ascii();
    if text.is_empty() || text.starts_with(b"strace: ") {
        return Ok(None);
    }
    let offset = |rest: &[u8]| rest.as_ptr() as usize - line.as_ptr() as usize;
    let (pid, rest, padding) = process(line, text)?;
    let (word, behind) = split_word(rest);
    let padded = padding > 0;
    let (time, rest) = match Stamp::read(word, padded) {
        Some(stamp) => {
            let at = offset(word);
            match behind.strip_prefix(b"(").and_then(|since| Some((since, memchr::memchr(b')', since)?))) {
                Some((since, end)) => {
                    let both = stamp.with_since(&since[..end]);
                    let both = both
                        .ok_or_else(|| Fault::new("the value in parentheses is not a time", offset(since)))?;
                    (Some((both, at)), since[end + 1..].trim_ascii_start())
                }
                None => (Some((stamp, at)), behind),
            }
        }
        None if begins_call(rest) => (None, rest),
        None => {
            return Err(Fault {
                what: "the time is neither seconds with a fraction nor a time of day".to_owned(),
                at: offset(word),
                help: "use times as `strace -ttt` writes them: 1700000000.123456",
                word: None,
            });
        }
    };
    let said = if rest.starts_with(b"+++ exited") || rest.starts_with(b"+++ killed") {
        Said::Ended
    } else if rest.starts_with(b"+++ ") || rest.starts_with(b"--- ") {
        Said::Signal
    } else if let Some(resumed) = rest.strip_prefix(b"<... ") {
        let end = memchr::memmem::find(resumed, b" resumed>");
        let end = end.ok_or_else(|| Fault::new("`<...` without its `resumed>`", offset(rest)))?;
        Said::Resumed(&resumed[end + b" resumed>".len()..])
    } else if let Some(begun) =
        // The second form is written when strace detaches from a program.
        rest.strip_suffix(b"<unfinished ...>").or_else(|| rest.strip_suffix(b"<detached ...>"))
    {
        Said::Begun(begun)
    } else {
        Said::Whole(rest)
    };
    Ok(Some(Line { pid, time, said }))
}

/// Splits the process off a line: returns its number, zero if the line has none, the rest, and how many more leading
/// spaces it has than a timestamp.
fn process<'a>(line: &[u8], text: &'a [u8]) -> Result<(u32, &'a [u8], usize), Fault> {
    let offset = |rest: &[u8]| rest.as_ptr() as usize - line.as_ptr() as usize;
    let spaces = |rest: &'a [u8], usual: usize| {
        let trimmed = rest.trim_ascii_start();
        (trimmed, (rest.len() - trimmed.len()).saturating_sub(usual))
    };
    let (pid, (rest, padding)) = if let Some(rest) = text.strip_prefix(b"[pid ") {
        let end = memchr::memchr(b']', rest);
        let end = end.ok_or_else(|| Fault::new("`[pid` without its `]`", offset(text)))?;
        (rest[..end].trim_ascii(), spaces(&rest[end + 1..], 1))
    } else {
        let (word, rest) = split_word(text);
        let indent = offset(text);
        let number = word.iter().all(u8::is_ascii_digit).then(|| span(word)).flatten();
        // A number may be whole seconds without a process; if a time follows, it is a process.
        let seconds = number.is_some_and(|n| n.ns() > PID_MOST * 1_000_000_000) || indent > 0;
        if number.is_none() || seconds && Stamp::read(split_word(rest).0, false).is_none() {
            return Ok((0, text, indent));
        }
        // Short numbers are padded with spaces to the sixth column.
        (word, spaces(&text[word.len()..], 1 + 5_usize.saturating_sub(word.len())))
    };
    let number = std::str::from_utf8(pid).ok().and_then(|pid| pid.parse::<u32>().ok());
    let number = number.ok_or_else(|| Fault::new("the process ID is not a number", offset(pid)))?;
    Ok((number, rest, padding))
}

/// Returns true if a call begins here, or the text that strace writes in place of one.
fn begins_call(text: &[u8]) -> bool {
    let name = text.iter().position(|b| !(b.is_ascii_alphanumeric() || *b == b'_')).unwrap_or(text.len());
    name > 0 && text.get(name) == Some(&b'(')
        || [&b"<... "[..], b"+++ ", b"--- "].iter().any(|mark| text.starts_with(mark))
}

fn split_word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], text[end..].trim_ascii_start())
}

/// Number of arguments of a call that are examined; the others are not needed.
const ARGUMENTS: usize = 8;

/// A call that has returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Syscall<'a> {
    /// Name of the call.
    pub(super) name: &'a [u8],
    arguments: [&'a [u8]; ARGUMENTS],
    /// All of its arguments as text.
    pub(super) text: &'a [u8],
    /// Returned value; none if it failed, did not return, or is restarted by the kernel.
    pub(super) result: Option<i64>,
    /// Duration in nanoseconds.
    pub(super) took: u64,
}

impl<'a> Syscall<'a> {
    /// Reads `name(arguments) = result <SECONDS>`; a call of a log that is not `timed` takes no time.
    ///
    /// # Errors
    /// If the text has a different form.
    pub(super) fn read(text: &'a [u8], timed: bool) -> Result<Syscall<'a>, Fault> {
        let is_name = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let name = &text[..text.iter().position(|b| !is_name(b)).unwrap_or(text.len())];
        if name.is_empty() || text.get(name.len()) != Some(&b'(') {
            return Err(Fault::new("expected a call `name(arguments)`", 0));
        }
        let mut arguments: [&[u8]; ARGUMENTS] = [b""; ARGUMENTS];
        let (mut n, mut from) = (0, name.len() + 1);
        let end = loop {
            let Some(end) = end_of_argument(text, from) else {
                return Err(Fault::new("the argument list does not end", name.len()));
            };
            if n < ARGUMENTS {
                arguments[n] = text[from..end].trim_ascii();
            }
            (n, from) = (n + 1, end + 1);
            if text[end] == b')' {
                break end;
            }
        };
        let rest = text[end + 1..].trim_ascii_start();
        let Some(result) = rest.strip_prefix(b"=") else {
            return Err(Fault::new("the call has no result: expected ` = `", end + 1));
        };
        let (result, took) = match memchr::memrchr(b'<', result) {
            Some(at) if result.ends_with(b">") => (&result[..at], span(&result[at + 1..result.len() - 1])),
            _ => (result, None),
        };
        let result = result.trim_ascii();
        let unknown = result.starts_with(b"?");
        let took = match took {
            Some(took) if timed => took.ns(),
            // A call that does not return takes no time.
            _ if unknown || !timed => 0,
            _ => {
                let help = "a replay needs durations: `strace -T` writes them; times=none replays the calls without times";
                return Err(Fault { help, ..Fault::new("the call has no duration", end + 1) });
            }
        };
        let value = number(result);
        if value.is_none() && !unknown {
            return Err(Fault::new("the result is not a number", end + 1));
        }
        let result = value.filter(|value| *value >= 0 || result.starts_with(b"0x"));
        Ok(Syscall { name, arguments, text: &text[name.len() + 1..end], result, took })
    }

    /// Returns the text of an argument; empty if absent.
    pub(super) fn argument(&self, n: usize) -> &'a [u8] {
        self.arguments[n]
    }

    /// Returns an argument that is a number.
    pub(super) fn number(&self, n: usize) -> Option<i64> {
        number(self.arguments[n])
    }

    /// Returns an argument that is a number and not negative.
    pub(super) fn size(&self, n: usize) -> Option<u64> {
        self.number(n).and_then(|n| u64::try_from(n).ok())
    }

    /// Returns true if an argument contains this word.
    pub(super) fn has(&self, n: usize, word: &str) -> bool {
        memchr::memmem::find(self.arguments[n], word.as_bytes()).is_some()
    }

    /// Returns the text of a string argument, as strace writes it.
    pub(super) fn string(&self, n: usize) -> Option<&'a [u8]> {
        let text = self.arguments[n].strip_prefix(b"\"")?;
        let end = memchr::memrchr(b'"', text)?;
        Some(&text[..end])
    }

    /// Returns the number after `name=` anywhere in the arguments.
    pub(super) fn field(&self, name: &str) -> Option<u64> {
        let at = memchr::memmem::find(self.text, name.as_bytes())? + name.len();
        number(&self.text[at..]).and_then(|n| u64::try_from(n).ok())
    }
}

/// Returns the end of an argument that starts at `from`: at a comma or the closing parenthesis.
fn end_of_argument(text: &[u8], from: usize) -> Option<usize> {
    let (mut depth, mut i) = (0_u32, from);
    while i < text.len() {
        match text[i] {
            b'"' => i = end_of_string(text, i)?,
            b'/' if text[i..].starts_with(b"/*") => {
                i += memchr::memmem::find(&text[i..], b"*/")? + 1;
            }
            b'<' => i = end_of_path(text, i).unwrap_or(i),
            b'(' | b'[' | b'{' => depth += 1,
            b',' if depth == 0 => return Some(i),
            b')' if depth == 0 => return Some(i),
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        i += 1;
    }
    None
}

/// Suffix that `strace -y` writes after the path of a file without a name.
const DELETED: &[u8] = b"(deleted)";

fn end_of_string(text: &[u8], from: usize) -> Option<usize> {
    let mut i = from + 1;
    while i < text.len() {
        match text[i] {
            b'\\' => i += 1,
            b'"' => return Some(i),
            _ => {}
        }
        i += 1;
    }
    None
}

/// Returns the end of the path whose `<` is at `from` in `3</a/path>`, as `strace -y` writes descriptors; none if it
/// is a comparison or a shift.
fn end_of_path(text: &[u8], from: usize) -> Option<usize> {
    let before = text[..from].last()?;
    if !(before.is_ascii_digit() || text[..from].ends_with(b"AT_FDCWD")) || text.get(from + 1) == Some(&b'<')
    {
        return None;
    }
    memchr::memchr_iter(b'>', &text[from..]).map(|at| from + at).find(|end| {
        let behind = &text[end + 1..];
        behind.starts_with(DELETED) || behind.first().is_none_or(|next| b",)]} \t".contains(next))
    })
}

/// Reads the number at the start of a text, decimal or hexadecimal.
pub(super) fn number(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if let Some(hex) = digits.strip_prefix(b"0x") {
        let end = hex.iter().position(|b| !b.is_ascii_hexdigit()).unwrap_or(hex.len());
        return u64::from_str_radix(std::str::from_utf8(&hex[..end]).ok()?, 16).ok().map(|n| n as i64);
    }
    let end = digits.iter().position(|b| !b.is_ascii_digit()).unwrap_or(digits.len());
    let value: i64 = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
    Some(if negative { -value } else { value })
}

/// Returns the path of a descriptor, as `strace -y` writes it; for a file without a name, its former path.
pub(super) fn path_of(argument: &[u8]) -> Option<&[u8]> {
    let at = memchr::memchr(b'<', argument)?;
    let path = &argument[at + 1..];
    // Before 5.17, strace writes it into the path.
    let path = path.strip_suffix(DELETED).unwrap_or(path).strip_suffix(b">")?;
    Some(path.strip_suffix(DELETED).unwrap_or(path).trim_ascii_end())
}

// Kind of each system call in a replay.

/// Effect of a call on files, or its other nature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Open,
    OpenAt,
    Create,
    Close,
    CloseRange,
    Duplicate,
    DuplicateTo,
    Control,
    Read,
    ReadAt,
    Write,
    WriteAt,
    Seek,
    Sync,
    SyncData,
    SyncAll,
    SyncRange,
    Advise,
    ReadAhead,
    Truncate,
    TruncatePath,
    Allocate,
    SendFile,
    CopyRange,
    Unlink,
    UnlinkAt,
    Rename,
    RenameAt,
    Link,
    LinkAt,
    Map,
    Status,
    Fork,
    Execute,
    WaitChild,
    ChangeDirectory,
    ChangeDirectoryTo,
    /// Creates descriptors other than files, which are not followed.
    OtherDescriptor,
    /// Accesses names, attributes and directories in the file system; not followed here.
    Metadata,
    /// Computes in the kernel, without effect on files.
    Plain,
    /// May sleep.
    Sleeps,
    /// Moves data of files in an unsupported way.
    Unsupported,
}

/// Names of calls by kind.
const CALLS: &[(Kind, &str)] = &[
    (Kind::Open, "open"),
    (Kind::OpenAt, "openat openat2"),
    (Kind::Create, "creat"),
    (Kind::Close, "close"),
    (Kind::CloseRange, "close_range"),
    (Kind::Duplicate, "dup"),
    (Kind::DuplicateTo, "dup2 dup3"),
    (Kind::Control, "fcntl fcntl64"),
    (Kind::Read, "read readv"),
    (Kind::ReadAt, "pread pread64 preadv preadv2"),
    (Kind::Write, "write writev"),
    (Kind::WriteAt, "pwrite pwrite64 pwritev pwritev2"),
    (Kind::Seek, "lseek"),
    (Kind::Sync, "fsync"),
    (Kind::SyncData, "fdatasync"),
    (Kind::SyncAll, "sync syncfs"),
    (Kind::SyncRange, "sync_file_range sync_file_range2"),
    (Kind::Advise, "fadvise64 fadvise64_64"),
    (Kind::ReadAhead, "readahead"),
    (Kind::Truncate, "ftruncate ftruncate64"),
    (Kind::TruncatePath, "truncate truncate64"),
    (Kind::Allocate, "fallocate"),
    (Kind::SendFile, "sendfile sendfile64"),
    (Kind::CopyRange, "copy_file_range"),
    (Kind::Unlink, "unlink"),
    (Kind::UnlinkAt, "unlinkat"),
    (Kind::Rename, "rename"),
    (Kind::RenameAt, "renameat renameat2"),
    (Kind::Link, "link"),
    (Kind::LinkAt, "linkat"),
    (Kind::Map, "mmap mmap2"),
    (Kind::Status, "fstat fstat64 newfstatat fstatat64 stat stat64 lstat lstat64 statx"),
    (Kind::Fork, "clone clone3 fork vfork"),
    (Kind::Execute, "execve execveat"),
    (Kind::WaitChild, "wait4 waitpid waitid"),
    (Kind::ChangeDirectory, "chdir"),
    (Kind::ChangeDirectoryTo, "fchdir"),
    (
        Kind::OtherDescriptor,
        "socket socketpair accept accept4 pipe pipe2 eventfd eventfd2 epoll_create epoll_create1 timerfd_create signalfd signalfd4 \
         inotify_init inotify_init1 fanotify_init memfd_create memfd_secret pidfd_open pidfd_getfd userfaultfd perf_event_open bpf",
    ),
    (
        Kind::Metadata,
        "access faccessat faccessat2 readlink readlinkat getdents getdents64 mkdir mkdirat rmdir mknod mknodat symlink symlinkat chmod \
         fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes utimensat futimesat statfs fstatfs statfs64 fstatfs64 ustat \
         getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr \
         flock getcwd umask chroot pivot_root mount umount umount2 name_to_handle_at quotactl inotify_add_watch inotify_rm_watch \
         fanotify_mark",
    ),
    (
        Kind::Plain,
        "brk munmap mprotect mremap madvise mincore mlock mlock2 munlock mlockall munlockall msync remap_file_pages membarrier arch_prctl \
         prctl set_tid_address set_robust_list get_robust_list rseq rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigqueueinfo \
         rt_tgsigqueueinfo sigaltstack sigaction sigprocmask sigreturn signal kill tkill tgkill pidfd_send_signal prlimit64 getrlimit \
         setrlimit ugetrlimit getrusage times sysinfo uname getrandom getpid gettid getppid getuid geteuid getgid getegid getresuid \
         getresgid setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid getgroups setgroups getpgrp getpgid setpgid \
         getsid setsid capget capset personality sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler \
         sched_setscheduler sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min getpriority setpriority ioprio_get \
         ioprio_set getcpu time gettimeofday clock_gettime clock_getres clock_settime settimeofday alarm getitimer setitimer timer_create \
         timer_settime timer_gettime timer_getoverrun timer_delete timerfd_settime timerfd_gettime epoll_ctl epoll_ctl_old bind listen \
         getsockname getpeername setsockopt getsockopt shutdown sethostname setdomainname ioctl exit exit_group mbind set_mempolicy \
         get_mempolicy migrate_pages move_pages set_mempolicy_home_node pkey_alloc pkey_free pkey_mprotect seccomp ptrace kcmp unshare \
         setns process_vm_readv process_vm_writev io_cancel io_destroy io_setup landlock_create_ruleset landlock_add_rule \
         landlock_restrict_self shmget shmat shmdt shmctl semget semctl msgget msgctl keyctl add_key request_key restart_syscall \
         modify_ldt get_thread_area set_thread_area iopl ioperm syslog reboot nfsservctl lookup_dcookie",
    ),
    (
        Kind::Sleeps,
        "nanosleep clock_nanosleep futex futex_waitv futex_wait futex_wake poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 \
         epoll_wait_old pause rt_sigsuspend sigsuspend rt_sigtimedwait sched_yield connect sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg \
         semop semtimedop msgsnd msgrcv mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr",
    ),
    (
        Kind::Unsupported,
        "io_submit io_getevents io_pgetevents io_uring_setup io_uring_enter io_uring_register splice tee vmsplice open_by_handle_at \
         swapon swapoff process_madvise cachestat",
    ),
];

/// Returns the kind of a call; none if it is unknown.
pub(super) fn kind_of_call(name: &[u8]) -> Option<Kind> {
    let name = std::str::from_utf8(name).ok()?;
    BY_NAME.binary_search_by_key(&name, |entry| entry.0).ok().map(|at| BY_NAME[at].1)
}

/// Returns the calls that a replay does not need: they contain only time between calls.
pub(super) fn dispensable_calls() -> impl Iterator<Item = &'static str> {
    CALLS
        .iter()
        .filter(|(kind_of_call, _)| *kind_of_call == Kind::Plain)
        .flat_map(|(_, call_names)| call_names.split_ascii_whitespace())
}

/// Returns the names of all known calls.
pub(super) fn call_names() -> impl Iterator<Item = &'static str> {
    CALLS.iter().flat_map(|(_, call_names)| call_names.split_ascii_whitespace())
}

static BY_NAME: LazyLock<Vec<(&'static str, Kind)>> = LazyLock::new(|| {
    let call_names = CALLS.iter().flat_map(|(kind_of_call, call_names)| {
        call_names.split_ascii_whitespace().map(|name| (name, *kind_of_call))
    });
    let mut call_names: Vec<_> = call_names.collect();
    call_names.sort_unstable_by_key(|entry| entry.0);
    call_names
});
