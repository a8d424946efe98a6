//! Messages of a memory hierarchy: lines between a core's first-level cache and the shared cache, lines of a page
//! between the shared cache and memory, translations.
//!
//! Each message carries the time of its latest milestone. Every component on the way can thus account for the stage
//! that has just ended, and the parts of a latency sum to the latency.

use crate::Port;
use engine::Time;

/// Cache line size of a GPU in bytes, to which a warp's accesses are coalesced. Caches and memories are told the line
/// size ([`Lines`]).
pub const LINE: u64 = 128;
/// Cache line size of a server in bytes.
pub const CPU_LINE: u64 = 64;
/// Page size in bytes: the unit of memory allocation and of flash reads.
pub const PAGE: u64 = 4096;

/// Line layout of a page, for a component that is told the line size when it is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    shift: u32,
}

impl Lines {
    /// Maximum number of lines in a page.
    pub const MOST: usize = 64;

    /// Layout with lines of `bytes` bytes.
    ///
    /// # Errors
    /// If the size is not 64, 128, 256 or 512 B.
    pub fn of(bytes: u64) -> Result<Lines, LineError> {
        if matches!(bytes, 64 | 128 | 256 | 512) {
            Ok(Lines { shift: bytes.trailing_zeros() })
        } else {
            Err(LineError { bytes })
        }
    }

    /// Line size in bytes.
    #[inline]
    pub fn bytes(self) -> u64 {
        1 << self.shift
    }

    /// Number of lines in a page.
    #[inline]
    pub fn count(self) -> u32 {
        (PAGE >> self.shift) as u32
    }

    /// Mask of all lines of a page, as in a command.
    #[inline]
    pub fn all(self) -> u64 {
        u64::MAX >> (u64::BITS - self.count())
    }

    /// Bytes of the lines in a mask.
    #[inline]
    pub fn bytes_of(self, lines: u64) -> u64 {
        u64::from(lines.count_ones()) << self.shift
    }
}

/// Unsupported line size: more than 64 lines in a page, larger than a sector of 512 B, or not a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineError {
    /// Line size in bytes.
    pub bytes: u64,
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line size of {} B is not supported; allowed sizes: 64, 128, 256, 512 B", self.bytes)
    }
}

impl std::error::Error for LineError {}

/// Handling of an access to a page that must first be read from flash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Absent {
    /// Waits until the page is present.
    Wait,
    /// Answered at once without data; the page is read meanwhile, and the requester retries.
    Signal,
    /// Answered at once without data, and the page is not read: the requester retries when it may wait.
    Probe,
    /// Answer to [`Absent::Signal`] or [`Absent::Probe`] without data.
    Signalled,
}

/// Kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AccessKind {
    /// Returns a line. In an answer of a directory: other cores may have it too.
    Read,
    /// Returns a line exclusively. In an answer of a directory: other cores do not have it.
    Own,
    /// Stores bytes of a line; the answer acknowledges them.
    Write,
    /// Reads and writes in the shared cache; the answer returns the old value.
    Atomic,
}

/// Access to one line, on its way from a requester to the shared cache, or back as its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Requester's own tag.
    pub tag: u32,
    /// Kind of the access.
    pub kind: AccessKind,
    /// First byte of the line, physical.
    pub address: u64,
    /// Bytes read or written.
    pub bytes: u8,
    /// Application.
    pub app: u8,
    /// Requester: a multiprocessor, or, one above the last of them, the memory management unit.
    pub port: u16,
    /// Warp, numbered over the whole machine.
    pub warp: u16,
    /// Address of the instruction, never zero; zero for a page walk.
    pub pc: u32,
    /// Handling if its page is in flash.
    pub absent: Absent,
    /// Time of its latest milestone.
    pub since: Time,
}

impl Access {
    /// Returns whether the access reads a page table. Its translation waits for the whole walk, so its own milestones
    /// do not count.
    #[inline]
    pub fn is_walk(&self) -> bool {
        self.pc == 0
    }
}

/// Helper-thread instructions that a memory has executed on a multiprocessor, on their way there or back as the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Help {
    /// Sender's own tag.
    pub tag: u32,
    /// Sender, as known to the machine: filled in on the way.
    pub from: Port,
    /// Helper thread; threads are assigned to multiprocessors in turn.
    pub thread: u32,
    /// Number of instructions, at least one.
    pub instructions: u32,
}

/// Lines of one page, on their way from the shared cache or from a DRAM cache to memory, or back as the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemCommand {
    /// Sender's own tag.
    pub tag: u32,
    /// Sender, as known to the machine: filled in on the way to memory.
    pub from: Port,
    /// First byte of the page, physical.
    pub page: u64,
    /// Lines of the page: bit `n` is line `n` from its beginning.
    pub lines: u64,
    /// True if the lines are stored.
    pub write: bool,
    /// True if a request of a core waits for it, so that its milestones count. False for prefetches and write-backs.
    pub demand: bool,
    /// Application.
    pub app: u8,
    /// Source: the bank of the shared cache, or the controller of a DRAM cache.
    pub port: u16,
    /// Address of the instruction that caused it, zero without one.
    pub pc: u32,
    /// Handling if its page is in flash.
    pub absent: Absent,
    /// Time of its latest milestone.
    pub since: Time,
}

impl MemCommand {
    /// Bytes of its lines, each of `line` bytes.
    #[inline]
    pub fn bytes(&self, line: u64) -> u64 {
        u64::from(self.lines.count_ones()) * line
    }
}

/// Translation of a page that a core lacks, and its answer. A page here is the reach of one translation entry, as
/// defined by the page table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// Requesting multiprocessor.
    pub port: u16,
    /// Application.
    pub app: u8,
    /// Virtual page.
    pub page: u64,
    /// Physical page, in the answer.
    pub frame: u64,
    /// Handling if the page, or an entry of its tables, is in flash.
    pub absent: Absent,
    /// Time of the core's request.
    pub since: Time,
}

/// Stage of a request's wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Stage {
    /// Load-store unit and first-level cache.
    L1,
    /// Earlier request of the same core for the same line.
    L1Merge,
    /// Second-level TLB.
    Tlb,
    /// Page walk.
    Walk,
    /// Page fault.
    Fault,
    /// Network between cores, cache banks and controllers.
    Network,
    /// Bank of the shared cache.
    L2,
    /// Fetch of the same data by an earlier request.
    L2Merge,
    /// Controller in front of memory.
    Controller,
    /// Address translation of the flash.
    Ftl,
    /// DRAM buffer of an SSD.
    Buffer,
    /// DRAM or persistent memory.
    Memory,
    /// Flash registers.
    Register,
    /// Network between flash controllers and packages, and inside packages.
    FlashNetwork,
    /// Flash array: waiting for the plane, and reading it.
    Array,
    /// Garbage collection that blocks the application.
    Reclaim,
    /// Directory, and first-level caches of other cores.
    Coherence,
    /// Tags of a DRAM cache.
    Tags,
    /// Transfer of a missing page from flash into a DRAM cache.
    Refill,
    /// Migration of the request's page from one memory to another.
    Migration,
}

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = 20;
    /// Names of the stages, in order.
    pub const NAMES: [&'static str; Stage::COUNT] = [
        "l1",
        "l1_merge",
        "tlb",
        "walk",
        "fault",
        "network",
        "l2",
        "l2_merge",
        "controller",
        "ftl",
        "buffer",
        "memory",
        "register",
        "flash_network",
        "array",
        "reclaim",
        "coherence",
        "tags",
        "refill",
        "migration",
    ];
}

/// Wait time by stage, summed over requests: the share of one component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    reads: [u128; Stage::COUNT],
    writes: [u128; Stage::COUNT],
}

impl Tally {
    /// Ends a request's wait for `stage`; `since` is its latest milestone, and becomes `now`.
    #[inline]
    pub fn reach(&mut self, stage: Stage, write: bool, since: &mut Time, now: Time) {
        let sums = if write { &mut self.writes } else { &mut self.reads };
        sums[stage as usize] += u128::from(now.since(*since).ps());
        *since = now;
    }

    /// Ends the wait of an access, like [`Tally::reach`]; ignores page walks. Atomics count as reads, since the
    /// requester waits for the value.
    #[inline]
    pub fn access(&mut self, stage: Stage, access: &mut Access, now: Time) {
        if access.is_walk() {
            access.since = now;
        } else {
            self.reach(stage, access.kind == AccessKind::Write, &mut access.since, now);
        }
    }

    /// Ends the wait of a command, like [`Tally::reach`]; ignores commands without a waiting request.
    #[inline]
    pub fn command(&mut self, stage: Stage, command: &mut MemCommand, now: Time) {
        if command.demand {
            self.reach(stage, command.write, &mut command.since, now);
        } else {
            command.since = now;
        }
    }

    /// Wait of reads and atomics for each stage, in picoseconds.
    pub fn reads(&self) -> &[u128; Stage::COUNT] {
        &self.reads
    }

    /// Wait of writes for each stage, in picoseconds.
    pub fn writes(&self) -> &[u128; Stage::COUNT] {
        &self.writes
    }

    /// Adds the share of another component.
    pub fn add(&mut self, other: &Tally) {
        for n in 0..Stage::COUNT {
            self.reads[n] += other.reads[n];
            self.writes[n] += other.writes[n];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CPU_LINE, LINE, LineError, Lines, PAGE, Stage, Tally};
    use engine::Time;

    #[test]
    fn stages_tile_a_life() {
        let (mut tally, mut since) = (Tally::default(), Time::from_ns(5));
        tally.reach(Stage::L1, false, &mut since, Time::from_ns(7));
        tally.reach(Stage::Array, false, &mut since, Time::from_ns(3_007));
        tally.reach(Stage::Reclaim, true, &mut since, Time::from_ns(3_010));
        assert_eq!(tally.reads().iter().sum::<u128>(), 3_002_000);
        assert_eq!(tally.writes()[Stage::Reclaim as usize], 3_000);
        assert_eq!(Stage::Migration as usize, Stage::COUNT - 1);
    }

    #[test]
    fn lines_are_powers_of_two_of_a_page() {
        for bytes in (0..=2 * PAGE).chain([u64::MAX]) {
            let built = Lines::of(bytes);
            if ![64, 128, 256, 512].contains(&bytes) {
                assert_eq!(built, Err(LineError { bytes }));
                continue;
            }
            let lines = built.expect("a supported line size");
            let count = PAGE / bytes;
            assert_eq!((lines.bytes(), u64::from(lines.count())), (bytes, count));
            assert_eq!(
                (u64::from(lines.all().count_ones()), lines.all().trailing_ones()),
                (count, lines.count())
            );
            assert_eq!((lines.bytes_of(lines.all()), lines.bytes_of(0b101)), (PAGE, 2 * bytes));
            assert!(lines.count() as usize <= Lines::MOST);
        }
        assert_eq!([CPU_LINE, LINE].map(|line| Lines::of(line).map(Lines::count)), [Ok(64), Ok(32)]);
    }
}
