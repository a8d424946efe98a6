//! Buffered reads and writes through the page cache, and the reclaim that makes room for their pages.

use super::frame::{Access, Frame};
use super::io::Io;
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::fs::{self, Place};
use crate::pagecache::readahead::Request;
use crate::pagecache::{Cause, Folio, Next, Plan, Pressure, Reclaimed, ScanControl, Throttle};
use crate::tasks::Task;
use crate::{Inode, PAGE};
use crate::{
    block::{Bio, BioFlags},
    writeback::Reason,
};
use engine::{Cx, Time};
use proto::IoOp;
use proto::file::Program;

/// Pages that a thread copies before it checks whether another thread wants its core.
pub(super) const BATCH: u32 = 32;

impl<P: Program> Host<P> {
    /// Read-ahead request of a read that starts at a page.
    pub(super) fn request(&self, access: &Access) -> Request {
        let index = access.page();
        let file_pages = self.nodes[access.inode.0 as usize].bytes.div_ceil(PAGE);
        Request { inode: access.inode, file_pages, index, req_count: access.end_page() - index }
    }

    /// `filemap_read`.
    pub(super) fn read(&mut self, task: Task, mut access: Access) -> Step {
        for _ in 0..BATCH {
            access.end = access.end.min(self.nodes[access.inode.0 as usize].bytes);
            if access.is_over() || self.has_failed(task) {
                return Step::Pay;
            }
            let found = self.cache.seek(access.inode, access.page());
            if let Some(marker) = found.filter(|folio| self.cache.is_readahead(*folio)) {
                let request = self.request(&access);
                let plan = self.cache.async_ra(&mut self.open[access.file].ra, &request, marker);
                if plan.is_some() {
                    self.push(task, Frame::Read(access));
                    return self.fetch(task, &request, plan, Cause::ReadAhead);
                }
            }
            if let Some(folio) = self.under_read(found) {
                return self.wait_uptodate(task, folio, Frame::Read(access));
            }
            self.cache.count_lookup(found);
            let Some(folio) = found else {
                self.charge(task, self.costs.lookup);
                let request = self.request(&access);
                let plan = self.cache.sync_ra(&mut self.open[access.file].ra, &request);
                self.push(task, Frame::Read(access));
                return self.fetch(task, &request, plan, Cause::Read);
            };
            self.shadow_load(access.inode, access.page(), folio);
            let ra = &mut self.open[access.file].ra;
            if !ra.is_same_page(access.offset) {
                self.cache.mark_accessed(folio);
            }
            self.charge(task, self.costs.lookup + self.costs.copy(access.in_page()));
            access.advance();
            self.open[access.file].ra.prev_pos = access.offset;
        }
        self.pay_then(task, Frame::Read(access))
    }

    /// Returns the found folio if its page is being read.
    #[inline]
    pub(super) fn under_read(&self, found: Option<Folio>) -> Option<Folio> {
        found.filter(|folio| !self.cache.is_uptodate(*folio))
    }

    /// Waits for a page that is being read, then retries.
    #[cold]
    pub(super) fn wait_uptodate(&mut self, task: Task, folio: Folio, again: Frame) -> Step {
        if self.owes(task) {
            return self.pay_then(task, again);
        }
        self.stats.page_waits += 1;
        self.wait_for(task, Wait::Folio(folio), again)
    }

    /// Reads the missing pages of a plan, and the requested page itself if it is not read ahead.
    pub(super) fn fetch(&mut self, task: Task, request: &Request, plan: Option<Plan>, cause: Cause) -> Step {
        let Request { inode, index, .. } = *request;
        let mut enough = true;
        if let Some(plan) = plan {
            let mut runs = std::mem::take(&mut self.runs);
            runs.clear();
            self.cache.missing_runs(inode, plan.first, plan.pages, &mut runs);
            for run in &runs {
                let ahead = if matches!(cause, Cause::Fault) { Cause::FaultAhead } else { Cause::ReadAhead };
                let cause = |page| if page == index { cause } else { ahead };
                enough = enough && self.bring(task, inode, run.first, run.pages, cause);
            }
            // As in `page_cache_ra_unbounded`, a page that was already present is not marked: its reader would plan the
            // same again.
            let came = |page: &u64| runs.iter().any(|run| (run.first..run.first + run.pages).contains(page));
            if let Some(folio) = plan.mark.filter(came).and_then(|mark| self.cache.find(inode, mark)) {
                self.cache.set_readahead(folio);
            }
            self.runs = runs;
        }
        if enough && self.cache.find(inode, index).is_none() {
            enough = self.bring(task, inode, index, 1, |_| cause);
        }
        if !enough && self.cache.find(inode, index).is_none() {
            self.push(task, Frame::Reclaim);
        }
        self.push(task, Frame::Submit);
        Step::Pay
    }

    /// Reads pages of a range in advance (`POSIX_FADV_WILLNEED`), up to the drive's limit at once.
    pub(super) fn will_need(&mut self, task: Task, access: &Access) -> Step {
        let request = self.request(access);
        let plan = self.cache.force_ra(&self.open[access.file].ra, &request);
        self.fetch(task, &request, plan, Cause::ReadAhead)
    }

    /// Inserts missing pages and reads them; returns whether there was memory for all.
    pub(super) fn bring(
        &mut self,
        task: Task,
        inode: Inode,
        first: u64,
        pages: u64,
        cause: impl Fn(u64) -> Cause,
    ) -> bool {
        let mut count = 0;
        while count < pages && self.has_room() {
            self.cache.insert(inode, first + count, cause(first + count));
            count += 1;
        }
        self.charge(task, (self.costs.allocate + self.costs.insert).times(count));
        let mut at = first;
        while at < first + count {
            let (offset, run) = self.place(task, inode, at, first + count - at);
            match offset {
                Some(offset) => self.read_bio(task, inode, at, run, offset),
                // Pages that were never written are zeroes.
                None => self.filled(inode, at, run),
            }
            at += run;
        }
        count == pages
    }

    /// Maps the first of some pages to the drive, as far as their mapping is uniform.
    pub(super) fn map(&mut self, task: Task, inode: Inode, page: u64, pages: u64) -> fs::Run {
        self.charge(task, self.costs.map);
        let disk = usize::from(self.nodes[inode.0 as usize].disk);
        match &self.disks[disk].fs {
            None => fs::Run { place: Place::Mapped { block: page }, pages },
            Some(fs) => fs.map(inode, page, pages),
        }
    }

    /// Returns the first byte of pages on the drive, `None` if they were never written, and how many pages lie in one
    /// piece.
    pub(super) fn place(&mut self, task: Task, inode: Inode, page: u64, pages: u64) -> (Option<u64>, u64) {
        let run = self.map(task, inode, page, pages);
        match run.place {
            Place::Mapped { block } => (Some(block * PAGE), run.pages),
            Place::Hole | Place::Delayed | Place::Unwritten { .. } => (None, run.pages),
        }
    }

    fn read_bio(&mut self, task: Task, inode: Inode, page: u64, pages: u64, offset: u64) {
        let disk = self.nodes[inode.0 as usize].disk;
        let owner = self.ios.insert(Io::Read { inode, page, pages: pages as u32 });
        self.charge(task, self.costs.bio);
        let bytes = (pages * PAGE) as u32;
        let bio = Bio { op: IoOp::Read, offset, bytes, flags: BioFlags::default(), owner, announced: 0 };
        self.thread(task).bios.push_back((disk, bio));
    }

    /// Marks pages as read.
    pub(super) fn filled(&mut self, inode: Inode, page: u64, pages: u64) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a locked page is not evicted");
            self.shadow_filled(inode, page, folio);
            self.cache.set_uptodate(folio);
            self.cache.unlock(folio);
            self.changed(folio);
        }
    }
}

// Buffered writes.

impl<P: Program> Host<P> {
    /// `generic_perform_write`: page by page, with a check of the dirty limits after each.
    pub(super) fn write(&mut self, task: Task, mut access: Access, cx: &mut impl Cx<Event, Out>) -> Step {
        let inode = access.inode;
        let disk = self.nodes[inode.0 as usize].disk;
        for _ in 0..BATCH {
            if access.is_over() || self.has_failed(task) {
                return Step::Pay;
            }
            let found = self.cache.seek(inode, access.page());
            if let Some(folio) = self.under_read(found) {
                return self.wait_uptodate(task, folio, Frame::Write(access));
            }
            self.charge(task, self.costs.lookup);
            self.cache.count_lookup(found);
            let found = match self.write_begin(task, &access, found) {
                Ok(found) => found,
                Err(step) => return step,
            };
            let bytes = access.in_page();
            match self.extend(task, || Frame::Write(access), inode, (access.offset, bytes), cx) {
                Err(step) => return step,
                Ok(Some(error)) => {
                    self.refuse(task, error);
                    return Step::Pay;
                }
                Ok(None) => {}
            }
            let folio = found.unwrap_or_else(|| self.new_page(task, &access));
            self.charge(task, self.costs.copy(bytes));
            self.shadow_store(inode, access.page(), folio);
            access.advance();
            if self.dirtied(task, folio, disk, cx) {
                self.push(task, Frame::Write(access));
                self.push(task, Frame::Balance(disk));
                return Step::Pay;
            }
        }
        self.pay_then(task, Frame::Write(access))
    }

    /// Returns the page to write, present and unlocked, or `None` if it has only to be inserted (`write_begin`). An
    /// error is the step that the thread takes before it retries.
    #[inline]
    fn write_begin(
        &mut self,
        task: Task,
        access: &Access,
        found: Option<Folio>,
    ) -> Result<Option<Folio>, Step> {
        if found.is_some() {
            return Ok(found);
        }
        let (inode, page) = (access.inode, access.page());
        if !self.has_room() {
            self.push(task, Frame::Write(*access));
            self.push(task, Frame::Reclaim);
            return Err(Step::Again);
        }
        // A partially written page is read first, if it has data (`__block_write_begin_int`).
        if access.in_page() < PAGE && page * PAGE < self.nodes[inode.0 as usize].bytes {
            self.push(task, Frame::Write(*access));
            self.push(task, Frame::Submit);
            self.bring(task, inode, page, 1, |_| Cause::Write);
            return Err(Step::Pay);
        }
        Ok(None)
    }

    /// Inserts a page that is written in full, or was never written. Its data are copied before any other thread sees
    /// it.
    fn new_page(&mut self, task: Task, access: &Access) -> Folio {
        self.charge(task, self.costs.allocate + self.costs.insert);
        let folio = self.cache.insert(access.inode, access.page(), Cause::Write);
        self.cache.set_uptodate(folio);
        self.cache.unlock(folio);
        folio
    }
}

// Memory for new pages.

/// Sleep of a reclaimer throttled by write-back (`reclaim_throttle`): a tenth of a second.
const WRITEBACK_PAUSE: Time = Time::from_ms(100);

/// Maximum wait of a task for `kswapd` (`throttle_direct_reclaim`).
const KSWAPD_WAIT: Time = Time::from_s(1);

impl<P: Program> Host<P> {
    /// Returns whether there is memory for a page; wakes `kswapd` if it is low.
    pub(super) fn has_room(&mut self) -> bool {
        let pressure = self.cache.pressure();
        if pressure != Pressure::None && !self.cache.is_hopeless() {
            self.woken.push(self.kswapd);
        }
        pressure != Pressure::Direct
    }

    /// Runs direct reclaim for a task that needs a page (`try_to_free_pages`).
    pub(super) fn reclaim(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Reclaim);
        }
        if self.cache.pressure() != Pressure::Direct {
            self.thread(task).scan = None;
            return Step::Again;
        }
        if self.thread(task).scan.is_none() {
            self.stats.direct_reclaims += 1;
            if !self.cache.allows_direct_reclaim() {
                self.waits.on_memory(task);
                self.push(task, Frame::Reclaim);
                self.thread(task).scan = Some(ScanControl::direct());
                self.woken.push(self.kswapd);
                return self.sleep_for(task, KSWAPD_WAIT, cx);
            }
        }
        let mut control = self.thread(task).scan.take().unwrap_or_else(ScanControl::direct);
        let done = self.round(task, &mut control, cx);
        let pause = match (done.next, done.throttle) {
            (Next::Failed, _) | (_, Some(Throttle::Congested | Throttle::NoProgress)) => Some(self.tick),
            (_, Some(Throttle::Writeback)) => Some(WRITEBACK_PAUSE),
            (_, None) => None,
        };
        if done.next == Next::Again {
            self.thread(task).scan = Some(control);
        }
        if done.next != Next::Done {
            self.push(task, Frame::Reclaim);
        }
        match pause {
            Some(pause) => self.pause(task, pause),
            None => Step::Again,
        }
    }

    /// Runs `kswapd` until enough memory is free.
    pub(super) fn kswapd(&mut self, task: Task, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Kswapd);
        }
        self.push(task, Frame::Kswapd);
        if self.thread(task).scan.is_none() && self.cache.pressure() == Pressure::None {
            return Step::Sleep;
        }
        let mut control = self.thread(task).scan.take().unwrap_or_else(ScanControl::kswapd);
        let done = self.round(task, &mut control, cx);
        // ext4 leaves delayed allocations to the flusher (`ext4_writepage`).
        self.pageouts.clear();
        self.cache.pageouts(&mut self.pageouts);
        match done.next {
            Next::Again => self.thread(task).scan = Some(control),
            Next::Done | Next::Failed => self.waits.memory_freed(&mut self.woken),
        }
        match done.throttle {
            _ if done.next == Next::Failed && self.cache.is_hopeless() => self.pause(task, WRITEBACK_PAUSE),
            Some(Throttle::Writeback) => self.pause(task, WRITEBACK_PAUSE),
            Some(_) => self.pause(task, self.tick),
            None => Step::Again,
        }
    }

    /// Runs a round of a reclaim.
    fn round(&mut self, task: Task, control: &mut ScanControl, cx: &mut impl Cx<Event, Out>) -> Reclaimed {
        let done = self.cache.reclaim(control);
        self.charge(task, self.costs.scan.times(done.scanned) + self.costs.insert.times(done.freed));
        if done.wakes_flushers {
            for disk in 0..self.disks.len() as u16 {
                let wake = self.writeback.start_all(disk, Reason::Vmscan);
                self.flusher_wakes(disk, wake, cx);
            }
        }
        done
    }

    /// Charges a thread what it owes, then lets it sleep for a time.
    fn pause(&mut self, task: Task, time: Time) -> Step {
        self.pay_then(task, Frame::Nap(time))
    }
}
