//! Injected faults, which prove that the checks find them.
//!
//! A component calls [`planted`] where a fault can be injected, and misbehaves if that mutant is armed in this thread.
//! Without debug assertions the call is the constant `false`. To add a mutant: a line in the list below, the call in
//! the code that it breaks, and a run that kills it in `crates/machine/machine/tests/mutants/`.

use std::cell::Cell;

macro_rules! mutants {
    ($($part:literal { $($(#[doc = $breaks:literal])+ $name:ident,)+ })+) => {
        /// Injected fault.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Mutant {
            $($($(#[doc = $breaks])+ $name,)+)+
        }

        impl Mutant {
            /// All mutants.
            pub const ALL: &[Mutant] = &[$($(Mutant::$name,)+)+];

            /// Returns the crate that the mutant breaks; `control` if it is harmless and must survive.
            pub const fn part(self) -> &'static str {
                match self {
                    $($(Mutant::$name)|+ => $part,)+
                }
            }

            /// Describes what the mutant breaks.
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
        /// A die erases before it does anything else; harmless, because pins keep reads safe.
        EagerErase,
    }
    "flash" {
        /// Two units of one program unit are swapped in the map.
        SwappedEntries,
        /// A moved copy is committed although the host has overwritten its source.
        StaleCopy,
        /// The array loses a program.
        LostProgram,
        /// A write is acknowledged before it is durable: a read can pass it.
        EarlyAcknowledge,
        /// A deallocated unit reappears.
        TrimUndone,
        /// A deallocation completes, but nothing is deallocated.
        TrimIgnored,
        /// A block is erased at once, although reads of it are waiting.
        PinIgnored,
        /// Stale data is merged into a partly written unit.
        BlindMerge,
        /// The buffer drops a dirty line.
        LostLine,
        /// A flush completes before anything is on flash.
        EarlyFlush,
        /// A forced-unit-access write completes before it is on flash.
        FuaIgnored,
        /// A read bypasses the buffer and overtakes the writes in it.
        BufferPassed,
        /// A unit that was deallocated on its way from the buffer to flash reappears.
        DiscardIgnored,
        /// Only the first of a program's several units reaches the array.
        TornProgram,
        /// A dirty entry evicted from the map cache is not written to its translation page.
        LostWriteBack,
        /// A translation page that changed while it was being programmed keeps its old content.
        StalePage,
        /// A moved copy of a translation page is committed although the page has been written back.
        StalePageCopy,
        /// Read-ahead data enters the buffer although the unit has been written meanwhile.
        StaleFill,
        /// A read is merged with a sensing of its page from before an erase, as if the register still held it.
        MergeAcrossErase,
        /// A translation page is written back without a read, although memory holds only part of it.
        UnreadPage,
        /// Garbage collection moves data to the frontier of a different placement.
        WrongStream,
        /// A command's statistics are recorded twice, one in 101.
        RecordedTwice,
        /// An operation that resumes after a suspend skips the resume time.
        FreeResume,
        /// A die that is told to suspend takes commands at once.
        FreeSuspend,
        /// An operation that resumes after a suspend repeats the work already done.
        RestartedProgram,
        /// An operation is suspended at every read request, ignoring the limit.
        EndlessSuspends,
        /// The free unit that the policy ranks last is opened, one time in four.
        WrongBlock,
        /// An SLC cache opens the unit freed last, one time in four.
        WrongCacheBlock,
        /// A read of the array costs no energy, one in 16.
        UnpaidRead,
        /// A program costs no energy, one in 16.
        UnpaidProgram,
        /// An erase costs no energy, one in four.
        UnpaidErase,
        /// A transfer on a channel costs no energy, one command in 16.
        UnpaidTransfer,
        /// An operation of flash used as memory costs no energy, one in 16.
        UnpaidPageOfMemory,
        /// An erase does not wear its block, one in 16.
        FreeErase,
        /// A page that has left a drive's register still occupies it, although the register is free, one in 1,009.
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
        /// A partly written line of the shared cache counts as whole.
        PartialLine,
        /// A fetch is kept although a write has overtaken it on its way to memory.
        StaleFetch,
        /// A line stays in the shared cache although it was written through.
        StaleLine,
        /// A line of a parked page is not written to memory with it.
        LostParked,
        /// A line of a page returned by overcrowded registers is not parked.
        UnparkedLine,
        /// A DRAM cache drops a dirty page, one in four.
        DroppedPage,
        /// A write to a page of a DRAM cache does not make it dirty.
        CleanPage,
        /// A dirty line that its owner now shares does not reach its bank, one in four.
        LostSpill,
        /// A read of a line that its owner has changed takes the bank's stale copy, one in four.
        StaleBank,
        /// One of a line's copies to invalidate is not probed, one time in four.
        SkippedProbe,
        /// A translation stays in a TLB although its page has gone.
        StaleTranslation,
        /// A TLB ignores which application asks.
        ForeignTranslation,
        /// Every second refresh of DRAM is skipped.
        SkippedRefresh,
        /// A refresh of DRAM costs no energy.
        UnpaidRefresh,
        /// An activation of DRAM costs no energy, one in 16.
        UnpaidActivation,
        /// A write burst to DRAM costs the energy of a read burst.
        WriteAsRead,
        /// A row of DRAM is opened without closing the previous one.
        FreePrecharge,
        /// An exchange writes both pages to their old frames.
        UnmovedPage,
        /// Pages have moved to new frames, but the table keeps the old ones.
        StaleTable,
        /// Pages have moved to new frames, but each frame keeps its old page.
        StaleFrame,
    }
    "compute" {
        /// A core drops a dirty line, one in 16.
        LostWriteBackOfCore,
        /// A core gives a dirty line away as clean, one in four.
        HiddenChange,
        /// A core keeps a line that it was told to give up, one in 16.
        KeptLine,
        /// A core drops a line without reporting it, one in 16.
        SilentDrop,
        /// One line of a warp's instruction is not accessed, one in 101.
        LostLane,
        /// A warp's instruction does not wait for the registers that it reads, one in four.
        EarlyIssue,
        /// A cycle in which SMs issue costs no energy, one in 16.
        UnpaidIssue,
        /// A busy period of a server core costs no energy, one in four.
        UnpaidCore,
        /// A worker changes its activity without changing its power, one time in 16.
        UnpaidWorker,
    }
    "net" {
        /// A network on a chip does not carry headers.
        FreeHeader,
        /// A packet does not occupy the link out of a network on a chip.
        SharedLink,
        /// A packet does not occupy the links between routers of a mesh.
        FreeHop,
        /// A transfer to a device over PCI Express takes no time.
        FreeBytes,
        /// A transfer to the host over PCI Express overtakes what is on the link, one packet in 16.
        Overtaking,
        /// A Serial ATA frame skips its handshake.
        FreeHandshake,
        /// Bytes over PCI Express cost no energy, one transfer in 16.
        UnpaidPacket,
    }
    "host" {
        /// A part of a command over several drives, other than the first, goes to the next drive.
        WrongDrive,
        /// The last part of a command over several drives is neither sent nor waited for.
        LostPart,
        /// A command over several drives completes with the first of its parts.
        EarlyStripe,
        /// An operating system drops a dirty page, one in four.
        DroppedFrame,
        /// A page fault of a GPU is never resolved, one in 16.
        LostFault,
        /// The host drops an evicted granule of a GPU's memory, one in four.
        DroppedGranule,
        /// A journal writes its commit block before ordered data are on the drive.
        EarlyCommit,
        /// A sync with nothing to commit does not flush the drive.
        UnflushedSync,
        /// A sync does not wait for the commit of its transaction, one in four.
        EarlySync,
        /// A sync waits for the transaction before the one that holds its changes.
        OlderCommit,
        /// Reclaim frees dirty pages.
        ReclaimedDirty,
        /// A burst of a host thread costs no energy, one in 16.
        UnpaidThread,
        /// A completion reports the state of a drive's buffer inverted, one in 16.
        CorruptedHead,
    }
    "stats" {
        /// A percentile is the lower end of its bucket.
        LowPercentile,
    }
    "workload" {
        /// A host request is measured twice, one in 101.
        MeasuredTwice,
        /// A host request is not measured, one in 101.
        Unmeasured,
        /// A trace request is left out, one in 101.
        LeftOut,
        /// Two consecutive trace requests are swapped, one in 101.
        ChangedPlaces,
    }
    "machine" {
        /// An answer to a core is lost on its way, one in 101.
        LostAnswer,
        /// A command to memory is delivered twice, one in 101.
        TwiceDelivered,
        /// The device keeps its counts when the measured window begins.
        OldWindow,
        /// A GPU's command at the flash device is not recorded as the GPU's, one in four.
        Unclaimed,
    }
}

/// No mutant.
const NONE: u16 = u16::MAX;

thread_local! {
    static ARMED: Cell<u16> = const { Cell::new(NONE) };
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

/// Returns whether a fault is to be injected here. The constant `false` in a build without debug assertions.
#[inline(always)]
pub fn planted(mutant: Mutant) -> bool {
    cfg!(debug_assertions) && ARMED.get() == mutant as u16
}

/// Works as [`planted`], but only for every `nth` call while armed, from the `nth` on.
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

/// Returns whether a mutant is armed in this thread.
pub fn is_armed() -> bool {
    ARMED.get() != NONE
}

/// Guard that keeps a mutant armed while it lives.
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
