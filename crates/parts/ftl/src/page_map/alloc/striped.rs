//! Static allocation.

use super::{Allocator, Backend, Ftl, Geometry, Stream};

/// Static allocation: the logical address decides. Consecutive program units follow the geometry's stripe order.
#[derive(Clone, Copy, Debug)]
pub struct Striped;

impl Striped {
    /// Builds the policy.
    pub fn new(_: &Geometry) -> Striped {
        Striped
    }
}

impl Allocator for Striped {
    #[inline]
    fn place(&mut self, stripe: u64, _: Stream, ftl: &Ftl, _: &Backend) -> u32 {
        ftl.geo.group_at(stripe)
    }
    fn is_static(&self) -> bool {
        true
    }
}
