//! What parts arrange among themselves in one instant: pages that a cache takes over, applications that are held.

use crate::parts::complex::Processor;
use crate::parts::memory::Memory;
use crate::parts::{Behind, Parts};
use crate::wires::Wires;
use crate::wires::address::Asker;
use crate::wires::event::Packet;
use net::noc::Class;
use proto::Port;
use proto::memory::Help;

impl Parts {
    /// Flash on the network has said something.
    #[inline]
    pub(super) fn direct_said(&mut self, from: u16, out: ssd::direct::Out, wires: &mut Wires) {
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
                // Cores are not held: what they ask for waits in front of the blocks that are merged.
                if let Processor::Simt(simt) = &mut complex.processor {
                    simt.gpu.hold(app, begins, &mut simt.programs, &mut wires.at(home));
                }
                if begins && self.memories[usize::from(from)].asker == Asker::Complex(home) {
                    complex.l2.purge(app, &mut wires.at(home));
                }
            }
        }
    }

    /// A multiprocessor executes what a helper thread of flash has to. Cores do it in no time.
    fn help(&mut self, from: u16, mut help: Help, wires: &mut Wires) {
        let home = self.memories[usize::from(from)].home;
        help.from = Port(from);
        match &mut self.complexes[usize::from(home)].processor {
            Processor::Simt(simt) => simt.gpu.help(help, &mut wires.at(home)),
            Processor::Ooo(_) => self.helped(help, wires),
        }
    }

    /// A helper thread of flash has executed its instructions.
    pub(super) fn helped(&mut self, help: Help, wires: &mut Wires) {
        let Memory::Direct(direct) = self.memory(help.from.0) else { unreachable!("its own thread") };
        direct.helped(help.tag, &mut wires.at(help.from.0));
    }

    /// Flash registers hand lines of a dirty page to the shared cache, which takes them or not.
    fn park(&mut self, from: u16, page: u64, (lines, app): (u64, u8), wires: &mut Wires) {
        let home = self.memories[usize::from(from)].home;
        let complex = &mut self.complexes[usize::from(home)];
        let Behind { memory: Memory::Direct(direct), asker, controllers, .. } =
            &mut self.memories[usize::from(from)]
        else {
            unreachable!("its own message")
        };
        // Behind another memory, there is no cache that takes them.
        let is_asked_by_cache = *asker == Asker::Complex(home);
        if !is_asked_by_cache || !complex.l2.park(page, lines, app, &mut wires.at(home)) {
            return direct.refused(page, lines, app, &mut wires.at(from));
        }
        // Without a way over the network, registers are beside the bank.
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
