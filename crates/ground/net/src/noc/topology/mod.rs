//! Topologies of a network on a chip: which links there are, and which of them a packet takes.

pub mod crossbar;
pub mod ring;

config::policies! {
    /// Which links a network on a chip has, and which of them a packet takes.
    pub family Topology: dyn Wiring, context u16 {
        /// A link into it and a link out of it for each endpoint; between them there is no contention.
        default crossbar => crossbar::Crossbar::new,
        /// Stops in a circle, an endpoint at each, a link to either neighbour: packets take the shorter way round.
        ///
        /// Larrabee's (Seiler et al., SIGGRAPH 2008, section 3.1) and Xeon Phi's: two directions, requests and data on rings of their
        /// own, the way chosen when a packet is sent. Dally and Towles, Principles and Practices of Interconnection Networks, 2004,
        /// chapter 5: a torus of one dimension. Stops stand in the order of endpoints: multiprocessors, the memory
        /// management unit, cache banks, controllers of memory.
        ring => ring::Ring::new,
    }
}

/// Says which links packets take. The context is the number of endpoints.
///
/// Links are numbered: the link out of the network to endpoint `n` is link `n`, and only packets to that endpoint take it; all others
/// follow. Requests have links of their own, and so have answers, on the same ways.
///
/// Contract: from [`first`](Wiring::first), [`next`](Wiring::next) comes to the link out to the packet's endpoint, over no link twice,
/// and always by the same way. Nothing is allocated.
pub trait Wiring {
    /// Links in all.
    fn links(&self) -> u32;
    /// The first link of a packet from one endpoint to another.
    fn first(&self, from: u16, to: u16) -> u32;
    /// The link that a packet takes after one that is not the last of its way.
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
