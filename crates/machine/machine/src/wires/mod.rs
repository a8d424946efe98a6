//! Events and messages of the whole machine, a part's view of them, and the return addresses of messages. A part that
//! answers copies the address without interpreting it.

pub(crate) mod event;

use crate::wires::event::{Ev, Happens, Message, Says};
use engine::{Cx, EventQueue, Ticket, Time};
use proto::Port;
use std::collections::VecDeque;

/// Events and messages of the whole machine.
#[derive(Default)]
pub(crate) struct Wires {
    pub(crate) queue: EventQueue<Ev>,
    pub(crate) messages: VecDeque<Message>,
}

impl Wires {
    /// Returns the outside world as seen by the part with this number within its kind.
    #[inline]
    pub(crate) fn at(&mut self, instance: u16) -> Here<'_> {
        Here { wires: self, instance }
    }
}

/// A part's access to the outside world: its events come back to it, and its outputs carry its number.
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

/// Sender of a block command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sender {
    /// An injector.
    Injector(u16),
    /// A memory with a drive behind it.
    Memory(u16),
    /// A pager.
    Pager(u16),
    /// A stripe.
    Stripe(u16),
    /// A host's path to its drives.
    Host(u16),
}

/// Bits of the number in a sender's address, below the kind.
const NUMBER: u32 = 13;

impl Sender {
    /// Address that a completion goes to.
    #[inline]
    pub(crate) fn port(self) -> Port {
        Port(match self {
            Sender::Injector(number) => number,
            Sender::Memory(number) => 1 << NUMBER | number,
            Sender::Pager(number) => 2 << NUMBER | number,
            Sender::Stripe(number) => 3 << NUMBER | number,
            Sender::Host(number) => 4 << NUMBER | number,
        })
    }

    /// Sender at this address.
    #[inline]
    pub(crate) fn of(port: Port) -> Sender {
        let number = port.0 & ((1 << NUMBER) - 1);
        match port.0 >> NUMBER {
            0 => Sender::Injector(number),
            1 => Sender::Memory(number),
            2 => Sender::Pager(number),
            3 => Sender::Stripe(number),
            _ => Sender::Host(number),
        }
    }
}

/// Sender of a command to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Asker {
    /// The shared cache of a complex.
    Complex(u16),
    /// A memory with a different memory behind it.
    Memory(u16),
}

/// Address bit that marks a memory.
const MEMORY: u16 = 1 << 15;

impl Asker {
    /// Address that an answer goes to.
    #[inline]
    pub(crate) fn port(self) -> Port {
        Port(match self {
            Asker::Complex(number) => number,
            Asker::Memory(number) => MEMORY | number,
        })
    }

    /// Sender at this address.
    #[inline]
    pub(crate) fn of(port: Port) -> Asker {
        if port.0 & MEMORY == 0 { Asker::Complex(port.0) } else { Asker::Memory(port.0 & !MEMORY) }
    }
}

#[cfg(test)]
mod tests {
    use super::{Asker, Sender};

    #[test]
    fn an_address_gives_back_who_asks() {
        for asker in [Asker::Complex(0), Asker::Complex(7), Asker::Memory(0), Asker::Memory(32_767)] {
            assert_eq!(Asker::of(asker.port()), asker);
        }
        for sender in [
            Sender::Injector(0),
            Sender::Injector(3),
            Sender::Memory(0),
            Sender::Memory(8_191),
            Sender::Pager(1),
            Sender::Stripe(7),
            Sender::Host(0),
            Sender::Host(8_191),
        ] {
            assert_eq!(Sender::of(sender.port()), sender);
        }
    }
}
