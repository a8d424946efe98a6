//! Block commands, and their completions on the way back.

use crate::memory::Memory;
use crate::pager::Pager;
use crate::parts::Parts;
use crate::wires::Wires;
use kernel::{Mutant, planted_nth};
use proto::{Command, Completion, Port};

/// Who has sent a block command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// An injector.
    Injector(u16),
    /// A memory with a drive behind it.
    Memory(u16),
    /// What pages from a drive.
    Pager(u16),
}

/// Bits below the kind of a sender in its address.
const NUMBER: u32 = 14;

impl Sender {
    /// The address that a completion goes to.
    #[inline]
    pub(crate) fn port(self) -> Port {
        Port(match self {
            Sender::Injector(number) => number,
            Sender::Memory(number) => 1 << NUMBER | number,
            Sender::Pager(number) => 2 << NUMBER | number,
        })
    }

    /// The sender of this address.
    #[inline]
    pub(crate) fn of(port: Port) -> Sender {
        let number = port.0 & ((1 << NUMBER) - 1);
        match port.0 >> NUMBER {
            0 => Sender::Injector(number),
            1 => Sender::Memory(number),
            _ => Sender::Pager(number),
        }
    }
}

impl Parts {
    /// Gives a drive a command of a part that is no injector.
    pub(super) fn submit(&mut self, from: Sender, command: Command, wires: &mut Wires) {
        let drive = match from {
            Sender::Injector(_) => 0,
            Sender::Memory(number) => self.memories[usize::from(number)].drive,
            Sender::Pager(number) => self.pagers[usize::from(number)].drive,
        };
        let at = &mut self.drives[usize::from(drive)];
        at.claimed += i64::from(!planted_nth(Mutant::Unclaimed, 4));
        at.device.submit(Command { from: from.port(), ..command }, &mut wires.at(drive));
    }

    /// A drive has done a command of a part that is no injector.
    pub(crate) fn completed(&mut self, drive: u16, completion: Completion, wires: &mut Wires) {
        self.record(wires.queue.now());
        self.drives[usize::from(drive)].claimed -= 1;
        match Sender::of(completion.to) {
            Sender::Memory(number) => match self.memory(number) {
                Memory::Engine(engine) => engine.completed(completion, &mut wires.at(number)),
                Memory::Initiator(initiator) => initiator.completed(completion, &mut wires.at(number)),
                Memory::DramCache(cache) => cache.completed(completion, &mut wires.at(number)),
                Memory::Dram(_) | Memory::Direct(_) => unreachable!("it sends no block commands"),
            },
            Sender::Pager(number) => match self.pager(number) {
                Pager::Paging(paging) => paging.completed(completion, &mut wires.at(number)),
                Pager::Swap(swap) => swap.completed(completion, &mut wires.at(number)),
            },
            Sender::Injector(_) => unreachable!("injectors have their own"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Sender;

    #[test]
    fn an_address_gives_back_its_sender() {
        for sender in [
            Sender::Injector(0),
            Sender::Injector(3),
            Sender::Memory(0),
            Sender::Memory(16_383),
            Sender::Pager(1),
        ] {
            assert_eq!(Sender::of(sender.port()), sender);
        }
    }
}
