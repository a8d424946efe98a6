//! Topologies of a network on a chip: the links and the paths of packets.

pub mod crossbar;
pub mod ring;

config::policies! {
    /// Links of a network on a chip, and the path of each packet.
    pub family Topology: dyn Wiring, context u16 {
        /// A link in and a link out for each endpoint, with no contention between them.
        default crossbar => crossbar::Crossbar::new,
        /// Stops in a circle with one endpoint each, and a link to either neighbour: packets take the shorter
        /// direction.
        ///
        /// Larrabee's (Seiler et al., SIGGRAPH 2008, section 3.1) and Xeon Phi's ring: two directions, separate rings
        /// for requests and data, the direction chosen when a packet is sent. Dally and Towles, Principles and
        /// Practices of Interconnection Networks, 2004, chapter 5: a one-dimensional torus. Stops are in the order of
        /// endpoints: SMs, the memory management unit, cache banks, memory controllers.
        ring => ring::Ring::new,
    }
}

/// Topology: the links and the path of each packet. The context is the number of endpoints.
///
/// Links are numbered: link `n` leads out of the network to endpoint `n`, and only packets to that endpoint take it;
/// all other links follow. Requests and answers have separate links on the same paths.
///
/// Contract: from [`first`](Wiring::first), [`next`](Wiring::next) reaches the link out to the packet's endpoint, over
/// no link twice, and always on the same path. Nothing is allocated.
pub trait Wiring {
    /// Returns the number of links.
    fn links(&self) -> u32;
    /// Returns the first link of a packet from one endpoint to another.
    fn first(&self, from: u16, to: u16) -> u32;
    /// Returns the link that follows `link`, which is not the last of the packet's path.
    fn next(&self, link: u32, to: u16) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_keeps_the_contract() {
        for topology in Topology::all_defaults() {
            for endpoints in [1, 2, 3, 4, 7, 8, 23] {
                let wiring = topology.build(&endpoints);
                let mut taken = vec![false; wiring.links() as usize];
                for (from, to) in (0..endpoints).flat_map(|from| (0..endpoints).map(move |to| (from, to))) {
                    let mut way = vec![wiring.first(from, to)];
                    while *way.last().expect("a link") != u32::from(to) {
                        assert!(way.len() < taken.len(), "{}: {from} to {to}: {way:?}", topology.name());
                        way.push(wiring.next(*way.last().expect("a link"), to));
                    }
                    assert!(way.iter().rev().skip(1).all(|link| *link >= endpoints.into()), "{way:?}");
                    way.iter().for_each(|link| taken[*link as usize] = true);
                    way.sort_unstable();
                    assert!(way.windows(2).all(|two| two[0] != two[1]), "{way:?}");
                }
                // A ring of one or two stops has more links than it needs.
                let all = taken.iter().all(|taken| *taken);
                assert!(
                    all || endpoints < 3,
                    "{} of {endpoints}: a link that nothing takes",
                    topology.name()
                );
            }
        }
    }
}
