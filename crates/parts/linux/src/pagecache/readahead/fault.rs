//! Read-ahead of mappings: what a fault reads, and which pages it maps besides.

use super::{FileRa, Plan, Request};
use crate::pagecache::folio::flag;
use crate::pagecache::{Folio, PageCache};

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
