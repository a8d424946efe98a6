//! Messages of a memory hierarchy: lines between a core's first-level cache and the shared cache, lines of a page between
//! the shared cache and memory, translations.
//!
//! Each message carries the time of its latest milestone, so that every part on its way can say what it has just stopped
//! waiting for, and the parts of a latency sum to the latency.

use crate::Port;
use engine::Time;

/// Bytes of a cache line of a GPU: what a warp's accesses are merged into. Caches and memories are told the bytes of a line
/// ([`Lines`]).
pub const LINE: u64 = 128;
/// Bytes of a cache line of a server.
pub const CPU_LINE: u64 = 64;
/// Bytes of a page: what memory is allocated in, and what flash reads.
pub const PAGE: u64 = 4096;

/// The lines of a page, for a part that is told their size as it is built.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lines {
    shift: u32,
}

impl Lines {
    /// Lines that a page has at most.
    pub const MOST: usize = 64;

    /// Lines of so many bytes.
    ///
    /// # Errors
    /// Any other size than 64, 128, 256 or 512 B.
    pub fn of(bytes: u64) -> Result<Lines, LineError> {
        if matches!(bytes, 64 | 128 | 256 | 512) {
            Ok(Lines { shift: bytes.trailing_zeros() })
        } else {
            Err(LineError { bytes })
        }
    }

    /// Bytes of a line.
    #[inline]
    pub fn bytes(self) -> u64 {
        1 << self.shift
    }

    /// Lines of a page.
    #[inline]
    pub fn count(self) -> u32 {
        (PAGE >> self.shift) as u32
    }

    /// All lines of a page, as a command has them.
    #[inline]
    pub fn all(self) -> u64 {
        u64::MAX >> (u64::BITS - self.count())
    }

    /// Bytes of some lines of a page.
    #[inline]
    pub fn bytes_of(self, lines: u64) -> u64 {
        u64::from(lines.count_ones()) << self.shift
    }
}

/// A size of lines that memories do not have: more than 64 of them in a page, more than a sector of 512 B, or not whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineError {
    /// The size.
    pub bytes: u64,
}

impl std::fmt::Display for LineError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a line of {} B: memories have lines of 64, 128, 256 or 512 B", self.bytes)
    }
}

impl std::error::Error for LineError {}

/// What becomes of an access to a page that memory must bring from flash first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Absent {
    /// It waits until the page is there.
    Wait,
    /// It is answered at once without data, the page is fetched meanwhile, and the requester comes again.
    Signal,
    /// It is answered at once without data, and nothing is fetched: the requester asks again when it may wait.
    Probe,
    /// In an answer to [`Absent::Signal`] or [`Absent::Probe`]: there are no data.
    Signalled,
}

/// What an access does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum AccessKind {
    /// Returns a line. In an answer of a directory: other cores may have it as well.
    Read,
    /// Returns a line that no other core has then. In an answer of a directory: no other core has it.
    Own,
    /// Stores bytes of a line; the answer says that it has been taken.
    Write,
    /// Reads and writes in the shared cache; the answer brings the old value.
    Atomic,
}

/// An access to one line, on its way from a requester to the shared cache, or back as its answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The requester's own name for it.
    pub tag: u32,
    /// What it does.
    pub kind: AccessKind,
    /// First byte of the line, physical.
    pub address: u64,
    /// Bytes read or written.
    pub bytes: u8,
    /// The application.
    pub app: u8,
    /// The requester: a multiprocessor, or, one above the last of them, the memory management unit.
    pub port: u16,
    /// The warp, numbered over the whole machine.
    pub warp: u16,
    /// Address of the instruction, never zero; zero for a page walk.
    pub pc: u32,
    /// What becomes of it if its page is in flash.
    pub absent: Absent,
    /// Its latest milestone.
    pub since: Time,
}

impl Access {
    /// Whether it is a read of a page table. Its translation waits for the walk as a whole, so that its own milestones do
    /// not count.
    #[inline]
    pub fn is_walk(&self) -> bool {
        self.pc == 0
    }
}

/// Instructions of a helper thread that a memory has executed on a multiprocessor, on their way there or back as the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Help {
    /// The sender's own name for it.
    pub tag: u32,
    /// The sender, as the machine knows it: it is filled in on the way.
    pub from: Port,
    /// The helper thread: threads go to multiprocessors in turn.
    pub thread: u32,
    /// How many instructions, at least one.
    pub instructions: u32,
}

/// Lines of one page, on their way from the shared cache or from a DRAM cache to memory, or back as the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemCommand {
    /// The sender's own name for it.
    pub tag: u32,
    /// The sender, as the machine knows it: it is filled in on the way to memory.
    pub from: Port,
    /// First byte of the page, physical.
    pub page: u64,
    /// Lines of the page: bit `n` is the line number `n` from its beginning.
    pub lines: u64,
    /// Whether the lines are stored.
    pub write: bool,
    /// Whether a request of a core waits for it: its milestones count. Not so prefetches and write-backs.
    pub demand: bool,
    /// The application.
    pub app: u8,
    /// The bank of the shared cache, or the controller of a DRAM cache, that it comes from.
    pub port: u16,
    /// Address of the instruction behind it, zero if there is none.
    pub pc: u32,
    /// What becomes of it if its page is in flash.
    pub absent: Absent,
    /// Its latest milestone.
    pub since: Time,
}

impl MemCommand {
    /// Bytes of its lines, each of `line` bytes.
    #[inline]
    pub fn bytes(&self, line: u64) -> u64 {
        u64::from(self.lines.count_ones()) * line
    }
}

/// A page's translation that a core lacks, and its answer. A page here is the reach of one translation entry, which the
/// page table says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Translation {
    /// The multiprocessor that asks.
    pub port: u16,
    /// The application.
    pub app: u8,
    /// Virtual page.
    pub page: u64,
    /// Physical page; in the answer.
    pub frame: u64,
    /// What becomes of it if the page, or an entry of its tables, is in flash.
    pub absent: Absent,
    /// When the core asked.
    pub since: Time,
}

/// What a request stops waiting for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Stage {
    /// The load-store unit and the first-level cache.
    L1,
    /// A request of the same core for the same line.
    L1Merge,
    /// The second-level TLB.
    Tlb,
    /// The page walk.
    Walk,
    /// The page fault.
    Fault,
    /// The network between cores, cache banks and controllers.
    Network,
    /// The bank of the shared cache.
    L2,
    /// A fetch of the same data that another request had begun.
    L2Merge,
    /// The controller in front of memory.
    Controller,
    /// Address translation of the flash.
    Ftl,
    /// The DRAM buffer of an SSD.
    Buffer,
    /// DRAM or persistent memory.
    Memory,
    /// Flash registers.
    Register,
    /// The network between flash controllers and packages, and inside packages.
    FlashNetwork,
    /// The flash array: waiting for the plane, and reading it.
    Array,
    /// Garbage collection that blocks the application.
    Reclaim,
    /// The directory, and the first-level caches of other cores.
    Coherence,
    /// The tags of a DRAM cache.
    Tags,
    /// The way of a missing page from flash into a DRAM cache.
    Refill,
    /// The move of its page from one memory to another.
    Migration,
}

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = 20;
    /// Their names, in order.
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

/// Time waited for each stage, summed over requests: one part's share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    reads: [u128; Stage::COUNT],
    writes: [u128; Stage::COUNT],
}

impl Tally {
    /// A request has stopped waiting for `stage`; `since` is its latest milestone, and becomes `now`.
    #[inline]
    pub fn reach(&mut self, stage: Stage, write: bool, since: &mut Time, now: Time) {
        let sums = if write { &mut self.writes } else { &mut self.reads };
        sums[stage as usize] += u128::from(now.since(*since).ps());
        *since = now;
    }

    /// As [`Tally::reach`], for an access; nothing for a page walk's. Atomics count as reads: somebody waits for the value.
    #[inline]
    pub fn access(&mut self, stage: Stage, access: &mut Access, now: Time) {
        if access.is_walk() {
            access.since = now;
        } else {
            self.reach(stage, access.kind == AccessKind::Write, &mut access.since, now);
        }
    }

    /// As [`Tally::reach`], for a command; nothing for one that nobody waits for.
    #[inline]
    pub fn command(&mut self, stage: Stage, command: &mut MemCommand, now: Time) {
        if command.demand {
            self.reach(stage, command.write, &mut command.since, now);
        } else {
            command.since = now;
        }
    }

    /// Picoseconds that reads and atomics have waited for each stage.
    pub fn reads(&self) -> &[u128; Stage::COUNT] {
        &self.reads
    }

    /// Picoseconds that writes have waited for each stage.
    pub fn writes(&self) -> &[u128; Stage::COUNT] {
        &self.writes
    }

    /// Adds another part's share.
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
            let lines = built.expect("a size that memories have");
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
