//! Read-ahead: which pages are read when one is missing or the marker is met, as `mm/readahead.c` of Linux 6.1 decides.
//!
//! A descriptor remembers its last **window** ([`FileRa`]): `size` pages from `start` on, of which the last `async_size` are read before they are
//! needed. The first of these is the marker: who comes to it reads the next window, so that the drive works while the reader does. All functions
//! answer a [`Plan`]; what of it is in memory already is not read again.
//!
//! `force_page_cache_ra` goes through its pages in pieces of 2 MiB, each with its own plug; here a plan is one.

mod none;
mod on_demand;
#[cfg(test)]
mod tests;

use super::folio::flag;
use super::index::Index;
use super::{Folio, PageCache};
use crate::{Inode, PAGE};
use proto::file::Advice;

config::policies! {
    /// Which pages are read before they are asked for.
    pub family ReadAheadPolicy: dyn ReadAhead, context () {
        /// Windows that grow while a file is read in order.
        ///
        /// `ondemand_readahead` of `mm/readahead.c`, Linux 6.1.
        default on_demand => |_: &()| on_demand::OnDemand,
        /// None: one page at a time, as it is asked for.
        ///
        /// Linux with a `read_ahead_kb` of zero.
        none => |_: &()| none::None,
    }
}

/// The read-ahead of a descriptor (`struct file_ra_state`), in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRa {
    /// Where the last window begins.
    pub start: u64,
    /// How long it is.
    pub size: u64,
    /// How much of its end is read ahead: the marker is this far before its end.
    pub async_size: u64,
    /// The most that is read ahead at once.
    pub ra_pages: u64,
    /// The most that the drive takes at once (`bdi->io_pages`, `max_sectors_kb`): a read that asks for more than `ra_pages` may read as much.
    pub io_pages: u64,
    /// How many more faults of a mapping missed than hit.
    pub mmap_miss: u32,
    /// The byte behind the last read; 2^64 - 1 before the first.
    pub prev_pos: u64,
    /// `FMODE_RANDOM`: reads are not in order, so that nothing is read ahead.
    pub random: bool,
}

impl FileRa {
    /// Of a file that is opened (`file_ra_state_init`).
    pub fn new(ra_pages: u32, io_pages: u32) -> FileRa {
        FileRa {
            start: 0,
            size: 0,
            async_size: 0,
            ra_pages: ra_pages.into(),
            io_pages: io_pages.into(),
            mmap_miss: 0,
            prev_pos: u64::MAX,
            random: false,
        }
    }

    /// What `posix_fadvise` says of reads to come (`generic_fadvise`); `ra_pages` are those of the drive. [`Advice::WillNeed`] and
    /// [`Advice::DontNeed`] are calls of their own: [`PageCache::force_ra`], [`PageCache::invalidate`].
    pub fn advise(&mut self, advice: Advice, ra_pages: u32) {
        match advice {
            Advice::Normal => (self.ra_pages, self.random) = (ra_pages.into(), false),
            Advice::Sequential => (self.ra_pages, self.random) = (2 * u64::from(ra_pages), false),
            Advice::Random => self.random = true,
            Advice::WillNeed | Advice::DontNeed => {}
        }
    }

    /// Whether a read at a byte continues the last one in the same page: then the page has been marked accessed already (`pos_same_folio`).
    pub fn is_same_page(&self, pos: u64) -> bool {
        pos / PAGE == self.prev_pos.wrapping_sub(1) / PAGE
    }
}

/// What a read asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The file.
    pub inode: Inode,
    /// Its length in pages, the last one counted whole.
    pub file_pages: u64,
    /// The page that is missing, or has the marker.
    pub index: u64,
    /// Pages that the read wants from there on.
    pub req_count: u64,
}

/// What is to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The first page.
    pub first: u64,
    /// How many; at least one.
    pub pages: u64,
    /// The page that becomes the marker, if it is read.
    pub mark: Option<u64>,
}

/// Plans what is read. It has no state: that is the descriptor's.
///
/// Contract: a plan lies within the file. It is made for a descriptor whose `ra_pages` are not zero.
pub trait ReadAhead: Send {
    /// `ondemand_readahead`; `marker`: the page of the request is there, and is the marker.
    #[doc(hidden)]
    fn plan(&self, ra: &mut FileRa, request: &Request, marker: bool, index: &Index) -> Option<Plan>;
    /// Pages around one that a mapping's fault misses; none if only that one is to be read.
    #[doc(hidden)]
    fn around(&self, ra: &mut FileRa, request: &Request) -> Option<Plan>;
}

/// A window, cut at the end of the file (`do_page_cache_ra`): the marker counts from the end that is left, so that a window whose marker was near its
/// beginning has none.
fn do_page_cache_ra(request: &Request, first: u64, pages: u64, lookahead: u64) -> Option<Plan> {
    let left = request.file_pages.checked_sub(first).filter(|left| *left > 0)?;
    let pages = pages.min(left);
    let mark = pages.checked_sub(lookahead).filter(|at| *at < pages).map(|at| first + at);
    (pages > 0).then_some(Plan { first, pages, mark })
}

/// What was asked for, up to what the drive takes at once (`force_page_cache_ra`).
fn force_page_cache_ra(ra: &FileRa, request: &Request) -> Option<Plan> {
    let most = ra.io_pages.max(ra.ra_pages);
    do_page_cache_ra(request, request.index, request.req_count.min(most), 0)
}

impl PageCache {
    /// A read misses a page (`page_cache_sync_ra`). Nothing only if the page is beyond the end of the file.
    pub fn sync_ra(&self, ra: &mut FileRa, request: &Request) -> Option<Plan> {
        if ra.ra_pages == 0 {
            return force_page_cache_ra(ra, &Request { req_count: 1, ..*request });
        }
        if ra.random {
            return force_page_cache_ra(ra, request);
        }
        self.readahead.plan(ra, request, false, &self.core.index)
    }

    /// A read comes to the marker, which it is no more (`page_cache_async_ra`).
    pub fn async_ra(&mut self, ra: &mut FileRa, request: &Request, folio: Folio) -> Option<Plan> {
        // The bit of one under write-back is not that of a marker.
        if ra.ra_pages == 0 || self.is_writeback(folio) {
            return None;
        }
        self.core.folios.clear(folio.0, flag::RECLAIM);
        self.readahead.plan(ra, request, true, &self.core.index)
    }

    /// Pages will be needed (`POSIX_FADV_WILLNEED`, `readahead`): as many as the drive takes at once.
    pub fn force_ra(&self, ra: &FileRa, request: &Request) -> Option<Plan> {
        force_page_cache_ra(ra, request)
    }
}

// Read-ahead of mappings: what a fault reads, and which pages it maps besides.

/// So many more misses than hits, and a mapping is read page by page.
pub const MMAP_LOTSAMISS: u32 = 100;

/// Pages that a fault maps at most (`fault_around_bytes`, 64 KiB).
const FAULT_AROUND: u64 = 16;

/// What `madvise` has said of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mapping {
    /// Nothing.
    #[default]
    Normal,
    /// `VM_SEQ_READ`.
    Sequential,
    /// `VM_RAND_READ`.
    Random,
}

impl PageCache {
    /// A fault misses a page (`do_sync_mmap_readahead`): what is read. Without a plan the fault reads its page alone, if the file has it.
    pub fn sync_mmap_ra(&self, ra: &mut FileRa, request: &Request, mapping: Mapping) -> Option<Plan> {
        if mapping == Mapping::Random || ra.ra_pages == 0 {
            return None;
        }
        if mapping == Mapping::Sequential {
            return self.sync_ra(ra, &Request { req_count: ra.ra_pages, ..*request });
        }
        ra.mmap_miss = (ra.mmap_miss + 1).min(MMAP_LOTSAMISS * 10);
        if ra.mmap_miss > MMAP_LOTSAMISS {
            return None;
        }
        self.readahead.around(ra, request)
    }

    /// A fault finds its page (`do_async_mmap_readahead`): what is read besides.
    pub fn async_mmap_ra(
        &mut self,
        ra: &mut FileRa,
        request: &Request,
        folio: Folio,
        mapping: Mapping,
    ) -> Option<Plan> {
        if mapping == Mapping::Random || ra.ra_pages == 0 {
            return None;
        }
        ra.mmap_miss = ra.mmap_miss.saturating_sub(1);
        if !self.is_readahead(folio) {
            return None;
        }
        self.async_ra(ra, &Request { req_count: ra.ra_pages, ..*request }, folio)
    }

    /// A fault that only reads maps what is there around its page (`do_fault_around`, `filemap_map_pages`): of the 16 pages with it those that are up
    /// to date, unlocked and no marker. Each counts as a hit. Whether its own page is mapped now; otherwise the fault goes on.
    pub fn fault_around(&mut self, ra: &mut FileRa, request: &Request) -> bool {
        let first = request.index & !(FAULT_AROUND - 1);
        let end = (first + FAULT_AROUND).min(request.file_pages);
        let mut next = first;
        while let Some(page) = self.next_present(request.inode, next).filter(|page| *page < end) {
            next = page + 1;
            let folio = self.find(request.inode, page).expect("it is present");
            let flags = self.core.folios.flags(folio.0);
            if flags & (flag::LOCKED | flag::RECLAIM) != 0 || flags & flag::UPTODATE == 0 {
                continue;
            }
            ra.mmap_miss = ra.mmap_miss.saturating_sub(1);
            if page == request.index {
                self.map(folio);
            } else if !self.is_mapped(folio) {
                self.core.folios.set(folio.0, flag::MAPPED);
            }
        }
        self.find(request.inode, request.index).is_some_and(|folio| self.is_mapped(folio))
    }
}
