//! What is left after the power went, held against what was promised; and a host that has nothing left to do.

use super::promises::inode;
use super::{FILES, World};
use crate::PAGE;
use crate::fs::media::Cell;
use crate::fs::{JournalMode, Recovered, RecoveredFile};
use std::collections::BTreeMap;

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
