//! Timing of the journal: waiting handles, commits, checkpoints, and writes of metadata blocks to their places.

use super::frame::{Frame, Range};
use super::io::{Counter, Io};
use super::thread::Step;
use super::wait::Wait;
use super::{Event, Host, Out};
use crate::PAGE;
use crate::block::{Bio, BioFlags};
use crate::fs::{self, Changes, Checkpoint, Content, Handle, Tid};
use crate::tasks::Task;
use engine::{Cx, Mutant, Time, planted_nth};
use proto::IoOp;
use proto::file::Program;

/// Maximum pages of a bio (`BIO_MAX_VECS`).
const MOST: u32 = 256;

impl<P: Program> Host<P> {
    /// Starts a handle of a disk's journal; `None` on a drive without a file system. An error is the step that the
    /// thread takes before it retries `frame`.
    pub(super) fn start_handle(
        &mut self,
        task: Task,
        disk: u16,
        credits: u32,
        changes: Changes,
        frame: Frame,
        cx: &mut impl Cx<Event, Out>,
    ) -> Result<Option<Handle>, Step> {
        let Some(fs) = &mut self.disks[usize::from(disk)].fs else { return Ok(None) };
        if fs.is_logged(changes) {
            // In Linux the handle is open while its thread waits. The difference is invisible: the next commit cannot
            // begin before this one has ended.
            self.push(task, frame);
            self.push(task, Frame::WaitLog(disk));
            return Err(Step::Again);
        }
        match fs.start(credits, cx.now()) {
            Ok(handle) => {
                self.charge(task, self.costs.handle);
                Ok(Some(handle))
            }
            Err(fs::Wait::Locked) => {
                self.wake_journal(disk, cx);
                if self.owes(task) {
                    return Err(self.pay_then(task, frame));
                }
                Err(self.wait_for(task, Wait::Transaction(disk), frame))
            }
            Err(fs::Wait::Space) => {
                self.push(task, frame);
                self.push(task, Frame::Checkpoint(disk));
                Err(Step::Again)
            }
        }
    }

    pub(super) fn wake_journal(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        if let Some(journal) = self.disks[usize::from(disk)].journal {
            self.wake(journal, cx);
        }
    }

    /// Handles a change of a file system: arms the timer of the running transaction, or begins to commit it. Without a
    /// journal, metadata blocks are dirty at once.
    pub(super) fn arm_commit(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        self.settle_home(disk, cx);
        let at = &mut self.disks[usize::from(disk)];
        let Some(due) = at.fs.as_ref().and_then(|fs| fs.commit_due()) else { return };
        let now = cx.now();
        if due <= now {
            self.wake_journal(disk, cx);
        } else if at.commit_timer.is_none_or(|timer| timer > due || timer <= now) {
            at.commit_timer = Some(due);
            cx.after(due - now, Event::Commit(disk));
        }
    }

    /// Handles the timer of a transaction.
    pub(super) fn commit_due(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        let at = &mut self.disks[usize::from(disk)];
        if at.commit_timer == Some(cx.now()) {
            at.commit_timer = None;
            self.arm_commit(disk, cx);
        }
    }

    /// Runs the journal's thread (`kjournald2`).
    pub(super) fn journal(&mut self, task: Task, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Journal(disk));
        }
        self.push(task, Frame::Journal(disk));
        self.abort_journal(task, disk);
        let at = &mut self.disks[usize::from(disk)];
        let Some(fs) = &mut at.fs else { return Step::End };
        if !at.committing {
            at.committing = fs.begin_commit(cx.now());
            if !at.committing {
                self.arm_commit(disk, cx);
                return Step::Sleep;
            }
        }
        let step = fs.commit_step();
        self.commit_step(task, disk, step, cx)
    }

    /// Runs a step of a commit.
    fn commit_step(&mut self, task: Task, disk: u16, step: fs::Step, cx: &mut impl Cx<Event, Out>) -> Step {
        match step {
            fs::Step::Idle => self.disks[usize::from(disk)].committing = false,
            fs::Step::Handles => unreachable!("handles end in the instant in which they begin"),
            fs::Step::Began { tid } => {
                self.shadow_closed(tid);
                self.waits.journal_began(disk, &mut self.woken);
            }
            fs::Step::Superblock { block, tail, tid, fua } => {
                self.push(task, Frame::Superblock { disk, block, tail, tid, fua });
            }
            fs::Step::Commit { block, tid, preflush, fua } => {
                self.shadow_meta(block, Content::Commit { tid });
                self.write_and_wait(task, disk, block, (preflush, fua), Some((disk, tid)));
            }
            fs::Step::Submit { inode, page, pages } => {
                let range = Range { sync: true, allocate: false, ..Range::of(inode, page, page + pages) };
                self.push(task, Frame::BeginWritepages(range));
            }
            fs::Step::Finish { inode, page, pages } => {
                self.push(task, Frame::WaitRange(Range::of(inode, page, page + pages)));
            }
            fs::Step::Write { block, count, tid, index, of } => {
                for at in 0..count {
                    self.shadow_meta(block + u64::from(at), Content::Log { tid, index: index + at, of });
                }
                let counter = match self.disks[usize::from(disk)].log {
                    Some(counter) => counter,
                    None => self.waits.counters.insert(Counter { log: Some(disk), ..Counter::default() }),
                };
                self.disks[usize::from(disk)].log = Some(counter);
                let mut at = 0;
                while at < count {
                    let blocks = (count - at).min(MOST);
                    let flags = BioFlags { sync: true, meta: true, ..BioFlags::default() };
                    self.write_blocks(task, disk, block + u64::from(at), blocks, flags, counter);
                    at += blocks;
                }
                self.push(task, Frame::Submit);
            }
            fs::Step::Wait => {
                if let Some(counter) = self.disks[usize::from(disk)].log.take() {
                    self.push(task, Frame::Count(counter));
                }
            }
            fs::Step::Done { .. } => {
                self.disks[usize::from(disk)].committing = false;
                self.waits.committed(disk, &mut self.woken);
                self.settle_home(disk, cx);
            }
        }
        Step::Again
    }

    /// Waits for the writes to a disk's log in flight.
    pub(super) fn wait_log(&mut self, task: Task, disk: u16) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::WaitLog(disk));
        }
        if self.disks[usize::from(disk)].fs.as_ref().is_none_or(|fs| !fs.is_logging()) {
            return Step::Again;
        }
        self.wait_for(task, Wait::Log(disk), Frame::WaitLog(disk))
    }

    /// Wakes the threads that wait to change blocks, once the writes to a disk's log have ended.
    pub(super) fn log_written(&mut self, disk: Option<u16>) {
        let Some(disk) = disk else { return };
        self.disks[usize::from(disk)].fs.iter_mut().for_each(fs::Ext4::log_written);
        self.waits.log_written(disk, &mut self.woken);
    }

    /// Writes a block, after a flush if wanted, and waits.
    fn write_and_wait(
        &mut self,
        task: Task,
        disk: u16,
        block: u64,
        (preflush, fua): (bool, bool),
        commit: Option<(u16, Tid)>,
    ) {
        let counter = self.waits.counters.insert(Counter { commit, ..Counter::default() });
        let flags = BioFlags { sync: true, meta: true, preflush, fua, ..BioFlags::default() };
        self.write_blocks(task, disk, block, 1, flags, counter);
        self.push(task, Frame::Count(counter));
        self.push(task, Frame::Submit);
    }

    fn write_blocks(
        &mut self,
        task: Task,
        disk: u16,
        block: u64,
        blocks: u32,
        flags: BioFlags,
        counter: u32,
    ) {
        let owner = self.ios.insert(Io::Counted(counter));
        self.waits.counters[counter].left += 1;
        let bytes = blocks * PAGE as u32;
        let bio = Bio { op: IoOp::Write, offset: block * PAGE, bytes, flags, owner, announced: 0 };
        self.charge(task, self.costs.bio);
        self.thread(task).bios.push_back((disk, bio));
    }

    /// Waits until a transaction is committed (`jbd2_log_wait_commit`).
    pub(super) fn wait_commit(
        &mut self,
        task: Task,
        disk: u16,
        tid: Tid,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        let frame = Frame::WaitCommit { disk, tid };
        if self.owes(task) {
            return self.pay_then(task, frame);
        }
        let fs = self.disks[usize::from(disk)].fs.as_ref();
        if fs.is_none_or(|fs| fs.is_committed(tid)) || planted_nth(Mutant::EarlySync, 4) {
            self.check_journal(task, disk);
            return Step::Again;
        }
        self.wake_journal(disk, cx);
        self.wait_for(task, Wait::Commit(disk), frame)
    }

    /// Makes room in the log (`__jbd2_log_wait_for_space`).
    pub(super) fn checkpoint(&mut self, task: Task, disk: u16, cx: &mut impl Cx<Event, Out>) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Checkpoint(disk));
        }
        if self.disks[usize::from(disk)].writes_tail {
            return self.wait_for(task, Wait::Home(disk), Frame::Checkpoint(disk));
        }
        self.settle_home(disk, cx);
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.clear();
        let Some(fs) = &mut self.disks[usize::from(disk)].fs else { return Step::Again };
        let next = fs.checkpoint(&mut blocks);
        if !matches!(next, Checkpoint::Done | Checkpoint::Wait) {
            self.push(task, Frame::Checkpoint(disk));
        }
        let step = match next {
            Checkpoint::Done => Step::Again,
            Checkpoint::Write => {
                for block in &blocks {
                    self.write_home(
                        task,
                        disk,
                        *block,
                        BioFlags { sync: true, meta: true, ..BioFlags::default() },
                    );
                }
                self.settle_home(disk, cx);
                self.push(task, Frame::Submit);
                Step::Again
            }
            Checkpoint::Wait => self.wait_for(task, Wait::Home(disk), Frame::Checkpoint(disk)),
            Checkpoint::Commit(tid) => {
                self.push(task, Frame::WaitCommit { disk, tid });
                Step::Again
            }
            Checkpoint::Tail { block, tail, tid, flush } => {
                self.write_tail(task, (disk, block), tail, tid, (flush, flush), true);
                Step::Again
            }
        };
        self.blocks = blocks;
        step
    }

    /// Writes the superblock for a commit (`jbd2_update_log_tail`), after any superblock write in flight; skipped if
    /// that one is newer.
    pub(super) fn superblock(
        &mut self,
        task: Task,
        (disk, block): (u16, u64),
        tail: u32,
        tid: Tid,
        fua: bool,
    ) -> Step {
        if self.owes(task) {
            return self.pay_then(task, Frame::Superblock { disk, block, tail, tid, fua });
        }
        let at = &self.disks[usize::from(disk)];
        if at.writes_tail {
            let again = Frame::Superblock { disk, block, tail, tid, fua };
            return self.wait_for(task, Wait::Home(disk), again);
        }
        if tid >= at.tail {
            self.write_tail(task, (disk, block), tail, tid, (false, fua), false);
        }
        Step::Again
    }

    fn write_tail(
        &mut self,
        task: Task,
        (disk, block): (u16, u64),
        tail: u32,
        tid: Tid,
        (flush, fua): (bool, bool),
        checkpoint: bool,
    ) {
        let at = &mut self.disks[usize::from(disk)];
        (at.writes_tail, at.tail) = (true, tid);
        self.shadow_meta(block, Content::Superblock { tail, tid });
        self.push(task, Frame::TailWritten { disk, tail, tid, checkpoint });
        self.write_and_wait(task, disk, block, (flush, fua), None);
    }

    pub(super) fn tail_written(&mut self, disk: u16, tail: u32, tid: Tid, checkpoint: bool) -> Step {
        self.disks[usize::from(disk)].writes_tail = false;
        self.waits.home_written(disk, &mut self.woken);
        if checkpoint && let Some(fs) = &mut self.disks[usize::from(disk)].fs {
            fs.tail_written(tail, tid);
        }
        Step::Again
    }

    /// Begins to write a block to its place, unless it is being written or a transaction has taken it; returns whether
    /// it does.
    pub(super) fn write_home(&mut self, task: Task, disk: u16, block: u64, flags: BioFlags) -> bool {
        let at = &mut self.disks[usize::from(disk)];
        let Some(fs) = &mut at.fs else { return false };
        let Some(content) = fs.write_home(block) else { return false };
        at.home -= 1;
        let device = at.device;
        self.shadow_meta(block, content);
        self.writeback.started(device, 1);
        let owner = self.ios.insert(Io::Home { disk, block });
        let announced = std::mem::take(&mut self.thread(task).announced);
        let bio = Bio { op: IoOp::Write, offset: block * PAGE, bytes: PAGE as u32, flags, owner, announced };
        self.charge(task, self.costs.write_page + self.costs.bio);
        self.thread(task).bios.push_back((disk, bio));
        true
    }

    /// Handles a block written to its place.
    pub(super) fn home_written(&mut self, disk: u16, block: u64, now: Time) {
        let at = &mut self.disks[usize::from(disk)];
        if let Some(fs) = &mut at.fs {
            fs.home_written(block);
        }
        let device = at.device;
        self.writeback.ended(device, 1, now);
        self.waits.home_written(disk, &mut self.woken);
    }

    /// Writes dirty metadata blocks for the flusher, as pages of the block device.
    pub(super) fn write_device(
        &mut self,
        task: Task,
        disk: u16,
        from: u64,
        pages: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> Step {
        self.settle_home(disk, cx);
        let mut blocks = std::mem::take(&mut self.blocks);
        blocks.clear();
        if let Some(fs) = &self.disks[usize::from(disk)].fs {
            let most = pages.min(u64::from(MOST)) as usize;
            blocks.extend(fs.dirty_metadata(from).take(most));
        }
        let mut written = 0;
        for block in &blocks {
            let flags = BioFlags { background: true, ..BioFlags::default() };
            written += u64::from(self.write_home(task, disk, *block, flags));
        }
        self.settle_home(disk, cx);
        let thread = self.thread(task);
        thread.submitted += written;
        thread.left = pages - written;
        thread.next_page = blocks.last().map_or(0, |last| last + 1);
        let goes_on = !blocks.is_empty() && thread.left > 0;
        let (from, left) = (thread.next_page, thread.left);
        self.blocks = blocks;
        if goes_on {
            self.push(task, Frame::Device { disk, from, pages: left });
        }
        self.push(task, Frame::Submit);
        Step::Pay
    }

    /// Makes metadata blocks that can be written to their places dirty pages of the block device.
    pub(super) fn settle_home(&mut self, disk: u16, cx: &mut impl Cx<Event, Out>) {
        let at = &mut self.disks[usize::from(disk)];
        let Some(fs) = &at.fs else { return };
        let (before, now) = (at.home, fs.dirty_metadata_count() as u64);
        at.home = now;
        let device = at.device;
        if now < before {
            self.writeback.cleaned(device, before - now);
        } else if now > before {
            let mut nobody = crate::writeback::Dirtier::default();
            let wake = self.writeback.dirtied(device, disk, now - before, &mut nobody, 0, cx.now());
            self.flusher_wakes(disk, wake, cx);
        }
    }
}
