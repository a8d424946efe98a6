//! What each system call is to a replay.

use std::sync::LazyLock;

/// What a call does to files, or what else it is.
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
    /// Makes descriptors that are no files, which need not be followed.
    OtherDescriptor,
    /// Names, attributes and directories: read and written by the file system, not followed here.
    Metadata,
    /// Computes in the kernel, as far as files go.
    Plain,
    /// May sleep.
    Sleeps,
    /// Moves data of files in a way that is not followed.
    Unsupported,
}

/// Calls by kind.
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

/// The kind of a call; none if nothing is known of it.
pub(super) fn kind(name: &[u8]) -> Option<Kind> {
    let name = std::str::from_utf8(name).ok()?;
    BY_NAME.binary_search_by_key(&name, |entry| entry.0).ok().map(|at| BY_NAME[at].1)
}

/// Calls that a replay can do without: only the time between calls is in them.
pub(super) fn dispensable() -> impl Iterator<Item = &'static str> {
    CALLS
        .iter()
        .filter(|(kind, _)| *kind == Kind::Plain)
        .flat_map(|(_, names)| names.split_ascii_whitespace())
}

/// The names of all calls that are known.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    CALLS.iter().flat_map(|(_, names)| names.split_ascii_whitespace())
}

static BY_NAME: LazyLock<Vec<(&'static str, Kind)>> = LazyLock::new(|| {
    let names =
        CALLS.iter().flat_map(|(kind, names)| names.split_ascii_whitespace().map(|name| (name, *kind)));
    let mut names: Vec<_> = names.collect();
    names.sort_unstable_by_key(|entry| entry.0);
    names
});
