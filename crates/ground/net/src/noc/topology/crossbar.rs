//! Crossbar: a link in and a link out for each endpoint.

use super::Wiring;

/// Crossbar topology. Every packet takes two links: the one in from its sender, and the one out to its receiver.
#[derive(Clone, Debug)]
pub struct Crossbar {
    endpoints: u32,
}

impl Crossbar {
    /// Builds the topology.
    pub fn new(endpoints: &u16) -> Crossbar {
        Crossbar { endpoints: (*endpoints).into() }
    }
}

impl Wiring for Crossbar {
    fn links(&self) -> u32 {
        2 * self.endpoints
    }
    #[inline]
    fn first(&self, from: u16, _to: u16) -> u32 {
        self.endpoints + u32::from(from)
    }
    #[inline]
    fn next(&self, _link: u32, to: u16) -> u32 {
        to.into()
    }
}
