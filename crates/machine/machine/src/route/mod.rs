//! Router: the only code that knows the wires between parts. Each protocol has a file; exchanges between parts within
//! one instant are here.

mod block;
mod line;
mod memory;
mod translation;

use crate::parts::complex::{Complex, Processor};
use crate::parts::memory::Memory;
use crate::parts::pager::Pager;
use crate::parts::{Behind, Parts};
use crate::wires::event::{Ev, Message, Packet};
use crate::wires::{Asker, Sender, Wires};
use compute::vliw::accelerator::Out;
use engine::{At, Event as _};
use net::noc::Class;
use proto::Port;
use proto::groups::Tell;
use proto::memory::Help;

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
        for (number, at) in (0..).zip(&mut self.hosts) {
            at.host.begin(&mut wires.at(number));
        }
        for (number, at) in (0..).zip(&mut self.governed) {
            at.begin(&mut wires.at(number));
        }
    }

    /// Runs an event, given as a word of the queue, of a part other than a drive.
    ///
    /// # Panics
    /// On an event of a part that does not exist.
    #[inline]
    pub(crate) fn handle(&mut self, event: u64, wires: &mut Wires) {
        self.record(wires.queue.now());
        match Ev::from_word(event) {
            Ev::Simt(At { instance, event }) => {
                let simt = self.complexes[usize::from(instance)].processor.simt();
                simt.gpu.handle(event, &mut simt.programs, &mut wires.at(instance));
            }
            Ev::Ooo(At { instance, event }) => {
                let ooo = self.complexes[usize::from(instance)].processor.ooo();
                ooo.cores.handle(event, &mut *ooo.service, &mut wires.at(instance));
            }
            Ev::Mmu(At { instance, event }) => self.mmu(instance).handle(event, &mut wires.at(instance)),
            Ev::Noc(At { instance, event }) => {
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
            Ev::Placement(At { instance, event }) => {
                let Memory::Placement(placement) = self.memory(instance) else {
                    unreachable!("its own event")
                };
                placement.handle(event, &mut wires.at(instance));
            }
            Ev::Stripe(At { instance, event }) => {
                self.stripes[usize::from(instance)].stripe.handle(event, &mut wires.at(instance));
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
            Ev::Host(At { instance, event }) => {
                self.hosts[usize::from(instance)].host.handle(event, &mut wires.at(instance));
            }
            Ev::Accelerator(At { instance, event }) => {
                self.governed[usize::from(instance)].accelerator.handle(event, &mut wires.at(instance));
            }
            Ev::Coprocessor(At { instance, event }) => {
                self.driven[usize::from(instance)].coprocessor.handle(event, &mut wires.at(instance));
            }
            Ev::GroupFlash(At { instance, event }) => {
                self.governed[usize::from(instance)].flash.handle(event, &mut wires.at(instance));
            }
            Ev::Drive(_) | Ev::Injector(_) => unreachable!("{event:#x} is handled elsewhere"),
        }
    }

    /// Delivers the next message, which is of a part other than a drive or an injector.
    ///
    /// # Panics
    /// On a message of a part that does not exist.
    #[inline]
    pub(crate) fn deliver(&mut self, wires: &mut Wires) {
        let Some(message) = wires.messages.pop_front() else { return };
        match message {
            Message::Simt(_, compute::simt::Out::Helped(help)) => self.helped(help, wires),
            Message::Simt(from, out) => self.complexes[usize::from(from)].simt_said(out, wires),
            Message::Ooo(from, out) => self.complexes[usize::from(from)].ooo_said(out, wires),
            Message::Mmu(from, out) => self.mmu_said(from, out, wires),
            Message::Noc(at, packet) => self.arrived(at, packet.to.into(), packet.payload, wires),
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
            Message::Placement(from, out) => self.placement_said(from, out, wires),
            Message::Stripe(from, mem::stripe::Out::Submit { member, command }) => {
                self.striped(from, member, command, wires);
            }
            Message::Stripe(_, mem::stripe::Out::Complete(completion)) => self.answered(completion, wires),
            Message::Direct(from, out) => self.direct_said(from, out, wires),
            Message::Engine(from, ssd::port::engine::Out::Done(command)) => self.done(from, command, wires),
            Message::Engine(from, ssd::port::engine::Out::Submit(command)) => {
                self.submit(Sender::Memory(from), command, wires);
            }
            Message::Initiator(from, ssd::port::initiator::Out::Done(command)) => {
                self.done(from, command, wires);
            }
            Message::Initiator(from, ssd::port::initiator::Out::Submit(command)) => {
                self.submit(Sender::Memory(from), command, wires);
            }
            Message::Paging(from, out) => self.paging_said(from, out, wires),
            Message::Swap(from, out) => self.swap_said(from, out, wires),
            Message::Host(from, out) => self.host_said(from, out, wires),
            Message::Accelerator(from, out) => self.accelerator_said(from, out, wires),
            Message::Coprocessor(from, compute::vliw::coprocessor::Out::Done(tag)) => {
                let host = self.driven[usize::from(from)].host;
                self.hosts[usize::from(host)].host.ordered(tag, &mut wires.at(host));
            }
            Message::GroupFlash(from, tell) => self.flash_told(from, tell, wires),
            Message::Drive(..) | Message::Injector(..) => unreachable!("{message:?} is delivered elsewhere"),
        }
    }
}

impl Parts {
    /// Handles an output of flash on the network.
    #[inline]
    fn direct_said(&mut self, from: u16, out: ssd::direct::Out, wires: &mut Wires) {
        match out {
            ssd::direct::Out::Done(command) => self.done(from, command, wires),
            ssd::direct::Out::Park { page, lines, app } => self.park(from, page, (lines, app), wires),
            ssd::direct::Out::Help(help) => self.help(from, help, wires),
            ssd::direct::Out::Reclaim { app, begins } => {
                let home = self.memories[usize::from(from)].home;
                let complex = &mut self.complexes[usize::from(home)];
                // "MMU blocks the memory requests during garbage collections", so that the number of those that the
                // application generates "decreases to 0", and "does not block other applications" (ZnG, V-D): held
                // where they are generated, they fill no queue that others share.
                // Cores are not held: their requests wait in front of the blocks that are merged.
                if let Processor::Simt(simt) = &mut complex.processor {
                    simt.gpu.hold(app, begins, &mut simt.programs, &mut wires.at(home));
                }
                if begins && self.memories[usize::from(from)].asker == Asker::Complex(home) {
                    complex.l2.purge(app, &mut wires.at(home));
                }
            }
        }
    }

    /// Executes the work of a flash helper thread on a multiprocessor. Cores take no time for it.
    fn help(&mut self, from: u16, mut help: Help, wires: &mut Wires) {
        let home = self.memories[usize::from(from)].home;
        help.from = Port(from);
        match &mut self.complexes[usize::from(home)].processor {
            Processor::Simt(simt) => simt.gpu.help(help, &mut wires.at(home)),
            Processor::Ooo(_) => self.helped(help, wires),
        }
    }

    /// Notifies flash that a helper thread has executed its instructions.
    fn helped(&mut self, help: Help, wires: &mut Wires) {
        let Memory::Direct(direct) = self.memory(help.from.0) else { unreachable!("its own thread") };
        direct.helped(help.tag, &mut wires.at(help.from.0));
    }

    /// Offers lines of a dirty page from flash registers to the shared cache, which may refuse them.
    fn park(&mut self, from: u16, page: u64, (lines, app): (u64, u8), wires: &mut Wires) {
        let home = self.memories[usize::from(from)].home;
        let complex = &mut self.complexes[usize::from(home)];
        let Behind { memory: Memory::Direct(direct), asker, controllers, .. } =
            &mut self.memories[usize::from(from)]
        else {
            unreachable!("its own message")
        };
        // Behind a different memory, no cache can take the lines.
        let is_asked_by_cache = *asker == Asker::Complex(home);
        if !is_asked_by_cache || !complex.l2.park(page, lines, app, &mut wires.at(home)) {
            return direct.refused(page, lines, app, &mut wires.at(from));
        }
        // Without a path over the network, registers are beside the bank.
        if let Some(controllers) = controllers {
            let route = (
                controllers[usize::from(direct.controller_of(page))],
                complex.ends.bank(complex.l2.bank_of(page)),
            );
            let bytes = u64::from(lines.count_ones()) * complex.line;
            complex.network.send(route, Class::Request, bytes, Packet::Parked, &mut wires.at(home));
        }
    }
}

impl Parts {
    /// Handles an accelerator's request to its flash, or the end of a kernel, which needs no action.
    #[inline]
    fn accelerator_said(&mut self, from: u16, out: Out, wires: &mut Wires) {
        match out {
            Out::Ask(ask) => self.governed[usize::from(from)].flash.ask(ask, &mut wires.at(from)),
            Out::Over(_) => {}
        }
    }

    /// Handles an answer of page-group flash to its accelerator, or work for the accelerator's cores.
    #[inline]
    fn flash_told(&mut self, from: u16, tell: Tell, wires: &mut Wires) {
        self.governed[usize::from(from)].accelerator.told(tell, &mut wires.at(from));
    }
}
