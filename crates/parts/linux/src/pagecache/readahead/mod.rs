//! Read-ahead: which pages are read on a miss or at the marker, as in `mm/readahead.c` of Linux 6.1.
//!
//! A descriptor remembers its last **window** ([`FileRa`]): `size` pages from `start` on, of which the last
//! `async_size` are read before they are needed. The first of these is the marker: a reader that reaches it reads the
//! next window, so that the drive works while the reader does. All functions return a [`Plan`]; its pages that are
//! already in memory are not read again.
//!
//! `force_page_cache_ra` submits its pages in pieces of 2 MiB, each with its own plug; here a plan is a single piece.

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
    /// Read-ahead policy.
    pub family ReadAheadPolicy: dyn ReadAhead, context () {
        /// Growing windows for sequential reads.
        ///
        /// `ondemand_readahead` of `mm/readahead.c`, Linux 6.1.
        default on_demand => |_: &()| on_demand::OnDemand,
        /// No read-ahead: one page at a time, on demand.
        ///
        /// Linux with a `read_ahead_kb` of zero.
        none => |_: &()| none::None,
    }
}

/// Read-ahead state of a descriptor (`struct file_ra_state`), in pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileRa {
    /// First page of the last window.
    pub start: u64,
    /// Length of the window in pages.
    pub size: u64,
    /// Pages read ahead at the window's end: the marker lies this far before the end.
    pub async_size: u64,
    /// Maximum pages read ahead at once.
    pub ra_pages: u64,
    /// Maximum pages that the drive takes at once (`bdi->io_pages`, `max_sectors_kb`); a read of more than `ra_pages`
    /// may read as many.
    pub io_pages: u64,
    /// Misses minus hits of mapping faults.
    pub mmap_miss: u32,
    /// Byte after the last read; 2^64 - 1 before the first.
    pub prev_pos: u64,
    /// `FMODE_RANDOM`: reads are random, so nothing is read ahead.
    pub random: bool,
}

impl FileRa {
    /// Creates the state of a newly opened file (`file_ra_state_init`).
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

    /// Applies `posix_fadvise` for future reads (`generic_fadvise`); `ra_pages` are those of the drive. For
    /// [`Advice::WillNeed`] and [`Advice::DontNeed`] call [`PageCache::force_ra`] and [`PageCache::invalidate`].
    pub fn advise(&mut self, advice: Advice, ra_pages: u32) {
        match advice {
            Advice::Normal => (self.ra_pages, self.random) = (ra_pages.into(), false),
            Advice::Sequential => (self.ra_pages, self.random) = (2 * u64::from(ra_pages), false),
            Advice::Random => self.random = true,
            Advice::WillNeed | Advice::DontNeed => {}
        }
    }

    /// Returns whether a read at a byte continues in the last page read, which is already marked accessed
    /// (`pos_same_folio`).
    pub fn is_same_page(&self, pos: u64) -> bool {
        pos / PAGE == self.prev_pos.wrapping_sub(1) / PAGE
    }
}

/// Parameters of a read for read-ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// File to read.
    pub inode: Inode,
    /// File length in pages, rounded up.
    pub file_pages: u64,
    /// Page that is missing, or is the marker.
    pub index: u64,
    /// Pages that the read wants from there on.
    pub req_count: u64,
}

/// Pages to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plan {
    /// First page.
    pub first: u64,
    /// Number of pages, at least one.
    pub pages: u64,
    /// Page that becomes the marker, if it is read.
    pub mark: Option<u64>,
}

/// Plans reads. It is stateless: the state is the descriptor's.
///
/// Contract: a plan lies within the file. It is made for a descriptor whose `ra_pages` are not zero.
pub trait ReadAhead: Send {
    /// `ondemand_readahead`; `marker`: the page of the request is there, and is the marker.
    #[doc(hidden)]
    fn plan(&self, ra: &mut FileRa, request: &Request, marker: bool, index: &Index) -> Option<Plan>;
    /// Plans a read around a page that a mapping's fault misses; `None` to read only that page.
    #[doc(hidden)]
    fn around(&self, ra: &mut FileRa, request: &Request) -> Option<Plan>;
}

/// Clips a window at the end of the file (`do_page_cache_ra`). The marker counts from the clipped end, so a window
/// whose marker was near its beginning has none.
fn do_page_cache_ra(request: &Request, first: u64, pages: u64, lookahead: u64) -> Option<Plan> {
    let left = request.file_pages.checked_sub(first).filter(|left| *left > 0)?;
    let pages = pages.min(left);
    let mark = pages.checked_sub(lookahead).filter(|at| *at < pages).map(|at| first + at);
    (pages > 0).then_some(Plan { first, pages, mark })
}

/// Plans the requested pages, up to the drive's limit at once (`force_page_cache_ra`).
fn force_page_cache_ra(ra: &FileRa, request: &Request) -> Option<Plan> {
    let most = ra.io_pages.max(ra.ra_pages);
    do_page_cache_ra(request, request.index, request.req_count.min(most), 0)
}

impl PageCache {
    /// Plans a read for a missed page (`page_cache_sync_ra`); `None` only if the page is beyond the end of the file.
    pub fn sync_ra(&self, ra: &mut FileRa, request: &Request) -> Option<Plan> {
        if ra.ra_pages == 0 {
            return force_page_cache_ra(ra, &Request { req_count: 1, ..*request });
        }
        if ra.random {
            return force_page_cache_ra(ra, request);
        }
        self.readahead.plan(ra, request, false, &self.core.index)
    }

    /// Plans a read at the marker, and clears it (`page_cache_async_ra`).
    pub fn async_ra(&mut self, ra: &mut FileRa, request: &Request, folio: Folio) -> Option<Plan> {
        // Under write-back, the bit does not mean a marker.
        if ra.ra_pages == 0 || self.is_writeback(folio) {
            return None;
        }
        self.core.folios.clear(folio.0, flag::RECLAIM);
        self.readahead.plan(ra, request, true, &self.core.index)
    }

    /// Plans a read of pages that will be needed (`POSIX_FADV_WILLNEED`, `readahead`), up to the drive's limit at once.
    pub fn force_ra(&self, ra: &FileRa, request: &Request) -> Option<Plan> {
        force_page_cache_ra(ra, request)
    }
}

// Read-ahead of mappings: what a fault reads, and which pages it also maps.

/// Excess of misses over hits above which a mapping is read page by page.
pub const MMAP_LOTSAMISS: u32 = 100;

/// Maximum pages that a fault maps (`fault_around_bytes`, 64 KiB).
const FAULT_AROUND: u64 = 16;

/// `madvise` state of a mapping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mapping {
    /// No advice.
    #[default]
    Normal,
    /// `VM_SEQ_READ`.
    Sequential,
    /// `VM_RAND_READ`.
    Random,
}

impl PageCache {
    /// Plans a read for a page that a fault misses (`do_sync_mmap_readahead`). Without a plan the fault reads its page
    /// alone, if the file has it.
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

    /// Plans a further read when a fault finds its page (`do_async_mmap_readahead`).
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

    /// Maps the present pages around a read fault (`do_fault_around`, `filemap_map_pages`): of the surrounding 16
    /// pages, those that are up to date, unlocked and not a marker. Each counts as a hit. Returns whether the faulting
    /// page is mapped now; otherwise the fault goes on.
    pub fn fault_around(&mut self, ra: &mut FileRa, request: &Request) -> bool {
        let first = request.index & !(FAULT_AROUND - 1);
        let end = (first + FAULT_AROUND).min(request.file_pages);
        let mut next = first;
        while let Some(page) = self.next_present(request.inode, next).filter(|page| *page < end) {
            next = page + 1;
            let folio = self.find(request.inode, page).expect("a present page has a folio");
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
