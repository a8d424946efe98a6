//! Read-ahead with growing windows.

use super::{FileRa, Index, Plan, ReadAhead, Request, do_page_cache_ra};

/// Policy with growing windows.
#[derive(Debug)]
pub(super) struct OnDemand;

/// First window for a read of `size` pages (`get_init_ra_size`).
pub(super) fn get_init_ra_size(size: u64, max: u64) -> u64 {
    let newsize = size.next_power_of_two();
    if newsize <= max / 32 {
        newsize * 4
    } else if newsize <= max / 4 {
        newsize * 2
    } else {
        max
    }
}

/// Window that follows one of `cur` pages (`get_next_ra_size`).
pub(super) fn get_next_ra_size(cur: u64, max: u64) -> u64 {
    if cur < max / 16 {
        4 * cur
    } else if cur <= max / 2 {
        2 * cur
    } else {
        max
    }
}

/// Continuation in `ondemand_readahead`.
enum Found {
    /// New window: only this read of the reader is known.
    Initial,
    /// Window has been set.
    Window,
    /// Isolated read: only the requested pages are read, and the window stays.
    Alone,
    /// Nothing to read.
    Nothing,
}

/// Returns whether the pages in memory before the missing one indicate a sequential read (`try_context_readahead`).
fn try_context(ra: &mut FileRa, request: &Request, max: u64, index: &Index) -> bool {
    let Request { inode, index: at, req_count, .. } = *request;
    let head = index.prev_miss(inode, at - 1, max);
    let mut size = (at - 1).wrapping_sub(head);
    if size <= req_count {
        return false;
    }
    // All pages since the beginning of the file: a sequential read to the end is most likely.
    if size >= at {
        size *= 2;
    }
    (ra.start, ra.size, ra.async_size) = (at, (size + req_count).min(max), 1);
    true
}

fn find(ra: &mut FileRa, request: &Request, marker: bool, max: u64, index: &Index) -> Found {
    let Request { inode, index: at, req_count, .. } = *request;
    if at == 0 {
        return Found::Initial;
    }
    let expected = (ra.start + ra.size).wrapping_sub(ra.async_size);
    if at == expected || at == ra.start + ra.size {
        ra.start += ra.size;
        ra.size = ra.size.max(get_next_ra_size(ra.size, max));
        ra.async_size = ra.size;
        return Found::Window;
    }
    if marker {
        // Another reader of the descriptor has its window; the marker's position tells what was read.
        let start = index.next_miss(inode, at + 1, max);
        if start - at > max {
            return Found::Nothing;
        }
        ra.start = start;
        ra.size = get_next_ra_size(start - at + req_count, max);
        ra.async_size = ra.size;
        return Found::Window;
    }
    let prev_index = ra.prev_pos / crate::PAGE;
    if req_count > max || at.wrapping_sub(prev_index) <= 1 {
        return Found::Initial;
    }
    if try_context(ra, request, max, index) { Found::Window } else { Found::Alone }
}

impl ReadAhead for OnDemand {
    fn plan(&self, ra: &mut FileRa, request: &Request, marker: bool, index: &Index) -> Option<Plan> {
        let Request { index: at, req_count, .. } = *request;
        let mut max = ra.ra_pages;
        if req_count > max && ra.io_pages > max {
            max = req_count.min(ra.io_pages);
        }
        match find(ra, request, marker, max, index) {
            Found::Initial => {
                ra.start = at;
                ra.size = get_init_ra_size(req_count, max);
                ra.async_size = if ra.size > req_count { ra.size - req_count } else { ra.size };
            }
            Found::Window => {}
            Found::Alone => return do_page_cache_ra(request, at, req_count, 0),
            Found::Nothing => return None,
        }
        // If this read would meet the marker that it sets, the next window joins this one.
        if at == ra.start && ra.size == ra.async_size {
            let add_pages = get_next_ra_size(ra.size, max);
            if ra.size + add_pages <= max {
                ra.async_size = add_pages;
                ra.size += add_pages;
            } else {
                ra.size = max;
                ra.async_size = max >> 1;
            }
        }
        do_page_cache_ra(request, ra.start, ra.size, ra.async_size)
    }

    fn around(&self, ra: &mut FileRa, request: &Request) -> Option<Plan> {
        ra.start = request.index.saturating_sub(ra.ra_pages / 2);
        ra.size = ra.ra_pages;
        ra.async_size = ra.ra_pages / 4;
        do_page_cache_ra(request, ra.start, ra.size, ra.async_size)
    }
}
