//! Routing of lines of pages between memories and the parts that ask them.

use crate::parts::pager::Pager;
use crate::parts::{Behind, Parts};
use crate::wires::event::Packet;
use crate::wires::{Asker, Sender, Wires};
use engine::{Mutant, planted_nth};
use net::noc::Class;
use proto::memory::{Absent, MemCommand, PAGE, Stage};

/// Returns whether the time of this memory's commands belongs to the part that waits for them: not if the part counts
/// it as its own.
#[inline]
fn passes_on(memories: &[Behind], asker: Asker) -> bool {
    match asker {
        Asker::Complex(_) => true,
        Asker::Memory(number) => memories[usize::from(number)].memory.passes_on(),
    }
}

impl Parts {
    /// Delivers a packet at an endpoint of a complex's network.
    #[inline]
    pub(super) fn arrived(&mut self, complex: u16, to: u32, packet: Packet, wires: &mut Wires) {
        let at = &mut self.complexes[usize::from(complex)];
        match packet {
            Packet::Access(access) => at.accessed(to, access, wires),
            Packet::Answer(access) => at.answered(access, wires),
            Packet::Probe(probe) => at.processor.ooo().cores.probe(probe, &mut wires.at(complex)),
            Packet::Probed(probed) => {
                at.copies.probed(&probed);
                if let Some(directory) = &mut at.directory {
                    directory.probed(probed, &mut wires.at(complex));
                }
            }
            Packet::Command(memory, mut command) => {
                if passes_on(&self.memories, Asker::of(command.from)) {
                    at.tally.command(Stage::Network, &mut command, wires.queue.now());
                }
                self.commanded(memory, command, wires);
            }
            Packet::Done(memory, mut command) => {
                let asker = Asker::of(command.from);
                if passes_on(&self.memories, asker) {
                    at.tally.command(Stage::Network, &mut command, wires.queue.now());
                }
                match asker {
                    Asker::Complex(_) => at.l2.done(command, &mut wires.at(complex)),
                    Asker::Memory(number) => self.backed(number, memory, command, wires),
                }
            }
            Packet::Parked => {}
        }
    }

    /// Sends a command of a shared cache to memory: over the network, unless memory is beside the bank.
    #[inline]
    pub(super) fn command(&mut self, complex: u16, command: MemCommand, wires: &mut Wires) {
        if command.write {
            let at = &mut self.complexes[usize::from(complex)];
            at.lines_sent += u64::from(command.lines.count_ones());
        }
        let memory = self.complexes[usize::from(complex)].memory;
        if planted_nth(Mutant::TwiceDelivered, 101) {
            self.ask(Asker::Complex(complex), memory, command, wires);
        }
        self.ask(Asker::Complex(complex), memory, command, wires);
    }

    /// Sends a command to memory: over the network, unless memory is beside the part that asks.
    #[inline]
    fn ask(&mut self, from: Asker, memory: u16, mut command: MemCommand, wires: &mut Wires) {
        command.from = from.port();
        let to = &self.memories[usize::from(memory)];
        let Some(controllers) = &to.controllers else { return self.commanded(memory, command, wires) };
        let home = to.home;
        let at = &self.complexes[usize::from(home)];
        let controller = to.memory.controller_of(&command, at.line);
        let route = (self.end_of(from, command.port), controllers[usize::from(controller)]);
        let bytes = if command.write { command.bytes(at.line) } else { 0 };
        let packet = Packet::Command(memory, command);
        self.complexes[usize::from(home)].network.send(
            route,
            Class::Request,
            bytes,
            packet,
            &mut wires.at(home),
        );
    }

    /// Endpoint of a part that asks: of its bank or controller with this number.
    #[inline]
    fn end_of(&self, asker: Asker, port: u16) -> u32 {
        match asker {
            Asker::Complex(number) => self.complexes[usize::from(number)].ends.bank(port),
            Asker::Memory(number) => {
                let at = &self.memories[usize::from(number)];
                match &at.controllers {
                    Some(controllers) => controllers[usize::from(port)],
                    // Beside the banks: commands that it passes on start there.
                    None => self.complexes[usize::from(at.home)].ends.bank(port),
                }
            }
        }
    }

    /// Delivers a command to memory.
    #[inline]
    fn commanded(&mut self, memory: u16, command: MemCommand, wires: &mut Wires) {
        if command.write
            && let Asker::Complex(complex) = Asker::of(command.from)
            && let Some(pager) = self.complexes[usize::from(complex)].pager
            && let Pager::Swap(swap) = self.pager(pager)
            && let Ok(frame) = u32::try_from(command.page / PAGE)
        {
            swap.written(frame);
        }
        self.memory(memory).command(command, &mut wires.at(memory));
    }

    /// Handles a completion by memory.
    #[inline]
    pub(super) fn done(&mut self, memory: u16, command: MemCommand, wires: &mut Wires) {
        let asker = Asker::of(command.from);
        let from = &self.memories[usize::from(memory)];
        let Some(controllers) = &from.controllers else {
            return match asker {
                Asker::Complex(number) => {
                    self.complexes[usize::from(number)].l2.done(command, &mut wires.at(number));
                }
                Asker::Memory(number) => self.backed(number, memory, command, wires),
            };
        };
        let home = from.home;
        let at = &self.complexes[usize::from(home)];
        let controller = from.memory.controller_of(&command, at.line);
        let route = (controllers[usize::from(controller)], self.end_of(asker, command.port));
        let no_data = command.write || command.absent == Absent::Signalled;
        let bytes = if no_data { 0 } else { command.bytes(at.line) };
        let packet = Packet::Done(memory, command);
        self.complexes[usize::from(home)].network.send(
            route,
            Class::Answer,
            bytes,
            packet,
            &mut wires.at(home),
        );
    }

    /// Address of a page of a memory as the cores in front know it. They do not know a memory behind a cache, which
    /// asks it on its own.
    fn as_cores_know(&self, memory: u16, page: u64) -> Option<u64> {
        let (mut behind, mut page) = (memory, page);
        while let Asker::Memory(number) = self.memories[usize::from(behind)].asker {
            let at = &self.memories[usize::from(number)];
            let target = at.behind.iter().position(|one| *one == behind)?;
            page = at.memory.address_of(target as u8, page)?;
            behind = number;
        }
        Some(page)
    }

    /// Delivers a command that the memory `from` has completed for a different memory.
    fn backed(&mut self, memory: u16, from: u16, command: MemCommand, wires: &mut Wires) {
        let at = &mut self.memories[usize::from(memory)];
        let which = || at.behind.iter().position(|behind| *behind == from).unwrap_or_default() as u8;
        at.memory.answered(which, command, &mut wires.at(memory));
    }

    /// Handles an output of a placement.
    #[inline]
    pub(super) fn placement_said(&mut self, from: u16, out: mem::placement::Out, wires: &mut Wires) {
        match out {
            mem::placement::Out::Done(command) => self.done(from, command, wires),
            mem::placement::Out::Target { target, command } => {
                let behind = self.memories[usize::from(from)].behind[usize::from(target)];
                self.ask(Asker::Memory(from), behind, command, wires);
            }
        }
    }

    /// Handles an output of a DRAM cache.
    #[inline]
    pub(super) fn dram_cache_said(&mut self, from: u16, out: mem::dram_cache::Out, wires: &mut Wires) {
        match out {
            mem::dram_cache::Out::Done(command) => self.done(from, command, wires),
            mem::dram_cache::Out::Submit(command) => self.submit(Sender::Memory(from), command, wires),
            mem::dram_cache::Out::Backing(command) => {
                let behind = self.memories[usize::from(from)].behind[0];
                self.ask(Asker::Memory(from), behind, command, wires);
            }
            mem::dram_cache::Out::Arrived { page, response } => {
                if let Some(page) = self.as_cores_know(from, page) {
                    let home = self.memories[usize::from(from)].home;
                    self.complexes[usize::from(home)].page_came(page, response, wires);
                }
            }
        }
    }
}
