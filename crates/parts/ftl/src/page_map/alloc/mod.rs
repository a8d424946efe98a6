//! Allocation: where host data goes.

pub mod full;
pub mod least_queued;
pub mod restricted;
pub mod round_robin;
pub mod scan;
pub mod striped;

use crate::page_map::Ftl;
use crate::page_map::space::Stream;
use nand::dies::{Backend, Wanted};
use nand::geometry::Geometry;

/// Chooses the group of the next program unit of host data.
///
/// Contract: a pure decision over the FTL, the back end and the policy's own state; the answer is a group of the
/// device; a dynamic policy avoids groups without space as long as any other has some. After `load`, the policy decides
/// as it would have at `save`.
pub trait Allocator {
    /// Returns the group for the logical program unit `stripe`, which `stream` writes.
    fn place(&mut self, stripe: u64, stream: Stream, ftl: &Ftl, backend: &Backend) -> u32;
    /// Returns whether the logical address alone decides.
    fn is_static(&self) -> bool {
        false
    }
    /// Returns the number of sets of groups that the address alone separates: units of one set may share a program
    /// unit.
    fn lines(&self, geo: &Geometry) -> usize {
        if self.is_static() { geo.groups as usize } else { 1 }
    }
    /// Returns the set of a logical program unit.
    fn line(&self, stripe: u64, geo: &Geometry) -> usize {
        if self.is_static() { geo.group_at(stripe) as usize } else { 0 }
    }
    /// Returns the policy's requirements on the back end.
    fn wanted(&self) -> Option<Wanted> {
        None
    }
    /// Appends the policy's own state, without parameters.
    fn save(&self, _out: &mut Vec<u8>) {}
    /// Restores the state that a policy with the same parameters saved; `None` if it is truncated or malformed.
    fn load(&mut self, _input: &mut &[u8]) -> Option<()> {
        Some(())
    }
}

config::policies! {
    /// Which plane, die or superblock host data goes to.
    pub family Allocation: dyn Allocator, context Geometry {
        /// The logical address decides, in the order of `stripe`.
        ///
        /// Static allocation: all 24 orders of channel, way, die and plane.
        default striped => striped::Striped::new,
        /// Groups take turns, in the order of `stripe`; groups without space are skipped.
        round_robin => round_robin::RoundRobin::new,
        /// The next group in turn whose die has the fewest operations waiting, among a few.
        ///
        /// Dynamic allocation (Tavakkol et al., TOMPECS 1(2), 2016): load decides, not the address.
        least_queued(least_queued::Params) => least_queued::LeastQueued::new,
        /// Some of channel, way, die and plane follow the address, in the order of `stripe`. The others are chosen at
        /// the write: an idle plane, a plane whose write shares a multi-plane command, or the least loaded die.
        ///
        /// Restricted dynamic allocation: the number of free digits is the degree of freedom of Tavakkol et al.
        /// (SIGMETRICS 2014; TOMPECS 1(2), 2016). A plane set or a superblock is written in stripe order: the planes
        /// that it spreads over are not chosen.
        restricted(restricted::Params) => restricted::Restricted::new,
        /// Any idle plane of the device, searched in the order of `stripe`; unrelated writes share multi-plane
        /// commands.
        ///
        /// Full dynamic allocation (Tavakkol et al., TOMPECS 1(2), 2016), as in MQMS: writes that arrive together get
        /// the same page on the planes of a die. With plane sets a write goes to any idle die, whose planes take turns;
        /// a device that is one superblock is written in stripe order.
        full(scan::Params) => full::Full::new,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_map::testing::{ftl, idle};
    use nand::geometry::Reclaim;

    #[test]
    fn the_family_keeps_its_contract() {
        config::policy::check_family::<Allocation>().expect("the list is whole");
    }

    #[test]
    fn what_is_loaded_decides_like_what_was_saved() {
        let mut ftl = ftl(Reclaim::Block, 256);
        let backend = idle(&ftl.geo);
        for family in Allocation::all_defaults() {
            let mut policy = family.build(&ftl.geo);
            for stripe in 0..50 {
                let mut bytes = Vec::new();
                policy.save(&mut bytes);
                let mut copy = family.build(&ftl.geo);
                assert_eq!(copy.load(&mut bytes.as_slice()), Some(()), "{}", family.name());
                let group = policy.place(stripe, Stream::Gc(0), &ftl, &backend);
                let same = copy.place(stripe, Stream::Gc(0), &ftl, &backend);
                assert_eq!(group, same, "{}", family.name());
                assert!(ftl.reserve(group, Stream::Gc(0)).is_some(), "{}", family.name());
                policy = copy;
            }
        }
    }
}
