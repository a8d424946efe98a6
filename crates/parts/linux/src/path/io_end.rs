//! Extents that are new on a drive: their pages are written together, whatever their bios (`fs/ext4/page-io.c`).

use super::frame::{Frame, Range};
use super::io::IoEnd;
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::Inode;
use crate::fs::Changes;
use crate::tasks::Task;
use engine::Cx;
use proto::file::Program;

impl<P: Program> Host<P> {
    /// Pages of a new extent are about to be submitted, in one bio: what they belong to (`ext4_init_io_end`, `ext4_get_io_end`).
    pub(super) fn get_io_end(&mut self, io_end: Option<u32>, inode: Inode, page: u64, pages: u64) -> u32 {
        let new = IoEnd { inode, page, pages: 0, count: 1 };
        let name = io_end.unwrap_or_else(|| self.io_ends.insert(new));
        let at = &mut self.io_ends[name];
        debug_assert_eq!((at.inode, at.page + at.pages), (inode, page), "an extent is in one piece");
        at.pages += pages;
        at.count += 1;
        name
    }

    /// One bio less, or all have been submitted; after the last, the extent is made the file's (`ext4_put_io_end_defer`).
    pub(super) fn put_io_end(&mut self, name: u32, cx: &mut impl Cx<Event, Out>) {
        let io_end = &mut self.io_ends[name];
        io_end.count -= 1;
        if io_end.count > 0 {
            return;
        }
        let io_end = *io_end;
        self.io_ends.remove(name);
        let at = &mut self.disks[usize::from(self.nodes[io_end.inode.0 as usize].disk)];
        at.converting.push_back(io_end);
        if let Some(task) = at.converter {
            self.wake(task, cx);
        }
    }

    /// A thread goes on in a range at some page: the extent that it was in has been submitted, unless it is in it still.
    pub(super) fn leave_extent(
        &mut self,
        range: &mut Range,
        page: Option<u64>,
        cx: &mut impl Cx<Event, Out>,
    ) {
        if page.is_some_and(|page| page == range.page && page < range.extent_end) {
            return;
        }
        range.extent_end = 0;
        if let Some(io_end) = range.io_end.take() {
            self.put_io_end(io_end, cx);
        }
    }

    /// The worker that makes blocks the file's whose data are on the drive (`ext4_end_io_rsv_work`).
    pub(super) fn convert(&mut self, task: Task, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Convert(disk));
        }
        let at = &mut self.disks[usize::from(disk)];
        let (Some(fs), Some(io_end)) = (&mut at.fs, at.converting.pop_front()) else {
            self.push(task, Frame::Convert(disk));
            return Step::Sleep;
        };
        let IoEnd { inode, page, pages, .. } = io_end;
        if fs.is_logged(Changes::Inode(inode)) {
            at.converting.push_front(io_end);
            return self.wait_for(task, Wait::Log(disk), Frame::Convert(disk));
        }
        let handle = fs.start_reserved(cx.now());
        let done = fs.end_io(&handle, inode, page, pages);
        fs.stop(handle);
        debug_assert!(done.is_ok(), "a file stays while its pages are being written");
        self.charge(task, self.costs.handle + self.costs.end_page.times(pages));
        self.written(inode, page, pages, cx);
        self.arm_commit(disk, cx);
        self.push(task, Frame::Convert(disk));
        Step::Again
    }
}
