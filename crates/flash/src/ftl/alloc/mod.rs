//! Where host data goes.

pub mod least_queued;
pub mod round_robin;
pub mod striped;

use crate::backend::Backend;
use crate::ftl::Ftl;
use crate::ftl::space::Stream;

/// Chooses the group that the next program unit of host data goes to.
///
/// Contract: a pure decision over the FTL, the back end and the policy's own state; the answer is a group of the
/// device; a dynamic policy avoids groups without space as long as another has some.
pub trait Allocator {
    /// The group for the logical program unit `stripe`, which `stream` writes.
    fn place(&mut self, stripe: u64, stream: Stream, ftl: &Ftl, backend: &Backend) -> u32;
    /// Whether the logical address alone decides.
    fn is_static(&self) -> bool {
        false
    }
    /// Appends the policy's own state.
    fn save(&self, _out: &mut Vec<u8>) {}
    /// Takes the policy's own state back; false if it is malformed.
    fn load(&mut self, _input: &mut &[u8]) -> bool {
        true
    }
}

config::policies! {
    /// Which plane, die or superblock host data goes to.
    pub family Allocation = "flash.ftl.allocation": dyn Allocator, context () {
        /// The logical address decides, in the order of `flash.ftl.stripe`.
        ///
        /// Static allocation: all 24 orders of channel, way, die and plane.
        default striped => striped::Striped::new,
        /// Groups take turns, in the order of `flash.ftl.stripe`; one without space is passed over.
        round_robin => round_robin::RoundRobin::new,
        /// The next group in turn whose die has the fewest operations waiting, among a few.
        ///
        /// Dynamic allocation (Tavakkol et al., TOMPECS 1(2), 2016): load decides, not the address.
        least_queued(least_queued::Params) => least_queued::LeastQueued::new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<Allocation>().expect("the list is whole");
    }
}
