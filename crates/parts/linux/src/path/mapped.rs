//! Mappings: loads and stores of their pages, and the faults that these take (`filemap_fault`, `do_read_fault`, `do_shared_fault`).
//!
//! A page that is mapped costs what is copied, and no call of the kernel. A fault costs the way into the kernel and back, and the look for its
//! page; one that only reads maps the pages around it that are there. The first store into a clean page is a fault of its own
//! (`page_mkwrite`), also if the page is mapped: write-back protects what it writes.

use super::frame::{Access, Frame};
use super::thread::Step;
use super::{Event, Host, Out};
use crate::PAGE;
use crate::pagecache::readahead::{Mapping, Request};
use crate::pagecache::{Cause, Folio};
use crate::tasks::Task;
use engine::Cx;
use proto::file::Program;

/// Pages that a thread copies before it looks whether others want its core.
const BATCH: u32 = 32;

impl<P: Program> Host<P> {
    /// Copies from or to a mapping, up to the end of the file. What needs no fault goes on by itself.
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

    /// Whether a load or store of a page takes no fault.
    fn is_at_hand(&self, folio: Folio, write: bool) -> bool {
        self.cache.is_uptodate(folio) && self.cache.is_mapped(folio) && (!write || self.cache.is_dirty(folio))
    }

    /// A load or store of a mapped page, with the faults that it takes.
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
        // `lru_gen_enter_fault`: what `madvise` has spoken of is read, not used.
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

    /// The first store into a clean page (`ext4_page_mkwrite`, `fault_dirty_shared_page`).
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
