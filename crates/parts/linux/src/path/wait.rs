//! Who waits for what.

use super::frame::Frame;
use super::io::Counter;
use super::thread::Step;
use super::{Event, Host, Out};
use crate::Inode;
use crate::pagecache::Folio;
use crate::tasks::Task;
use engine::{Cx, List, Lists, Slab};
use proto::{
    IoOp, Status,
    file::{CallError, Program},
};
use rustc_hash::FxHashMap;

/// What a thread sleeps for, beside the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// A page to be read, unlocked or written.
    Folio(Folio),
    /// Room in the block layer.
    Room,
    /// The bios of a count.
    Count(u32),
    /// The lock of an inode.
    Lock(Inode),
    /// A disk's journal to begin another transaction.
    Transaction(u16),
    /// It to end a commit.
    Commit(u16),
    /// Blocks of its log to be written.
    Log(u16),
    /// A block of a disk's metadata to be in its place.
    Home(u16),
    /// The flusher of a disk to have written what it was told of an inode.
    Flusher(u16),
    /// A coprocessor to have done an order.
    Order(u32),
}

/// Threads that sleep until something happens. Each looks again when it wakes, whatever woke it.
#[derive(Default)]
pub(super) struct Waits {
    lists: Lists<Task>,
    /// For a page to be unlocked, or written.
    folios: FxHashMap<Folio, List>,
    /// For memory.
    memory: List,
    /// By disk: for a commit to begin, for one to end, for its log to be written, for blocks of metadata to be in their places, for the flusher to
    /// turn to another inode.
    began: Vec<List>,
    commits: Vec<List>,
    logs: Vec<List>,
    homes: Vec<List>,
    flushers: Vec<List>,
    pub(super) counters: Slab<Counter>,
}

impl Waits {
    fn on_folio(&mut self, folio: Folio, task: Task) {
        self.lists.push(self.folios.entry(folio).or_default(), task);
    }

    /// Those who waited for a page, into `woken`.
    pub(super) fn folio_changed(&mut self, folio: Folio, woken: &mut Vec<Task>) {
        if let Some(mut list) = self.folios.remove(&folio) {
            self.take(&mut list, woken);
        }
    }

    pub(super) fn on_memory(&mut self, task: Task) {
        let mut list = std::mem::take(&mut self.memory);
        self.lists.push(&mut list, task);
        self.memory = list;
    }

    /// Those who waited for memory, into `woken`.
    pub(super) fn memory_freed(&mut self, woken: &mut Vec<Task>) {
        let mut list = self.memory.take();
        self.take(&mut list, woken);
    }

    fn on_journal(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.began, disk, task);
    }

    /// A commit has begun: those who waited for a new transaction, into `woken`.
    pub(super) fn journal_began(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.began, disk, woken);
    }

    fn on_commit(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.commits, disk, task);
    }

    /// A commit has ended.
    pub(super) fn committed(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.commits, disk, woken);
    }

    fn on_log(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.logs, disk, task);
    }

    /// Blocks are in the log.
    pub(super) fn log_written(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.logs, disk, woken);
    }

    fn on_home(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.homes, disk, task);
    }

    /// A block of metadata is in its place.
    pub(super) fn home_written(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.homes, disk, woken);
    }

    fn on_flusher(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.flushers, disk, task);
    }

    /// The flusher has written what it was told of an inode.
    pub(super) fn flushed(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.flushers, disk, woken);
    }

    fn take(&mut self, list: &mut List, woken: &mut Vec<Task>) {
        while let Some(task) = self.lists.pop(list) {
            woken.push(task);
        }
    }
}

fn join(lists: &mut Lists<Task>, of: &mut Vec<List>, disk: u16, task: Task) {
    let at = usize::from(disk);
    if of.len() <= at {
        of.resize_with(at + 1, List::default);
    }
    lists.push(&mut of[at], task);
}

fn leave(lists: &mut Lists<Task>, of: &mut [List], disk: u16, woken: &mut Vec<Task>) {
    if let Some(list) = of.get_mut(usize::from(disk)) {
        while let Some(task) = lists.pop(list) {
            woken.push(task);
        }
    }
}

impl<P: Program> Host<P> {
    /// A thread sleeps until something has happened, then looks again in `again`.
    pub(super) fn wait_for(&mut self, task: Task, wait: Wait, again: Frame) -> Step {
        match wait {
            Wait::Folio(folio) => self.waits.on_folio(folio, task),
            // The queue, or the order, knows who waits.
            Wait::Room | Wait::Order(_) => {}
            Wait::Count(counter) => self.waits.counters[counter].waiter = Some(task),
            Wait::Lock(inode) => self.locks.push(&mut self.nodes[inode.0 as usize].waiting, task),
            Wait::Transaction(disk) => self.waits.on_journal(disk, task),
            Wait::Commit(disk) => self.waits.on_commit(disk, task),
            Wait::Log(disk) => self.waits.on_log(disk, task),
            Wait::Home(disk) => self.waits.on_home(disk, task),
            Wait::Flusher(disk) => self.waits.on_flusher(disk, task),
        }
        self.push(task, again);
        self.thread(task).wait = Some(wait);
        Step::Sleep
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
