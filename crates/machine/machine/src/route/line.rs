//! Routing of line accesses between processors and the shared cache, and of coherence messages.

use crate::parts::complex::{Complex, Processor};
use crate::wires::event::Packet;
use crate::wires::{Here, Wires};
use engine::{Mutant, planted_nth};
use net::noc::Class;
use proto::memory::{Absent, Access, AccessKind, Stage};

impl Complex {
    /// Handles an output of multiprocessors.
    #[inline]
    pub(super) fn simt_said(&mut self, out: compute::simt::Out, wires: &mut Wires) {
        match out {
            compute::simt::Out::Access(access) => self.access(access, wires),
            compute::simt::Out::Translate(translation) => self.translate(translation, wires),
            compute::simt::Out::Finished(app) => {
                self.processor.simt().ended[usize::from(app)] = Some(wires.queue.now());
            }
            compute::simt::Out::Helped(_) => unreachable!("delivered to memory"),
        }
    }

    /// Handles an output of cores.
    #[inline]
    pub(super) fn ooo_said(&mut self, out: compute::ooo::Out, wires: &mut Wires) {
        match out {
            compute::ooo::Out::Access(access) => self.access(access, wires),
            compute::ooo::Out::Translate(translation) => self.translate(translation, wires),
            compute::ooo::Out::Probed(probed) => {
                let bytes = if probed.dirty { self.line } else { 0 };
                let route = (probed.probe.core.into(), self.ends.bank(probed.probe.tile));
                let packet = Packet::Probed(probed);
                self.network.send(route, Class::Answer, bytes, packet, &mut wires.at(self.number));
            }
            compute::ooo::Out::Dropped { core, address } => {
                if let Some(directory) = &mut self.directory {
                    directory.dropped(core, address);
                }
            }
        }
    }

    /// Handles an output of the directory.
    #[inline]
    pub(super) fn directory_said(&mut self, out: mem::directory::Out, wires: &mut Wires) {
        match out {
            mem::directory::Out::Look { tile, access } => {
                self.copies.looked(&access);
                self.l2.access(tile, access, &mut wires.at(self.number));
            }
            mem::directory::Out::Probe(probe) => {
                let route = (self.ends.bank(probe.tile), probe.core.into());
                let packet = Packet::Probe(probe);
                self.network.send(route, Class::Request, 0, packet, &mut wires.at(self.number));
            }
            mem::directory::Out::Answer { tile, access } => self.answer(tile, access, wires),
        }
    }

    /// Sends an access to the bank, or the tile, that serves its line.
    #[inline]
    pub(super) fn access(&mut self, access: Access, wires: &mut Wires) {
        self.sent += 1;
        let route = (access.port.into(), self.ends.bank(self.l2.bank_of(access.address)));
        let asks = matches!(access.kind, AccessKind::Read | AccessKind::Own);
        let bytes = if asks { 0 } else { access.bytes.into() };
        let packet = Packet::Access(access);
        self.network.send(route, Class::Request, bytes, packet, &mut wires.at(self.number));
    }

    /// Handles an answer of the shared cache.
    #[inline]
    pub(super) fn looked(&mut self, access: Access, wires: &mut Wires) {
        let bank = self.l2.bank_of(access.address);
        match &mut self.directory {
            Some(directory) => directory.looked(bank, access, &mut wires.at(self.number)),
            None => self.answer(bank, access, wires),
        }
    }

    /// Sends an answer to its requester.
    #[inline]
    fn answer(&mut self, bank: u16, access: Access, wires: &mut Wires) {
        let route = (self.ends.bank(bank), access.port.into());
        let no_data = access.kind == AccessKind::Write || access.absent == Absent::Signalled;
        let bytes = if no_data { 0 } else { access.bytes.into() };
        let packet = Packet::Answer(access);
        self.network.send(route, Class::Answer, bytes, packet, &mut wires.at(self.number));
    }

    /// Runs an event of a network on a chip.
    #[inline]
    pub(super) fn crossed(&mut self, event: net::noc::Event, here: &mut Here<'_>) {
        let noc = self.network.noc();
        // The rest of the packet follows its head by at least an event: time to prefetch the destination of an answer.
        if let (net::noc::Event::Head(_), Packet::Answer(access), Processor::Simt(simt)) =
            (event, noc.payload(event), &self.processor)
            && !access.is_walk()
        {
            simt.gpu.expect(access);
        }
        noc.handle(event, here);
    }

    /// Delivers an access to its bank or tile.
    #[inline]
    pub(super) fn accessed(&mut self, at: u32, mut access: Access, wires: &mut Wires) {
        self.tally.access(Stage::Network, &mut access, wires.queue.now());
        if self.l2.is_shadowed() {
            self.look_at_frame(&access);
        }
        let bank = self.ends.bank_at(at);
        let here = &mut wires.at(self.number);
        match &mut self.directory {
            Some(directory) => directory.access(bank, access, here),
            None => self.l2.access(bank, access, here),
        }
    }

    /// Delivers an answer to its requester.
    #[inline]
    pub(super) fn answered(&mut self, mut access: Access, wires: &mut Wires) {
        if planted_nth(Mutant::LostAnswer, 101) {
            return;
        }
        self.answered += 1;
        self.tally.access(Stage::Network, &mut access, wires.queue.now());
        if access.is_walk() {
            let index = self.mmu_of(access.port);
            self.mmus[usize::from(index)].walked(access, &mut wires.at(self.first_mmu + index));
            return;
        }
        let here = &mut wires.at(self.number);
        match &mut self.processor {
            Processor::Simt(simt) => simt.gpu.answer(access, &mut simt.programs, here),
            Processor::Ooo(ooo) => ooo.cores.answer(access, &mut *ooo.service, here),
        }
    }
}
