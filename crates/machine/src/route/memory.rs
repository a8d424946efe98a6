//! Lines of pages, between a shared cache and memory.

use super::Sender;
use crate::complex::Complex;
use crate::packet::Packet;
use crate::pager::Pager;
use crate::parts::Parts;
use crate::wires::Wires;
use kernel::{Mutant, planted_nth};
use net::crossbar::Class;
use proto::memory::{Absent, MemCommand, PAGE, Stage};

impl Parts {
    /// A packet has come to an endpoint of a complex's network.
    #[inline]
    pub(super) fn arrived(&mut self, complex: u16, to: u32, packet: Packet, wires: &mut Wires) {
        let at = &mut self.complexes[usize::from(complex)];
        match packet {
            Packet::Access(access) => at.accessed(to, access, wires),
            Packet::Answer(access) => at.answered(access, wires),
            Packet::Probe(probe) => at.processor.ooo().cores.probe(probe, &mut wires.at(complex)),
            Packet::Probed(probed) => {
                if let Some(directory) = &mut at.directory {
                    directory.probed(probed, &mut wires.at(complex));
                }
            }
            Packet::Command(mut command) => {
                at.tally.command(Stage::Network, &mut command, wires.queue.now());
                let (memory, pager) = (at.memory, at.pager);
                self.commanded(memory, pager, command, wires);
            }
            Packet::Done(mut command) => {
                at.tally.command(Stage::Network, &mut command, wires.queue.now());
                at.l2.done(command, &mut wires.at(complex));
            }
            Packet::Parked => {}
        }
    }

    /// Hands a command of a shared cache to memory: over the network, unless memory is beside the bank.
    #[inline]
    pub(super) fn command(&mut self, complex: u16, command: MemCommand, wires: &mut Wires) {
        if command.write {
            let at = &mut self.complexes[usize::from(complex)];
            at.lines_sent += u64::from(command.lines.count_ones());
        }
        if planted_nth(Mutant::TwiceDelivered, 101) {
            self.send_command(complex, command, wires);
        }
        self.send_command(complex, command, wires);
    }

    fn send_command(&mut self, complex: u16, command: MemCommand, wires: &mut Wires) {
        let at = &mut self.complexes[usize::from(complex)];
        let Some(controllers) = &at.ends.controllers else {
            let (memory, pager) = (at.memory, at.pager);
            return self.commanded(memory, pager, command, wires);
        };
        let controller = self.memories[usize::from(at.memory)].memory.controller_of(&command, at.line);
        let route = (at.ends.bank(command.port), controllers[usize::from(controller)]);
        let bytes = if command.write { command.bytes(at.line) } else { 0 };
        at.network.send(route, Class::Request, bytes, Packet::Command(command), &mut wires.at(complex));
    }

    /// A command has come to memory.
    #[inline]
    fn commanded(&mut self, memory: u16, pager: Option<u16>, command: MemCommand, wires: &mut Wires) {
        if let Some(pager) = pager
            && command.write
            && let Pager::Swap(swap) = self.pager(pager)
            && let Ok(frame) = u32::try_from(command.page / PAGE)
        {
            swap.written(frame);
        }
        self.memory(memory).command(command, &mut wires.at(memory));
    }

    /// Memory has done a command.
    #[inline]
    pub(super) fn done(&mut self, memory: u16, command: MemCommand, wires: &mut Wires) {
        let from = &self.memories[usize::from(memory)];
        let number = from.home;
        let at: &mut Complex = &mut self.complexes[usize::from(number)];
        let Some(controllers) = &at.ends.controllers else {
            return at.l2.done(command, &mut wires.at(number));
        };
        let controller = from.memory.controller_of(&command, at.line);
        let route = (controllers[usize::from(controller)], at.ends.bank(command.port));
        let no_data = command.write || command.absent == Absent::Signalled;
        let bytes = if no_data { 0 } else { command.bytes(at.line) };
        at.network.send(route, Class::Answer, bytes, Packet::Done(command), &mut wires.at(number));
    }

    /// A DRAM cache has said something.
    #[inline]
    pub(super) fn dram_cache_said(&mut self, from: u16, out: mem::dram_cache::Out, wires: &mut Wires) {
        match out {
            mem::dram_cache::Out::Done(command) => self.done(from, command, wires),
            mem::dram_cache::Out::Submit(command) => self.submit(Sender::Memory(from), command, wires),
            mem::dram_cache::Out::Backing(_) => unreachable!("refused when the spec is read"),
            mem::dram_cache::Out::Arrived { page, response } => {
                let home = self.memories[usize::from(from)].home;
                self.complexes[usize::from(home)].page_came(page, response, wires);
            }
        }
    }
}
