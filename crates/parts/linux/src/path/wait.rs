//! Wait conditions of threads, and the check that every waiting thread will be woken.

use super::frame::Frame;
use super::io::{Counter, Dio, Io};
use super::thread::Step;
use super::{Disk, Host, flow::Flow};
use crate::Inode;
use crate::pagecache::Folio;
use crate::tasks::Task;
use engine::{List, Lists, Slab};
use proto::file::Program;
use rustc_hash::FxHashMap;

/// Event that a thread sleeps for, other than a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wait {
    /// Read, unlock or write-back of a page.
    Folio(Folio),
    /// Room in the block layer.
    Room,
    /// Completion of a counter's bios.
    Count(u32),
    /// Lock of an inode.
    Lock(Inode),
    /// New transaction of a disk's journal.
    Transaction(u16),
    /// End of a commit of a disk's journal.
    Commit(u16),
    /// Writes of blocks to a disk's log.
    Log(u16),
    /// Write of a disk's metadata block to its place.
    Home(u16),
    /// End of the flusher's work on an inode of a disk.
    Flusher(u16),
    /// Completion of a coprocessor's order.
    Order(u32),
}

/// Threads that sleep until an event. Each checks again when it wakes, whatever woke it.
#[derive(Default)]
pub(super) struct Waits {
    lists: Lists<Task>,
    /// Waiters for the unlock or write-back of a page.
    folios: FxHashMap<Folio, List>,
    /// Waiters for memory.
    memory: List,
    /// Waiters by disk: for a commit to begin, for one to end, for log writes, for metadata blocks to be in their
    /// places, and for the flusher to turn to another inode.
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

    /// Moves the waiters for a page to `woken`.
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

    /// Moves the waiters for memory to `woken`.
    pub(super) fn memory_freed(&mut self, woken: &mut Vec<Task>) {
        let mut list = self.memory.take();
        self.take(&mut list, woken);
    }

    fn on_journal(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.began, disk, task);
    }

    /// Handles the start of a commit: moves the waiters for a new transaction to `woken`.
    pub(super) fn journal_began(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.began, disk, woken);
    }

    fn on_commit(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.commits, disk, task);
    }

    /// Handles the end of a commit.
    pub(super) fn committed(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.commits, disk, woken);
    }

    fn on_log(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.logs, disk, task);
    }

    /// Handles the completion of log writes.
    pub(super) fn log_written(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.logs, disk, woken);
    }

    fn on_home(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.homes, disk, task);
    }

    /// Handles the write of a metadata block to its place.
    pub(super) fn home_written(&mut self, disk: u16, woken: &mut Vec<Task>) {
        leave(&mut self.lists, &mut self.homes, disk, woken);
    }

    fn on_flusher(&mut self, disk: u16, task: Task) {
        join(&mut self.lists, &mut self.flushers, disk, task);
    }

    /// Handles the end of the flusher's work on an inode.
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
    /// Puts a thread to sleep until an event, after which it checks again in `again`.
    pub(super) fn wait_for(&mut self, task: Task, wait: Wait, again: Frame) -> Step {
        match wait {
            Wait::Folio(folio) => self.waits.on_folio(folio, task),
            // The queue, or the order, knows its waiter.
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

// Check that every waiting thread will be woken, for a run that ends while programs are still at work.

impl<P: Program> Host<P> {
    /// Describes the first thread or disk that waits for an event which will never occur. `None` on a sound host,
    /// between events.
    pub fn stuck(&self) -> Option<String> {
        let threads = (0..self.threads.len() as u32).map(Task);
        let of_threads = threads.filter_map(|task| {
            let why = self.vain(task)?;
            Some(format!(
                "thread {} waits in {:?}: {why}",
                task.0,
                self.threads[task.0 as usize].frames.last()
            ))
        });
        let disks = (0..).zip(&self.disks);
        let of_disks = disks.filter_map(|(disk, at)| {
            let why = self.idles(disk, at)?;
            Some(format!("drive {disk}: {why}"))
        });
        let of_flows = (0..).zip(&self.flows).filter_map(|(number, flow)| {
            let why = self.waits_in_vain(number, flow)?;
            Some(format!("flow {number}: {why}"))
        });
        of_threads.chain(of_disks).chain(of_flows).next()
    }

    /// Returns why the requests of a flow would not end, or more of them end than it has.
    fn waits_in_vain(&self, number: u16, flow: &Flow) -> Option<String> {
        let of_flow = |dio: &Dio| dio.flow == number;
        let dios = self.dios.live().filter(|(_, dio)| of_flow(dio)).count();
        let under_way = flow.under_way as usize;
        // The others are flushes, and the thread's current request.
        if flow.way().is_queued() && dios + flow.done.len() > under_way {
            return Some(format!(
                "{dios} requests in flight and {} done exceed {under_way}",
                flow.done.len()
            ));
        }
        let waits = flow.spins || self.rests(flow.task);
        if !waits || under_way == 0 {
            return None;
        }
        if flow.takes() > 0 {
            return Some("its thread does not take completed requests".into());
        }
        let syncs = flow.worker.is_some_and(|worker| !self.rests(worker));
        let bios = self.ios.live().any(|(_, io)| matches!(io, Io::Dio(dio) if of_flow(&self.dios[*dio])));
        let finisher = self.disks[usize::from(flow.disk())].finisher;
        let finishes = finisher.is_some_and(|finisher| !self.rests(finisher));
        (!syncs && !bios && !finishes).then(|| "none of its requests is in flight".into())
    }

    /// Returns whether a kernel thread sleeps until there is work.
    fn rests(&self, task: Task) -> bool {
        self.cores.sleeps(task) && self.threads[task.0 as usize].wait.is_none()
    }

    /// Returns why a sleeping thread would not be woken.
    fn vain(&self, task: Task) -> Option<String> {
        let thread = &self.threads[task.0 as usize];
        if !self.cores.sleeps(task) || thread.alarm.is_some() {
            return None;
        }
        if thread.plugs.iter().any(|plug| !plug.is_empty())
            || !thread.bios.is_empty() && thread.wait.is_none()
        {
            return Some("it has not submitted all of its bios".into());
        }
        let why = match thread.wait? {
            Wait::Folio(folio) => {
                let busy = self.cache.is_locked(folio) || self.cache.is_writeback(folio);
                (!busy).then_some("its page is neither locked nor under write-back")
            }
            Wait::Room => self.disks.iter().all(|disk| disk.queue.is_idle()).then_some("all queues are idle"),
            Wait::Count(counter) => {
                let counted = |io: &Io| matches!(io, Io::Counted(other) if *other == counter);
                let left = self.ios.live().filter(|(_, io)| counted(io)).count();
                let wanted = self.waits.counters[counter].left as usize;
                (left == 0 || left != wanted).then_some("its bios have ended")
            }
            Wait::Lock(inode) => {
                let nobody = self.nodes[inode.0 as usize].is_free() && !self.takes(inode);
                nobody.then_some("the lock is free")
            }
            Wait::Transaction(disk) | Wait::Commit(disk) => {
                let journal = self.disks[usize::from(disk)].journal;
                journal.is_none_or(|journal| self.rests(journal)).then_some("the journal's thread is idle")
            }
            Wait::Log(disk) => {
                let fs = self.disks[usize::from(disk)].fs.as_ref();
                fs.is_none_or(|fs| !fs.is_logging()).then_some("no log write is in flight")
            }
            Wait::Home(disk) => {
                let home = |io: &Io| matches!(io, Io::Home { disk: other, .. } if *other == disk);
                let under_way = self.ios.live().any(|(_, io)| home(io));
                (!under_way && !self.disks[usize::from(disk)].writes_tail)
                    .then_some("no metadata write is in flight")
            }
            Wait::Order(tag) => self.orders[tag].done.then_some("its order is done"),
            Wait::Flusher(disk) => (!self.writeback.is_running(disk)).then_some("the flusher is idle"),
        };
        why.map(Into::into)
    }

    /// Returns whether a thread has been woken to take the lock of an inode.
    fn takes(&self, inode: Inode) -> bool {
        let wants = |frame: &Frame| match frame {
            Frame::Lock(of) => *of == inode,
            Frame::LockDirect { access, .. } => access.inode == inode,
            _ => false,
        };
        let awake = (0..).map(Task).zip(&self.threads).filter(|(task, _)| !self.cores.sleeps(*task));
        awake.into_iter().any(|(_, thread)| thread.frames.last().is_some_and(wants))
    }

    /// Returns why a disk with work makes no progress.
    fn idles(&self, disk: u16, at: &Disk) -> Option<String> {
        let of_thread = |task: Task| {
            let thread = &self.threads[task.0 as usize];
            !self.cores.sleeps(task)
                && (!thread.plugs[usize::from(disk)].is_empty() || thread.stalled.is_some())
        };
        let held = (0..self.threads.len() as u32).any(|task| of_thread(Task(task)));
        let moves = at.queue.will_run()
            || at.vectors.iter().any(|vector| !vector.is_idle())
            || self.sent.live().any(|(_, sent)| sent.disk == disk);
        if !at.queue.is_idle() && !held && !moves {
            return Some("its queue has bios, but none is in flight".into());
        }
        if !at.converting.is_empty() && at.converter.is_none_or(|task| self.rests(task)) {
            return Some("written extents wait, but their conversion worker is idle".into());
        }
        let resting = self.rests(at.flusher);
        let frame = self.threads[at.flusher.0 as usize].frames.last();
        let asleep = resting && matches!(frame, Some(Frame::Flusher(_)));
        (asleep && self.writeback.is_running(disk)).then(|| "its flusher sleeps with unfinished work".into())
    }
}
