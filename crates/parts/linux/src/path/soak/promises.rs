//! Promises of system calls: which versions of which pages survive a power failure.

use super::work::{Mark, Work, kind_of, of};
use super::{FILES, World};
use crate::fs::{JournalMode, Place, Recovered, RecoveredFile, media::Cell};
use crate::path::{Host, OnDrives};
use crate::{Inode, PAGE};
use proto::file::Call;
use std::collections::BTreeMap;

/// Minimum length in bytes and page versions of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct Promise {
    pub(super) size: u64,
    pub(super) pages: BTreeMap<u64, u32>,
}

impl Promise {
    /// Restricts a promise when the file is truncated, or may be.
    fn cut(&mut self, bytes: u64) {
        let end = bytes.div_ceil(PAGE);
        self.size = self.size.min(bytes);
        self.pages.retain(|page, _| *page < end);
    }
}

/// All promises.
#[derive(Default)]
pub(super) struct Promises {
    /// Current promises, by file.
    pub(super) kept: [Option<Promise>; FILES as usize],
    /// Promises of calls in progress, by thread.
    coming: BTreeMap<u32, Vec<(u32, Promise)>>,
    /// Calls in progress, by thread.
    calls: BTreeMap<u32, Call>,
    /// Number of acknowledged calls.
    pub(super) acknowledged: u64,
}

/// New length of the file truncated by a call.
fn cuts(call: Call) -> Option<u64> {
    match call {
        Call::Truncate { bytes, .. } => Some(bytes),
        Call::Unlink { .. } | Call::Open { .. } => Some(0),
        _ => None,
    }
}

/// Returns whether a call is a write that returns when it is durable.
fn is_sync(call: Call) -> bool {
    matches!(call, Call::Write { fd, .. } if kind_of(fd).sync || kind_of(fd).data_sync)
}

/// Returns whether a call changes its file.
fn changes(call: Call) -> bool {
    matches!(call, Call::Write { .. } | Call::Touch { write: true, .. }) || cuts(call).is_some()
}

impl World {
    fn inode(&self, file: u32) -> Inode {
        inode(&self.host, file)
    }

    /// Records the start or end of a call. `versions` were written before this event.
    pub(super) fn note(&mut self, mark: Mark, versions: u32) {
        let Mark { thread, call, begins } = mark;
        let promises = &mut self.promises;
        if begins {
            promises.calls.insert(thread, call);
            self.begins(thread, call, versions);
            return;
        }
        promises.calls.remove(&thread);
        if let (Some(file), Some(_)) = (of(call), cuts(call)) {
            let inode = self.inode(file);
            let shadow = self.host.shadow.as_mut().expect("it has one");
            let left = shadow.cutting.get_mut(&inode).expect("its start was noted");
            *left -= 1;
            if *left == 0 {
                shadow.cutting.remove(&inode);
            }
        }
        for (file, mut promise) in self.promises.coming.remove(&thread).unwrap_or_default() {
            self.promises.acknowledged += 1;
            self.trim(call, file, &mut promise);
            let kept = self.promises.kept[file as usize].get_or_insert_default();
            kept.size = kept.size.max(promise.size);
            for (page, version) in promise.pages {
                let at = kept.pages.entry(page).or_default();
                *at = version.max(*at);
            }
        }
    }

    fn begins(&mut self, thread: u32, call: Call, versions: u32) {
        if let Some(file) = of(call) {
            if let Some(bytes) = cuts(call) {
                let inode = self.inode(file);
                *self.host.shadow.as_mut().expect("it has one").cutting.entry(inode).or_default() += 1;
                self.cut(file, bytes, matches!(call, Call::Unlink { .. }));
            }
            // Without a journal, synced data is only safe until the next change: a metadata block may be written home
            // before the blocks that it points to.
            if changes(call) && self.data() == JournalMode::none {
                self.promises.kept[file as usize] = None;
                self.promises.coming.values_mut().for_each(|coming| coming.retain(|(of, _)| *of != file));
            }
        }
        let coming: Vec<(u32, Promise)> = match call {
            Call::Sync { .. } => of(call).map(|file| (file, self.everything(file))).into_iter().collect(),
            Call::SyncAll => (0..FILES).map(|file| (file, self.everything(file))).collect(),
            // (Without a journal, later write-back of other pages changes the file.)
            Call::Write { offset, bytes, .. } if is_sync(call) && self.data() != JournalMode::none => {
                let pages = offset / PAGE..(offset + bytes).div_ceil(PAGE);
                let file = of(call).expect("a write is of a file");
                let pages = pages.map(|page| (page, self.at_least(file, page, versions))).collect();
                let mut promise = Promise { size: offset + bytes, pages };
                self.trim(call, file, &mut promise);
                vec![(file, promise)]
            }
            _ => return,
        };
        let coming =
            coming.into_iter().filter_map(|(file, promise)| Some((file, self.sure(thread, file, promise)?)));
        let coming = coming.collect();
        self.promises.coming.insert(thread, coming);
    }

    /// Removes the length from a synchronous write's promise if data after its end wait for blocks, when it begins or
    /// has ended. These data will move the file's length on the drive (`ext4_da_write_end`); a write before them into
    /// allocated blocks does not. Its end may be lost, in Linux as here. `fsync` writes all of them.
    fn trim(&self, call: Call, file: u32, promise: &mut Promise) {
        if matches!(call, Call::Write { .. }) && self.has_delayed_behind(file, promise.size) {
            promise.size = 0;
        }
    }

    fn has_delayed_behind(&self, file: u32, end: u64) -> bool {
        let inode = self.inode(file);
        let Some(fs) = &self.host.disks[0].fs else { return false };
        let (mut page, last) = (end.div_ceil(PAGE), self.host.nodes[inode.0 as usize].bytes.div_ceil(PAGE));
        while page < last {
            let run = fs.map(inode, page, last - page);
            if run.place == Place::Delayed {
                return true;
            }
            page += run.pages;
        }
        false
    }

    /// Oldest version that a page may have when a write that begins now is durable. Later writers have later ones; the
    /// drive may take any of several direct writes in flight last.
    fn at_least(&self, file: u32, page: u64, versions: u32) -> u32 {
        let shadow = self.host.shadow.as_ref().expect("it has one");
        let before = shadow.changing.get(&(self.inode(file), page)).map(|(_, before)| *before);
        before.unwrap_or(versions) + 1
    }

    /// Handles a truncation: promises beyond the new length end.
    fn cut(&mut self, file: u32, bytes: u64, removed: bool) {
        let Promises { kept, coming, .. } = &mut self.promises;
        let kept = &mut kept[file as usize];
        if removed {
            *kept = None;
            coming.values_mut().for_each(|coming| coming.retain(|(of, _)| *of != file));
        }
        let coming = coming.values_mut().flatten().filter(|(of, _)| *of == file).map(|(_, promise)| promise);
        kept.iter_mut().chain(coming).for_each(|promise| promise.cut(bytes));
    }

    /// Removes the parts of a promise that calls in progress may invalidate.
    fn sure(&self, thread: u32, file: u32, mut promise: Promise) -> Option<Promise> {
        let others =
            self.promises.calls.iter().filter(|(other, call)| **other != thread && of(**call) == Some(file));
        for (_, call) in others {
            if changes(*call) && self.data() == JournalMode::none
                || matches!(call, Call::Unlink { .. } | Call::Open { .. })
            {
                return None;
            }
            if let Some(bytes) = cuts(*call) {
                promise.cut(bytes);
            }
        }
        Some(promise)
    }

    /// Current contents of a file, as a promise.
    fn everything(&self, file: u32) -> Promise {
        let inode = self.inode(file);
        let shadow = self.host.shadow.as_ref().expect("it has one");
        let pages = shadow.newest.range((inode, 0)..(Inode(inode.0 + 1), 0));
        let pages = pages.map(|((_, page), _)| (*page, shadow.settled(inode, *page)));
        let pages = pages.filter(|(_, version)| *version > 0).collect();
        Promise { size: self.host.nodes[inode.0 as usize].bytes, pages }
    }

    pub(super) fn data(&self) -> JournalMode {
        match &self.spec.fs {
            OnDrives::Ext4(fs) => fs.data,
            OnDrives::Raw => JournalMode::none,
        }
    }
}

/// Inode of a file of the soak.
pub(super) fn inode(host: &Host<Work>, file: u32) -> Inode {
    host.programs[0].inodes[file as usize]
}

// Check of the recovered state against the promises, and of a host that has finished its work.

/// Content that a page reads as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Zeroes,
    Version(u32),
    /// Old content of its block.
    Stale,
}

impl World {
    /// Cuts the power, and checks the recovered state.
    pub(super) fn cut_power(&mut self) {
        let shadow = self.host.shadow.as_mut().expect("it has one");
        shadow.lands();
        let cells = shadow.media.cut(&mut self.rng);
        let fs = self.host.disks[0].fs.as_ref().expect("it has a file system");
        let recovered = fs.recover(|block| match cells.get(&block) {
            Some(Cell::Meta(content)) => Some(*content),
            _ => None,
        });
        match recovered {
            Err(fault) => self.faults.push(format!("{fault:?}")),
            Ok(recovered) => {
                self.outcome.replayed = recovered.replayed;
                self.check_promises(&recovered, &cells);
                self.check_stale(&recovered, &cells);
            }
        }
    }

    fn check_promises(&mut self, recovered: &Recovered, cells: &BTreeMap<u64, Cell>) {
        for file in 0..FILES {
            let Some(promise) = self.promises.kept[file as usize].take() else { continue };
            let Some(found) = recovered.files.get(&inode(&self.host, file)) else {
                self.faults.push(format!("file {file} is missing"));
                continue;
            };
            if found.size < promise.size {
                let (has, promised) = (found.size, promise.size);
                self.faults.push(format!("file {file} has {has} bytes, but {promised} were promised"));
            }
            self.outcome.promised += promise.pages.len() as u64;
            for (page, version) in promise.pages {
                let seen = self.seen(found, cells, file, page);
                let kept = match seen {
                    Seen::Zeroes => version == 0,
                    Seen::Version(seen) => seen >= version,
                    Seen::Stale => false,
                };
                if !kept {
                    self.faults.push(format!(
                        "file {file} page {page}: {seen:?}, but version {version} was promised"
                    ));
                }
            }
        }
    }

    fn check_stale(&mut self, recovered: &Recovered, cells: &BTreeMap<u64, Cell>) {
        for file in 0..FILES {
            let Some(found) = recovered.files.get(&inode(&self.host, file)) else { continue };
            for extent in found.extents().filter(|extent| !extent.unwritten) {
                let end = (extent.page + extent.pages).min(found.size.div_ceil(PAGE));
                let stale =
                    (extent.page..end).filter(|page| self.seen(found, cells, file, *page) == Seen::Stale);
                self.outcome.stale += stale.count() as u64;
            }
        }
        let may = matches!(self.data(), JournalMode::writeback | JournalMode::none);
        if self.outcome.stale > 0 && !may {
            self.faults.push(format!("{} pages show what was in their blocks before", self.outcome.stale));
        }
    }

    fn seen(&self, found: &RecoveredFile, cells: &BTreeMap<u64, Cell>, file: u32, page: u64) -> Seen {
        let inode = inode(&self.host, file);
        if let Some(tid) = found.journaled(page) {
            let copies = &self.host.shadow.as_ref().expect("it has one").copies;
            return copies.get(&(tid, inode, page)).map_or(Seen::Stale, |version| Seen::Version(*version));
        }
        let extent = found.extents().find(|extent| extent.page <= page && page < extent.page + extent.pages);
        let Some(extent) = extent.filter(|extent| !extent.unwritten) else { return Seen::Zeroes };
        match cells.get(&(extent.block + (page - extent.page))) {
            Some(Cell::Page { file, page: at, version }) if *file == inode.0 as usize && *at == page => {
                Seen::Version(*version)
            }
            _ => Seen::Stale,
        }
    }

    /// Checks that the driver has handled all reported buffer states, except those in pending completions; that the
    /// ratios follow them; and that every waiting thread will be woken.
    pub(super) fn check_running(&mut self) {
        let heard = self.host.shadow.as_ref().expect("it has one").heard;
        let waiting = self.host.waiting(0);
        for (at, name) in ["room", "a full buffer"].into_iter().enumerate() {
            let (said, known) = (self.said[at], heard[at] + waiting[at]);
            if said != known {
                self.faults.push(format!(
                    "the drive has reported {said} completions with {name}, but the host has handled {known}"
                ));
            }
        }
        if let Some(stuck) = self.host.stuck() {
            self.faults.push(stuck);
        }
        if !self.host.ratios_follow() {
            self.faults.push("the dirty ratios do not match the reported buffer states".to_owned());
        }
    }

    /// Checks that nothing is left after all programs and events have ended.
    pub(super) fn check_idle(&mut self) {
        let host = &self.host;
        let left = [
            ("threads of programs", host.programs[0].left as usize),
            ("commands", host.sent.len()),
            ("bios", host.ios.len()),
            ("counters", host.waits.counters.len()),
            ("dirty pages", host.cache.nr_dirty() as usize),
            ("pages under write-back", host.cache.nr_writeback() as usize),
            ("dirty pages of write-back", host.writeback.dirty() as usize),
            ("pages that write-back writes", host.writeback.writeback() as usize),
            ("pages without room", (host.stats.lost + host.stats.no_space) as usize),
            ("errors", host.stats.errors as usize),
            ("busy queues", usize::from(!host.disks[0].queue.is_idle())),
        ];
        for (what, count) in left.into_iter().filter(|(_, count)| *count > 0) {
            self.faults.push(format!("{count} {what} are left"));
        }
    }
}
