//! No read-ahead.

use super::{FileRa, Index, Plan, ReadAhead, Request, force_page_cache_ra};

/// Policy without read-ahead, as if `ra_pages` were zero (`page_cache_sync_ra`).
#[derive(Debug)]
pub(super) struct None;

impl ReadAhead for None {
    fn plan(&self, ra: &mut FileRa, request: &Request, marker: bool, _index: &Index) -> Option<Plan> {
        let plan = force_page_cache_ra(ra, &Request { req_count: 1, ..*request });
        plan.filter(|_| !marker)
    }

    fn around(&self, _ra: &mut FileRa, _request: &Request) -> Option<Plan> {
        Option::None
    }
}
