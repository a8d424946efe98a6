//! Durability of files.

use super::frame::Frame;
use super::io::{Counter, Io};
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::block::{Bio, BioFlags};
use crate::fs::{Changes, Need, Tid};
use crate::tasks::Task;
use crate::{Inode, PAGE};
use engine::Cx;
use proto::IoOp;
use proto::file::{CallError, Program};

impl<P: Program> Host<P> {
    /// `ext4_sync_file`, or `blkdev_fsync`, after the data have been written; ends early if some could not be.
    pub(super) fn sync(&mut self, task: Task, file: u32, data_only: bool) -> Step {
        self.check_written(task, file);
        if self.has_failed(task) {
            return Step::Again;
        }
        let inode = self.open[file].inode;
        let disk = self.nodes[inode.0 as usize].disk;
        if self.disks[usize::from(disk)].aborted {
            self.fail(task, CallError::ReadOnly);
            return Step::Again;
        }
        let fs = self.disks[usize::from(disk)].fs.as_ref();
        if let Some(tid) = fs.filter(|fs| fs.has_journal()).map(|fs| fs.holds(inode, data_only)) {
            self.push(task, Frame::Synced { disk, tid });
        }
        let need = match &mut self.disks[usize::from(disk)].fs {
            None => Need::Flush,
            Some(fs) => fs.fsync(inode, data_only),
        };
        self.needs(task, disk, Some(inode), need)
    }

    /// Returns from a sync: the commit with the changes made durable is on the drive.
    pub(super) fn synced(&mut self, task: Task, disk: u16, tid: Tid) -> Step {
        let at = &self.disks[usize::from(disk)];
        let is_early = tid > at.committed && !at.aborted;
        if is_early && !self.has_failed(task) {
            self.stats.early_syncs += 1;
        }
        Step::Again
    }

    /// `sync` of a disk, after all data have been written.
    pub(super) fn sync_disk(&mut self, task: Task, disk: u16) -> Step {
        let need = match &mut self.disks[usize::from(disk)].fs {
            None => Need::Flush,
            Some(fs) => fs.sync_all(),
        };
        self.needs(task, disk, None, need)
    }

    fn needs(&mut self, task: Task, disk: u16, inode: Option<Inode>, need: Need) -> Step {
        match need {
            Need::Nothing => {}
            Need::Flush => self.push(task, Frame::Flush(disk)),
            Need::Commit { tid, flush } => {
                if flush {
                    self.push(task, Frame::Flush(disk));
                }
                self.push(task, Frame::WaitCommit { disk, tid });
            }
            Need::Write { flush } => {
                if flush {
                    self.push(task, Frame::Flush(disk));
                }
                self.push(task, Frame::WriteHome { disk, inode, again: true });
            }
        }
        Step::Again
    }

    /// Writes dirty metadata blocks and waits (`sync_mapping_buffers`). A block whose write is in flight with older
    /// content is written once more.
    pub(super) fn write_homes(
        &mut self,
        task: Task,
        disk: u16,
        inode: Option<Inode>,
        again: bool,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        self.settle_home(disk, cx);
        let Some(fs) = &self.disks[usize::from(disk)].fs else { return Step::Again };
        let blocks: Vec<u64> = match inode {
            Some(inode) => fs.metadata(inode).collect(),
            None => fs.dirty_metadata(0).collect(),
        };
        if again {
            self.push(task, Frame::WriteHome { disk, inode, again: false });
        }
        self.push(task, Frame::WaitHome(disk));
        for block in blocks {
            let flags = BioFlags { sync: true, meta: true, ..BioFlags::default() };
            self.write_home(task, disk, block, flags);
        }
        self.settle_home(disk, cx);
        self.push(task, Frame::Submit);
        Step::Again
    }

    /// Waits until all metadata blocks have been written to their places.
    pub(super) fn wait_home(&mut self, task: Task, disk: u16) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::WaitHome(disk));
        }
        if self.writeback.being_written(disk).all(|inode| inode != self.disks[usize::from(disk)].device) {
            return Step::Again;
        }
        self.wait_for(task, Wait::Home(disk), Frame::WaitHome(disk))
    }

    /// Flushes the drive's cache (`blkdev_issue_flush`).
    pub(super) fn flush(&mut self, task: Task, disk: u16) -> Step {
        let counter = self.waits.counters.insert(Counter { left: 1, ..Counter::default() });
        let owner = self.ios.insert(Io::Counted(counter));
        let flags = BioFlags { sync: true, preflush: true, ..BioFlags::default() };
        let bio = Bio { op: IoOp::Flush, offset: 0, bytes: 0, flags, owner, announced: 0 };
        self.charge(task, self.costs.bio);
        self.thread(task).bios.push_back((disk, bio));
        self.push(task, Frame::Count(counter));
        self.push(task, Frame::Submit);
        Step::Again
    }

    /// Refuses a write, whose call fails.
    pub(super) fn refuse(&mut self, task: Task, error: CallError) {
        self.stats.no_space += u64::from(error == CallError::NoSpace);
        self.fail(task, error);
    }

    /// Adds bytes of a write to the file: reserves or allocates its blocks, updates its length and time. Returns the
    /// reason for a refusal; an error is the step that the thread takes before it retries.
    pub(super) fn extend(
        &mut self,
        task: Task,
        again: impl FnOnce() -> Frame,
        inode: Inode,
        (offset, bytes): (u64, u64),
        cx: &mut impl Cx<Event, Out>,
    ) -> Result<Option<CallError>, Step> {
        let disk = self.nodes[inode.0 as usize].disk;
        let now = cx.now();
        let at = &self.disks[usize::from(disk)];
        let Some(fs) = &at.fs else {
            let fits = offset + bytes <= self.nodes[inode.0 as usize].bytes.next_multiple_of(PAGE);
            return Ok((!fits).then_some(CallError::NoSpace));
        };
        if at.aborted {
            return Ok(Some(CallError::ReadOnly));
        }
        let handle = if fs.write_is_bare(inode, offset, bytes, now) {
            None
        } else {
            let credits = fs.write_credits(inode, bytes);
            let changes = if fs.write_allocates() { Changes::Blocks(inode) } else { Changes::Inode(inode) };
            self.start_handle(task, disk, credits, changes, again(), cx)?
        };
        let Some(fs) = &mut self.disks[usize::from(disk)].fs else { return Ok(None) };
        let done = fs.write(handle.as_ref(), inode, offset, bytes, now);
        if let Some(handle) = handle {
            fs.stop(handle);
            self.arm_commit(disk, cx);
        }
        let node = &mut self.nodes[inode.0 as usize];
        if done.is_ok() {
            node.bytes = node.bytes.max(offset + bytes);
        }
        Ok(done.is_err().then_some(CallError::NoSpace))
    }
}
