//! Writes through the page cache.

use super::frame::{Access, Frame};
use super::thread::Step;
use super::{Event, Host, Out};
use crate::PAGE;
use crate::pagecache::{Cause, Folio};
use crate::tasks::Task;
use engine::Cx;
use proto::file::Program;

/// Pages that a thread copies before it looks whether others want its core.
const BATCH: u32 = 32;

impl<P: Program> Host<P> {
    /// `generic_perform_write`: page by page, with a look at the dirty limits after each.
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

    /// The page that is written to, in memory and unlocked, or none if it has only to be inserted (`write_begin`); otherwise what the thread does
    /// until it tries again.
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
        // What a write covers in part is read first, if it is there (`__block_write_begin_int`).
        if access.in_page() < PAGE && page * PAGE < self.nodes[inode.0 as usize].bytes {
            self.push(task, Frame::Write(*access));
            self.push(task, Frame::Submit);
            self.bring(task, inode, page, 1, |_| Cause::Write);
            return Err(Step::Pay);
        }
        Ok(None)
    }

    /// A page that a write covers, or that was never written. Nobody sees it before the data are in it.
    fn new_page(&mut self, task: Task, access: &Access) -> Folio {
        self.charge(task, self.costs.allocate + self.costs.insert);
        let folio = self.cache.insert(access.inode, access.page(), Cause::Write);
        self.cache.set_uptodate(folio);
        self.cache.unlock(folio);
        folio
    }
}
