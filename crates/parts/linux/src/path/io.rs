//! Purposes of bios and the handling of their completions: new extents, counters, failed calls.

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

/// Purpose of a bio.
#[derive(Clone, Copy, Debug)]
pub(super) enum Io {
    /// Pages read into the page cache.
    Read { inode: Inode, page: u64, pages: u32 },
    /// Dirty pages written.
    Write {
        inode: Inode,
        page: u64,
        pages: u32,
        /// [`IoEnd`] of the pages, if their blocks are new.
        io_end: Option<u32>,
    },
    /// Metadata block written to its place.
    Home { disk: u16, block: u64 },
    /// Bio of a counter that a thread waits for.
    Counted(u32),
    /// Bio of a request without a waiting thread: a [`Dio`].
    Dio(u32),
}

/// Direct request that its thread does not wait for (`struct iomap_dio` without `wait_for_completion`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Dio {
    /// Flow of the request, and its answer.
    pub(super) flow: u16,
    pub(super) completion: Completion,
    pub(super) access: Access,
    pub(super) write: bool,
    /// Durability: by force unit access of the bios, or by a sync after them (`IOMAP_DIO_WRITE_FUA`,
    /// `IOMAP_DIO_NEED_SYNC`).
    pub(super) fua: bool,
    pub(super) sync: bool,
    /// True if the thread polls for the completion.
    pub(super) polled: bool,
    /// Bios in flight, plus the submitting thread until it has submitted all (`dio->ref`).
    pub(super) count: u32,
}

/// Pages of a newly allocated extent (`ext4_io_end_t`). They are under write-back until the last bio has ended and a
/// worker has converted the extent.
#[derive(Clone, Copy, Debug)]
pub(super) struct IoEnd {
    pub(super) inode: Inode,
    pub(super) page: u64,
    /// Submitted pages.
    pub(super) pages: u64,
    /// Bios in flight, plus the submitting thread until it has submitted all (`io_end->count`).
    pub(super) count: u32,
}

/// Counter of bios that a thread waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counter {
    /// Bios in flight.
    pub(super) left: u32,
    /// Thread that sleeps until none is left.
    pub(super) waiter: Option<Task>,
    /// Disk to whose log they are written.
    pub(super) log: Option<u16>,
    /// Disk to whose log a commit block is written, and its transaction.
    pub(super) commit: Option<(u16, Tid)>,
    /// True if a bio has failed.
    pub(super) failed: bool,
}

// New extents on a drive: all pages of an extent end together, whatever their bios (`fs/ext4/page-io.c`).

impl<P: Program> Host<P> {
    /// Adds a bio's pages to the record of their new extent; returns the record (`ext4_init_io_end`,
    /// `ext4_get_io_end`).
    pub(super) fn get_io_end(&mut self, io_end: Option<u32>, inode: Inode, page: u64, pages: u64) -> u32 {
        let new = IoEnd { inode, page, pages: 0, count: 1 };
        let name = io_end.unwrap_or_else(|| self.io_ends.insert(new));
        let at = &mut self.io_ends[name];
        debug_assert_eq!((at.inode, at.page + at.pages), (inode, page), "pages of an extent are contiguous");
        at.pages += pages;
        at.count += 1;
        name
    }

    /// Drops a reference to a new extent's record; after the last, the extent is converted (`ext4_put_io_end_defer`).
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

    /// Ends the submission of the current extent if a thread's position in a range has moved past it.
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

    /// Runs the worker that converts extents whose data are on the drive (`ext4_end_io_rsv_work`).
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
        debug_assert!(done.is_ok(), "a file is not removed while its pages are being written");
        self.charge(task, self.costs.handle + self.costs.end_page.times(pages));
        self.written(inode, page, pages, cx);
        self.arm_commit(disk, cx);
        self.push(task, Frame::Convert(disk));
        Step::Again
    }
}

// Failed calls and the reporting of errors.

/// Last error of writing a file's data, reported once to each descriptor (`errseq_t`, lib/errseq.c). A descriptor
/// opened after the error was reported elsewhere is not notified.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Errors {
    last: Option<CallError>,
    /// Number of errors; those before any descriptor has checked count as one.
    count: u32,
    seen: bool,
}

impl Errors {
    /// Records an error (`errseq_set`).
    pub(super) fn set(&mut self, error: CallError) {
        if self.count == 0 || self.seen {
            self.count += 1;
        }
        (self.last, self.seen) = (Some(error), false);
    }

    /// Returns the start position of a new descriptor (`errseq_sample`).
    pub(super) fn sample(&self) -> u32 {
        if self.seen { self.count } else { 0 }
    }

    /// Returns an error not yet reported to a descriptor, and marks it reported (`errseq_check_and_advance`).
    pub(super) fn check(&mut self, since: &mut u32) -> Option<CallError> {
        if *since == self.count {
            return None;
        }
        *since = self.count;
        self.seen = true;
        self.last
    }
}

/// Status of a failed request.
pub(super) fn status_of(op: IoOp) -> Status {
    if op == IoOp::Read { Status::UnrecoveredRead } else { Status::WriteFault }
}

impl<P: Program> Host<P> {
    /// Fails a thread's call; the first failure counts.
    pub(super) fn fail(&mut self, task: Task, error: CallError) {
        self.thread(task).failed.get_or_insert(error);
    }

    /// Returns whether a thread's call has failed.
    pub(super) fn has_failed(&self, task: Task) -> bool {
        self.threads[task.0 as usize].failed.is_some()
    }

    /// Takes the status of a thread's finished call, for its flow.
    pub(super) fn status(&mut self, task: Task, op: IoOp) -> Status {
        let failed = self.thread(task).failed.take();
        failed.map_or(Status::Success, |_| status_of(op))
    }

    /// Fails a call if an earlier write of the file's data has failed and was not reported
    /// (`file_check_and_advance_wb_err`).
    pub(super) fn check_written(&mut self, task: Task, file: u32) {
        let open = &mut self.open[file];
        let found = self.nodes[open.inode.0 as usize].errors.check(&mut open.since);
        if let Some(error) = found {
            self.fail(task, error);
        }
    }

    /// Removes pages that the drive could not read, and fails the calls that wait for them. Later calls try again.
    pub(super) fn unfilled(&mut self, inode: Inode, page: u64, pages: u64) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a locked page is not evicted");
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

    /// Aborts the journal of a disk after a failed write (`jbd2_journal_abort`): later changes are refused, and waiting
    /// calls fail.
    pub(super) fn abort_journal(&mut self, task: Task, disk: u16) {
        if self.thread(task).failed.take().is_some() {
            self.disks[usize::from(disk)].aborted = true;
        }
    }

    /// Fails a thread that has waited for a commit if the commit failed.
    pub(super) fn check_journal(&mut self, task: Task, disk: u16) {
        if self.disks[usize::from(disk)].aborted {
            self.fail(task, CallError::Io);
        }
    }

    /// Records whether pages of a file could be written.
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
