//! Events and messages of the whole machine, and what a part sees of them.

pub(crate) mod address;
pub(crate) mod event;

use crate::wires::event::{Ev, Happens, Message, Says};
use engine::{Cx, EventQueue, Ticket, Time};
use std::collections::VecDeque;

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
