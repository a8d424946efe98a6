//! Faults planted on purpose, to prove that the checks find them.
//!
//! The code of a part asks [`planted`] where a fault would be made, and goes wrong if that mutant is armed in this thread.
//! A build without debug assertions has the constant `false` there. To add a mutant: a line in the list below, the
//! question in the code that it breaks, and a run that kills it in `crates/machine/machine/tests/mutants/`.

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
        /// What was read ahead enters the buffer although the unit has been written meanwhile.
        StaleFill,
        /// A read is merged with a sensing of its page from before an erase: the register is taken to hold it still.
        MergeAcrossErase,
        /// A translation page is written back without having been read, though memory has a part of it only.
        UnreadPage,
        /// Garbage collection moves data behind the frontier of another placement.
        WrongStream,
        /// A command's statistics are recorded twice, one in 101.
        RecordedTwice,
        /// An operation that goes on after a suspend does not take the time to resume.
        FreeResume,
        /// A die that is told to suspend takes commands at once.
        FreeSuspend,
        /// An operation that goes on after a suspend begins with what it has done already.
        RestartedProgram,
        /// An operation is suspended as often as a read asks for it, whatever the limit.
        EndlessSuspends,
        /// The free unit that the rule names last is opened, one time in four.
        WrongBlock,
        /// A cache of one bit a cell opens the unit freed last, one time in four.
        WrongCacheBlock,
        /// A read of the array costs no energy, one in 16.
        UnpaidRead,
        /// A program costs no energy, one in 16.
        UnpaidProgram,
        /// An erase costs no energy, one in four.
        UnpaidErase,
        /// Data on a channel cost no energy, one command in 16.
        UnpaidTransfer,
        /// What an array of flash as memory does costs no energy, one in 16.
        UnpaidPageOfMemory,
        /// An erase does not wear its block, one in 16.
        FreeErase,
        /// A page that has left a drive's register is still held, though the register is free, one in 1,009.
        HeldTwice,
        /// A dirty page leaves its register without being programmed.
        DroppedRegister,
        /// An SSD engine drops a dirty page instead of writing it.
        DroppedByEngine,
    }
    "mem" {
        /// The shared cache drops a dirty line instead of writing it to memory, one in 16.
        DroppedLine,
        /// A store to a line of the shared cache does not make it dirty, one in 16.
        LostStore,
        /// A line of the shared cache that was written in part counts as whole.
        PartialLine,
        /// A fetch that a write has passed on its way to memory is kept.
        StaleFetch,
        /// A line stays in the shared cache although it was written through.
        StaleLine,
        /// A line of a parked page does not go to memory with it.
        LostParked,
        /// A line of a page that overcrowded registers hand back is not parked.
        UnparkedLine,
        /// A DRAM cache drops a changed page, one in four.
        DroppedPage,
        /// A write to a page of a DRAM cache does not change it.
        CleanPage,
        /// A line that an owner has changed and now shares does not reach its bank, one in four.
        LostSpill,
        /// A read of a line that its owner has changed takes the bank's old copy, one in four.
        StaleBank,
        /// Of the copies of a line that must go, one is not probed, one time in four.
        SkippedProbe,
        /// A translation stays in a buffer although its page has gone.
        StaleTranslation,
        /// A translation buffer ignores which application asks.
        ForeignTranslation,
        /// Every second refresh of DRAM is left out.
        SkippedRefresh,
        /// A refresh of DRAM costs no energy.
        UnpaidRefresh,
        /// An activation of DRAM costs no energy, one in 16.
        UnpaidActivation,
        /// A burst that is written to DRAM costs what one that is read does.
        WriteAsRead,
        /// A row of DRAM is opened without the one before being closed.
        FreePrecharge,
        /// Both pages of an exchange are written to the frames that they had.
        UnmovedPage,
        /// Pages have changed their frames, and the table has them where they were.
        StaleTable,
        /// Pages have changed their frames, and each frame knows the page that it had.
        StaleFrame,
    }
    "compute" {
        /// A core drops a changed line, one in 16.
        LostWriteBackOfCore,
        /// A core says that it has not changed a line that it gives away, one in four.
        HiddenChange,
        /// A core keeps a line that it was told to give up, one in 16.
        KeptLine,
        /// A core drops a line and does not say so, one in 16.
        SilentDrop,
        /// A line of a warp's instruction is not accessed, one in 101.
        LostLane,
        /// An instruction of a warp does not wait for the registers that it reads, one in four.
        EarlyIssue,
        /// A cycle in which multiprocessors issue costs no energy, one in 16.
        UnpaidIssue,
        /// A time in which a core of a server is at work costs no energy, one in four.
        UnpaidCore,
        /// A worker turns to something else, and its power stays, one time in 16.
        UnpaidWorker,
    }
    "net" {
        /// A network on a chip does not carry headers.
        FreeHeader,
        /// A packet does not hold the link out of a network on a chip.
        SharedLink,
        /// A packet does not hold the links between routers of a mesh.
        FreeHop,
        /// What goes to a device over PCI Express takes no time.
        FreeBytes,
        /// What goes to the host over PCI Express passes what is on the link, one packet in 16.
        Overtaking,
        /// A frame over Serial ATA does not wait for the answers around it.
        FreeHandshake,
        /// Bytes over PCI Express cost no energy, one transfer in 16.
        UnpaidPacket,
    }
    "host" {
        /// A part of a command over several drives, but the first, goes to the drive behind its own.
        WrongDrive,
        /// The last part of a command over several drives goes nowhere, and is not waited for.
        LostPart,
        /// A command over several drives is answered with the first of its parts.
        EarlyStripe,
        /// An operating system drops a changed page, one in four.
        DroppedFrame,
        /// A fault of a GPU is never resolved, one in 16.
        LostFault,
        /// The host drops a part of a GPU's memory that makes room, one in four.
        DroppedGranule,
        /// A journal writes its commit block before ordered data are on the drive.
        EarlyCommit,
        /// A sync that has nothing to commit does not flush the drive.
        UnflushedSync,
        /// A sync does not wait for the commit of its transaction, one in four.
        EarlySync,
        /// A sync waits for the transaction before the one that holds its changes.
        OlderCommit,
        /// Reclaim frees dirty pages.
        ReclaimedDirty,
        /// A burst of a thread on a core of a host costs no energy, one in 16.
        UnpaidThread,
        /// What a completion says of a drive's buffer is read the other way round, one in 16.
        CorruptedHead,
    }
    "stats" {
        /// A percentile is the lower end of its bucket.
        LowPercentile,
    }
    "workload" {
        /// A request of the host is measured twice, one in 101.
        MeasuredTwice,
        /// A request of the host is not measured, one in 101.
        Unmeasured,
        /// A request of a trace is left out, one in 101.
        LeftOut,
        /// Two requests of a trace that follow one another change places, one in 101.
        ChangedPlaces,
    }
    "machine" {
        /// An answer to a core is lost on its way, one in 101.
        LostAnswer,
        /// A command to memory is delivered twice, one in 101.
        TwiceDelivered,
        /// The device goes on counting when the measured window begins.
        OldWindow,
        /// A command of a GPU at the flash device is not noted as its own, one in four.
        Unclaimed,
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

/// Whether a mutant is armed in this thread.
pub fn is_armed() -> bool {
    ARMED.get() != NONE
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
