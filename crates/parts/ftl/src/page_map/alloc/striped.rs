//! Static allocation.

use super::{Allocator, Backend, Ftl, Geometry, Stream};

/// The logical address decides: consecutive program units go over the device in the geometry's stripe order.
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
