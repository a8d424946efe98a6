//! Dirty pages: who makes them, who pauses for them, and the flusher that writes them.

use super::frame::{Frame, Range};
use super::thread::Step;
use super::{Event, Host, Out};
use crate::Inode;
use crate::pagecache::Folio;
use crate::tasks::Task;
use crate::writeback::{self, Balance, SyncMode, Wake, Wrote};
use engine::Cx;

use proto::file::Program;

impl<P: Program> Host<P> {
    /// A thread has stored into a page; whether it pauses now.
    pub(super) fn dirtied(
        &mut self,
        task: Task,
        folio: Folio,
        disk: u16,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        if self.disks[usize::from(disk)].journals_data {
            // The journal has the data: they are dirty as blocks of the device once it has committed.
            return false;
        }
        let core = self.cores.core_of(task);
        if self.cache.set_dirty(folio) {
            self.charge(task, self.costs.dirty);
            let (inode, _) = self.cache.owner(folio);
            let thread = &mut self.threads[task.0 as usize];
            let wake = self.writeback.dirtied(inode, disk, 1, &mut thread.dirtier, core, cx.now());
            self.flusher_wakes(disk, wake, cx);
        }
        let avail = self.dirtyable();
        let thread = &mut self.threads[task.0 as usize];
        let balance = self.writeback.balance(disk, &mut thread.dirtier, core, avail, cx.now());
        self.balanced(task, disk, balance, cx)
    }

    /// Pages of memory that may hold dirty ones (`global_dirtyable_memory`).
    pub(super) fn dirtyable(&self) -> u64 {
        let reserve = self.cache.watermarks().high;
        (self.cache.free() + self.cache.nr_file_pages()).saturating_sub(reserve)
    }

    fn balanced(&mut self, task: Task, disk: u16, balance: Balance, cx: &mut impl Cx<Event, Out>) -> bool {
        self.flusher_wakes(disk, balance.wake, cx);
        self.thread(task).pause = balance.pause;
        balance.pause.is_some()
    }

    /// A writer pauses as long as it was told, and looks again.
    pub(super) fn balance(&mut self, task: Task, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Balance(disk));
        }
        if let Some(pause) = self.thread(task).pause.take() {
            self.push(task, Frame::Balance(disk));
            let now = cx.now();
            self.disks[usize::from(disk)].queue.writer_paused(now);
            return self.sleep_for(task, pause.since(now), cx);
        }
        let avail = self.dirtyable();
        let thread = &mut self.threads[task.0 as usize];
        let balance = self.writeback.resume(disk, &mut thread.dirtier, avail, cx.now());
        if self.balanced(task, disk, balance, cx) {
            self.push(task, Frame::Balance(disk));
        }
        Step::Again
    }

    /// What a call has done to a disk's flusher.
    pub(super) fn flusher_wakes(&mut self, disk: u16, wake: Wake, cx: &mut impl Cx<Event, Out>) {
        match wake {
            Wake::Nothing => {}
            Wake::Now => self.wake(self.disks[usize::from(disk)].flusher, cx),
            Wake::At(time) => {
                cx.after(time.since(cx.now()), Event::Flusher(disk));
            }
        }
    }

    /// The timer of a flusher.
    pub(super) fn flusher_due(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        self.wake(self.disks[usize::from(disk)].flusher, cx);
    }

    /// The thread of a flusher (`wb_workfn`).
    pub(super) fn flusher(&mut self, task: Task, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Flusher(disk));
        }
        self.push(task, Frame::Flusher(disk));
        let now = cx.now();
        if !self.writeback.is_running(disk) && !self.writeback.start(disk, now) {
            return Step::Sleep;
        }
        let avail = self.dirtyable();
        match self.writeback.next(disk, avail, now) {
            writeback::Step::Write(write) => {
                self.thread(task).submitted = 0;
                let (inode, from, pages) = (write.inode, write.from, write.pages);
                self.announce_flush(task, disk);
                self.push(task, Frame::Flushed { disk, inode, from });
                if inode == self.disks[usize::from(disk)].device {
                    self.push(task, Frame::Device { disk, from, pages });
                } else {
                    let sync = write.mode == SyncMode::All;
                    self.push(
                        task,
                        Frame::Range(Range { left: pages, sync, ..Range::of(inode, from, u64::MAX) }),
                    );
                }
                Step::Again
            }
            // Nobody in this host waits for the work of a flusher: `sync` writes files itself.
            writeback::Step::Finished { .. } => Step::Again,
            writeback::Step::Idle { again_at } => {
                if let Some(time) = again_at {
                    cx.after(time.since(now), Event::Flusher(disk));
                }
                Step::Sleep
            }
        }
    }

    /// The flusher has written what it was told of an inode, up to the end of the file or of its chunk.
    pub(super) fn flushed(
        &mut self,
        task: Task,
        disk: u16,
        inode: Inode,
        from: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let thread = self.thread(task);
        // Nobody asks a flusher: who asks for the file is told by `fsync`.
        thread.failed = None;
        let (pages, next, left) = (thread.submitted, thread.next_page, thread.left);
        // A range that began in the middle of the file goes on at its beginning (`range_cyclic`).
        if from > 0 && left > 0 && next == 0 {
            self.push(task, Frame::Flushed { disk, inode, from: 0 });
            let around = if inode == self.disks[usize::from(disk)].device {
                Frame::Device { disk, from: 0, pages: left }
            } else {
                Frame::Range(Range { left, ..Range::of(inode, 0, from) })
            };
            self.push(task, around);
            return Step::Again;
        }
        self.announced_come(disk, pages);
        // The inode itself is in the journal, or a dirty block of the device.
        self.writeback.wrote(disk, Wrote { pages, skipped: 0, next }, cx.now());
        self.waits.flushed(disk, &mut self.woken);
        Step::Again
    }

    /// A thread begins to write a range itself (`do_writepages`, `tag_pages_for_writeback`).
    pub(super) fn begin_writepages(
        &mut self,
        task: Task,
        range: Range,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        self.writeback.begin_writepages(self.nodes[range.inode.0 as usize].disk, cx.now());
        self.cache.tag_towrite(range.inode, range.page, range.end.saturating_sub(1));
        self.push(task, Frame::Range(range));
        Step::Again
    }

    /// A thread has submitted what it had to write.
    pub(super) fn end_writepages(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        self.writeback.end_writepages(disk, cx.now());
        Step::Again
    }

    /// Pages have been written.
    pub(super) fn written(&mut self, inode: Inode, page: u64, pages: u64, cx: &mut impl Cx<Event, Out>) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a page stays while it is being written");
            self.cache.end_writeback(folio);
            self.changed(folio);
        }
        self.writeback.ended(inode, pages, cx.now());
        self.waits.memory_freed(&mut self.woken);
    }
}
