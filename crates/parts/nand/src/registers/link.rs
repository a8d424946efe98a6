//! Buses of registers to the network inside a package.

use super::spec::RegisterNetwork;
use engine::resource::Serial;
use engine::{Snapshot, Time};

/// The buses of the registers of each plane: one page at a time leaves the registers of a plane for another.
#[derive(Clone, Debug)]
pub struct Link {
    buses: Vec<Serial>,
    time: Time,
}

impl Link {
    /// Buses of so many planes, for pages of so many bytes.
    pub fn new(network: &RegisterNetwork, planes: u32, page: u64) -> Link {
        let time = match network {
            RegisterNetwork::nif(nif) => {
                Time::transfer(page, nif.width.get().saturating_mul(nif.rate.per_s()))
            }
            _ => Time::ZERO,
        };
        Link { buses: vec![Serial::default(); planes as usize], time }
    }

    /// A page leaves a register of a plane for another plane; when it is there.
    #[inline]
    pub fn shift(&mut self, plane: u32, now: Time) -> Time {
        self.buses[plane as usize].grant(now, self.time)
    }

    /// Appends the state.
    pub fn save(&self, out: &mut Vec<u8>) {
        self.buses.save(out);
    }

    /// Replaces it by a saved one of as many planes; `None` if it is cut short or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.buses = Vec::load(input).filter(|buses: &Vec<Serial>| buses.len() == self.buses.len())?;
        Some(())
    }
}
