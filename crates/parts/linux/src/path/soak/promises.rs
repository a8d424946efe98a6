//! What system calls promise: which versions of which pages survive a cut of power.

use super::work::{Mark, Work, kind_of, of};
use super::{FILES, World};
use crate::fs::{JournalMode, Place, Recovered, RecoveredFile, media::Cell};
use crate::path::{Host, OnDrives};
use crate::{Inode, PAGE};
use proto::file::Call;
use std::collections::BTreeMap;

/// Of a file, its length in bytes and the versions of its pages, at least.
#[derive(Clone, Debug, Default)]
pub(super) struct Promise {
    pub(super) size: u64,
    pub(super) pages: BTreeMap<u64, u32>,
}

impl Promise {
    /// The file becomes shorter, or may.
    fn cut(&mut self, bytes: u64) {
        let end = bytes.div_ceil(PAGE);
        self.size = self.size.min(bytes);
        self.pages.retain(|page, _| *page < end);
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Promises {
    /// What holds, by file.
    pub(super) kept: [Option<Promise>; FILES as usize],
    /// What calls that are under way will promise, by thread.
    coming: BTreeMap<u32, Vec<(u32, Promise)>>,
    /// Calls that are under way, by thread.
    calls: BTreeMap<u32, Call>,
    /// Calls that have kept their promise.
    pub(super) acknowledged: u64,
}

/// The new length of the file of a call that makes it shorter.
fn cuts(call: Call) -> Option<u64> {
    match call {
        Call::Truncate { bytes, .. } => Some(bytes),
        Call::Unlink { .. } | Call::Open { .. } => Some(0),
        _ => None,
    }
}

/// Whether a call is a write that returns when it is durable.
fn is_sync(call: Call) -> bool {
    matches!(call, Call::Write { fd, .. } if kind_of(fd).sync || kind_of(fd).data_sync)
}

/// Whether a call changes its file.
fn changes(call: Call) -> bool {
    matches!(call, Call::Write { .. } | Call::Touch { write: true, .. }) || cuts(call).is_some()
}

impl World {
    fn inode(&self, file: u32) -> Inode {
        inode(&self.host, file)
    }

    /// A call begins or has ended. `versions` were written before this event.
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
            let left = shadow.cutting.get_mut(&inode).expect("its begin was noted");
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
            // Without a journal what was synced is only sure as long as nothing changes: a block of metadata may go home before those that it
            // points to.
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

    /// A synchronous write promises no length while data behind its end wait for their blocks, be it when it begins or when it has ended: they will move
    /// the length that the file has on the drive (`ext4_da_write_end`), and a write in front of them whose blocks are there does not. Its end may be
    /// lost, in Linux as here. `fsync` writes them all.
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

    /// The oldest version that a page may have when a write of it that begins now is durable. Whoever writes after has a later one; of direct writes
    /// that are under way the drive may take any last.
    fn at_least(&self, file: u32, page: u64, versions: u32) -> u32 {
        let shadow = self.host.shadow.as_ref().expect("it has one");
        let before = shadow.changing.get(&(self.inode(file), page)).map(|(_, before)| *before);
        before.unwrap_or(versions) + 1
    }

    /// A file becomes shorter: what was promised of it need not be there any more.
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

    /// A promise without what calls that are under way may take from it.
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

    /// All of a file, as it is now.
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

/// The inode of a file of the work.
pub(super) fn inode(host: &Host<Work>, file: u32) -> Inode {
    host.programs[0].inodes[file as usize]
}

// What is left after the power went, held against what was promised; and a host that has nothing left to do.

/// What a page reads as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    Zeroes,
    Version(u32),
    /// What was in its block before.
    Stale,
}

impl World {
    /// The power goes.
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
                self.faults.push(format!("file {file} is gone"));
                continue;
            };
            if found.size < promise.size {
                let (has, promised) = (found.size, promise.size);
                self.faults.push(format!("file {file} has {has} bytes, and {promised} were promised"));
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
                        "file {file} page {page}: {seen:?}, and version {version} was promised"
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

    /// What drives have said of their buffers is what the driver has heard, less what it has not looked at; the ratios follow it; nobody waits in
    /// vain.
    pub(super) fn check_running(&mut self) {
        let heard = self.host.shadow.as_ref().expect("it has one").heard;
        let waiting = self.host.waiting(0);
        for (at, name) in ["room", "a full buffer"].into_iter().enumerate() {
            let (said, known) = (self.said[at], heard[at] + waiting[at]);
            if said != known {
                self.faults.push(format!(
                    "the drive has told {said} times of {name}, and the host knows of {known}"
                ));
            }
        }
        if let Some(stuck) = self.host.stuck() {
            self.faults.push(stuck);
        }
        if !self.host.ratios_follow() {
            self.faults.push("the dirty ratios are not those of what drives say".to_owned());
        }
    }

    /// All programs have ended, and nothing happens any more: nothing is left over.
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
