//! What a part may do to the outside world.

use crate::{Event, Ticket, Time};
use std::convert::Infallible;
use std::marker::PhantomData;

/// The context of a part: its clock, its own future events, its messages. `E` are the part's own events, `O` its
/// outgoing messages.
pub trait Cx<E, O> {
    /// The present.
    fn now(&self) -> Time;
    /// Schedules one of the part's own events.
    fn after(&mut self, delay: Time, event: E) -> Ticket;
    /// Schedules one of the part's own events behind every normal event of its instant. For arbiters, which must see
    /// every arrival.
    fn late(&mut self, delay: Time, event: E) -> Ticket;
    /// Takes the next place in the schedule order without an event yet. An event put there later sorts as if it had
    /// been scheduled now: a stage that is folded away and one that is not leave the same order behind.
    fn reserve(&mut self) -> Ticket;
    /// As [`Cx::reserve`], for an event of the late phase.
    fn reserve_late(&mut self) -> Ticket;
    /// Schedules one of the part's own events at a reserved place.
    fn at_place(&mut self, place: Ticket, delay: Time, event: E);
    /// Takes a pending event of the part back.
    fn cancel(&mut self, ticket: Ticket);
    /// Hands a message to the machine, which routes it after the handler returns and before time advances.
    fn emit(&mut self, out: O);
}

/// Implements [`Cx`] for a context in whose queue the events of a part stand inside larger ones: where the queue is, what an
/// event of the part becomes, and what happens to a message.
#[macro_export]
macro_rules! context {
    (
        $name:ty: Cx<$event:ty, $out:ty>,
        queue: |$queued:ident| $queue:expr,
        event: |$wrapped:ident, $inner:ident| $wrap:expr,
        out: |$speaker:ident, $said:ident| $say:expr $(,)?
    ) => {
        impl $crate::Cx<$event, $out> for $name {
            #[inline]
            fn now(&self) -> $crate::Time {
                let $queued = self;
                $queue.now()
            }
            #[inline]
            fn after(&mut self, delay: $crate::Time, $inner: $event) -> $crate::Ticket {
                let event = {
                    let $wrapped = &*self;
                    $wrap
                };
                let $queued = self;
                $queue.after(delay, event)
            }
            #[inline]
            fn late(&mut self, delay: $crate::Time, $inner: $event) -> $crate::Ticket {
                let event = {
                    let $wrapped = &*self;
                    $wrap
                };
                let $queued = self;
                $queue.late(delay, event)
            }
            #[inline]
            fn reserve(&mut self) -> $crate::Ticket {
                let $queued = self;
                $queue.reserve()
            }
            #[inline]
            fn reserve_late(&mut self) -> $crate::Ticket {
                let $queued = self;
                $queue.reserve_late()
            }
            #[inline]
            fn at_place(&mut self, place: $crate::Ticket, delay: $crate::Time, $inner: $event) {
                let event = {
                    let $wrapped = &*self;
                    $wrap
                };
                let $queued = self;
                $queue.at_place(place, delay, event);
            }
            #[inline]
            fn cancel(&mut self, ticket: $crate::Ticket) {
                let $queued = self;
                $queue.cancel(ticket);
            }
            #[inline]
            fn emit(&mut self, $said: $out) {
                let $speaker = self;
                $say
            }
        }
    };
}

/// The context of something inside a part, whose events are among the part's own, and which sends no messages.
pub struct Inside<'a, C, E, O> {
    cx: &'a mut C,
    part: PhantomData<fn(E, O)>,
}

impl<'a, E, O, C: Cx<E, O>> Inside<'a, C, E, O> {
    /// The part's context, for what is inside it.
    #[inline]
    pub fn of(cx: &'a mut C) -> Self {
        Inside { cx, part: PhantomData }
    }
}

impl<I, E: From<I>, O, C: Cx<E, O>> Cx<I, Infallible> for Inside<'_, C, E, O> {
    #[inline]
    fn now(&self) -> Time {
        self.cx.now()
    }
    #[inline]
    fn after(&mut self, delay: Time, event: I) -> Ticket {
        self.cx.after(delay, event.into())
    }
    #[inline]
    fn late(&mut self, delay: Time, event: I) -> Ticket {
        self.cx.late(delay, event.into())
    }
    #[inline]
    fn reserve(&mut self) -> Ticket {
        self.cx.reserve()
    }
    #[inline]
    fn reserve_late(&mut self) -> Ticket {
        self.cx.reserve_late()
    }
    #[inline]
    fn at_place(&mut self, place: Ticket, delay: Time, event: I) {
        self.cx.at_place(place, delay, event.into());
    }
    #[inline]
    fn cancel(&mut self, ticket: Ticket) {
        self.cx.cancel(ticket);
    }
    fn emit(&mut self, out: Infallible) {
        match out {}
    }
}

/// A context that drives one part alone: for unit tests, examples, and a part that goes through a piece of its past again.
pub struct Recorder<E, O> {
    /// The part's events.
    pub queue: crate::EventQueue<E>,
    /// Every message it has sent, with the time.
    pub sent: Vec<(Time, O)>,
}

impl<E: Event, O> Default for Recorder<E, O> {
    fn default() -> Self {
        Recorder { queue: crate::EventQueue::new(), sent: Vec::new() }
    }
}

impl<E: Event, O> Cx<E, O> for Recorder<E, O> {
    fn now(&self) -> Time {
        self.queue.now()
    }
    fn after(&mut self, delay: Time, event: E) -> Ticket {
        self.queue.after(delay, event)
    }
    fn late(&mut self, delay: Time, event: E) -> Ticket {
        self.queue.late(delay, event)
    }
    fn reserve(&mut self) -> Ticket {
        self.queue.reserve()
    }
    fn reserve_late(&mut self) -> Ticket {
        self.queue.reserve_late()
    }
    fn at_place(&mut self, place: Ticket, delay: Time, event: E) {
        self.queue.at_place(place, delay, event);
    }
    fn cancel(&mut self, ticket: Ticket) {
        self.queue.cancel(ticket);
    }
    fn emit(&mut self, out: O) {
        let now = self.now();
        self.sent.push((now, out));
    }
}
