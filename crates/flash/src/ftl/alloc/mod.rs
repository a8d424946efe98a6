//! Where host data goes.

pub mod striped;

use crate::backend::Backend;
use crate::ftl::Ftl;

/// Chooses the group that the next program unit of host data goes to.
///
/// Contract: a pure decision over the FTL, the back end and the policy's own state; the answer is a group of the
/// device; the cost does not depend on the size of the device.
pub trait Allocator {
    /// The group for the logical program unit `stripe`.
    fn place(&mut self, stripe: u64, ftl: &Ftl, backend: &Backend) -> u32;
}
