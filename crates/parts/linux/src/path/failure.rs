//! Calls that fail, and who is told.

use super::frame::Frame;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::Inode;
use crate::tasks::Task;
use engine::Cx;
use proto::file::{CallError, Program};
use proto::{IoOp, Status};

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
