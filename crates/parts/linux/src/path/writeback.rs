//! Write-back: dirty pages, throttled writers, the flusher, and the writing of a file's pages.

use super::thread::Step;
use super::{Event, Host, Out};
use super::{
    frame::{Frame, Range},
    io::Io,
    wait::Wait,
};
use crate::pagecache::{Folio, Tag};
use crate::tasks::Task;
use crate::writeback::{self, Balance, SyncMode, Wake, Wrote};
use crate::{
    Inode, PAGE,
    block::{Bio, BioFlags},
    fs::{Changes, Place, WRITEPAGES_MOST},
};
use engine::Cx;

use proto::{
    IoOp,
    file::{CallError, Program},
};

impl<P: Program> Host<P> {
    /// Handles a store into a page by a thread; returns whether the thread pauses now.
    pub(super) fn dirtied(
        &mut self,
        task: Task,
        folio: Folio,
        disk: u16,
        cx: &mut impl Cx<Event, Out>,
    ) -> bool {
        if self.disks[usize::from(disk)].journals_data {
            // The journal has the data; after the commit they are dirty as blocks of the device.
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

    /// Memory pages that may be dirty (`global_dirtyable_memory`).
    pub(super) fn dirtyable(&self) -> u64 {
        let reserve = self.cache.watermarks().high;
        (self.cache.free() + self.cache.nr_file_pages()).saturating_sub(reserve)
    }

    fn balanced(&mut self, task: Task, disk: u16, balance: Balance, cx: &mut impl Cx<Event, Out>) -> bool {
        self.flusher_wakes(disk, balance.wake, cx);
        self.thread(task).pause = balance.pause;
        balance.pause.is_some()
    }

    /// Pauses a writer as told, after which it checks again.
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

    /// Applies a call's effect on a disk's flusher.
    pub(super) fn flusher_wakes(&mut self, disk: u16, wake: Wake, cx: &mut impl Cx<Event, Out>) {
        match wake {
            Wake::Nothing => {}
            Wake::Now => self.wake(self.disks[usize::from(disk)].flusher, cx),
            Wake::At(time) => {
                cx.after(time.since(cx.now()), Event::Flusher(disk));
            }
        }
    }

    /// Handles the timer of a flusher.
    pub(super) fn flusher_due(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        self.wake(self.disks[usize::from(disk)].flusher, cx);
    }

    /// Runs the thread of a flusher (`wb_workfn`).
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
            // No thread of this host waits for a flusher's work: `sync` writes files itself.
            writeback::Step::Finished { .. } => Step::Again,
            writeback::Step::Idle { again_at } => {
                if let Some(time) = again_at {
                    cx.after(time.since(now), Event::Flusher(disk));
                }
                Step::Sleep
            }
        }
    }

    /// Handles the flusher's writes to an inode, up to the end of the file or of its chunk.
    pub(super) fn flushed(
        &mut self,
        task: Task,
        disk: u16,
        inode: Inode,
        from: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let thread = self.thread(task);
        // A flusher has no caller: errors of the file are reported by `fsync`.
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

    /// Begins a thread's own write of a range (`do_writepages`, `tag_pages_for_writeback`).
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

    /// Ends a thread's submission of its range.
    pub(super) fn end_writepages(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        self.writeback.end_writepages(disk, cx.now());
        Step::Again
    }

    /// Handles the end of the write-back of pages.
    pub(super) fn written(&mut self, inode: Inode, page: u64, pages: u64, cx: &mut impl Cx<Event, Out>) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a page under write-back is not evicted");
            self.cache.end_writeback(folio);
            self.changed(folio);
        }
        self.writeback.ended(inode, pages, cx.now());
        self.waits.memory_freed(&mut self.woken);
    }
}

// Writing of a file's dirty pages: `ext4_writepages`, or `generic_writepages` on a drive without a file system.

/// Maximum entries of a bio (`BIO_MAX_VECS`).
const MOST: u64 = 256;

/// Maximum pages with blocks scanned in one go: more than a flusher writes of a file before it turns to the next.
const MOST_MAPPED: u64 = 1 << 16;

impl<P: Program> Host<P> {
    /// Writes the next dirty pages of a range, one or a few bios at a time.
    pub(super) fn range(&mut self, task: Task, mut range: Range, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Range(range));
        }
        let inode = range.inode;
        let tag = if range.sync { Tag::ToWrite } else { Tag::Dirty };
        let next = self.cache.next_tagged(inode, range.page, tag).filter(|(page, _)| *page < range.end);
        let free =
            next.filter(|(_, folio)| !self.cache.is_locked(*folio) && !self.cache.is_writeback(*folio));
        let goes_on = free.filter(|_| range.left > 0).map(|(page, _)| page);
        self.leave_extent(&mut range, goes_on, cx);
        let Some((first, folio)) = next.filter(|_| range.left > 0) else {
            let thread = self.thread(task);
            (thread.left, thread.next_page) = (range.left, if next.is_some() { range.page } else { 0 });
            return Step::Again;
        };
        if free.is_none() {
            if self.cache.is_writeback(folio) && !range.sync {
                return self.pay_then(task, Frame::Range(Range { page: first + 1, ..range }));
            }
            return self.wait_for(task, Wait::Folio(folio), Frame::Range(range));
        }
        let mut run = self.map(task, inode, first, range.left.min(range.end - first).min(MOST_MAPPED));
        let is_new = matches!(run.place, Place::Delayed | Place::Hole);
        if !matches!(run.place, Place::Mapped { .. }) {
            run.pages = run.pages.min(WRITEPAGES_MOST);
        }
        if is_new && !range.allocate {
            return self.pay_then(task, Frame::Range(Range { page: first + run.pages, ..range }));
        }
        let disk = self.nodes[inode.0 as usize].disk;
        let handle = if is_new {
            let fs = self.disks[usize::from(disk)].fs.as_ref();
            let credits = fs.map_or(0, |fs| fs.writepages_credits(inode));
            match self.start_handle(task, disk, credits, Changes::Blocks(inode), Frame::Range(range), cx) {
                Ok(handle) => handle,
                Err(step) => return step,
            }
        } else {
            None
        };
        if range.extent_end == 0 {
            range.extent_end = first + self.side_by_side(inode, first, run.pages, tag);
            let more = self.cache.next_tagged(inode, range.extent_end, tag);
            if !matches!(run.place, Place::Mapped { .. }) && more.is_none() {
                // An extent is gathered before it is submitted: pages that become dirty after its last one meanwhile
                // are skipped (`scanned_until_end`).
                range.end = range.end.min(range.extent_end);
            }
        }
        let mut is_there = true;
        if let (Some(fs), Some(handle)) = (&mut self.disks[usize::from(disk)].fs, handle) {
            is_there = fs.writepages(&handle, inode, first, range.extent_end - first).is_ok();
            fs.stop(handle);
            self.arm_commit(disk, cx);
        }
        let most = self.pages_at_once(disk).min(range.extent_end - first);
        let fs = self.disks[usize::from(disk)].fs.as_ref();
        if fs.is_some_and(|fs| fs.is_aliased(inode, first, first + most)) {
            self.push(task, Frame::Range(range));
            self.push(task, Frame::WaitHome(disk));
            return Step::Again;
        }
        // A bio ends at the end of its blocks.
        let most = if is_there { self.map(task, inode, first, most).pages } else { most };
        let pages = self.take_dirty(task, inode, first, most);
        if is_there {
            self.writeback.started(inode, pages);
            self.write_pages(task, &mut range, first, pages);
            self.thread(task).submitted += pages;
        } else {
            range.extent_end = 0;
            self.drop_pages(inode, first, pages);
            self.fail(task, CallError::NoSpace);
        }
        let left = range.left - pages;
        self.push(task, Frame::Range(Range { page: first + pages, left, ..range }));
        self.push(task, Frame::Submit);
        Step::Pay
    }

    /// Number of pages that enter write-back before the first is submitted: those of a bio, or those of a request on a
    /// drive without a file system, whose bios have one page each.
    fn pages_at_once(&self, disk: u16) -> u64 {
        let at = &self.disks[usize::from(disk)];
        let limits = at.queue.limits();
        if at.fs.is_some() {
            MOST * u64::from(limits.segment) / PAGE
        } else {
            (u64::from(limits.unsplit(IoOp::Write)) / PAGE).clamp(1, MOST)
        }
    }

    /// Counts adjacent pages of the file with a tag (`mpage_prepare_extent_to_map`).
    fn side_by_side(&mut self, inode: Inode, first: u64, most: u64, tag: Tag) -> u64 {
        let mut runs = std::mem::take(&mut self.runs);
        runs.clear();
        self.cache.tagged_runs(inode, first, first + most - 1, tag, most, &mut runs);
        let pages = runs[0].pages;
        self.runs = runs;
        pages
    }

    /// Clears the dirty flags of adjacent pages; returns their number.
    fn take_dirty(&mut self, task: Task, inode: Inode, first: u64, most: u64) -> u64 {
        let mut pages = 0;
        while pages < most {
            let Some(folio) = self.cache.find(inode, first + pages) else { break };
            let busy = self.cache.is_locked(folio) || self.cache.is_writeback(folio);
            if busy || !self.cache.clear_dirty_for_io(folio) {
                break;
            }
            self.cache.start_writeback(folio);
            pages += 1;
        }
        self.charge(task, self.costs.write_page.times(pages));
        pages
    }

    /// Makes bios of pages that have blocks; on a drive without a file system, one for each page
    /// (`__block_write_full_page`).
    fn write_pages(&mut self, task: Task, range: &mut Range, first: u64, pages: u64) {
        let inode = range.inode;
        let disk = self.nodes[inode.0 as usize].disk;
        let most = if self.disks[usize::from(disk)].fs.is_some() { pages } else { 1 };
        let mut at = first;
        while at < first + pages {
            let run = self.map(task, inode, at, most.min(first + pages - at));
            let (block, is_new) = match run.place {
                Place::Mapped { block } => (block, false),
                Place::Unwritten { block } => (block, true),
                Place::Hole | Place::Delayed => unreachable!("pages to be written have blocks"),
            };
            self.shadow_pages(inode, at, run.pages, block);
            if is_new {
                range.io_end = Some(self.get_io_end(range.io_end, inode, at, run.pages));
            }
            let io_end = range.io_end.filter(|_| is_new);
            let owner = self.ios.insert(Io::Write { inode, page: at, pages: run.pages as u32, io_end });
            let flags = BioFlags { sync: range.sync, background: !range.sync, ..BioFlags::default() };
            let announced = std::mem::take(&mut self.thread(task).announced);
            let bytes = (run.pages * PAGE) as u32;
            let bio = Bio { op: IoOp::Write, offset: block * PAGE, bytes, flags, owner, announced };
            self.charge(task, self.costs.bio);
            self.thread(task).bios.push_back((disk, bio));
            at += run.pages;
        }
    }

    /// Waits for pages of a range under write-back.
    pub(super) fn wait_range(&mut self, task: Task, range: Range) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::WaitRange(range));
        }
        let next = self.cache.next_tagged(range.inode, range.page, Tag::Writeback);
        let Some((page, folio)) = next.filter(|(page, _)| *page < range.end) else { return Step::Again };
        self.wait_for(task, Wait::Folio(folio), Frame::WaitRange(Range { page, ..range }))
    }

    /// Cleans pages for which the drive has no room; their data are lost, as the kernel reports in its log.
    fn drop_pages(&mut self, inode: Inode, page: u64, pages: u64) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a page under write-back is not evicted");
            self.cache.end_writeback(folio);
            self.changed(folio);
        }
        self.stats.lost += pages;
        self.writeback.cleaned(inode, pages);
    }
}
