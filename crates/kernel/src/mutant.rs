//! Faults planted on purpose, to prove that the checks find them.
//!
//! The code of a part asks [`planted`] where a fault would be made, and goes wrong if that mutant is armed in this thread.
//! A build without debug assertions has the constant `false` there. To add a mutant: a line in the list below, the
//! question in the code that it breaks, and a run that kills it in `crates/machine/tests/mutants/`.

use std::cell::Cell;

macro_rules! mutants {
    ($($part:literal { $($(#[doc = $breaks:literal])+ $name:ident,)+ })+) => {
        /// A fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Mutant {
            $($($(#[doc = $breaks])+ $name,)+)+
        }

        impl Mutant {
            /// All of them.
            pub const ALL: &[Mutant] = &[$($(Mutant::$name,)+)+];

            /// The crate that it breaks; `control` if it is no fault, and must survive.
            pub const fn part(self) -> &'static str {
                match self {
                    $($(Mutant::$name)|+ => $part,)+
                }
            }

            /// What it breaks, in words.
            pub const fn breaks(self) -> &'static str {
                match self {
                    $($(Mutant::$name => concat!($($breaks),+),)+)+
                }
            }
        }
    };
}

mutants! {
    "control" {
        /// No fault: a die erases before it does anything else. Pins keep reads out of its way.
        EagerErase,
    }
    "flash" {
        /// Two units of one program unit change places in the map.
        SwappedEntries,
        /// A moved copy is committed although the host has overwritten its source.
        StaleCopy,
        /// The array forgets a program.
        LostProgram,
        /// A write is acknowledged before it is durable: a read can pass it.
        EarlyAcknowledge,
        /// A deallocated unit comes back.
        TrimUndone,
        /// A deallocation is answered, and nothing is deallocated.
        TrimIgnored,
        /// A block is erased at once, although reads of it wait.
        PinIgnored,
        /// Old data that is out of date goes with a unit written in part.
        BlindMerge,
        /// The buffer drops a line that is dirty.
        LostLine,
        /// A flush is answered before anything is on flash.
        EarlyFlush,
        /// A write that must be on flash is answered before it is.
        FuaIgnored,
        /// A read does not look into the buffer: it passes the writes there.
        BufferPassed,
        /// A unit that was deallocated on its way from the buffer to flash comes back.
        DiscardIgnored,
        /// Of a program of several units only the first is in the array.
        TornProgram,
        /// What leaves the map's cache is not written to its translation page.
        LostWriteBack,
        /// A translation page that has changed while it was being programmed stays as it was.
        StalePage,
        /// A moved copy of a translation page is committed although the page has been written back.
        StalePageCopy,
        /// A translation page is written back without having been read, though memory has a part of it only.
        UnreadPage,
        /// A command's statistics are recorded twice, one in 101.
        RecordedTwice,
        /// An operation that goes on after a suspend does not take the time to resume.
        FreeResume,
        /// A die that is told to suspend takes commands at once.
        FreeSuspend,
        /// An operation that goes on after a suspend begins with what it has done already.
        RestartedProgram,
        /// An erase does not wear its block, one in 16.
        FreeErase,
    }
}

/// No mutant.
const NONE: u16 = u16::MAX;

thread_local! {
    static ARMED: Cell<u16> = const { Cell::new(NONE) };
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// Whether a fault is to be made here. The constant `false` in a build without debug assertions.
#[inline(always)]
pub fn planted(mutant: Mutant) -> bool {
    cfg!(debug_assertions) && ARMED.get() == mutant as u16
}

/// The same, but only every `nth` time that it is asked for while it is armed, from the `nth` on.
#[inline(always)]
pub fn planted_nth(mutant: Mutant, nth: u64) -> bool {
    planted(mutant) && is_due(nth)
}

#[cold]
fn is_due(nth: u64) -> bool {
    ASKED.set(ASKED.get() + 1);
    ASKED.get().is_multiple_of(nth)
}

/// Arms a mutant in this thread until the guard is dropped; one at a time.
#[must_use]
pub fn arm(mutant: Mutant) -> Armed {
    ARMED.set(mutant as u16);
    ASKED.set(0);
    Armed(())
}

/// As long as it lives, a mutant is armed.
pub struct Armed(());

impl Drop for Armed {
    fn drop(&mut self) {
        ARMED.set(NONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    fn a_mutant_lives_in_one_thread_and_as_long_as_its_guard() {
        assert!(!planted(Mutant::LostLine));
        let armed = arm(Mutant::LostLine);
        assert!(planted(Mutant::LostLine) && !planted(Mutant::StaleCopy));
        let elsewhere = std::thread::spawn(|| planted(Mutant::LostLine)).join();
        assert!(!elsewhere.expect("it only looks"));
        let due: Vec<bool> = (0..6).map(|_| planted_nth(Mutant::LostLine, 3)).collect();
        assert_eq!(due, [false, false, true, false, false, true]);
        drop(armed);
        assert!(!planted(Mutant::LostLine));
    }
}
