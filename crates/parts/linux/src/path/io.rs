//! What bios are for, and what happens when they end: new extents, counters, calls that fail.

use super::{
    Event, Host, Out,
    frame::{Access, Frame, Range},
    thread::Step,
    wait::Wait,
};
use crate::Inode;
use crate::fs::{Changes, Tid};
use crate::tasks::Task;
use engine::Cx;
use proto::{
    Completion, IoOp, Status,
    file::{CallError, Program},
};

/// What a bio is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Io {
    /// Pages that are read into the page cache.
    Read { inode: Inode, page: u64, pages: u32 },
    /// Dirty pages that are written.
    Write {
        inode: Inode,
        page: u64,
        pages: u32,
        /// The [`IoEnd`] that they belong to, if their blocks are new.
        io_end: Option<u32>,
    },
    /// A block of metadata that goes to its place.
    Home { disk: u16, block: u64 },
    /// One of several that a thread waits for.
    Counted(u32),
    /// One of a request that nobody waits for: a [`Dio`].
    Dio(u32),
}

/// A direct request that its thread does not wait for (`struct iomap_dio` without `wait_for_completion`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Dio {
    /// The flow, and what it is told in the end.
    pub(super) flow: u16,
    pub(super) completion: Completion,
    pub(super) access: Access,
    pub(super) write: bool,
    /// Whether its bios have force unit access, or it is made durable after them (`IOMAP_DIO_WRITE_FUA`, `IOMAP_DIO_NEED_SYNC`).
    pub(super) fua: bool,
    pub(super) sync: bool,
    /// Whether its thread looks for its end.
    pub(super) polled: bool,
    /// Bios that have not ended, and the thread that submits them, until it has submitted all (`dio->ref`).
    pub(super) count: u32,
}

/// Pages of an extent that is new on the drive (`ext4_io_end_t`): they are being written until its last bio has ended and a worker has made it the
/// file's.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoEnd {
    pub(super) inode: Inode,
    pub(super) page: u64,
    /// How many have been submitted.
    pub(super) pages: u64,
    /// Bios that have not ended, and the thread that submits them, until it has submitted all (`io_end->count`).
    pub(super) count: u32,
}

/// Bios that a thread waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    /// How many have not ended.
    pub(super) left: u32,
    /// Who sleeps until none is left.
    pub(super) waiter: Option<Task>,
    /// The disk whose log they are written to.
    pub(super) log: Option<u16>,
    /// The disk to whose log a commit block is written, and its transaction.
    pub(super) commit: Option<(u16, Tid)>,
    /// Whether one has failed.
    pub(super) failed: bool,
}

// Extents that are new on a drive: their pages are written together, whatever their bios (`fs/ext4/page-io.c`).

impl<P: Program> Host<P> {
    /// Pages of a new extent are about to be submitted, in one bio: what they belong to (`ext4_init_io_end`, `ext4_get_io_end`).
    pub(super) fn get_io_end(&mut self, io_end: Option<u32>, inode: Inode, page: u64, pages: u64) -> u32 {
        let new = IoEnd { inode, page, pages: 0, count: 1 };
        let name = io_end.unwrap_or_else(|| self.io_ends.insert(new));
        let at = &mut self.io_ends[name];
        debug_assert_eq!((at.inode, at.page + at.pages), (inode, page), "an extent is in one piece");
        at.pages += pages;
        at.count += 1;
        name
    }

    /// One bio less, or all have been submitted; after the last, the extent is made the file's (`ext4_put_io_end_defer`).
    pub(super) fn put_io_end(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let io_end = &mut self.io_ends[name];
        io_end.count -= 1;
        if io_end.count > 0 {
            return;
        }
        let io_end = *io_end;
        self.io_ends.remove(name);
        let at = &mut self.disks[usize::from(self.nodes[io_end.inode.0 as usize].disk)];
        at.converting.push_back(io_end);
        if let Some(task) = at.converter {
            self.wake(task, cx);
        }
    }

    /// A thread goes on in a range at some page: the extent that it was in has been submitted, unless it is in it still.
    pub(super) fn leave_extent(
        &mut self,
        range: &mut Range,
        page: Option<u64>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        if page.is_some_and(|page| page == range.page && page < range.extent_end) {
            return;
        }
        range.extent_end = 0;
        if let Some(io_end) = range.io_end.take() {
            self.put_io_end(io_end, cx);
        }
    }

    /// The worker that makes blocks the file's whose data are on the drive (`ext4_end_io_rsv_work`).
    pub(super) fn convert(&mut self, task: Task, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Convert(disk));
        }
        let at = &mut self.disks[usize::from(disk)];
        let (Some(fs), Some(io_end)) = (&mut at.fs, at.converting.pop_front()) else {
            self.push(task, Frame::Convert(disk));
            return Step::Sleep;
        };
        let IoEnd { inode, page, pages, .. } = io_end;
        if fs.is_logged(Changes::Inode(inode)) {
            at.converting.push_front(io_end);
            return self.wait_for(task, Wait::Log(disk), Frame::Convert(disk));
        }
        let handle = fs.start_reserved(cx.now());
        let done = fs.end_io(&handle, inode, page, pages);
        fs.stop(handle);
        debug_assert!(done.is_ok(), "a file stays while its pages are being written");
        self.charge(task, self.costs.handle + self.costs.end_page.times(pages));
        self.written(inode, page, pages, cx);
        self.arm_commit(disk, cx);
        self.push(task, Frame::Convert(disk));
        Step::Again
    }
}

// Calls that fail, and who is told.

/// The last error of writing a file's data, which each descriptor is told once (`errseq_t`, lib/errseq.c): who opened the file after somebody else was
/// told is not.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Errors {
    last: Option<CallError>,
    /// Errors, those that came before anybody had looked at one counted as one.
    count: u32,
    seen: bool,
}

impl Errors {
    /// There is one (`errseq_set`).
    pub(super) fn set(&mut self, error: CallError) {
        if self.count == 0 || self.seen {
            self.count += 1;
        }
        (self.last, self.seen) = (Some(error), false);
    }

    /// Where a new descriptor begins (`errseq_sample`).
    pub(super) fn sample(&self) -> u32 {
        if self.seen { self.count } else { 0 }
    }

    /// What a descriptor has not been told, and is now (`errseq_check_and_advance`).
    pub(super) fn check(&mut self, since: &mut u32) -> Option<CallError> {
        if *since == self.count {
            return None;
        }
        *since = self.count;
        self.seen = true;
        self.last
    }
}

/// How a flow is told of a failure.
pub(super) fn status_of(op: IoOp) -> Status {
    if op == IoOp::Read { Status::UnrecoveredRead } else { Status::WriteFault }
}

impl<P: Program> Host<P> {
    /// What a thread does for its call fails; the first failure counts.
    pub(super) fn fail(&mut self, task: Task, error: CallError) {
        self.thread(task).failed.get_or_insert(error);
    }

    /// Whether a thread's call has failed.
    pub(super) fn has_failed(&self, task: Task) -> bool {
        self.threads[task.0 as usize].failed.is_some()
    }

    /// A thread is at the end of its call: what it says to a flow, if it has failed.
    pub(super) fn status(&mut self, task: Task, op: IoOp) -> Status {
        let failed = self.thread(task).failed.take();
        failed.map_or(Status::Success, |_| status_of(op))
    }

    /// Writing a file's data has failed before: the call fails that asks for the first time (`file_check_and_advance_wb_err`).
    pub(super) fn check_written(&mut self, task: Task, file: u32) {
        let open = &mut self.open[file];
        let found = self.nodes[open.inode.0 as usize].errors.check(&mut open.since);
        if let Some(error) = found {
            self.fail(task, error);
        }
    }

    /// The drive could not read pages: they leave, and the calls fail of those who wait for them. Who comes later tries again.
    pub(super) fn unfilled(&mut self, inode: Inode, page: u64, pages: u64) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a locked page stays");
            self.cache.unlock(folio);
            let first = self.woken.len();
            self.changed(folio);
            for at in first..self.woken.len() {
                let thread = &mut self.threads[self.woken[at].0 as usize];
                let reads = matches!(
                    thread.frames.last(),
                    Some(Frame::Read(_) | Frame::Write(_) | Frame::Touch { .. })
                );
                if reads && thread.wait == Some(Wait::Folio(folio)) {
                    thread.failed.get_or_insert(CallError::Io);
                }
            }
            self.cache.remove(folio);
        }
        self.waits.memory_freed(&mut self.woken);
    }

    /// The journal of a disk could not write (`jbd2_journal_abort`): nothing changes any more, and who waits for it is told.
    pub(super) fn abort_journal(&mut self, task: Task, disk: u16) {
        if self.thread(task).failed.take().is_some() {
            self.disks[usize::from(disk)].aborted = true;
        }
    }

    /// A thread has waited for a commit: it fails if that has.
    pub(super) fn check_journal(&mut self, task: Task, disk: u16) {
        if self.disks[usize::from(disk)].aborted {
            self.fail(task, CallError::Io);
        }
    }

    /// Pages of a file have been written, or not.
    pub(super) fn note_written(
        &mut self,
        inode: Inode,
        page: u64,
        pages: u64,
        status: Status,
        io_end: Option<u32>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        if status != Status::Success {
            self.nodes[inode.0 as usize].errors.set(CallError::Io);
        }
        match io_end {
            Some(io_end) => self.put_io_end(io_end, cx),
            None => self.written(inode, page, pages, cx),
        }
    }
}
