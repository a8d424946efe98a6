//! Memory port: commands arrive over the link, without queues and completion entries.

use super::interface::{Entry, LinkBusy, Protocol};
use engine::{Ticket, Time};
use net::pcie::Link;
use stats::EnergyReport;

/// Memory port of a device.
#[derive(Clone, Debug)]
pub struct MemoryPort {
    link: Link,
}

impl MemoryPort {
    /// Creates an idle port.
    pub fn new(link: Link) -> MemoryPort {
        MemoryPort { link }
    }
}

impl Protocol for MemoryPort {
    #[inline]
    fn enters(&mut self, _queue: u16, _id: u32, _reserve: impl FnOnce() -> Ticket) -> Entry {
        Entry::Fetched(self.link.latency())
    }

    fn doorbell(&mut self, _queue: u16) {}

    fn fetch(&mut self, _now: Time) -> Option<(u32, Ticket, Time)> {
        None
    }

    #[inline]
    fn data_in(&mut self, now: Time, bytes: u64) -> Time {
        self.link.to_device(now, bytes) + self.link.latency()
    }

    #[inline]
    fn data_out(&mut self, now: Time, bytes: u64) {
        self.link.to_host(now, bytes);
    }

    #[inline]
    fn completes(&mut self, now: Time) -> Time {
        self.link.to_host(now, 0) + self.link.latency()
    }

    #[inline]
    fn leaves(&mut self, _queue: u16) -> bool {
        false
    }

    fn busy(&self, now: Time) -> LinkBusy {
        LinkBusy::of(&self.link, now)
    }

    fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.link.energy(now)
    }

    fn carried(&self) -> Option<[u64; 2]> {
        self.link.carried()
    }

    fn reset_energy(&mut self, now: Time) {
        self.link.reset_energy(now);
    }

    fn save(&self, out: &mut Vec<u8>) {
        let MemoryPort { link } = self;
        link.save(out);
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.link.load(input)
    }
}
