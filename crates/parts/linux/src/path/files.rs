//! Files, descriptors, and the first steps of system calls.

use super::frame::{Access, Frame, Range, Resize};
use super::io::Errors;
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::pagecache::FileRa;
use crate::pagecache::readahead::Mapping;
use crate::tasks::Task;
use crate::{Inode, PAGE};
use engine::{Cx, List};
use proto::file::{Advice, Call, Fd, FileId, OpenFlags, Program, SyncRange};

/// File of a host.
pub(super) struct Node {
    /// Disk of the file.
    pub(super) disk: u16,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// True if the file exists.
    pub(super) exists: bool,
    /// Number of descriptors that hold the file.
    pub(super) held: u32,
    /// Lock of the file: held exclusively, and number of threads that share it.
    locked: bool,
    shared: u32,
    /// Threads that wait for its lock.
    pub(super) waiting: List,
    /// Write errors of its data.
    pub(super) errors: Errors,
}

impl Node {
    pub(super) fn new(disk: u16, bytes: u64, exists: bool) -> Node {
        Node {
            disk,
            bytes,
            exists,
            held: 0,
            locked: false,
            shared: 0,
            waiting: List::default(),
            errors: Errors::default(),
        }
    }

    /// Returns whether its lock is free.
    pub(super) fn is_free(&self) -> bool {
        !self.locked && self.shared == 0
    }
}

/// Open file.
#[derive(Clone)]
pub(super) struct Open {
    pub(super) inode: Inode,
    pub(super) flags: OpenFlags,
    pub(super) ra: FileRa,
    /// `madvise` state of its mapping.
    pub(super) mapping: Mapping,
    /// Position in the file's errors up to which it has been notified.
    pub(super) since: u32,
}

/// Running program.
pub(super) struct Running<P> {
    pub(super) program: P,
    /// First thread.
    pub(super) first: u32,
    /// Threads that have not ended.
    pub(super) left: u32,
    /// Files.
    pub(super) inodes: Vec<Inode>,
    /// Descriptors, each with an open file.
    fds: Vec<Option<u32>>,
}

impl<P: Program> Running<P> {
    pub(super) fn new(program: P, first: u32, inodes: Vec<Inode>) -> Running<P> {
        let left = program.threads();
        Running { program, first, left, inodes, fds: Vec::new() }
    }
}

impl<P: Program> Host<P> {
    /// Opens a file; returns the number of the open file.
    pub(super) fn open(&mut self, inode: Inode, flags: OpenFlags) -> u32 {
        let node = &mut self.nodes[inode.0 as usize];
        node.held += 1;
        let since = node.errors.sample();
        let ra = self.new_ra(inode);
        self.open.insert(Open { inode, flags, ra, mapping: Mapping::Normal, since })
    }

    /// Read-ahead state of a newly opened file, with its maximum and the drive's limit.
    fn new_ra(&self, inode: Inode) -> FileRa {
        let disk = usize::from(self.nodes[inode.0 as usize].disk);
        let io_pages = u64::from(self.disks[disk].queue.limits().bytes) / PAGE;
        FileRa::new(self.ra_pages, io_pages as u32)
    }

    fn file(&self, program: u16, fd: Fd) -> u32 {
        let fds = &self.programs[usize::from(program)].fds;
        fds.get(usize::from(fd.0)).copied().flatten().expect("programs use descriptors that they have opened")
    }

    /// Byte range of an open file to be read or written.
    pub(super) fn access(&self, file: u32, offset: u64, bytes: u64) -> Access {
        Access { file, inode: self.open[file].inode, offset, end: offset.saturating_add(bytes) }
    }

    /// Starts a system call. Its entry and return have been charged.
    pub(super) fn call(&mut self, task: Task, program: u16, call: Call) -> Step {
        match call {
            Call::Open { fd, file, flags } => self.call_open(task, program, fd, file, flags),
            Call::Close { fd } => self.call_close(task, program, fd),
            Call::Read { fd, offset, bytes } => {
                let file = self.file(program, fd);
                self.call_read(task, file, offset, bytes)
            }
            Call::Write { fd, offset, bytes } => {
                let file = self.file(program, fd);
                self.call_write(task, file, offset, bytes)
            }
            Call::Touch { fd, offset, write } => {
                let file = self.file(program, fd);
                let access = self.access(file, offset, 1);
                if access.offset < self.nodes[access.inode.0 as usize].bytes {
                    self.push(task, Frame::Touch { access, write });
                }
                Step::Again
            }
            Call::Sync { fd, data_only } => {
                let file = self.file(program, fd);
                self.call_sync(task, file, data_only)
            }
            Call::SyncRange { fd, offset, bytes, how } => {
                let inode = self.open[self.file(program, fd)].inode;
                self.call_sync_range(task, inode, offset, bytes, how)
            }
            Call::Advise { fd, offset, bytes, advice } => {
                let file = self.file(program, fd);
                self.call_advise(task, file, offset, bytes, advice)
            }
            Call::Truncate { fd, bytes } => {
                let inode = self.open[self.file(program, fd)].inode;
                self.set_length(task, inode, bytes);
                Step::Again
            }
            Call::Unlink { file } => {
                let inode = self.programs[usize::from(program)].inodes[file.0 as usize];
                self.call_unlink(task, inode)
            }
            Call::SyncAll => self.call_sync_all(task),
        }
    }

    fn call_open(&mut self, task: Task, program: u16, fd: Fd, file: FileId, flags: OpenFlags) -> Step {
        let inode = self.programs[usize::from(program)].inodes[file.0 as usize];
        let is_new = !self.nodes[inode.0 as usize].exists;
        let opened = self.open(inode, flags);
        let fds = &mut self.programs[usize::from(program)].fds;
        let at = usize::from(fd.0);
        if fds.len() <= at {
            fds.resize(at + 1, None);
        }
        let before = fds[at].replace(opened);
        debug_assert!(before.is_none(), "descriptor opened twice");
        if is_new {
            self.push(task, Frame::Create(inode));
        } else if flags.truncate {
            self.set_length(task, inode, 0);
        }
        Step::Again
    }

    /// Changes the length of a file, under its lock.
    fn set_length(&mut self, task: Task, inode: Inode, bytes: u64) {
        self.push(task, Frame::Unlock(inode));
        self.push(task, Frame::Resize(Resize { inode, bytes, remove: false }));
        self.push(task, Frame::Lock(inode));
    }

    fn call_close(&mut self, task: Task, program: u16, fd: Fd) -> Step {
        let file = self.file(program, fd);
        self.programs[usize::from(program)].fds[usize::from(fd.0)] = None;
        let inode = self.open[file].inode;
        self.open.remove(file);
        let node = &mut self.nodes[inode.0 as usize];
        node.held -= 1;
        let (is_last, disk) = (node.held == 0, usize::from(node.disk));
        if is_last && !node.exists {
            self.push(task, Frame::Resize(Resize { inode, bytes: 0, remove: true }));
        } else if is_last
            && let Some(fs) = &mut self.disks[disk].fs
            && fs.release(inode)
        {
            self.push(task, Frame::Range(Range::of(inode, 0, u64::MAX)));
        }
        Step::Again
    }

    /// `filemap_read`, or `O_DIRECT`; reads stop at the end of the file.
    pub(super) fn call_read(&mut self, task: Task, file: u32, offset: u64, bytes: u64) -> Step {
        let mut access = self.access(file, offset, bytes);
        let open = &self.open[file];
        access.end = access.end.min(self.nodes[open.inode.0 as usize].bytes);
        let direct = open.flags.direct && self.has_direct(open.inode);
        if access.is_over() {
            return Step::Again;
        }
        if direct {
            self.push_direct(task, access, false, None);
        } else {
            self.push(task, Frame::Read(access));
        }
        Step::Again
    }

    /// `generic_file_write_iter`: under the inode's lock, then the sync of `O_SYNC`.
    pub(super) fn call_write(&mut self, task: Task, file: u32, offset: u64, bytes: u64) -> Step {
        let access = self.access(file, offset, bytes);
        if access.is_over() {
            return Step::Again;
        }
        let Open { inode, flags, .. } = self.open[file];
        if flags.sync || flags.data_sync {
            let data_only = !flags.sync;
            self.push(task, Frame::Sync { file, data_only });
            self.push_integrity(task, inode, access.page(), access.end_page());
        }
        if flags.direct && self.has_direct(inode) {
            self.push_direct(task, access, true, None);
        } else {
            self.push(task, Frame::Unlock(inode));
            self.push(task, Frame::Write(access));
            self.push(task, Frame::Lock(inode));
        }
        Step::Again
    }

    /// Pushes a direct read or write, under the inode's lock (`ext4_dio_read_iter`, `ext4_dio_write_iter`). The lock is
    /// held until the request has ended, or has been submitted if the thread does not wait for it. A block device has
    /// no lock.
    pub(super) fn push_direct(&mut self, task: Task, access: Access, write: bool, dio: Option<u32>) {
        let disk = usize::from(self.nodes[access.inode.0 as usize].disk);
        let locks = self.disks[disk].fs.is_some();
        if locks {
            self.push(task, Frame::Unlock(access.inode));
        }
        self.push(task, Frame::Direct { access, write, dio });
        if locks {
            self.push(task, Frame::LockDirect { access, write, waited: false });
        }
    }

    /// Returns whether a file supports direct reads and writes.
    pub(super) fn has_direct(&self, inode: Inode) -> bool {
        let disk = usize::from(self.nodes[inode.0 as usize].disk);
        self.disks[disk].fs.as_ref().is_none_or(|fs| fs.has_direct())
    }

    /// Writes the dirty pages of a range, and waits for them, before the thread's next step.
    pub(super) fn push_integrity(&mut self, task: Task, inode: Inode, page: u64, end: u64) {
        let range = Range { sync: true, ..Range::of(inode, page, end) };
        let disk = self.nodes[inode.0 as usize].disk;
        self.announce_sync(task, inode);
        self.push(task, Frame::WaitRange(range));
        self.push(task, Frame::EndWritepages(disk));
        self.push(task, Frame::BeginWritepages(range));
    }

    pub(super) fn call_sync(&mut self, task: Task, file: u32, data_only: bool) -> Step {
        let inode = self.open[file].inode;
        self.push(task, Frame::Sync { file, data_only });
        self.push_integrity(task, inode, 0, u64::MAX);
        Step::Again
    }

    fn call_sync_range(&mut self, task: Task, inode: Inode, offset: u64, bytes: u64, how: SyncRange) -> Step {
        let end = if bytes == 0 { u64::MAX } else { (offset + bytes).div_ceil(PAGE) };
        let range = Range::of(inode, offset / PAGE, end);
        // The last step runs first.
        let steps = [
            (how.wait_after, Frame::WaitRange(range)),
            (
                how.write,
                if how.wait_before && how.wait_after {
                    Frame::BeginWritepages(Range { sync: true, ..range })
                } else {
                    Frame::Range(range)
                },
            ),
            (how.wait_before, Frame::WaitRange(range)),
        ];
        for (_, frame) in steps.into_iter().filter(|(wanted, _)| *wanted) {
            self.push(task, frame);
        }
        Step::Again
    }

    /// `sync`: every file of every disk, then every journal.
    fn call_sync_all(&mut self, task: Task) -> Step {
        for disk in 0..self.disks.len() as u16 {
            self.push(task, Frame::SyncDisk(disk));
        }
        let nodes = (0..self.nodes.len() as u32).map(Inode).filter(|inode| {
            // Pages that a flusher is writing are waited for too (`sync_inodes_sb`).
            self.cache.dirty_pages(*inode) > 0 || self.cache.writeback_pages(*inode) > 0
        });
        let dirty: Vec<Inode> = nodes.collect();
        for inode in dirty {
            self.push_integrity(task, inode, 0, u64::MAX);
        }
        Step::Again
    }

    fn call_advise(&mut self, task: Task, file: u32, offset: u64, bytes: u64, advice: Advice) -> Step {
        let Open { inode, .. } = self.open[file];
        let length = self.nodes[inode.0 as usize].bytes;
        let end = if bytes == 0 { length } else { (offset + bytes).min(length) };
        match advice {
            Advice::WillNeed => {
                let access = Access { file, inode, offset, end };
                if access.is_over() { Step::Again } else { self.will_need(task, &access) }
            }
            Advice::DontNeed => {
                // Whole pages only; dirty ones stay, and their write-back begins.
                let page = offset.div_ceil(PAGE);
                let end_page = if end == length { end.div_ceil(PAGE) } else { end / PAGE };
                if page < end_page {
                    self.push(task, Frame::Forget(Range::of(inode, page, end_page)));
                    self.push(task, Frame::Range(Range::of(inode, page, end_page)));
                }
                Step::Again
            }
            _ => {
                self.open[file].ra.advise(advice, self.ra_pages);
                Step::Again
            }
        }
    }

    /// Removes clean pages of a range (`POSIX_FADV_DONTNEED`, after the write-back of dirty ones has begun).
    pub(super) fn forget(&mut self, task: Task, range: Range) -> Step {
        let gone = self.cache.invalidate(range.inode, range.page, range.end - 1);
        self.charge(task, self.costs.insert.times(gone));
        Step::Pay
    }

    /// Takes the lock of an inode (`inode_lock`).
    pub(super) fn lock(&mut self, task: Task, inode: Inode) -> Step {
        let node = &mut self.nodes[inode.0 as usize];
        if node.is_free() {
            node.locked = true;
            return Step::Again;
        }
        if self.owes(task) {
            return self.pay_then(task, Frame::Lock(inode));
        }
        self.wait_for(task, Wait::Lock(inode), Frame::Lock(inode))
    }

    /// Takes the lock of an inode for a direct read or write: shared, unless a write needs blocks or makes the file
    /// longer (`ext4_dio_write_checks`). A sharer does not overtake waiting threads.
    pub(super) fn lock_direct(
        &mut self,
        task: Task,
        access: Access,
        write: bool,
        waited: bool,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let Access { inode, offset, end, .. } = access;
        let disk = usize::from(self.nodes[inode.0 as usize].disk);
        let fs = self.disks[disk].fs.as_ref();
        if write && fs.is_some_and(|fs| fs.direct_has_end(inode, offset, end - offset)) {
            return self.lock(task, inode);
        }
        let node = &mut self.nodes[inode.0 as usize];
        if !node.locked && (waited || node.waiting.is_empty()) {
            node.shared += 1;
            self.wake_next(inode, cx);
            return Step::Again;
        }
        if self.owes(task) {
            return self.pay_then(task, Frame::LockDirect { access, write, waited });
        }
        self.wait_for(task, Wait::Lock(inode), Frame::LockDirect { access, write, waited: true })
    }

    /// Releases the lock of an inode; the longest-waiting thread retries.
    pub(super) fn unlock(&mut self, inode: Inode, cx: &mut impl Cx<Event, Out>) -> Step {
        let node = &mut self.nodes[inode.0 as usize];
        if node.shared > 0 {
            node.shared -= 1;
        } else {
            node.locked = false;
        }
        if node.shared == 0 {
            self.wake_next(inode, cx);
        }
        Step::Again
    }

    /// Wakes the longest-waiting thread for the lock of an inode. A thread woken for a different reason meanwhile may
    /// be in the list once more than it waits.
    fn wake_next(&mut self, inode: Inode, cx: &mut impl Cx<Event, Out>) {
        while let Some(next) = self.locks.pop(&mut self.nodes[inode.0 as usize].waiting) {
            if self.thread(next).wait == Some(Wait::Lock(inode)) {
                return self.wake(next, cx);
            }
        }
    }
}
