//! The wires between the parts: each part's context, and where its messages go.

use crate::event::{CoreMmu, Ev};
use crate::gpu::Packet;
use crate::server;
use kernel::{Cx, EventQueue, Ticket, Time};
use std::collections::VecDeque;

/// A message on its way between parts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Message {
    FromFlash(flash::Out),
    FromInjector(workload::inject::Out),
    FromGpu(compute::simt::Out),
    FromNetwork(net::crossbar::Out<Packet>),
    FromL2(mem::l2::Out),
    FromMmu(mem::mmu::Out),
    FromDram(mem::dram::Out),
    FromDirect(flash::direct::Out),
    FromEngine(flash::engine::Out),
    FromPaging(host::paging::Out),
    FromCores(compute::ooo::Out),
    FromFabric(net::fabric::Out<server::Packet>),
    FromDirectory(mem::directory::Out),
    FromDramCache(mem::dram_cache::Out),
    FromSwap(host::swap::Out),
}

/// Events and messages of the whole machine.
#[derive(Default)]
pub(crate) struct Wires {
    pub(crate) queue: EventQueue<Ev>,
    pub(crate) messages: VecDeque<Message>,
}

macro_rules! context {
    ($name:ident, $event:ty, $out:ty, $wrap_event:path, $wrap_out:path) => {
        /// What one part may do to the outside world.
        pub(crate) struct $name<'a>(pub(crate) &'a mut Wires);

        impl Cx<$event, $out> for $name<'_> {
            #[inline]
            fn now(&self) -> Time {
                self.0.queue.now()
            }
            #[inline]
            fn after(&mut self, delay: Time, event: $event) -> Ticket {
                self.0.queue.after(delay, $wrap_event(event))
            }
            #[inline]
            fn late(&mut self, delay: Time, event: $event) -> Ticket {
                self.0.queue.late(delay, $wrap_event(event))
            }
            #[inline]
            fn reserve(&mut self) -> Ticket {
                self.0.queue.reserve()
            }
            #[inline]
            fn reserve_late(&mut self) -> Ticket {
                self.0.queue.reserve_late()
            }
            #[inline]
            fn at_place(&mut self, place: Ticket, delay: Time, event: $event) {
                self.0.queue.at_place(place, delay, $wrap_event(event));
            }
            #[inline]
            fn cancel(&mut self, ticket: Ticket) {
                self.0.queue.cancel(ticket);
            }
            #[inline]
            fn emit(&mut self, out: $out) {
                self.0.messages.push_back($wrap_out(out));
            }
        }
    };
}

context!(FlashCx, flash::Event, flash::Out, Ev::Flash, Message::FromFlash);
context!(InjectCx, workload::inject::Event, workload::inject::Out, Ev::Inject, Message::FromInjector);
context!(GpuCx, compute::simt::Event, compute::simt::Out, Ev::Gpu, Message::FromGpu);
context!(NetworkCx, net::crossbar::Event, net::crossbar::Out<Packet>, Ev::Network, Message::FromNetwork);
context!(L2Cx, mem::l2::Event, mem::l2::Out, Ev::L2, Message::FromL2);
context!(MmuCx, mem::mmu::Event, mem::mmu::Out, Ev::Mmu, Message::FromMmu);
context!(DramCx, mem::dram::Event, mem::dram::Out, Ev::Dram, Message::FromDram);
context!(DirectCx, flash::direct::Event, flash::direct::Out, Ev::Direct, Message::FromDirect);
context!(EngineCx, flash::engine::Event, flash::engine::Out, Ev::Engine, Message::FromEngine);
context!(PagingCx, host::paging::Event, host::paging::Out, Ev::Paging, Message::FromPaging);
context!(CoresCx, compute::ooo::Event, compute::ooo::Out, Ev::Cores, Message::FromCores);
context!(FabricCx, net::fabric::Event, net::fabric::Out<server::Packet>, Ev::Fabric, Message::FromFabric);
context!(DirectoryCx, mem::directory::Event, mem::directory::Out, Ev::Directory, Message::FromDirectory);
context!(DramCacheCx, mem::dram_cache::Event, mem::dram_cache::Out, Ev::DramCache, Message::FromDramCache);
context!(SwapCx, host::swap::Event, host::swap::Out, Ev::Swap, Message::FromSwap);

/// What the memory management unit of one core may do to the outside world. Its messages name the core as their port.
pub(crate) struct CoreMmuCx<'a> {
    pub(crate) wires: &'a mut Wires,
    pub(crate) core: u16,
}

impl CoreMmuCx<'_> {
    #[inline]
    fn wrap(&self, event: mem::mmu::Event) -> Ev {
        Ev::CoreMmu(CoreMmu { core: self.core, event })
    }
}

impl Cx<mem::mmu::Event, mem::mmu::Out> for CoreMmuCx<'_> {
    #[inline]
    fn now(&self) -> Time {
        self.wires.queue.now()
    }
    #[inline]
    fn after(&mut self, delay: Time, event: mem::mmu::Event) -> Ticket {
        self.wires.queue.after(delay, self.wrap(event))
    }
    #[inline]
    fn late(&mut self, delay: Time, event: mem::mmu::Event) -> Ticket {
        self.wires.queue.late(delay, self.wrap(event))
    }
    #[inline]
    fn reserve(&mut self) -> Ticket {
        self.wires.queue.reserve()
    }
    #[inline]
    fn reserve_late(&mut self) -> Ticket {
        self.wires.queue.reserve_late()
    }
    #[inline]
    fn at_place(&mut self, place: Ticket, delay: Time, event: mem::mmu::Event) {
        self.wires.queue.at_place(place, delay, self.wrap(event));
    }
    #[inline]
    fn cancel(&mut self, ticket: Ticket) {
        self.wires.queue.cancel(ticket);
    }
    #[inline]
    fn emit(&mut self, out: mem::mmu::Out) {
        self.wires.messages.push_back(Message::FromMmu(out));
    }
}
