//! Actions of programs, the flusher and the journal's thread.

use super::{Cell, Direct, Page, Phase, Promise, Sync, Then, Thread, World};
use crate::fs::{
    Checkpoint, CommitCause, Content, FsError, JournalMode, NAME_CREDITS, Need, Place, Step, TRUNCATE_CREDITS,
};
use crate::{Inode, PAGE};

impl World {
    pub(super) fn create(&mut self) {
        let file = self.any_file();
        if self.files[file].there {
            return;
        }
        let Some(handle) = self.start(NAME_CREDITS) else { return };
        // A file that is still being removed has its inode.
        let created = self.fs.create(&handle, Inode(file as u32), self.now);
        self.stop(handle);
        if created.is_ok() {
            let known = &mut self.files[file];
            (known.there, known.size) = (true, 0);
        }
    }

    pub(super) fn write(&mut self) {
        let file = self.any_file();
        // Without a journal, synced data is only safe until the next change: a metadata block of the file may be
        // written home before the blocks that it points to.
        let unsure = self.spec.data == JournalMode::none;
        if !self.files[file].there || unsure && self.is_syncing(file) || self.is_direct(file) {
            return;
        }
        if unsure {
            self.files[file].promise = None;
        }
        let inode = Inode(file as u32);
        let size = self.files[file].size;
        // At the end, or anywhere up to a little after it.
        let offset = if self.chance(2) { size } else { self.rng.below(size + 8 * PAGE) };
        let most = if self.chance(3) { 40 * PAGE } else { 2 * PAGE };
        let bytes = 1 + self.rng.below(most);
        let handle = if self.fs.write_is_bare(inode, offset, bytes, self.now) {
            None
        } else {
            let credits = self.fs.write_credits(inode, bytes);
            let Some(handle) = self.start(credits) else { return };
            Some(handle)
        };
        let written = self.fs.write(handle.as_ref(), inode, offset, bytes, self.now);
        if let Err(FsError::NoSpace { retry: Some(tid) }) = written {
            self.fs.request_commit(tid, CommitCause::Sync);
        }
        if written.is_ok() {
            self.versions += 1;
            let (first, end) = (offset / PAGE, (offset + bytes).div_ceil(PAGE));
            let journaled = self.journals_data();
            for page in first..end {
                let known = self.files[file].pages.entry(page).or_default();
                known.version = self.versions;
                known.dirty = !journaled;
                if journaled {
                    self.joined.push((file, page));
                }
            }
            self.files[file].size = size.max(offset + bytes);
        }
        if let Some(handle) = handle {
            self.stop(handle);
        }
    }

    /// Truncates or removes a file.
    pub(super) fn shorten(&mut self) {
        let file = self.any_file();
        let known = &self.files[file];
        let busy = known.pages.values().any(|page| page.writing);
        // Truncation waits for pages under write-back.
        if !known.there || busy || self.is_syncing(file) || self.is_direct(file) {
            return;
        }
        let inode = Inode(file as u32);
        let size = known.size;
        if self.fs.must_write_before_truncate(inode) {
            return self.submit(file, 0, u64::MAX);
        }
        let Some(handle) = self.start(TRUNCATE_CREDITS) else { return };
        let done = if self.chance(3) {
            self.files[file] = Default::default();
            self.joined.retain(|(other, _)| *other != file);
            self.fs.unlink(&handle, inode)
        } else {
            let bytes = self.rng.below(size + 4 * PAGE);
            let known = &mut self.files[file];
            let end = bytes.div_ceil(PAGE);
            known.size = bytes;
            known.pages.retain(|page, _| *page < end);
            self.joined.retain(|(other, page)| *other != file || *page < end);
            if let Some(promise) = &mut known.promise {
                promise.size = promise.size.min(bytes);
                promise.pages.retain(|page, _| *page < end);
            }
            self.fs.truncate(&handle, inode, bytes)
        };
        assert_eq!(done, Ok(true), "a small file is removed at once");
        self.stop(handle);
    }

    pub(super) fn write_back_some(&mut self) {
        let file = self.any_file();
        let most = 1 + self.rng.below(64);
        let Some((first, _)) = self.files[file].pages.iter().find(|(_, page)| page.dirty && !page.writing)
        else {
            return;
        };
        self.write_back(file, *first, most);
    }

    /// Writes dirty pages of a range; returns whether that was possible now.
    fn write_back(&mut self, file: usize, first: u64, pages: u64) -> bool {
        let inode = Inode(file as u32);
        let Some(handle) = self.start(self.fs.writepages_credits(inode)) else { return false };
        let result = self.fs.writepages(&handle, inode, first, pages);
        assert_eq!(result, Ok(()), "promised blocks can be allocated");
        self.submit(file, first, pages);
        self.stop(handle);
        true
    }

    fn submit(&mut self, file: usize, first: u64, pages: u64) {
        for (page, known) in self.files[file].pages.range_mut(first..first + pages) {
            if !known.dirty || known.writing {
                continue;
            }
            let (block, unwritten) = match self.fs.map(Inode(file as u32), *page, 1).place {
                Place::Mapped { block } => (block, false),
                Place::Unwritten { block } => (block, true),
                Place::Hole | Place::Delayed => continue,
            };
            (known.dirty, known.writing) = (false, true);
            let cell = Cell::Page { file, page: *page, version: known.version };
            self.drive.submit(block, cell, false, Then::Page { file, page: *page, unwritten });
        }
    }

    pub(super) fn write_home_some(&mut self) {
        let most = self.rng.below(12) as usize;
        let blocks: Vec<u64> = self.fs.dirty_metadata(0).take(most).collect();
        blocks.into_iter().for_each(|block| self.write_home(block));
    }

    fn write_home(&mut self, block: u64) {
        if let Some(content) = self.fs.write_home(block) {
            self.drive.submit(block, Cell::Meta(content), false, Then::Home);
        }
    }

    /// Completes a write at the drive.
    pub(super) fn complete_one(&mut self) {
        let Some(write) = self.drive.complete(&mut self.rng) else { return };
        match write.then {
            Then::Page { file, page, unwritten } => {
                if unwritten {
                    let handle = self.fs.start_reserved(self.now);
                    let ended = self.fs.end_io(&handle, Inode(file as u32), page, 1);
                    assert_eq!(ended, Ok(()));
                    self.fs.stop(handle);
                }
                if let Some(known) = self.files[file].pages.get_mut(&page) {
                    known.writing = false;
                }
            }
            Then::Home => self.fs.home_written(write.block),
            Then::Log | Then::Commit => {}
            Then::Direct { page } => {
                let direct = self.direct.expect("a direct write is in progress");
                self.files[direct.file].pages.get_mut(&page).expect("it was written").writing = false;
            }
        }
    }

    /// Begins a direct write of whole pages, to a clean file.
    pub(super) fn write_direct(&mut self) {
        let file = self.any_file();
        let known = &self.files[file];
        let busy = self.direct.is_some() || self.is_syncing(file) || !self.is_clean(file);
        if !known.there || busy || !self.fs.has_direct() {
            return;
        }
        let inode = Inode(file as u32);
        let offset = self.rng.below(self.files[file].size / PAGE + 4) * PAGE;
        let bytes = (1 + self.rng.below(20)) * PAGE;
        if !self.fs.direct_is_bare(inode, offset, bytes, self.now) {
            let Some(handle) = self.start(self.fs.direct_credits(inode)) else { return };
            let begun = self.fs.direct_write(&handle, inode, offset, bytes, self.now);
            self.stop(handle);
            if begun.is_err() {
                return;
            }
        }
        if self.spec.data == JournalMode::none {
            self.files[file].promise = None;
        }
        let has_end = self.fs.direct_has_end(inode, offset, bytes);
        self.direct = Some(Direct { file, offset, bytes, has_end });
        self.versions += 1;
        for page in offset / PAGE..(offset + bytes) / PAGE {
            let (Place::Mapped { block } | Place::Unwritten { block }) = self.fs.map(inode, page, 1).place
            else {
                panic!("page {page} has a block");
            };
            let version = self.versions;
            self.files[file].pages.insert(page, Page { version, dirty: false, writing: true });
            self.drive.submit(block, Cell::Page { file, page, version }, false, Then::Direct { page });
        }
    }

    /// Ends a direct write, if all of its pages have been written.
    pub(super) fn end_direct(&mut self) {
        let Some(Direct { file, offset, bytes, has_end }) = self.direct else { return };
        if !self.is_clean(file) {
            return;
        }
        if has_end {
            let inode = Inode(file as u32);
            let Some(handle) = self.start(self.fs.direct_credits(inode)) else { return };
            assert_eq!(self.fs.direct_end(&handle, inode, offset, bytes), Ok(()));
            self.stop(handle);
            let known = &mut self.files[file];
            known.size = known.size.max(offset + bytes);
        }
        self.direct = None;
    }

    fn is_direct(&self, file: usize) -> bool {
        self.direct.is_some_and(|direct| direct.file == file)
    }

    pub(super) fn begin_sync(&mut self) {
        let file = self.any_file();
        let known = &self.files[file];
        if self.sync.is_some() || !known.there || self.is_direct(file) {
            return;
        }
        let pages = known.pages.iter().map(|(page, known)| (*page, known.version)).collect();
        let promise = Promise { size: known.size, pages };
        let data_only = self.chance(2);
        self.sync = Some(Sync { file, data_only, promise, phase: Phase::Data });
    }

    /// Advances an `fsync` as far as possible.
    pub(super) fn step_sync(&mut self) {
        let Some(mut sync) = self.sync.take() else { return };
        let inode = Inode(sync.file as u32);
        let done = match sync.phase {
            Phase::Data => {
                let pages = &self.files[sync.file].pages;
                // Pages written after the start of the call are not waited for; here they are, which promises nothing
                // more.
                if let Some((first, _)) = pages.iter().find(|(_, page)| page.dirty && !page.writing) {
                    self.write_back(sync.file, *first, 64);
                } else if !pages.values().any(|page| page.writing) {
                    match self.fs.fsync(inode, sync.data_only) {
                        Need::Commit { tid, flush } => sync.phase = Phase::Commit { tid, flush },
                        Need::Write { flush } => {
                            let blocks: Vec<u64> = self.fs.metadata(inode).collect();
                            blocks.into_iter().for_each(|block| self.write_home(block));
                            sync.phase = Phase::Metadata { flush };
                        }
                        Need::Flush => self.drive.flush(),
                        Need::Nothing => {}
                    }
                }
                sync.phase == Phase::Data && self.is_clean(sync.file)
            }
            Phase::Commit { tid, flush } => {
                let done = self.fs.is_committed(tid);
                if done && flush {
                    self.drive.flush();
                }
                done
            }
            Phase::Metadata { flush } => {
                let blocks: Vec<u64> = self.fs.metadata(inode).collect();
                let dirty = !blocks.is_empty();
                blocks.into_iter().for_each(|block| self.write_home(block));
                let done = !dirty && !self.drive.is_flying(|write| write.then == Then::Home);
                if done && flush {
                    self.drive.flush();
                }
                done
            }
        };
        if done {
            self.acknowledged += 1;
            self.files[sync.file].promise = Some(sync.promise);
        } else {
            self.sync = Some(sync);
        }
    }

    fn is_syncing(&self, file: usize) -> bool {
        self.sync.as_ref().is_some_and(|sync| sync.file == file)
    }

    fn is_clean(&self, file: usize) -> bool {
        self.files[file].pages.values().all(|page| !page.dirty && !page.writing)
    }

    /// Runs the journal's thread.
    pub(super) fn step_thread(&mut self) {
        match self.thread {
            Thread::Idle => {
                if self.fs.begin_commit(self.now) {
                    self.thread = Thread::Steps;
                }
            }
            Thread::Steps => {
                let step = self.fs.commit_step();
                self.carry_out(step);
            }
            Thread::Pages { inode, page, pages } => {
                let known = &self.files[inode.0 as usize].pages;
                if !known.range(page..page + pages).any(|(_, known)| known.writing) {
                    self.thread = Thread::Steps;
                }
            }
            Thread::Log => {
                if !self.drive.is_flying(|write| matches!(write.then, Then::Log | Then::Commit)) {
                    self.thread = Thread::Steps;
                }
            }
        }
    }

    fn carry_out(&mut self, step: Step) {
        match step {
            Step::Idle | Step::Done { .. } => self.thread = Thread::Idle,
            Step::Handles => {}
            Step::Began { tid } => {
                for (file, page) in std::mem::take(&mut self.joined) {
                    let version = self.files[file].pages.get(&page).map_or(0, |page| page.version);
                    self.copies.insert((tid, file, page), version);
                }
            }
            Step::Superblock { block, tail, tid, fua } => {
                let cell = Cell::Meta(Content::Superblock { tail, tid });
                self.drive.submit(block, cell, fua, Then::Log);
                self.thread = Thread::Log;
            }
            Step::Submit { inode, page, pages } => self.submit(inode.0 as usize, page, pages),
            Step::Write { block, count, tid, index, of } => {
                for at in 0..count {
                    let cell = Cell::Meta(Content::Log { tid, index: index + at, of });
                    self.drive.submit(block + u64::from(at), cell, false, Then::Log);
                }
            }
            Step::Finish { inode, page, pages } => self.thread = Thread::Pages { inode, page, pages },
            Step::Wait => self.thread = Thread::Log,
            Step::Commit { block, tid, preflush, fua } => {
                if preflush {
                    self.drive.flush();
                }
                self.drive.submit(block, Cell::Meta(Content::Commit { tid }), fua, Then::Commit);
                self.thread = Thread::Log;
            }
        }
    }

    /// Makes room in the log.
    pub(super) fn make_room(&mut self) {
        let mut blocks = Vec::new();
        match self.fs.checkpoint(&mut blocks) {
            Checkpoint::Done => self.full = false,
            Checkpoint::Write => blocks.into_iter().for_each(|block| self.write_home(block)),
            Checkpoint::Wait | Checkpoint::Commit(_) => {}
            Checkpoint::Tail { block, tail, tid, flush } => {
                if flush {
                    self.drive.flush();
                }
                // One of the journal's thread may be in flight.
                if !self.drive.is_flying(|write| write.block == block) {
                    self.drive.put(block, Cell::Meta(Content::Superblock { tail, tid }));
                    self.fs.tail_written(tail, tid);
                }
            }
        }
    }
}
