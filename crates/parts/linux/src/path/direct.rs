//! Direct reads and writes, and mappings.

use super::frame::{Access, Frame};
use super::io::{Counter, Io};
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::PAGE;
use crate::block::{Bio, BioFlags};
use crate::fs::{Changes, Place};
use crate::pagecache::{
    Cause, Folio, Tag,
    readahead::{Mapping, Request},
};
use crate::tasks::Task;
use engine::{Cx, Time};
use proto::IoOp;
use proto::file::{CallError, Program};

/// Maximum pages of a bio (`BIO_MAX_VECS`).
const MOST: u64 = 256;

impl<P: Program> Host<P> {
    /// `O_DIRECT` (`iomap_dio_rw`): cached dirty pages of the range are written first, and a write removes cached
    /// pages.
    pub(super) fn direct(
        &mut self,
        task: Task,
        access: Access,
        write: bool,
        dio: Option<u32>,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let again = Frame::Direct { access, write, dio };
        let inode = access.inode;
        let (page, end) = (access.page(), access.end_page());
        let has = |tag| self.cache.next_tagged(inode, page, tag).is_some_and(|(at, _)| at < end);
        if has(Tag::Dirty) || has(Tag::Writeback) {
            self.push(task, again);
            self.push_integrity(task, inode, page, end);
            return Step::Again;
        }
        if write {
            if let Some(folio) = self.cache.invalidate2(inode, page, end - 1) {
                if self.owes(task) {
                    return self.pay_then(task, again);
                }
                return self.wait_for(task, Wait::Folio(folio), again);
            }
            match self.allocate(task, again, &access, cx) {
                Err(step) => return step,
                Ok(Some(error)) => {
                    debug_assert!(dio.is_none(), "a write that needs blocks is waited for");
                    self.refuse(task, error);
                    return Step::Pay;
                }
                Ok(None) => {}
            }
            let disk = self.nodes[inode.0 as usize].disk;
            let fs = self.disks[usize::from(disk)].fs.as_ref();
            if fs.is_some_and(|fs| fs.is_aliased(inode, page, end)) {
                self.push(task, again);
                self.push(task, Frame::WaitHome(disk));
                return Step::Again;
            }
        }
        self.direct_bios(task, access, write, dio)
    }

    /// Makes the bios of a direct request, one extent after another (`iomap_dio_bio_iter`).
    fn direct_bios(&mut self, task: Task, access: Access, write: bool, dio: Option<u32>) -> Step {
        let inode = access.inode;
        let disk = self.nodes[inode.0 as usize].disk;
        let counter = if dio.is_none() { Some(self.waits.counters.insert(Counter::default())) } else { None };
        let (fua, polled) = dio.map_or((false, false), |dio| (self.dios[dio].fua, self.dios[dio].polled));
        let mut at = access.offset;
        while at < access.end {
            let pages = (access.end.div_ceil(PAGE) - at / PAGE).min(MOST);
            let run = self.map(task, inode, at / PAGE, pages);
            let to = ((at / PAGE + run.pages) * PAGE).min(access.end);
            let block = match run.place {
                Place::Mapped { block } => Some(block),
                Place::Unwritten { block } if write => Some(block),
                _ => None,
            };
            self.shadow_direct(inode, at / PAGE, to.div_ceil(PAGE) - at / PAGE, run.place, write);
            if let Some(block) = block {
                let io = match (counter, dio) {
                    (Some(counter), _) => {
                        self.waits.counters[counter].left += 1;
                        Io::Counted(counter)
                    }
                    (None, dio) => {
                        let dio = dio.expect("an unwaited request has a `Dio`");
                        self.dios[dio].count += 1;
                        Io::Dio(dio)
                    }
                };
                let owner = self.ios.insert(io);
                // `dio_bio_write_op`; a request of several bios is not polled.
                let polled = polled && (at, to) == (access.offset, access.end);
                let flags = BioFlags { sync: true, idle: write, fua, polled, ..BioFlags::default() };
                let op = if write { IoOp::Write } else { IoOp::Read };
                let (offset, bytes) = (block * PAGE + at % PAGE, (to - at) as u32);
                self.charge(task, self.costs.bio);
                let bio = Bio { op, offset, bytes, flags, owner, announced: 0 };
                self.thread(task).bios.push_back((disk, bio));
            }
            at = to;
        }
        if let Some(counter) = counter {
            if write {
                self.push(task, Frame::DirectWritten(access));
            }
            self.push(task, Frame::Count(counter));
        }
        self.thread(task).prepared = Time::ZERO;
        self.push(task, Frame::Submitted(dio));
        self.push(task, Frame::Submit);
        Step::Pay
    }

    /// Handles the submission of a direct request's bios, whose commands the thread has prepared itself.
    pub(super) fn submitted(&mut self, task: Task, dio: Option<u32>, cx: &mut impl Cx<Event, Out>) -> Step {
        let prepared = std::mem::take(&mut self.thread(task).prepared);
        self.charge(task, prepared);
        if let Some(dio) = dio {
            self.fail_dio(task, dio);
            self.put_dio(dio, cx);
        }
        Step::Pay
    }

    /// Allocates the blocks of a direct write. Returns the reason for a failure; an error is the step that the thread
    /// takes before it retries.
    fn allocate(
        &mut self,
        task: Task,
        again: Frame,
        access: &Access,
        cx: &mut impl Cx<Event, Out>,
    ) -> Result<Option<CallError>, Step> {
        let Access { inode, offset, end, .. } = *access;
        let (bytes, now) = (end - offset, cx.now());
        let disk = self.nodes[inode.0 as usize].disk;
        let at = &self.disks[usize::from(disk)];
        let Some(fs) = &at.fs else {
            return Ok((end > self.nodes[inode.0 as usize].bytes).then_some(CallError::NoSpace));
        };
        if fs.direct_is_bare(inode, offset, bytes, now) {
            return Ok(None);
        }
        if at.aborted {
            return Ok(Some(CallError::ReadOnly));
        }
        let credits = fs.direct_credits(inode);
        let handle = self.start_handle(task, disk, credits, Changes::Blocks(inode), again, cx)?;
        let (Some(fs), Some(handle)) = (&mut self.disks[usize::from(disk)].fs, handle) else {
            return Ok(None);
        };
        let done = fs.direct_write(&handle, inode, offset, bytes, now);
        fs.stop(handle);
        self.arm_commit(disk, cx);
        Ok(done.is_err().then_some(CallError::NoSpace))
    }

    /// Handles the completion of a direct write: the file has the data now.
    pub(super) fn direct_written(
        &mut self,
        task: Task,
        access: Access,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let inode = access.inode;
        if self.has_failed(task) {
            // Failed writes do not count (`iomap_dio_complete`).
            return Step::Again;
        }
        if let Err(step) = self.direct_end(task, access, cx) {
            return step;
        }
        // Pages read meanwhile may be stale, or zeroes of blocks that had no data until now: they are removed
        // afterwards (`iomap_dio_complete`).
        if let Some(folio) = self.cache.invalidate2(inode, access.page(), access.end_page() - 1) {
            if self.owes(task) {
                return self.pay_then(task, Frame::DirectWritten(access));
            }
            return self.wait_for(task, Wait::Folio(folio), Frame::DirectWritten(access));
        }
        self.shadow_directed(inode, access.page(), access.end_page());
        Step::Pay
    }

    /// Marks the blocks of a direct write as written, and sets the file's length (`ext4_dio_write_end_io`). An error is
    /// the step that the thread takes before it retries.
    fn direct_end(&mut self, task: Task, access: Access, cx: &mut impl Cx<Event, Out>) -> Result<(), Step> {
        let Access { inode, offset, end, .. } = access;
        let disk = self.nodes[inode.0 as usize].disk;
        let Some(fs) = &self.disks[usize::from(disk)].fs else { return Ok(()) };
        if !fs.direct_has_end(inode, offset, end - offset) {
            return Ok(());
        }
        let (credits, again) = (fs.direct_credits(inode), Frame::DirectWritten(access));
        let handle = self.start_handle(task, disk, credits, Changes::Inode(inode), again, cx)?;
        let (Some(fs), Some(handle)) = (&mut self.disks[usize::from(disk)].fs, handle) else { return Ok(()) };
        let done = fs.direct_end(&handle, inode, offset, end - offset);
        fs.stop(handle);
        debug_assert!(done.is_ok(), "an open file is not removed");
        let node = &mut self.nodes[inode.0 as usize];
        node.bytes = node.bytes.max(end);
        self.arm_commit(disk, cx);
        Ok(())
    }
}

// Mappings: loads and stores of their pages, and their faults (`filemap_fault`, `do_read_fault`, `do_shared_fault`).
//
// A mapped page costs only the copy, without a system call. A fault costs the entry into the kernel and back, and a
// page look-up. A read fault also maps the present pages around its page. The first store into a clean page is a fault
// of its own (`page_mkwrite`), even if the page is mapped, since write-back write-protects pages.

/// Pages that a thread copies before it checks whether another thread wants its core.
const BATCH: u32 = 32;

impl<P: Program> Host<P> {
    /// Copies from or to a mapping, up to the end of the file. Pages that need no fault are copied in one step.
    pub(super) fn mapped(&mut self, task: Task, mut access: Access, write: bool) -> Step {
        for _ in 0..BATCH {
            if access.is_over() || self.has_failed(task) {
                return Step::Pay;
            }
            self.charge(task, self.costs.copy(access.in_page()));
            let (page, touched) = (access.page(), access);
            access.advance();
            let found = self.cache.find(access.inode, page).filter(|folio| self.is_at_hand(*folio, write));
            let Some(folio) = found else {
                self.push(task, Frame::Mapped { access, write });
                self.push(task, Frame::Touch { access: touched, write });
                return Step::Again;
            };
            self.cache.touch(folio);
            if write {
                self.shadow_store(access.inode, page, folio);
            } else {
                self.shadow_load(access.inode, page, folio);
            }
        }
        self.pay_then(task, Frame::Mapped { access, write })
    }

    /// Returns whether a load or store of a page takes no fault.
    fn is_at_hand(&self, folio: Folio, write: bool) -> bool {
        self.cache.is_uptodate(folio) && self.cache.is_mapped(folio) && (!write || self.cache.is_dirty(folio))
    }

    /// Loads or stores a mapped page, with the necessary faults.
    pub(super) fn touch(
        &mut self,
        task: Task,
        access: Access,
        write: bool,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        if access.offset >= self.nodes[access.inode.0 as usize].bytes || self.has_failed(task) {
            // The file has become shorter, or could not be read (`SIGBUS`).
            return Step::Pay;
        }
        let again = Frame::Touch { access, write };
        if let Some(folio) = self.under_read(self.cache.find(access.inode, access.page())) {
            return self.wait_uptodate(task, folio, again);
        }
        let request = Request { req_count: 1, ..self.request(&access) };
        let mapping = self.open[access.file].mapping;
        // `lru_gen_enter_fault`: with `madvise`, a page is read, not used.
        let cause = if mapping == Mapping::Normal { Cause::Fault } else { Cause::Read };
        let Some(folio) = self.cache.lookup(access.inode, request.index) else {
            self.charge(task, self.costs.call + self.costs.lookup);
            let plan = self.cache.sync_mmap_ra(&mut self.open[access.file].ra, &request, mapping);
            self.push(task, again);
            return self.fetch(task, &request, plan, cause);
        };
        self.shadow_load(access.inode, request.index, folio);
        if self.cache.is_mapped(folio) {
            self.cache.touch(folio);
        } else {
            self.charge(task, self.costs.call + self.costs.lookup);
            let ra = &mut self.open[access.file].ra;
            if write || !self.cache.fault_around(ra, &request) {
                self.cache.map(folio);
                let plan = self.cache.async_mmap_ra(ra, &request, folio, mapping);
                if plan.is_some() {
                    self.push(task, again);
                    return self.fetch(task, &request, plan, Cause::FaultAhead);
                }
            }
        }
        if !write || self.cache.is_dirty(folio) {
            if write {
                self.shadow_store(access.inode, request.index, folio);
            }
            return Step::Pay;
        }
        self.make_writable(task, &access, folio, cx)
    }

    /// Handles the first store into a clean page (`ext4_page_mkwrite`, `fault_dirty_shared_page`).
    fn make_writable(
        &mut self,
        task: Task,
        access: &Access,
        folio: Folio,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let page = access.page();
        let start = page * PAGE;
        let bytes = PAGE.min(self.nodes[access.inode.0 as usize].bytes - start);
        let again = Frame::Touch { access: *access, write: true };
        match self.extend(task, || again, access.inode, (start, bytes), cx) {
            Err(step) => return step,
            Ok(Some(error)) => self.refuse(task, error),
            Ok(None) => {
                self.shadow_store(access.inode, page, folio);
                let disk = self.nodes[access.inode.0 as usize].disk;
                if self.dirtied(task, folio, disk, cx) {
                    self.push(task, Frame::Balance(disk));
                }
            }
        }
        Step::Pay
    }
}
