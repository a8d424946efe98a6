//! The wires between the parts: each part's context, and where its messages go.

use crate::event::{CoreMmu, Ev};
use crate::gpu::Packet;
use crate::server;
use kernel::EventQueue;
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
    FromInitiator(flash::initiator::Out),
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

macro_rules! wired {
    ($name:ident, $event:ty, $out:ty, $wrap_event:path, $wrap_out:path) => {
        /// What one part may do to the outside world.
        pub(crate) struct $name<'a>(pub(crate) &'a mut Wires);

        kernel::context! {
            $name<'_>: Cx<$event, $out>,
            queue: |me| me.0.queue,
            event: |_me, event| $wrap_event(event),
            out: |me, out| me.0.messages.push_back($wrap_out(out)),
        }
    };
}

wired!(FlashCx, flash::Event, flash::Out, Ev::Flash, Message::FromFlash);
wired!(InjectCx, workload::inject::Event, workload::inject::Out, Ev::Inject, Message::FromInjector);
wired!(GpuCx, compute::simt::Event, compute::simt::Out, Ev::Gpu, Message::FromGpu);
wired!(NetworkCx, net::crossbar::Event, net::crossbar::Out<Packet>, Ev::Network, Message::FromNetwork);
wired!(L2Cx, mem::l2::Event, mem::l2::Out, Ev::L2, Message::FromL2);
wired!(MmuCx, mem::mmu::Event, mem::mmu::Out, Ev::Mmu, Message::FromMmu);
wired!(DramCx, mem::dram::Event, mem::dram::Out, Ev::Dram, Message::FromDram);
wired!(DirectCx, flash::direct::Event, flash::direct::Out, Ev::Direct, Message::FromDirect);
wired!(EngineCx, flash::engine::Event, flash::engine::Out, Ev::Engine, Message::FromEngine);
wired!(InitiatorCx, flash::initiator::Event, flash::initiator::Out, Ev::Initiator, Message::FromInitiator);
wired!(PagingCx, host::paging::Event, host::paging::Out, Ev::Paging, Message::FromPaging);
wired!(CoresCx, compute::ooo::Event, compute::ooo::Out, Ev::Cores, Message::FromCores);
wired!(FabricCx, net::fabric::Event, net::fabric::Out<server::Packet>, Ev::Fabric, Message::FromFabric);
wired!(DirectoryCx, mem::directory::Event, mem::directory::Out, Ev::Directory, Message::FromDirectory);
wired!(DramCacheCx, mem::dram_cache::Event, mem::dram_cache::Out, Ev::DramCache, Message::FromDramCache);
wired!(SwapCx, host::swap::Event, host::swap::Out, Ev::Swap, Message::FromSwap);

/// What the memory management unit of one core may do to the outside world. Its messages name the core as their port.
pub(crate) struct CoreMmuCx<'a> {
    pub(crate) wires: &'a mut Wires,
    pub(crate) core: u16,
}

kernel::context! {
    CoreMmuCx<'_>: Cx<mem::mmu::Event, mem::mmu::Out>,
    queue: |me| me.wires.queue,
    event: |me, event| Ev::CoreMmu(CoreMmu { core: me.core, event }),
    out: |me, out| me.wires.messages.push_back(Message::FromMmu(out)),
}
