//! Which message of a GPU part goes where.

use super::{CLAIMED, GpuSide, Memory};
use crate::event::Ev;
use crate::route::{
    DirectCx, DramCx, EngineCx, FlashCx, GpuCx, InitiatorCx, L2Cx, Message, MmuCx, NetworkCx, PagingCx, Wires,
};
use flash::Device;
use kernel::{Mutant, planted_nth};
use net::crossbar::Class;
use proto::memory::{Access, AccessKind, LINE, MemCommand, Stage};
use proto::{Command, Completion};

/// What a packet on the network carries.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// An access on its way to a cache bank.
    Access(Access),
    /// Its answer.
    Answer(Access),
    /// A command on its way to a controller.
    Command(MemCommand),
    /// Its answer.
    Done(MemCommand),
    /// Lines of a dirty page that the cache has taken from flash registers. Nobody waits for them.
    Parked,
}

impl GpuSide {
    /// Launches the first kernels.
    pub(crate) fn begin(&mut self, wires: &mut Wires) {
        self.unfit = self.gpu.begin(&mut self.programs, &mut GpuCx(wires)).err();
    }

    /// Runs an event of one of the parts.
    #[inline]
    pub(crate) fn handle(&mut self, event: Ev, wires: &mut Wires) {
        self.record(wires.queue.now());
        match (event, &mut self.memory) {
            (Ev::Gpu(event), _) => self.gpu.handle(event, &mut self.programs, &mut GpuCx(wires)),
            (Ev::Network(event), _) => {
                // The rest of the packet follows its head by an event at least: time to fetch what an answer goes to.
                if let (net::crossbar::Event::Head(_), Packet::Answer(access)) =
                    (event, self.network.payload(event))
                    && access.port < self.ports.mmu()
                {
                    self.gpu.expect(access);
                }
                self.network.handle(event, &mut NetworkCx(wires));
            }
            (Ev::L2(event), _) => self.l2.handle(event, &mut L2Cx(wires)),
            (Ev::Mmu(event), _) => self.mmu.handle(event, &mut MmuCx(wires)),
            (Ev::Dram(event), Memory::Dram(dram)) => dram.handle(event, &mut DramCx(wires)),
            (Ev::Direct(event), Memory::Direct(direct)) => direct.handle(event, &mut DirectCx(wires)),
            (Ev::Engine(event), Memory::Engine(engine)) => engine.handle(event, &mut EngineCx(wires)),
            (Ev::Initiator(event), Memory::Initiator(initiator)) => {
                initiator.handle(event, &mut InitiatorCx(wires));
            }
            (Ev::Paging(event), _) => {
                if let Some(paging) = &mut self.paging {
                    paging.handle(event, &mut PagingCx(wires));
                }
            }
            (event, _) => unreachable!("{event:?} of a part that is not here"),
        }
    }

    /// Delivers a message of one of the parts.
    #[inline]
    pub(crate) fn deliver(&mut self, message: Message, device: Option<&mut Device>, wires: &mut Wires) {
        match message {
            Message::FromGpu(out) => self.gpu_said(out, wires),
            Message::FromNetwork(packet) => self.arrived(packet.to, packet.payload, wires),
            Message::FromL2(mem::l2::Out::Answer(access)) => self.answer(access, wires),
            Message::FromL2(mem::l2::Out::Command(command)) => self.command(command, wires),
            Message::FromMmu(out) => self.mmu_said(out, wires),
            Message::FromDram(mem::dram::Out::Done(command)) => self.l2.done(command, &mut L2Cx(wires)),
            Message::FromDirect(out) => self.direct_said(out, wires),
            Message::FromEngine(flash::engine::Out::Done(command)) => self.done(0, command, wires),
            Message::FromEngine(flash::engine::Out::Submit(command)) => self.submit(command, device, wires),
            Message::FromInitiator(flash::initiator::Out::Done(command)) => self.done(0, command, wires),
            Message::FromInitiator(flash::initiator::Out::Submit(command)) => {
                self.submit(command, device, wires);
            }
            Message::FromPaging(out) => self.paging_said(out, device, wires),
            message => unreachable!("{message:?} of a part that is not here"),
        }
    }

    /// The flash device has done a command of the GPU side.
    pub(crate) fn completed(&mut self, completion: Completion, wires: &mut Wires) {
        self.record(wires.queue.now());
        self.claimed -= 1;
        let completion = Completion { tag: completion.tag & !CLAIMED, ..completion };
        match (&mut self.memory, &mut self.paging) {
            (Memory::Engine(engine), _) => engine.completed(completion, &mut EngineCx(wires)),
            (Memory::Initiator(initiator), _) => initiator.completed(completion, &mut InitiatorCx(wires)),
            (_, Some(paging)) => paging.completed(completion, &mut PagingCx(wires)),
            _ => unreachable!("nobody here has a flash device"),
        }
    }

    fn gpu_said(&mut self, out: compute::simt::Out, wires: &mut Wires) {
        match out {
            compute::simt::Out::Access(access) => self.access(access.port, access, wires),
            compute::simt::Out::Translate(translation) => {
                self.mmu.translate(translation, &mut MmuCx(wires));
            }
            compute::simt::Out::Finished(app) => self.ended[usize::from(app)] = Some(wires.queue.now()),
        }
    }

    fn mmu_said(&mut self, out: mem::mmu::Out, wires: &mut Wires) {
        match out {
            mem::mmu::Out::Walk(access) => self.access(self.ports.mmu(), access, wires),
            mem::mmu::Out::Translated(translation) => {
                self.gpu.translated(translation, &mut self.programs, &mut GpuCx(wires));
            }
            mem::mmu::Out::Fault(translation) => match &mut self.paging {
                Some(paging) => paging.fault(translation, &mut PagingCx(wires)),
                None => unreachable!("a page is missing that nobody can bring"),
            },
        }
    }

    fn paging_said(&mut self, out: host::paging::Out, device: Option<&mut Device>, wires: &mut Wires) {
        match out {
            host::paging::Out::Resolved(translation) => self.mmu.resolve(translation, &mut MmuCx(wires)),
            host::paging::Out::Evict { app, page } => {
                self.mmu.evict(app, page);
                self.gpu.invalidate(app, page);
            }
            host::paging::Out::Submit(command) => self.submit(command, device, wires),
        }
    }

    fn direct_said(&mut self, out: flash::direct::Out, wires: &mut Wires) {
        match out {
            flash::direct::Out::Done(command) => {
                let Memory::Direct(direct) = &self.memory else { unreachable!("its own message") };
                self.done(direct.controller_of(command.page), command, wires);
            }
            flash::direct::Out::Park { page, lines, app } => {
                let Memory::Direct(direct) = &self.memory else { unreachable!("its own message") };
                let route = (
                    self.ports.controller(direct.controller_of(page)),
                    self.ports.bank(self.l2.bank_of(page)),
                );
                if self.l2.park(page, lines.into(), app, &mut L2Cx(wires)) {
                    let bytes = u64::from(lines.count_ones()) * LINE;
                    self.network.send(route, Class::Request, bytes, Packet::Parked, &mut NetworkCx(wires));
                } else if let Memory::Direct(direct) = &mut self.memory {
                    direct.refused(page, lines, app, &mut DirectCx(wires));
                }
            }
            flash::direct::Out::Reclaim { app, begins } => {
                // "MMU blocks the memory requests during garbage collections", so that the number of those that the
                // application generates "decreases to 0", and "does not block other applications" (ZnG, V-D): held
                // where they are generated, they fill no queue that others share.
                self.gpu.hold(app, begins, &mut self.programs, &mut GpuCx(wires));
                if begins {
                    self.l2.purge(app, &mut L2Cx(wires));
                }
            }
        }
    }

    /// Sends an access to its cache bank.
    fn access(&mut self, from: u16, access: Access, wires: &mut Wires) {
        let to = self.ports.bank(self.l2.bank_of(access.address));
        let bytes = if access.kind == AccessKind::Read { 0 } else { u64::from(access.bytes) };
        self.network.send((from, to), Class::Request, bytes, Packet::Access(access), &mut NetworkCx(wires));
    }

    /// Sends a cache bank's answer to its requester.
    fn answer(&mut self, access: Access, wires: &mut Wires) {
        let from = self.ports.bank(self.l2.bank_of(access.address));
        let bytes = if access.kind == AccessKind::Write { 0 } else { u64::from(access.bytes) };
        let packet = Packet::Answer(access);
        self.network.send((from, access.port), Class::Answer, bytes, packet, &mut NetworkCx(wires));
    }

    /// Hands a command of the shared cache to memory: over the network, unless memory is beside the bank.
    fn command(&mut self, command: MemCommand, wires: &mut Wires) {
        if command.write {
            self.lines_sent += u64::from(command.lines.count_ones());
        }
        if planted_nth(Mutant::TwiceDelivered, 101) {
            self.deliver_command(command, wires);
        }
        self.deliver_command(command, wires);
    }

    fn deliver_command(&mut self, command: MemCommand, wires: &mut Wires) {
        let controller = match &mut self.memory {
            Memory::Dram(dram) => return dram.command(command, &mut DramCx(wires)),
            Memory::Direct(direct) => direct.controller_of(command.page),
            Memory::Engine(_) | Memory::Initiator(_) => 0,
        };
        let route = (self.ports.bank(command.port), self.ports.controller(controller));
        let bytes = if command.write { command.bytes(LINE) } else { 0 };
        self.network.send(route, Class::Request, bytes, Packet::Command(command), &mut NetworkCx(wires));
    }

    /// Sends a controller's answer to its cache bank.
    fn done(&mut self, controller: u16, command: MemCommand, wires: &mut Wires) {
        let route = (self.ports.controller(controller), self.ports.bank(command.port));
        let bytes = if command.write { 0 } else { command.bytes(LINE) };
        self.network.send(route, Class::Answer, bytes, Packet::Done(command), &mut NetworkCx(wires));
    }

    /// A packet has come to an endpoint of the network.
    fn arrived(&mut self, to: u16, packet: Packet, wires: &mut Wires) {
        let now = wires.queue.now();
        match packet {
            Packet::Access(mut access) => {
                self.tally.access(Stage::Network, &mut access, now);
                self.l2.access(to - self.ports.bank(0), access, &mut L2Cx(wires));
            }
            Packet::Answer(mut access) => {
                self.tally.access(Stage::Network, &mut access, now);
                if to == self.ports.mmu() {
                    self.mmu.walked(access, &mut MmuCx(wires));
                } else {
                    self.gpu.answer(access, &mut self.programs, &mut GpuCx(wires));
                }
            }
            Packet::Command(mut command) => {
                self.tally.command(Stage::Network, &mut command, now);
                match &mut self.memory {
                    Memory::Direct(direct) => direct.command(command, &mut DirectCx(wires)),
                    Memory::Engine(engine) => engine.command(command, &mut EngineCx(wires)),
                    Memory::Initiator(initiator) => initiator.command(command, &mut InitiatorCx(wires)),
                    Memory::Dram(_) => unreachable!("DRAM is not on the network"),
                }
            }
            Packet::Done(mut command) => {
                self.tally.command(Stage::Network, &mut command, now);
                self.l2.done(command, &mut L2Cx(wires));
            }
            Packet::Parked => {}
        }
    }

    /// Gives the flash device a command of the GPU side.
    fn submit(&mut self, command: Command, device: Option<&mut Device>, wires: &mut Wires) {
        let Some(device) = device else {
            unreachable!("a part with a flash device behind it, and none there")
        };
        self.claimed += i64::from(!planted_nth(Mutant::Unclaimed, 4));
        device.submit(Command { tag: command.tag | CLAIMED, ..command }, &mut FlashCx(wires));
    }
}
