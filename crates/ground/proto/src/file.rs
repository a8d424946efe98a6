//! System calls on files, and the programs that make them.
//!
//! A host runs programs on its cores. A program has threads; each does one thing after another: it computes, calls the
//! kernel, or sleeps. The host determines the effect and the time of a call; the program learns when it has returned
//! and, if it has failed, why.

use crate::offload::Order;
use engine::Time;

/// Descriptor, counted by each program from zero. All threads of a program share its descriptors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fd(pub u16);

/// Index of a file in [`Program::files`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// Flags of `open`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFlags {
    /// `O_DIRECT`: bypasses the page cache.
    pub direct: bool,
    /// `O_SYNC`: a write returns when its data and all metadata are durable.
    pub sync: bool,
    /// `O_DSYNC`: like `O_SYNC`, but only with the metadata needed to read the data back.
    pub data_sync: bool,
    /// `O_TRUNC`: truncates the file to zero length.
    pub truncate: bool,
}

/// Advice of `posix_fadvise` for a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// No advice: the usual read-ahead.
    Normal,
    /// Sequential reads: twice the read-ahead.
    Sequential,
    /// Random reads: no read-ahead.
    Random,
    /// Read soon.
    WillNeed,
    /// Not read again.
    DontNeed,
}

/// Actions of `sync_file_range`, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncRange {
    /// Waits for pages under write-back.
    pub wait_before: bool,
    /// Begins to write dirty pages.
    pub write: bool,
    /// Waits for pages under write-back.
    pub wait_after: bool,
}

/// Access path of a flow's requests to the file that fills a drive of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Way {
    /// `pread` and `pwrite` through the page cache, one after another.
    #[default]
    Buffered,
    /// `pread` and `pwrite` with `O_DIRECT`, one after another.
    Direct,
    /// `O_DIRECT` with `io_submit` and `io_getevents`, for several requests at once.
    Aio,
    /// `O_DIRECT` with `io_uring_enter`, for several requests at once.
    Uring,
    /// `O_DIRECT` with a polled ring, without waiting for interrupts (`IORING_SETUP_IOPOLL`).
    Polled,
    /// Loads and stores of a mapping of the file (`mmap`), one after another; a flush is `msync`.
    Mapped,
}

impl Way {
    /// Every access path.
    pub const ALL: [Way; 6] = [Way::Buffered, Way::Direct, Way::Aio, Way::Uring, Way::Polled, Way::Mapped];

    /// Returns whether requests pass through the page cache.
    pub fn is_cached(self) -> bool {
        matches!(self, Way::Buffered | Way::Mapped)
    }

    /// Returns whether several requests can be in flight at once.
    pub fn is_queued(self) -> bool {
        matches!(self, Way::Aio | Way::Uring | Way::Polled)
    }
}

/// System call. Offsets and lengths are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `open`; creates the file if it does not exist.
    Open {
        /// Descriptor chosen by the program, not already open.
        fd: Fd,
        /// File.
        file: FileId,
        /// Flags.
        flags: OpenFlags,
    },
    /// `close`.
    Close {
        /// Descriptor.
        fd: Fd,
    },
    /// `pread`; stops at the end of the file.
    Read {
        /// Descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// `pwrite`; extends the file if necessary.
    Write {
        /// Descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length in bytes.
        bytes: u64,
    },
    /// Load or store of a mapped page, as with `mmap`.
    Touch {
        /// Descriptor of the mapped file.
        fd: Fd,
        /// Any byte of the page.
        offset: u64,
        /// True for a store.
        write: bool,
    },
    /// `fsync`, or `fdatasync`.
    Sync {
        /// Descriptor.
        fd: Fd,
        /// True for `fdatasync`.
        data_only: bool,
    },
    /// `sync_file_range`.
    SyncRange {
        /// Descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length in bytes; zero up to the end of the file.
        bytes: u64,
        /// Actions.
        how: SyncRange,
    },
    /// `posix_fadvise`.
    Advise {
        /// Descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length in bytes; zero up to the end of the file.
        bytes: u64,
        /// Advice.
        advice: Advice,
    },
    /// `ftruncate`.
    Truncate {
        /// Descriptor.
        fd: Fd,
        /// New length in bytes.
        bytes: u64,
    },
    /// `unlink`: a file without descriptors is removed.
    Unlink {
        /// File.
        file: FileId,
    },
    /// `sync`: makes all files durable.
    SyncAll,
}

/// File of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// Name, for messages.
    pub name: String,
    /// Length in bytes before the program starts; `None` if it does not exist yet.
    pub bytes: Option<u64>,
    /// Drive of the host, counted from zero.
    pub drive: u16,
}

/// Next action of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Computes for this core time.
    Compute(Time),
    /// Calls the kernel.
    Call(Call),
    /// Gives a coprocessor an order through its driver, and sleeps until it is done.
    Order {
        /// Coprocessor of the host, counted from zero.
        device: u16,
        /// Order.
        order: Order,
    },
    /// Sleeps until a time; does not sleep if it has passed.
    Until(Time),
    /// Sleeps until another thread of the program wakes it.
    Wait,
    /// Wakes another thread of the program, which is asked for its next action, and goes on. No effect on a thread that
    /// is awake: the wake-up is not remembered.
    Wake(u32),
    /// Ends.
    End,
}

/// Reason for a failed call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CallError {
    /// `ENOSPC`: the drive is full.
    NoSpace,
    /// `EIO`, for direct I/O `ENODATA`: the drive has failed a command. For `fsync`, a command that wrote the file's
    /// data since the last report of an error (`errseq_t`).
    Io,
    /// `EROFS`: the journal was aborted after a failed command.
    ReadOnly,
}

/// Program of a host.
pub trait Program {
    /// Name in results.
    fn name(&self) -> &str;
    /// Files of the program, indexed by [`FileId`].
    fn files(&self) -> Vec<FileSpec>;
    /// Number of threads, all of which exist from the start.
    fn threads(&self) -> u32;
    /// Returns the next action of a thread, after the previous one is done.
    fn next(&mut self, thread: u32, now: Time) -> Next;
    /// Reports the core time of a thread's last action, before the thread is asked for the next one. Includes the
    /// kernel's part and context switches, but not interrupts.
    fn used(&mut self, _thread: u32, _core: Time) {}
    /// Reports that the last call of a thread has failed, or was only partly done; the thread is asked for its next
    /// action in the same instant.
    fn failed(&mut self, _thread: u32, _error: CallError) {}
}

impl<P: Program + ?Sized> Program for Box<P> {
    fn name(&self) -> &str {
        (**self).name()
    }
    fn files(&self) -> Vec<FileSpec> {
        (**self).files()
    }
    fn threads(&self) -> u32 {
        (**self).threads()
    }
    fn next(&mut self, thread: u32, now: Time) -> Next {
        (**self).next(thread, now)
    }
    fn used(&mut self, thread: u32, core: Time) {
        (**self).used(thread, core);
    }
    fn failed(&mut self, thread: u32, error: CallError) {
        (**self).failed(thread, error);
    }
}
