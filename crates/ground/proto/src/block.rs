//! Block commands and completions, their addresses and batches, and accounts of their time.

use engine::Time;

/// Operation of a block command.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum IoOp {
    /// Returns data.
    Read,
    /// Stores data.
    Write,
    /// Deallocates (TRIM, discard).
    Trim,
    /// Stores zeroes without a data transfer.
    WriteZeroes,
    /// Makes every acknowledged write durable.
    Flush,
}

/// One request of a workload: a trace line or a generator draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRequest {
    /// Issue time by the application, since the start of the workload.
    pub at: Time,
    /// Operation.
    pub op: IoOp,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; zero for a flush.
    pub bytes: u64,
    /// Stream of the request: a trace's device or volume, an fio job.
    pub flow: u16,
    /// Force unit access: durable before it completes.
    pub fua: bool,
}

/// Receiver of a request's answer: a component of the machine. The responder copies it without interpreting it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u16);

/// Bit of a submission queue number that marks a queue of a processor inside the drive, not of the host.
pub const INNER: u16 = 1 << 15;

/// Block command as seen by the device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// Sender's identifier, returned in the completion.
    pub tag: u32,
    /// Sender, as known to the machine: filled in on the way to the device.
    pub from: Port,
    /// Operation.
    pub op: IoOp,
    /// Force unit access.
    pub fua: bool,
    /// First byte of the extent.
    pub offset: u64,
    /// Length of the extent in bytes.
    pub bytes: u64,
    /// Submission queue; from [`INNER`] up, a queue of a processor inside the drive.
    pub queue: u16,
    /// Stream of the command.
    pub flow: u16,
    /// Namespace, counted from one as in NVMe.
    pub namespace: u16,
    /// Data placement hint; zero means none.
    pub placement: u8,
    /// Host priority: 0 urgent, 1 high, 2 medium, 3 low.
    pub priority: u8,
    /// Size in pages of [`ANNOUNCED_PAGE`] bytes of the page victimization that begins with this command, its own pages
    /// included; zero for none (FastDrain, section 3.3). A device may ignore it.
    pub announced: u32,
}

/// Page size in bytes for [`Command::announced`]: that of the host's page cache.
pub const ANNOUNCED_PAGE: u64 = 4096;

impl Command {
    /// Creates a command of namespace 1 and medium priority, in the first queue, without hints.
    pub fn new(tag: u32, op: IoOp, offset: u64, bytes: u64) -> Command {
        Command {
            tag,
            from: Port::default(),
            op,
            fua: false,
            offset,
            bytes,
            queue: 0,
            flow: 0,
            namespace: 1,
            placement: 0,
            priority: 2,
            announced: 0,
        }
    }
}

/// Outcome of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Success.
    Success,
    /// Data could not be read back; carries no data.
    UnrecoveredRead,
    /// Write refused: the device has run out of free blocks to reclaim into.
    WriteFault,
}

/// State of a device's data buffer, reported in a completion: the status that FastDrain (section 3.3) writes into
/// `sq_head`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum BufferState {
    /// Not reported by the device.
    #[default]
    Unknown,
    /// Buffer with room.
    Room,
    /// Buffer that has been full, and has not been emptied since.
    Full,
}

/// Answer of a device to a [`Command`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// Tag of the command.
    pub tag: u32,
    /// Sender of the command.
    pub to: Port,
    /// Outcome.
    pub status: Status,
    /// Map units in error.
    pub errors: u32,
    /// State of the device's buffer.
    pub buffer: BufferState,
}

/// Number of milestones of a command inside a device, which names them.
pub const MILESTONES: usize = 12;

/// Operation that occupies a die or a channel while others wait.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Holder {
    /// Read for a command, or of data that a command needs.
    HostRead,
    /// Program of host data, from a buffer or a command.
    HostProgram,
    /// Read of garbage collection or wear levelling.
    CollectionRead,
    /// Program or copy-back of garbage collection or wear levelling.
    CollectionProgram,
    /// Erase.
    Erase,
    /// Read or program of the mapping table.
    Mapping,
    /// Read-ahead of a stream, before a command waits for it.
    LookAhead,
    /// No operation. At a die: the command waited for its channel or, where planes read independently, for those of the
    /// other planes.
    Nobody,
}

impl Holder {
    /// Number of holders.
    pub const COUNT: usize = 8;
    /// Names of the holders, in order; the last names the resource waited for at a die without an operation.
    pub const NAMES: [&'static str; Holder::COUNT] = [
        "host_read",
        "host_program",
        "collection_read",
        "collection_program",
        "erase",
        "mapping",
        "look_ahead",
        "channel",
    ];
}

/// Wait times by holder, in picoseconds.
pub type ByHolder = [u64; Holder::COUNT];

/// Time account of a command inside a device, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Time before each milestone; the sum is the command's time in the device.
    pub waits: [u64; MILESTONES],
    /// Wait for a die, by holder; all zero if the command did not wait.
    pub die: ByHolder,
    /// Wait for a channel after the read of the data, by holder.
    pub channel: ByHolder,
    /// Place of the last operation that the command waited for; `None` without one.
    pub place: Option<Place>,
}

/// Die of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Drive, as numbered by the machine: filled in on the way from the device.
    pub drive: u16,
    /// Die of the drive.
    pub die: u32,
    /// Channel of the die.
    pub channel: u32,
    /// Start of the operation on the die.
    pub started: Time,
}

/// Batch sizes of the thread of a queue, as in fio's `iodepth_batch_submit`, `iodepth_batch_complete_min`,
/// `iodepth_batch_complete_max` and `iodepth_low`.
///
/// The thread submits until its queue is full. Then it takes completions until no more than `low` requests are
/// outstanding, and submits again (`do_io` and `wait_for_completions` of fio's `backend.c`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batches {
    /// Maximum outstanding requests, at which the queue is full.
    pub depth: u32,
    /// Requests per submission; fewer if the thread has no more.
    pub submit: u32,
    /// Completions that the thread of a full queue waits for.
    pub complete_min: u32,
    /// Maximum completions taken at once, unless it waits for more.
    pub complete_max: u32,
    /// Outstanding requests at which a full queue is refilled.
    pub low: u32,
}

impl Batches {
    /// Batches of one request at a time, fio's default, for an unbounded queue.
    pub const ONE: Batches =
        Batches { depth: u32::MAX, submit: 1, complete_min: 1, complete_max: 1, low: u32::MAX };

    /// Number of completions that the thread takes now, of `ended` available ones; `outstanding` requests have not been
    /// taken, ended ones included. If the queue is not full, the thread has nothing to submit and takes each completion
    /// as it arrives (`io_u_quiesce`).
    #[inline]
    pub fn takes(&self, ended: u32, outstanding: u32, full: bool) -> u32 {
        let least = if full { self.complete_min.min(outstanding).max(1) } else { 1 };
        if ended < least { 0 } else { ended.min(self.complete_max.max(least)) }
    }
}

// Address newtypes.

/// Logical map unit: the index of a map-unit-sized piece of the logical space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lpn(pub u64);

/// Physical map unit: a place in the NAND array that can hold one logical map unit.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Slot(pub u64);

macro_rules! snapshots {
    ($($t:ident),*) => {$(
        impl engine::Snapshot for $t {
            fn save(&self, out: &mut Vec<u8>) {
                self.0.save(out);
            }
            fn load(input: &mut &[u8]) -> Option<$t> {
                u64::load(input).map($t)
            }
        }
    )*};
}

snapshots!(Lpn, Slot);

#[cfg(test)]
mod tests {
    use super::*;

    /// fio's documentation of `iodepth_batch_complete_min` and `iodepth_batch_complete_max`, and `td_io_getevents`.
    #[test]
    fn a_full_queue_waits_for_the_least_and_takes_the_most() {
        let batches = |complete_min, complete_max| Batches { complete_min, complete_max, ..Batches::ONE };
        for (min, max, ended, outstanding, taken) in [
            (1, 1, 0, 32, 0),
            (1, 1, 5, 32, 1),
            (8, 8, 7, 32, 0),
            (8, 8, 9, 32, 8),
            (8, 16, 20, 32, 16),
            // A maximum below the minimum is ignored.
            (8, 4, 8, 32, 8),
            // Fewer requests are outstanding than the minimum.
            (8, 8, 3, 3, 3),
            (0, 32, 0, 32, 0),
            (0, 32, 2, 32, 2),
        ] {
            assert_eq!(batches(min, max).takes(ended, outstanding, true), taken, "{min} {max} {ended}");
        }
        assert_eq!(batches(8, 8).takes(3, 20, false), 3);
        assert_eq!(Batches::ONE.takes(3, 20, false), 1);
    }
}
