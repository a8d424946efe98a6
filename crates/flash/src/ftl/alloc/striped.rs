//! Static allocation.

use super::{Allocator, Backend, Ftl};

/// The logical address decides: consecutive program units go over the device in the geometry's stripe order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Striped;

impl Allocator for Striped {
    #[inline]
    fn place(&mut self, stripe: u64, ftl: &Ftl, _: &Backend) -> u32 {
        ftl.geo.group_at(stripe)
    }
}
