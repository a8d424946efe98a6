//! The router: it alone knows the wires between parts. One file a protocol.

mod block;
mod control;
mod line;
mod memory;
mod translation;

pub(crate) use block::Sender;

use crate::complex::{Complex, Processor};
use crate::event::{Ev, Happens, Message, Says};
use crate::memory::Memory;
use crate::pager::Pager;
use crate::parts::Parts;
use kernel::{At, Cx, EventQueue, Ticket, Time};
use proto::coherence::{Probe, Probed};
use proto::memory::{Access, MemCommand};
use std::collections::VecDeque;

/// What a packet on a network carries.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// An access on its way to the bank, or the tile, that serves its line.
    Access(Access),
    /// Its answer.
    Answer(Access),
    /// A directory asks a core.
    Probe(Probe),
    /// The core's answer.
    Probed(Probed),
    /// A command on its way to a memory controller.
    Command(MemCommand),
    /// Its answer.
    Done(MemCommand),
    /// Lines of a dirty page that the cache has taken from flash registers. Nobody waits for them.
    Parked,
}

/// Events and messages of the whole machine.
#[derive(Default)]
pub(crate) struct Wires {
    pub(crate) queue: EventQueue<Ev>,
    pub(crate) messages: VecDeque<Message>,
}

impl Wires {
    /// The outside world as the part of this number among those of its kind sees it.
    #[inline]
    pub(crate) fn at(&mut self, instance: u16) -> Here<'_> {
        Here { wires: self, instance }
    }
}

/// What a part may do to the outside world: its events come back to it, and what it says is known to be said by it.
pub(crate) struct Here<'a> {
    wires: &'a mut Wires,
    instance: u16,
}

impl<E: Happens, O: Says> Cx<E, O> for Here<'_> {
    #[inline]
    fn now(&self) -> Time {
        self.wires.queue.now()
    }
    #[inline]
    fn after(&mut self, delay: Time, event: E) -> Ticket {
        self.wires.queue.after(delay, event.at(self.instance))
    }
    #[inline]
    fn late(&mut self, delay: Time, event: E) -> Ticket {
        self.wires.queue.late(delay, event.at(self.instance))
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
    fn at_place(&mut self, place: Ticket, delay: Time, event: E) {
        self.wires.queue.at_place(place, delay, event.at(self.instance));
    }
    #[inline]
    fn cancel(&mut self, ticket: Ticket) {
        self.wires.queue.cancel(ticket);
    }
    #[inline]
    fn emit(&mut self, out: O) {
        self.wires.messages.push_back(out.from(self.instance));
    }
}

impl Parts {
    /// Starts the processors.
    pub(crate) fn begin(&mut self, wires: &mut Wires) {
        for complex in &mut self.complexes {
            let here = &mut wires.at(complex.number);
            match &mut complex.processor {
                Processor::Simt(simt) => simt.begin(here),
                Processor::Ooo(ooo) => ooo.cores.begin(&mut *ooo.service, here),
            }
        }
    }

    /// Runs an event of one of the parts that is no drive.
    ///
    /// # Panics
    /// On an event of a part that is not here.
    #[inline]
    pub(crate) fn handle(&mut self, event: Ev, wires: &mut Wires) {
        self.record(wires.queue.now());
        match event {
            Ev::Simt(At { instance, event }) => {
                let simt = self.complexes[usize::from(instance)].processor.simt();
                simt.gpu.handle(event, &mut simt.programs, &mut wires.at(instance));
            }
            Ev::Ooo(At { instance, event }) => {
                let ooo = self.complexes[usize::from(instance)].processor.ooo();
                ooo.cores.handle(event, &mut *ooo.service, &mut wires.at(instance));
            }
            Ev::Mmu(At { instance, event }) => self.mmu(instance).handle(event, &mut wires.at(instance)),
            Ev::Crossbar(At { instance, event }) => {
                self.complexes[usize::from(instance)].crossed(event, &mut wires.at(instance));
            }
            Ev::Mesh(At { instance, event }) => {
                self.complexes[usize::from(instance)].network.mesh().handle(event, &mut wires.at(instance));
            }
            Ev::Directory(At { instance, event }) => {
                let Complex { directory: Some(directory), .. } = &mut self.complexes[usize::from(instance)]
                else {
                    unreachable!("its own event")
                };
                directory.handle(event, &mut wires.at(instance));
            }
            Ev::L2(At { instance, event }) => {
                self.complexes[usize::from(instance)].l2.handle(event, &mut wires.at(instance));
            }
            Ev::Dram(At { instance, event }) => {
                let Memory::Dram(dram) = self.memory(instance) else { unreachable!("its own event") };
                dram.handle(event, &mut wires.at(instance));
            }
            Ev::DramCache(At { instance, event }) => {
                let Memory::DramCache(cache) = self.memory(instance) else { unreachable!("its own event") };
                cache.handle(event, &mut wires.at(instance));
            }
            Ev::Direct(At { instance, event }) => {
                let Memory::Direct(direct) = self.memory(instance) else { unreachable!("its own event") };
                direct.handle(event, &mut wires.at(instance));
            }
            Ev::Engine(At { instance, event }) => {
                let Memory::Engine(engine) = self.memory(instance) else { unreachable!("its own event") };
                engine.handle(event, &mut wires.at(instance));
            }
            Ev::Initiator(At { instance, event }) => {
                let Memory::Initiator(initiator) = self.memory(instance) else {
                    unreachable!("its own event")
                };
                initiator.handle(event, &mut wires.at(instance));
            }
            Ev::Paging(At { instance, event }) => {
                let Pager::Paging(paging) = self.pager(instance) else { unreachable!("its own event") };
                paging.handle(event, &mut wires.at(instance));
            }
            Ev::Swap(At { instance, event }) => {
                let Pager::Swap(swap) = self.pager(instance) else { unreachable!("its own event") };
                swap.handle(event, &mut wires.at(instance));
            }
            Ev::Drive(_) | Ev::Injector(_) => unreachable!("{event:?} is handled elsewhere"),
        }
    }

    /// Delivers a message of one of the parts.
    ///
    /// # Panics
    /// On a message of a part that is not here.
    #[inline]
    pub(crate) fn deliver(&mut self, message: Message, wires: &mut Wires) {
        match message {
            Message::Simt(from, out) => self.complexes[usize::from(from)].simt_said(out, wires),
            Message::Ooo(from, out) => self.complexes[usize::from(from)].ooo_said(out, wires),
            Message::Mmu(from, out) => self.mmu_said(from, out, wires),
            Message::Crossbar(at, packet) => self.arrived(at, packet.to.into(), packet.payload, wires),
            Message::Mesh(at, packet) => self.arrived(at, packet.to, packet.payload, wires),
            Message::Directory(from, out) => {
                self.complexes[usize::from(from)].directory_said(out, wires);
            }
            Message::L2(from, mem::l2::Out::Answer(access)) => {
                self.complexes[usize::from(from)].looked(access, wires);
            }
            Message::L2(from, mem::l2::Out::Command(command)) => self.command(from, command, wires),
            Message::Dram(from, mem::dram::Out::Done(command)) => self.done(from, command, wires),
            Message::DramCache(from, out) => self.dram_cache_said(from, out, wires),
            Message::Direct(from, out) => self.direct_said(from, out, wires),
            Message::Engine(from, flash::engine::Out::Done(command)) => self.done(from, command, wires),
            Message::Engine(from, flash::engine::Out::Submit(command)) => {
                self.submit(Sender::Memory(from), command, wires);
            }
            Message::Initiator(from, flash::initiator::Out::Done(command)) => {
                self.done(from, command, wires);
            }
            Message::Initiator(from, flash::initiator::Out::Submit(command)) => {
                self.submit(Sender::Memory(from), command, wires);
            }
            Message::Paging(from, out) => self.paging_said(from, out, wires),
            Message::Swap(from, out) => self.swap_said(from, out, wires),
            Message::Drive(..) | Message::Injector(..) => unreachable!("{message:?} is delivered elsewhere"),
        }
    }
}
