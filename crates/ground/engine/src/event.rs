//! Events as one word each, so that the queue moves them in registers: copying a small enum that was just built part
//! by part costs more than all else that the queue does with it.

/// An event that fits into the lowest bits of a word.
pub trait Event: Copy {
    /// Bits that [`Event::word`] uses.
    const BITS: u32;
    /// The event as a word.
    fn word(self) -> u64;
    /// The event that [`Event::word`] gave this word for.
    fn from_word(word: u64) -> Self;
}

/// An event of one of several parts of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At<E> {
    /// Which of the parts.
    pub instance: u16,
    /// What happens there.
    pub event: E,
}

/// The instance stands above the event's own bits.
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

/// Defines an enum of events, each with one value that is an [`Event`] itself: a name, or the event of a part.
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

            /// Bits that number the kinds.
            const KIND: u32 = usize::BITS - ([Kind::$first as u8, $(Kind::$variant as u8),*].len() - 1).leading_zeros();

            /// Bits of the longest value: the kind stands above them.
            const VALUE: u32 = {
                let mut bits = <$first_value as $crate::Event>::BITS;
                $(if <$value as $crate::Event>::BITS > bits { bits = <$value as $crate::Event>::BITS; })*
                bits
            };

            impl $crate::Event for $name {
                const BITS: u32 = VALUE + KIND;
                // Where an event is scheduled, its kind is known, and this is a constant and an addition.
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
                // Nothing here may panic: what is not asked for of the event is then not found out.
                #[inline(always)]
                fn from_word(word: u64) -> Self {
                    let kind = word >> VALUE;
                    let value = word & ((1 << VALUE) - 1);
                    $(if kind == Kind::$variant as u64 {
                        return Self::$variant($crate::Event::from_word(value));
                    })*
                    debug_assert!(kind == Kind::$first as u64, "a word that no event gave: {word:#x}");
                    Self::$first($crate::Event::from_word(value))
                }
            }

            assert!(VALUE + KIND <= 64, "the events do not fit into a word");
        };
    };
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
        // One bit numbers two kinds, two bits three; the longest is one of an instance.
        assert_eq!((Inner::BITS, Outer::BITS), (33, 33 + 16 + 2));
    }
}
