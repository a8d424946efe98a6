//! Events as one word each, so that the queue moves them in registers: copying a small enum that was just built field
//! by field costs more than everything else the queue does with it. Also the context in which a component schedules
//! them.

use crate::{Ticket, Time};
use std::{convert::Infallible, marker::PhantomData};

/// Event that fits into the low bits of a word.
pub trait Event: Copy {
    /// Number of bits that [`Event::word`] uses.
    const BITS: u32;
    /// Returns the event as a word.
    fn word(self) -> u64;
    /// Returns the event whose [`Event::word`] is this word.
    fn from_word(word: u64) -> Self;
}

/// Event of one of several instances of a component.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At<E> {
    /// Index of the instance.
    pub instance: u16,
    /// Event at that instance.
    pub event: E,
}

/// The instance is stored above the event's own bits.
impl<E: Event> Event for At<E> {
    const BITS: u32 = E::BITS + u16::BITS;
    #[inline(always)]
    fn word(self) -> u64 {
        u64::from(self.instance) << E::BITS | self.event.word()
    }
    #[inline(always)]
    fn from_word(word: u64) -> At<E> {
        At { instance: (word >> E::BITS) as u16, event: E::from_word(word & ((1 << E::BITS) - 1)) }
    }
}

macro_rules! numbers {
    ($($number:ty),+) => {$(
        impl Event for $number {
            const BITS: u32 = <$number>::BITS;
            #[inline(always)]
            fn word(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn from_word(word: u64) -> $number {
                word as $number
            }
        }
    )+};
}
numbers!(u16, u32);

/// Defines an enum of events, each with one value that is itself an [`Event`]: a name, or a component's event.
#[macro_export]
macro_rules! events {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident {
            $(#[$first_doc:meta])* $first:ident($first_value:ty),
            $($(#[$doc:meta])* $variant:ident($value:ty),)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name {
            $(#[$first_doc])* $first($first_value),
            $($(#[$doc])* $variant($value),)*
        }

        const _: () = {
            enum Kind { $first, $($variant),* }

            /// Number of bits of the kind.
            const KIND: u32 = usize::BITS - ([Kind::$first as u8, $(Kind::$variant as u8),*].len() - 1).leading_zeros();

            /// Number of bits of the longest value; the kind is stored above them.
            const VALUE: u32 = {
                let mut bits = <$first_value as $crate::Event>::BITS;
                $(if <$value as $crate::Event>::BITS > bits { bits = <$value as $crate::Event>::BITS; })*
                bits
            };

            impl $crate::Event for $name {
                const BITS: u32 = VALUE + KIND;
                // Where an event is scheduled, its kind is known, so this is a constant and an addition.
                #[inline(always)]
                fn word(self) -> u64 {
                    match self {
                        Self::$first(value) => {
                            (Kind::$first as u64) << VALUE | $crate::Event::word(value)
                        }
                        $(Self::$variant(value) => {
                            (Kind::$variant as u64) << VALUE | $crate::Event::word(value)
                        })*
                    }
                }
                // Nothing here may panic, so that unused properties of the event are not computed.
                #[inline(always)]
                fn from_word(word: u64) -> Self {
                    let kind = word >> VALUE;
                    let value = word & ((1 << VALUE) - 1);
                    $(if kind == Kind::$variant as u64 {
                        return Self::$variant($crate::Event::from_word(value));
                    })*
                    debug_assert!(kind == Kind::$first as u64, "not the word of an event: {word:#x}");
                    Self::$first($crate::Event::from_word(value))
                }
            }

            assert!(VALUE + KIND <= 64, "the events do not fit into a word");
        };
    };
}

// Effects of a component on the outside.

/// Context of a component: its clock, its own future events, its messages. `E` are the component's own events, `O` its
/// outgoing messages.
pub trait Cx<E, O> {
    /// Returns the current time.
    fn now(&self) -> Time;
    /// Schedules one of the component's own events.
    fn after(&mut self, delay: Time, event: E) -> Ticket;
    /// Schedules one of the component's own events after every normal event of its instant, for arbiters that must see
    /// every arrival.
    fn late(&mut self, delay: Time, event: E) -> Ticket;
    /// Reserves the next place in the schedule order without an event. An event put there later sorts as if it had been
    /// scheduled now, so a stage leaves the same order whether or not it is folded away.
    fn reserve(&mut self) -> Ticket;
    /// Reserves a place as [`Cx::reserve`] does, for an event of the late phase.
    fn reserve_late(&mut self) -> Ticket;
    /// Schedules one of the component's own events at a reserved place.
    fn at_place(&mut self, place: Ticket, delay: Time, event: E);
    /// Cancels a pending event of the component.
    fn cancel(&mut self, ticket: Ticket);
    /// Passes a message to the machine, which routes it after the handler returns and before time advances.
    fn emit(&mut self, out: O);
}

/// Implements [`Cx`] for a context whose queue wraps a component's events in larger ones: given are the queue, how an
/// event is wrapped, and what happens to a message.
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

/// Context of something inside a component: its events are among the component's own, and it sends no messages.
pub struct Inside<'a, C, E, O> {
    cx: &'a mut C,
    part: PhantomData<fn(E, O)>,
}

impl<'a, E, O, C: Cx<E, O>> Inside<'a, C, E, O> {
    /// Wraps the component's context for something inside it.
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

/// Context that drives one component alone: for unit tests, examples, and replaying a piece of a component's past.
pub struct Recorder<E, O> {
    /// Events of the component.
    pub queue: crate::EventQueue<E>,
    /// Messages sent, with the time of each.
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

#[cfg(test)]
mod tests {
    use super::{At, Event};

    events! {
        enum Inner {
            Short(u16),
            Long(u32),
        }
    }
    events! {
        enum Outer {
            Number(u32),
            Part(Inner),
            Another(At<Inner>),
        }
    }

    #[test]
    fn a_word_gives_back_its_event() {
        let inner = [Inner::Short(0), Inner::Short(u16::MAX), Inner::Long(0), Inner::Long(u32::MAX)];
        let outer = [Outer::Number(7), Outer::Number(u32::MAX)];
        let at = |instance| inner.map(|event| Outer::Another(At { instance, event }));
        let others = at(0).into_iter().chain(at(1)).chain(at(u16::MAX));
        for event in inner.map(Outer::Part).into_iter().chain(outer).chain(others) {
            assert_eq!(Outer::from_word(event.word()), event);
            assert_eq!(event.word() >> Outer::BITS, 0);
        }
        // One bit numbers two kinds, two bits three; the longest value is the one with an instance.
        assert_eq!((Inner::BITS, Outer::BITS), (33, 33 + 16 + 2));
    }
}
