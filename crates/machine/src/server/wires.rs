//! Which message of a server's part goes where.

use super::build::APP;
use super::{Memory, ServerSide};
use crate::event::Ev;
use crate::gpu::CLAIMED;
use crate::route::{
    CoreMmuCx, CoresCx, DirectoryCx, DramCacheCx, DramCx, FabricCx, FlashCx, L2Cx, Message, SwapCx, Wires,
};
use flash::Device;
use kernel::{Mutant, planted_nth};
use proto::coherence::{Probe, Probed};
use proto::memory::{Absent, Access, AccessKind, CPU_LINE, MemCommand, PAGE, Stage};
use proto::{Command, Completion};

/// What a packet on the mesh carries.
#[derive(Clone, Copy, Debug)]
pub enum Packet {
    /// An access on its way to the tile that serves its line.
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
}

impl ServerSide {
    /// Starts the cores.
    pub(crate) fn begin(&mut self, wires: &mut Wires) {
        self.cores.begin(&mut *self.service, &mut CoresCx(wires));
    }

    /// Runs an event of one of the parts.
    #[inline]
    pub(crate) fn handle(&mut self, event: Ev, wires: &mut Wires) {
        match (event, &mut self.memory) {
            (Ev::Cores(event), _) => self.cores.handle(event, &mut *self.service, &mut CoresCx(wires)),
            (Ev::Fabric(event), _) => self.fabric.handle(event, &mut FabricCx(wires)),
            (Ev::L2(event), _) => self.l2.handle(event, &mut L2Cx(wires)),
            (Ev::Directory(event), _) => self.directory.handle(event, &mut DirectoryCx(wires)),
            (Ev::CoreMmu(event), _) => {
                let cx = &mut CoreMmuCx { wires, core: event.core };
                self.mmus[usize::from(event.core)].handle(event.event, cx);
            }
            (Ev::Dram(event), Memory::Dram(dram)) => dram.handle(event, &mut DramCx(wires)),
            (Ev::DramCache(event), Memory::DramCache(cache)) => cache.handle(event, &mut DramCacheCx(wires)),
            (Ev::Swap(event), _) => {
                if let Some(swap) = &mut self.swap {
                    swap.handle(event, &mut SwapCx(wires));
                }
            }
            (event, _) => unreachable!("{event:?} of a part that is not here"),
        }
    }

    /// Delivers a message of one of the parts.
    #[inline]
    pub(crate) fn deliver(&mut self, message: Message, device: Option<&mut Device>, wires: &mut Wires) {
        match message {
            Message::FromCores(out) => self.cores_said(out, wires),
            Message::FromFabric(packet) => self.arrived(packet.to, packet.payload, wires),
            Message::FromDirectory(out) => self.directory_said(out, wires),
            Message::FromL2(mem::l2::Out::Answer(access)) => {
                let tile = self.l2.bank_of(access.address);
                self.directory.looked(tile, access, &mut DirectoryCx(wires));
            }
            Message::FromL2(mem::l2::Out::Command(command)) => self.command(command, wires),
            Message::FromMmu(out) => self.mmu_said(out, wires),
            Message::FromDram(mem::dram::Out::Done(command)) => self.done(command, wires),
            Message::FromDramCache(out) => self.cache_said(out, device, wires),
            Message::FromSwap(out) => self.swap_said(out, device, wires),
            message => unreachable!("{message:?} of a part that is not here"),
        }
    }

    /// The flash device has done a command of the server side.
    pub(crate) fn completed(&mut self, completion: Completion, wires: &mut Wires) {
        self.claimed -= 1;
        let completion = Completion { tag: completion.tag & !CLAIMED, ..completion };
        match (&mut self.memory, &mut self.swap) {
            (Memory::DramCache(cache), _) => cache.completed(completion, &mut DramCacheCx(wires)),
            (_, Some(swap)) => swap.completed(completion, &mut SwapCx(wires)),
            _ => unreachable!("nobody here has a flash device"),
        }
    }

    fn cores_said(&mut self, out: compute::ooo::Out, wires: &mut Wires) {
        match out {
            compute::ooo::Out::Access(access) => self.access(access, wires),
            compute::ooo::Out::Translate(translation) => {
                let cx = &mut CoreMmuCx { wires, core: translation.port };
                self.mmus[usize::from(translation.port)].translate(translation, cx);
            }
            compute::ooo::Out::Probed(probed) => {
                let bytes = if probed.dirty { CPU_LINE } else { 0 };
                let route = (probed.probe.core.into(), probed.probe.tile.into());
                self.fabric.send(route, bytes, Packet::Probed(probed), &mut FabricCx(wires));
            }
            compute::ooo::Out::Dropped { core, address } => self.directory.dropped(core, address),
        }
    }

    fn mmu_said(&mut self, out: mem::mmu::Out, wires: &mut Wires) {
        match out {
            mem::mmu::Out::Walk(access) => self.access(access, wires),
            mem::mmu::Out::Translated(translation) => {
                self.cores.translated(translation, &mut *self.service, &mut CoresCx(wires));
            }
            mem::mmu::Out::Fault(translation) => match &mut self.swap {
                Some(swap) => swap.fault(translation, &mut SwapCx(wires)),
                None => unreachable!("a page is missing that nobody can bring"),
            },
        }
    }

    fn directory_said(&mut self, out: mem::directory::Out, wires: &mut Wires) {
        match out {
            mem::directory::Out::Look { tile, access } => self.l2.access(tile, access, &mut L2Cx(wires)),
            mem::directory::Out::Probe(probe) => {
                let route = (probe.tile.into(), probe.core.into());
                self.fabric.send(route, 0, Packet::Probe(probe), &mut FabricCx(wires));
            }
            mem::directory::Out::Answer { tile, access } => {
                let route = (tile.into(), access.port.into());
                let no_data = access.kind == AccessKind::Write || access.absent == Absent::Signalled;
                let bytes = if no_data { 0 } else { access.bytes.into() };
                self.fabric.send(route, bytes, Packet::Answer(access), &mut FabricCx(wires));
            }
        }
    }

    fn cache_said(&mut self, out: mem::dram_cache::Out, device: Option<&mut Device>, wires: &mut Wires) {
        match out {
            mem::dram_cache::Out::Done(command) => self.done(command, wires),
            mem::dram_cache::Out::Submit(command) => self.submit(command, device, wires),
            mem::dram_cache::Out::Arrived { page, response } => {
                self.cores.flash_response(response, &mut *self.service, &mut CoresCx(wires));
                // Physical addresses are virtual ones: the service is alone.
                self.cores.arrived(page / self.reach, &mut *self.service, &mut CoresCx(wires));
            }
        }
    }

    fn swap_said(&mut self, out: host::swap::Out, device: Option<&mut Device>, wires: &mut Wires) {
        match out {
            host::swap::Out::Resolve(translation) => {
                let cx = &mut CoreMmuCx { wires, core: translation.port };
                self.mmus[usize::from(translation.port)].resolve(translation, cx);
            }
            host::swap::Out::Refuse(translation) => {
                let cx = &mut CoreMmuCx { wires, core: translation.port };
                let left = self.mmus[usize::from(translation.port)].refuse(translation, cx);
                debug_assert!(!left, "who waits for a page has said so");
            }
            host::swap::Out::Submit(command) => self.submit(command, device, wires),
            // Jobs of other cores that wait for the same page are told in the same instant.
            host::swap::Out::Arrived { page, .. } => {
                self.cores.arrived(page, &mut *self.service, &mut CoresCx(wires));
            }
            host::swap::Out::Evict { page } => {
                self.mmus.iter_mut().for_each(|mmu| mmu.evict(APP, page));
                self.cores.invalidate(page);
            }
            host::swap::Out::Interrupt { core, time } => self.cores.interrupt(core, time, &CoresCx(wires)),
        }
    }

    /// Sends an access of a core or of its page walker to the tile that serves its line.
    fn access(&mut self, access: Access, wires: &mut Wires) {
        self.sent += 1;
        let route = (access.port.into(), self.l2.bank_of(access.address).into());
        let bytes = if access.kind == AccessKind::Write { access.bytes.into() } else { 0 };
        self.fabric.send(route, bytes, Packet::Access(access), &mut FabricCx(wires));
    }

    /// Sends a command of a cache bank to the memory controller of its lines.
    fn command(&mut self, command: MemCommand, wires: &mut Wires) {
        if command.write {
            self.lines_sent += u64::from(command.lines.count_ones());
        }
        let route = (command.port.into(), self.controller_of(&command));
        let bytes = if command.write { command.bytes(CPU_LINE) } else { 0 };
        self.fabric.send(route, bytes, Packet::Command(command), &mut FabricCx(wires));
    }

    /// Sends a memory controller's answer to its cache bank.
    fn done(&mut self, command: MemCommand, wires: &mut Wires) {
        let route = (self.controller_of(&command), command.port.into());
        let no_data = command.write || command.absent == Absent::Signalled;
        let bytes = if no_data { 0 } else { command.bytes(CPU_LINE) };
        self.fabric.send(route, bytes, Packet::Done(command), &mut FabricCx(wires));
    }

    /// The router of the controller in front of a command's first line.
    fn controller_of(&self, command: &MemCommand) -> u32 {
        let address = command.page + u64::from(command.lines.trailing_zeros()) * CPU_LINE;
        let controller = match &self.memory {
            Memory::Dram(dram) => dram.controller_of(address),
            Memory::DramCache(cache) => cache.controller_of(address),
        };
        self.controllers[usize::from(controller)]
    }

    /// A packet has come to a router.
    fn arrived(&mut self, to: u32, packet: Packet, wires: &mut Wires) {
        let now = wires.queue.now();
        match packet {
            Packet::Access(mut access) => {
                self.tally.access(Stage::Network, &mut access, now);
                self.directory.access(to as u16, access, &mut DirectoryCx(wires));
            }
            Packet::Answer(_) if planted_nth(Mutant::LostAnswer, 101) => {}
            Packet::Answer(mut access) => {
                self.answered += 1;
                self.tally.access(Stage::Network, &mut access, now);
                if access.is_walk() {
                    let cx = &mut CoreMmuCx { wires, core: access.port };
                    self.mmus[usize::from(access.port)].walked(access, cx);
                } else {
                    self.cores.answer(access, &mut *self.service, &mut CoresCx(wires));
                }
            }
            Packet::Probe(probe) => self.cores.probe(probe, &mut CoresCx(wires)),
            Packet::Probed(probed) => self.directory.probed(probed, &mut DirectoryCx(wires)),
            Packet::Command(mut command) => {
                self.tally.command(Stage::Network, &mut command, now);
                if let (Some(swap), true) = (&mut self.swap, command.write)
                    && let Ok(frame) = u32::try_from(command.page / PAGE)
                {
                    swap.written(frame);
                }
                match &mut self.memory {
                    Memory::Dram(dram) => dram.command(command, &mut DramCx(wires)),
                    Memory::DramCache(cache) => cache.command(command, &mut DramCacheCx(wires)),
                }
            }
            Packet::Done(mut command) => {
                self.tally.command(Stage::Network, &mut command, now);
                self.l2.done(command, &mut L2Cx(wires));
            }
        }
    }

    /// Gives the flash device a command of the server side.
    fn submit(&mut self, command: Command, device: Option<&mut Device>, wires: &mut Wires) {
        let Some(device) = device else {
            unreachable!("a part with a flash device behind it, and none there")
        };
        self.claimed += 1;
        device.submit(Command { tag: command.tag | CLAIMED, ..command }, &mut FlashCx(wires));
    }
}
