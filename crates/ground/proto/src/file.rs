//! System calls on files, and the programs that make them.
//!
//! A host runs programs on its cores. A program has threads; each does one thing after another: it computes, calls the kernel, or sleeps. What a call
//! does and how long it takes is the host's business; a program learns that it has returned, and if it has failed, why.

use crate::offload::Order;
use engine::Time;

/// A descriptor, counted by each program from zero. All threads of a program share its descriptors.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Fd(pub u16);

/// A file: an index into what [`Program::files`] has named.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct FileId(pub u32);

/// How a file is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpenFlags {
    /// `O_DIRECT`: past the page cache.
    pub direct: bool,
    /// `O_SYNC`: a write returns when its data and all that is needed to read it back are durable.
    pub sync: bool,
    /// `O_DSYNC`: as `O_SYNC` without what is not needed to read the data back.
    pub data_sync: bool,
    /// `O_TRUNC`: its length becomes zero.
    pub truncate: bool,
}

/// What `posix_fadvise` says of a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Nothing: the usual read-ahead.
    Normal,
    /// Read in order: twice the read-ahead.
    Sequential,
    /// Read at random: no read-ahead.
    Random,
    /// Will be read soon.
    WillNeed,
    /// Will not be read again.
    DontNeed,
}

/// What `sync_file_range` does, in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SyncRange {
    /// Waits for pages that are being written.
    pub wait_before: bool,
    /// Begins to write dirty pages.
    pub write: bool,
    /// Waits for pages that are being written.
    pub wait_after: bool,
}

/// How the requests of a flow reach the file that fills a drive of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Way {
    /// `pread` and `pwrite` through the page cache, one after another.
    #[default]
    Buffered,
    /// The same past the page cache (`O_DIRECT`).
    Direct,
    /// `O_DIRECT` with `io_submit` and `io_getevents`: all that there are at once.
    Aio,
    /// `O_DIRECT` with `io_uring_enter`: all that there are at once.
    Uring,
    /// The same, of a ring whose completions are looked for, not waited for (`IORING_SETUP_IOPOLL`).
    Polled,
    /// Loads and stores of a mapping of the file (`mmap`), one after another; a flush is `msync`.
    Mapped,
}

impl Way {
    /// All of them.
    pub const ALL: [Way; 6] = [Way::Buffered, Way::Direct, Way::Aio, Way::Uring, Way::Polled, Way::Mapped];

    /// Whether requests pass through the page cache.
    pub fn is_cached(self) -> bool {
        matches!(self, Way::Buffered | Way::Mapped)
    }

    /// Whether several requests can be under way at once.
    pub fn is_queued(self) -> bool {
        matches!(self, Way::Aio | Way::Uring | Way::Polled)
    }
}

/// A system call. Offsets and lengths are in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Call {
    /// `open`; the file comes to be if it was not there.
    Open {
        /// What the program will call it; open at most once at a time.
        fd: Fd,
        /// The file.
        file: FileId,
        /// How.
        flags: OpenFlags,
    },
    /// `close`.
    Close {
        /// Of this descriptor.
        fd: Fd,
    },
    /// `pread`; it ends at the end of the file.
    Read {
        /// From this descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// `pwrite`; a file grows with it.
    Write {
        /// To this descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length.
        bytes: u64,
    },
    /// A load or store of a mapped page, as `mmap` would have it.
    Touch {
        /// What is mapped.
        fd: Fd,
        /// A byte of the page.
        offset: u64,
        /// Whether it is a store.
        write: bool,
    },
    /// `fsync`, or `fdatasync`.
    Sync {
        /// Of this descriptor.
        fd: Fd,
        /// `fdatasync`.
        data_only: bool,
    },
    /// `sync_file_range`.
    SyncRange {
        /// Of this descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length; zero to the end of the file.
        bytes: u64,
        /// What it does.
        how: SyncRange,
    },
    /// `posix_fadvise`.
    Advise {
        /// Of this descriptor.
        fd: Fd,
        /// First byte.
        offset: u64,
        /// Length; zero to the end of the file.
        bytes: u64,
        /// What it says.
        advice: Advice,
    },
    /// `ftruncate`.
    Truncate {
        /// Of this descriptor.
        fd: Fd,
        /// The new length.
        bytes: u64,
    },
    /// `unlink`: what no descriptor holds is gone.
    Unlink {
        /// The file.
        file: FileId,
    },
    /// `sync`: everything of every file.
    SyncAll,
}

/// A file that a program knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileSpec {
    /// Its name, for messages.
    pub name: String,
    /// Its length before the program starts; none if it does not exist yet.
    pub bytes: Option<u64>,
    /// Which of the host's drives it is on, counted from zero.
    pub drive: u16,
}

/// What a thread does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Computes, for so much time of a core.
    Compute(Time),
    /// Calls the kernel.
    Call(Call),
    /// Gives a coprocessor an order through its driver, and sleeps until it is done.
    Order {
        /// Which of the host's coprocessors, counted from zero.
        device: u16,
        /// What it shall do.
        order: Order,
    },
    /// Sleeps until a time; a time that has passed is now.
    Until(Time),
    /// Sleeps until another thread of the program wakes it.
    Wait,
    /// Wakes another thread of the program, which is asked what it does next, and goes on. One that is not asleep stays as it is: nothing is
    /// remembered.
    Wake(u32),
    /// Ends.
    End,
}

/// Why a call has failed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CallError {
    /// `ENOSPC`: there is no room on the drive.
    NoSpace,
    /// `EIO`, past the page cache `ENODATA`: the drive has failed a command; of `fsync`, one of those that have written the file's data since
    /// somebody was last told (`errseq_t`).
    Io,
    /// `EROFS`: the journal has been given up after a failed command.
    ReadOnly,
}

/// A program of a host.
pub trait Program {
    /// What it is called in results.
    fn name(&self) -> &str;
    /// The files that it knows, by the numbers of [`FileId`].
    fn files(&self) -> Vec<FileSpec>;
    /// How many threads it has, all of which are there from the beginning.
    fn threads(&self) -> u32;
    /// What a thread does next, now that what it did before is done.
    fn next(&mut self, thread: u32, now: Time) -> Next;
    /// So much time of a core has gone into what a thread did last, the kernel's part and changes of threads included, interrupts not. It is said before the
    /// thread is asked what it does next.
    fn used(&mut self, _thread: u32, _core: Time) {}
    /// The last call of a thread has failed, or done a part of what it should; the thread is asked what it does next in the same instant.
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
