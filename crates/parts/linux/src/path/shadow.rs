//! Naive record of page contents beside a host, for its soak. Every store into a page gives it a new version. The
//! record tracks the newest version, the version that each command carries to the drive, and the versions on the drive.

use super::Host;
use crate::fs::media::{Cell, Media};
use crate::fs::{Content, Place, Tid};
use crate::pagecache::Folio;
use crate::{Inode, PAGE};
use proto::file::Program;
use proto::{BufferState, Command, IoOp};
use std::collections::{BTreeMap, VecDeque};

/// Write or flush at the drive.
#[derive(Clone, Debug)]
enum Flying {
    Write { block: u64, cells: Vec<Cell>, fua: bool },
    Flush { newest: u64 },
}

/// Record of a host with one drive.
#[derive(Debug, Default)]
pub(super) struct Shadow {
    /// Number of stores so far: the newest version of all.
    pub(super) versions: u32,
    /// Newest version by page; absent pages are zeroes.
    pub(super) newest: BTreeMap<(Inode, u64), u32>,
    /// Pages that direct writes are changing: the number of writes, and the version before.
    pub(super) changing: BTreeMap<(Inode, u64), (u32, u32)>,
    /// Files being truncated or removed, with the number of calls: reads may meanwhile return either version.
    pub(super) cutting: BTreeMap<Inode, u32>,
    /// Contents of the drive, and commands at it by tag.
    pub(super) media: Media,
    flying: BTreeMap<u32, Flying>,
    /// Contents of bios in flight to the drive, by block.
    sent: BTreeMap<u64, VecDeque<Cell>>,
    /// With data in the journal: pages of the running transaction, and versions in closed ones.
    journals_data: bool,
    joined: Vec<(Inode, u64)>,
    pub(super) copies: BTreeMap<(Tid, Inode, u64), u32>,
    /// Completions handled by the driver of a drive with room, and of a full one.
    pub(super) heard: [u64; 2],
    /// Pages compared when they were read.
    pub(super) compared: u64,
    /// Violations, as text.
    pub(super) faults: Vec<String>,
}

impl Shadow {
    pub(super) fn new(journals_data: bool) -> Shadow {
        Shadow { journals_data, ..Shadow::default() }
    }

    /// Expected versions of a page: the newest one, and the one before a direct write in flight.
    fn expected(&self, inode: Inode, page: u64) -> (u32, Option<u32>) {
        let newest = self.newest.get(&(inode, page)).copied().unwrap_or(0);
        (newest, self.changing.get(&(inode, page)).map(|(_, before)| *before))
    }

    /// Version of a page before any direct write in flight.
    pub(super) fn settled(&self, inode: Inode, page: u64) -> u32 {
        let (newest, before) = self.expected(inode, page);
        before.unwrap_or(newest)
    }

    fn compare(&mut self, how: &str, inode: Inode, page: u64, found: u32) {
        if self.cutting.contains_key(&inode) {
            return;
        }
        self.compared += 1;
        let (newest, before) = self.expected(inode, page);
        if found != newest && before.is_none_or(|before| found < before) {
            let (file, before) = (inode.0, before.map_or(String::new(), |before| format!(" or {before}")));
            self.faults.push(format!(
                "file {file} page {page} {how} version {found}, but {newest}{before} was written"
            ));
        }
    }

    /// Version of a file's page on the drive.
    fn on_drive(&mut self, inode: Inode, page: u64, place: Place) -> u32 {
        let Place::Mapped { block } = place else { return 0 };
        match self.media.read(block) {
            Some(Cell::Page { file, page: at, version }) if file == inode.0 as usize && at == page => version,
            other => {
                let file = inode.0;
                self.faults
                    .push(format!("file {file} page {page} shows what was in its block before: {other:?}"));
                0
            }
        }
    }

    /// Records a command's arrival at the drive.
    pub(super) fn arrives(&mut self, command: &Command) {
        let flying = match command.op {
            IoOp::Write => {
                let block = command.offset / PAGE;
                let blocks = block..block + command.bytes / PAGE;
                let take = |block| self.sent.get_mut(&block).and_then(VecDeque::pop_front);
                let cells: Vec<Cell> = blocks.filter_map(take).collect();
                assert_eq!(cells.len() as u64, command.bytes / PAGE, "every written page has a content");
                Flying::Write { block, cells, fua: command.fua }
            }
            IoOp::Flush => Flying::Flush { newest: self.media.newest() },
            IoOp::Read | IoOp::Trim | IoOp::WriteZeroes => return,
        };
        self.flying.insert(command.tag, flying);
    }

    /// Records a command's completion.
    pub(super) fn done(&mut self, tag: u32) {
        match self.flying.remove(&tag) {
            Some(Flying::Write { block, cells, fua }) => {
                for (at, cell) in (block..).zip(cells) {
                    if fua {
                        self.media.put(at, cell);
                    } else {
                        self.media.hold(at, cell);
                    }
                }
            }
            Some(Flying::Flush { newest }) => self.media.flush(newest),
            None => {}
        }
    }

    /// Models a power failure: commands at the drive may be in its cache.
    pub(super) fn lands(&mut self) {
        for flying in std::mem::take(&mut self.flying).into_values() {
            if let Flying::Write { block, cells, .. } = flying {
                (block..).zip(cells).for_each(|(at, cell)| self.media.hold(at, cell));
            }
        }
    }
}

impl<P: Program> Host<P> {
    /// Records a store into a page in memory.
    #[inline]
    pub(super) fn shadow_store(&mut self, inode: Inode, page: u64, folio: Folio) {
        let Some(shadow) = &mut self.shadow else { return };
        shadow.versions += 1;
        shadow.newest.insert((inode, page), shadow.versions);
        if shadow.journals_data {
            shadow.joined.push((inode, page));
        }
        self.cache.set_version(folio, shadow.versions);
    }

    /// Checks a program's read of a page in memory.
    #[inline]
    pub(super) fn shadow_load(&mut self, inode: Inode, page: u64, folio: Folio) {
        let Some(shadow) = &mut self.shadow else { return };
        shadow.compare("reads as", inode, page, self.cache.version(folio));
    }

    /// Records a page read into memory.
    #[inline]
    pub(super) fn shadow_filled(&mut self, inode: Inode, page: u64, folio: Folio) {
        let Some(shadow) = &mut self.shadow else { return };
        let Some(fs) = &self.disks[0].fs else { return };
        let version = if shadow.journals_data {
            // Data not yet in its place is in the journal's memory, as in the kernel.
            shadow.settled(inode, page)
        } else {
            shadow.on_drive(inode, page, fs.map(inode, page, 1).place)
        };
        self.cache.set_version(folio, version);
    }

    /// Records a bio that takes pages to the drive.
    #[inline]
    pub(super) fn shadow_pages(&mut self, inode: Inode, page: u64, pages: u64, block: u64) {
        let Some(shadow) = &mut self.shadow else { return };
        for at in 0..pages {
            let folio = self.cache.find(inode, page + at).expect("a page under write-back is not evicted");
            let version = self.cache.version(folio);
            let cell = Cell::Page { file: inode.0 as usize, page: page + at, version };
            shadow.sent.entry(block + at).or_default().push_back(cell);
        }
    }

    /// Records a bio that takes a block of the file system or its journal to the drive.
    #[inline]
    pub(super) fn shadow_meta(&mut self, block: u64, content: Content) {
        if let Some(shadow) = &mut self.shadow {
            shadow.sent.entry(block).or_default().push_back(Cell::Meta(content));
        }
    }

    /// Records a direct bio that reads or writes pages, none of which is dirty or under write-back.
    #[inline]
    pub(super) fn shadow_direct(&mut self, inode: Inode, page: u64, pages: u64, place: Place, write: bool) {
        let Some(shadow) = &mut self.shadow else { return };
        for at in 0..pages {
            let key = (inode, page + at);
            let place = match place {
                Place::Mapped { block } => Place::Mapped { block: block + at },
                Place::Unwritten { block } => Place::Unwritten { block: block + at },
                other => other,
            };
            match place {
                Place::Mapped { block } | Place::Unwritten { block } if write => {
                    let before = shadow.settled(key.0, key.1);
                    shadow.versions += 1;
                    let version = shadow.versions;
                    shadow.changing.entry(key).or_insert((0, before)).0 += 1;
                    shadow.newest.insert(key, version);
                    let cell = Cell::Page { file: inode.0 as usize, page: page + at, version };
                    shadow.sent.entry(block).or_default().push_back(cell);
                }
                _ if write => {
                    shadow.faults.push(format!("file {} page {} was not written", inode.0, page + at))
                }
                _ => {
                    let found = shadow.on_drive(key.0, key.1, place);
                    shadow.compare("reads directly as", key.0, key.1, found);
                }
            }
        }
    }

    /// Records the completion of a direct write.
    #[inline]
    pub(super) fn shadow_directed(&mut self, inode: Inode, first: u64, end: u64) {
        let Some(shadow) = &mut self.shadow else { return };
        let Some(fs) = &self.disks[0].fs else { return };
        for page in first..end {
            let Some((count, _)) = shadow.changing.get_mut(&(inode, page)) else { continue };
            *count -= 1;
            if *count > 0 {
                continue;
            }
            shadow.changing.remove(&(inode, page));
            // Of several overlapping writes, the drive keeps one.
            if let Place::Mapped { block } | Place::Unwritten { block } = fs.map(inode, page, 1).place {
                let version = shadow.on_drive(inode, page, Place::Mapped { block });
                shadow.newest.insert((inode, page), version);
            }
        }
    }

    /// Records a file's truncation.
    #[inline]
    pub(super) fn shadow_cut(&mut self, inode: Inode, first: u64) {
        if let Some(shadow) = &mut self.shadow {
            shadow.newest.retain(|(file, page), _| *file != inode || *page < first);
        }
    }

    /// Records a closed transaction, which holds the current versions of its data.
    #[inline]
    pub(super) fn shadow_closed(&mut self, tid: Tid) {
        let Some(shadow) = &mut self.shadow else { return };
        for (inode, page) in std::mem::take(&mut shadow.joined) {
            let version = shadow.newest.get(&(inode, page)).copied().unwrap_or(0);
            shadow.copies.insert((tid, inode, page), version);
        }
    }

    /// Records a buffer state that the driver has taken from a completion.
    #[inline]
    pub(super) fn shadow_heard(&mut self, buffer: BufferState) {
        let Some(shadow) = &mut self.shadow else { return };
        match buffer {
            BufferState::Unknown => {}
            BufferState::Room => shadow.heard[0] += 1,
            BufferState::Full => shadow.heard[1] += 1,
        }
    }
}
