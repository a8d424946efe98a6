//! Events and outputs of every kind of part. A line here makes both known to the machine.

use engine::At;
use proto::{
    Probe, Probed,
    memory::{Access, MemCommand},
};

/// Event of a part, convertible to an event of the machine.
pub(crate) trait Happens {
    /// Event of the part with this number within its kind.
    fn at(self, instance: u16) -> Ev;
}

/// Output of a part, convertible to a message of the machine.
pub(crate) trait Says {
    /// Message of the part with this number within its kind.
    fn from(self, instance: u16) -> Message;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident($event:ty, $out:ty),)+) => {
        engine::events! {
            /// Event of one of the machine's parts: a kind, an instance, and the part's own event.
            pub enum Ev {
                $($(#[$doc])* $kind(At<$event>),)+
            }
        }

        /// Output of a part, with the number of the part within its kind.
        #[derive(Clone, Copy, Debug)]
        pub(crate) enum Message {
            $($kind(u16, $out),)+
        }

        $(
            impl Happens for $event {
                #[inline]
                fn at(self, instance: u16) -> Ev {
                    Ev::$kind(At { instance, event: self })
                }
            }
            impl Says for $out {
                #[inline]
                fn from(self, instance: u16) -> Message {
                    Message::$kind(instance, self)
                }
            }
        )+
    };
}

kinds! {
    /// A flash device that takes block commands.
    Drive(ssd::Event, ssd::Out),
    /// Several drives as one.
    Stripe(mem::stripe::Event, mem::stripe::Out),
    /// A host's path to its drives.
    Host(linux::path::Event, linux::path::Out),
    /// The injector of requests.
    Injector(requests::inject::Event, requests::inject::Out),
    /// The multiprocessors of a GPU.
    Simt(compute::simt::Event, compute::simt::Out),
    /// The cores of a server.
    Ooo(compute::ooo::Event, compute::ooo::Out),
    /// A memory management unit.
    Mmu(mem::mmu::Event, mem::mmu::Out),
    /// A network on a chip, of any topology.
    Noc(net::noc::Event, net::noc::Out<Packet>),
    /// A network that is a mesh.
    Mesh(net::fabric::Event, net::fabric::Out<Packet>),
    /// A directory.
    Directory(mem::directory::Event, mem::directory::Out),
    /// A shared cache.
    L2(mem::l2::Event, mem::l2::Out),
    /// DRAM, or persistent memory.
    Dram(mem::dram::Event, mem::dram::Out),
    /// DRAM as a cache over flash.
    DramCache(mem::dram_cache::Event, mem::dram_cache::Out),
    /// Several memories behind one shared cache.
    Placement(mem::placement::Event, mem::placement::Out),
    /// Flash on the network.
    Direct(ssd::direct::Event, ssd::direct::Out),
    /// An SSD engine.
    Engine(ssd::port::engine::Event, ssd::port::engine::Out),
    /// An initiator of block commands.
    Initiator(ssd::port::initiator::Event, ssd::port::initiator::Out),
    /// Paging of a GPU's memory by the host.
    Paging(mem::paging::Event, mem::paging::Out),
    /// Paging by an operating system.
    Swap(mem::swap::Event, mem::swap::Out),
    /// An accelerator.
    Accelerator(compute::vliw::accelerator::Event, compute::vliw::accelerator::Out),
    /// A coprocessor.
    Coprocessor(compute::vliw::coprocessor::Event, compute::vliw::coprocessor::Out),
    /// Flash of page groups.
    GroupFlash(ssd::page_groups::Event, proto::groups::Tell),
}

// Packets on networks.

/// Contents of a packet on a network.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// An access on its way to the bank, or the tile, that serves its line.
    Access(Access),
    /// Answer to an access.
    Answer(Access),
    /// Question of a directory to a core.
    Probe(Probe),
    /// Answer of the core.
    Probed(Probed),
    /// A command on its way to a controller of the memory of this number.
    Command(u16, MemCommand),
    /// Completion of a command, from the memory with this number.
    Done(u16, MemCommand),
    /// Lines of a dirty page that the cache has taken from flash registers. They need no answer.
    Parked,
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Event;

    #[test]
    fn a_word_gives_back_part_and_event() {
        for instance in [0, 1, u16::MAX] {
            for event in [mem::mmu::Event::Looked(u32::MAX), mem::mmu::Event::Walker(0)] {
                let event = event.at(instance);
                assert_eq!(Ev::from_word(event.word()), event);
            }
        }
    }
}
