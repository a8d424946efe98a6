//! Reads through the page cache.

use super::Host;
use super::frame::{Access, Frame};
use super::io::Io;
use super::thread::Step;
use super::wait::Wait;
use crate::block::{Bio, BioFlags};
use crate::fs::{self, Place};
use crate::pagecache::readahead::Request;
use crate::pagecache::{Cause, Folio, Plan};
use crate::tasks::Task;
use crate::{Inode, PAGE};
use proto::IoOp;
use proto::file::Program;

/// Pages that a thread copies before it looks whether others want its core.
const BATCH: u32 = 32;

impl<P: Program> Host<P> {
    /// What a read from a page on asks read-ahead for.
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

    /// The folio that was found, if its page is being read.
    #[inline]
    pub(super) fn under_read(&self, found: Option<Folio>) -> Option<Folio> {
        found.filter(|folio| !self.cache.is_uptodate(*folio))
    }

    /// Waits for a page that is being read, and tries again.
    #[cold]
    pub(super) fn wait_uptodate(&mut self, task: Task, folio: Folio, again: Frame) -> Step {
        if self.owes(task) {
            return self.pay_then(task, again);
        }
        self.stats.page_waits += 1;
        self.wait_for(task, Wait::Folio(folio), again)
    }

    /// Brings what a plan names and memory lacks, and the page of the request itself if it is not read ahead.
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
            // As in `page_cache_ra_unbounded`, a page that was there before is not marked: who reads it would plan the same again.
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

    /// Pages of a range are read although nobody waits for them (`POSIX_FADV_WILLNEED`), as many as the drive takes at once.
    pub(super) fn will_need(&mut self, task: Task, access: &Access) -> Step {
        let request = self.request(access);
        let plan = self.cache.force_ra(&self.open[access.file].ra, &request);
        self.fetch(task, &request, plan, Cause::ReadAhead)
    }

    /// Inserts pages that are not in memory and reads them; whether there was memory for all.
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
                // What was never written is zeroes.
                None => self.filled(inode, at, run),
            }
            at += run;
        }
        count == pages
    }

    /// What the first of some pages have on the drive, as far as they are alike.
    pub(super) fn map(&mut self, task: Task, inode: Inode, page: u64, pages: u64) -> fs::Run {
        self.charge(task, self.costs.map);
        let disk = usize::from(self.nodes[inode.0 as usize].disk);
        match &self.disks[disk].fs {
            None => fs::Run { place: Place::Mapped { block: page }, pages },
            Some(fs) => fs.map(inode, page, pages),
        }
    }

    /// Where the data of pages lie on the drive, in bytes, and how many of them in one piece; nowhere if they were never written.
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

    /// Pages whose data are there.
    pub(super) fn filled(&mut self, inode: Inode, page: u64, pages: u64) {
        for page in page..page + pages {
            let folio = self.cache.find(inode, page).expect("a locked page stays");
            self.shadow_filled(inode, page, folio);
            self.cache.set_uptodate(folio);
            self.cache.unlock(folio);
            self.changed(folio);
        }
    }
}
