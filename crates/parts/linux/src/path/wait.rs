//! Who waits for what.

use super::Host;
use super::frame::Frame;
use super::io::Counter;
use super::thread::Step;
use crate::Inode;
use crate::pagecache::Folio;
use crate::tasks::Task;
use engine::{List, Lists, Slab};
use proto::file::Program;
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
