//! The machine's one event type.

use kernel::Event;

kernel::events! {
    /// An event of one of the machine's parts.
    pub enum Ev {
        /// The flash device's.
        Flash(flash::Event),
        /// The injector's.
        Inject(workload::inject::Event),
        /// The multiprocessors'.
        Gpu(compute::simt::Event),
        /// The network's.
        Network(net::crossbar::Event),
        /// The shared cache's.
        L2(mem::l2::Event),
        /// The memory management unit's.
        Mmu(mem::mmu::Event),
        /// The DRAM's.
        Dram(mem::dram::Event),
        /// The network-attached flash's.
        Direct(flash::direct::Event),
        /// The SSD engine's.
        Engine(flash::engine::Event),
        /// The initiator's.
        Initiator(flash::initiator::Event),
        /// The host's paging.
        Paging(host::paging::Event),
        /// The cores'.
        Cores(compute::ooo::Event),
        /// A core's memory management unit's.
        CoreMmu(CoreMmu),
        /// The mesh's.
        Fabric(net::fabric::Event),
        /// The directory's.
        Directory(mem::directory::Event),
        /// The DRAM cache's.
        DramCache(mem::dram_cache::Event),
        /// The operating system's paging.
        Swap(host::swap::Event),
    }
}

/// An event of one core's memory management unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoreMmu {
    /// The core.
    pub core: u16,
    /// What happens there.
    pub event: mem::mmu::Event,
}

/// The core stands above the unit's own bits.
impl Event for CoreMmu {
    const BITS: u32 = mem::mmu::Event::BITS + u16::BITS;
    #[inline]
    fn word(self) -> u64 {
        u64::from(self.core) << mem::mmu::Event::BITS | self.event.word()
    }
    #[inline]
    fn from_word(word: u64) -> CoreMmu {
        let inner = word & ((1 << mem::mmu::Event::BITS) - 1);
        CoreMmu { core: (word >> mem::mmu::Event::BITS) as u16, event: mem::mmu::Event::from_word(inner) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_core_and_event() {
        for core in [0, 1, u16::MAX] {
            for event in [mem::mmu::Event::Looked(u32::MAX), mem::mmu::Event::Walker(0)] {
                let event = Ev::CoreMmu(CoreMmu { core, event });
                assert_eq!(Ev::from_word(event.word()), event);
            }
        }
    }
}
