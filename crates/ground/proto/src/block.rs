//! Block commands and completions, their addresses and batches, and an account of where their time went.

use engine::Time;

/// What a block command does.
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

/// One request of a workload: what a trace line or a generator draw says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IoRequest {
    /// When the application issues it, since the start of the workload.
    pub at: Time,
    /// What it does.
    pub op: IoOp,
    /// First byte.
    pub offset: u64,
    /// Length in bytes; zero for a flush.
    pub bytes: u64,
    /// The stream it belongs to: a trace's device or volume, an fio job.
    pub flow: u16,
    /// Force unit access: durable before it completes.
    pub fua: bool,
}

/// Whom a request is answered: a part of the machine. Whoever answers copies it and does not look inside.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Port(pub u16);

/// Bit of a submission queue's number that says that it belongs to a processor inside the drive, and not to the host.
pub const INNER: u16 = 1 << 15;

/// A block command as the device sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Command {
    /// The sender's name for it; comes back in the completion.
    pub tag: u32,
    /// The sender, as the machine knows it: it is filled in on the way to the device.
    pub from: Port,
    /// What it does.
    pub op: IoOp,
    /// Force unit access.
    pub fua: bool,
    /// First byte of the extent.
    pub offset: u64,
    /// Length of the extent in bytes.
    pub bytes: u64,
    /// Submission queue; from [`INNER`] up, one of a processor inside the drive.
    pub queue: u16,
    /// The stream it belongs to.
    pub flow: u16,
    /// Namespace, counted from one as in NVMe.
    pub namespace: u16,
    /// Data placement hint; zero means none.
    pub placement: u8,
    /// Host priority: 0 urgent, 1 high, 2 medium, 3 low.
    pub priority: u8,
    /// A page victimization of so many pages of [`ANNOUNCED_PAGE`] bytes begins with this command, its own among them; zero: none
    /// does (FastDrain, section 3.3). A device need not read it.
    pub announced: u32,
}

/// Bytes of a page in [`Command::announced`]: those of the host's page cache.
pub const ANNOUNCED_PAGE: u64 = 4096;

impl Command {
    /// A command of namespace 1 and medium priority, in the first queue, without hints.
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

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Done as asked.
    Success,
    /// Data could not be read back; carries no data.
    UnrecoveredRead,
    /// The device cannot take writes any more: no free block is left to reclaim into.
    WriteFault,
}

/// What a device says of its data buffer in a completion: the status that FastDrain (section 3.3) writes into `sq_head`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum BufferState {
    /// Nothing: the device does not tell.
    #[default]
    Unknown,
    /// It has room.
    Room,
    /// It has been full, and has not been emptied yet.
    Full,
}

/// The device's answer to a [`Command`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Completion {
    /// The command's tag.
    pub tag: u32,
    /// The command's sender.
    pub to: Port,
    /// How it ended.
    pub status: Status,
    /// Map units that were in error.
    pub errors: u32,
    /// What the device says of its buffer.
    pub buffer: BufferState,
}

/// Milestones of a command inside a device; what they are called is the device's affair.
pub const MILESTONES: usize = 12;

/// Who holds a die or a channel while others wait for it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Holder {
    /// A read of a command, or data that it needs.
    HostRead,
    /// A program of the host's data, from a buffer or from a command.
    HostProgram,
    /// A read of garbage collection, or of wear levelling.
    CollectionRead,
    /// A program or a copy-back of these.
    CollectionProgram,
    /// An erase.
    Erase,
    /// A read or a program of the mapping table.
    Mapping,
    /// A read ahead of a stream, which nobody waits for yet.
    LookAhead,
    /// Nobody. At a die: the command waited for its channel or, where planes read independently, for those of the other planes.
    Nobody,
}

impl Holder {
    /// How many there are.
    pub const COUNT: usize = 8;
    /// Their names, in order; that of the last is what is waited for at a die that nobody holds.
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

/// Times by who was in the way, picoseconds.
pub type ByHolder = [u64; Holder::COUNT];

/// A command's life inside a device, all in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// The time before each milestone; they sum to the time that the device had the command.
    pub waits: [u64; MILESTONES],
    /// Of the wait for a die: who held it. Zero throughout if there was no such wait.
    pub die: ByHolder,
    /// Of the wait for a channel with data that had been read: who held it.
    pub channel: ByHolder,
    /// Where the operation worked that the command waited for last; nothing if it waited for none.
    pub place: Option<Place>,
}

/// A die of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// The drive, as the machine numbers them: it is filled in on the way from the device.
    pub drive: u16,
    /// The die.
    pub die: u32,
    /// Its channel.
    pub channel: u32,
    /// When the operation began there.
    pub started: Time,
}

/// The batches in which the thread of a queue works, as fio's `iodepth_batch_submit`, `iodepth_batch_complete_min`, `iodepth_batch_complete_max`
/// and `iodepth_low` say them.
///
/// The thread submits until its queue is full. Then it takes completions until no more than `low` requests are outstanding, and
/// submits again (`do_io` and `wait_for_completions` of fio's `backend.c`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batches {
    /// Requests outstanding at most; with as many the queue is full.
    pub depth: u32,
    /// Requests of a submission; fewer if the thread has no more.
    pub submit: u32,
    /// Completions that the thread of a full queue waits for.
    pub complete_min: u32,
    /// Completions that it takes at once at most, if no more are waited for.
    pub complete_max: u32,
    /// Requests outstanding at which a queue that was full is filled again.
    pub low: u32,
}

impl Batches {
    /// One request at a time, as fio does by itself, of a queue without a bound.
    pub const ONE: Batches =
        Batches { depth: u32::MAX, submit: 1, complete_min: 1, complete_max: 1, low: u32::MAX };

    /// Completions that the thread takes now, of `ended` that have come; `outstanding` requests have not been taken, those that have ended
    /// among them. If the queue is not full, the thread has nothing to submit yet and takes each completion as it comes (`io_u_quiesce`).
    #[inline]
    pub fn takes(&self, ended: u32, outstanding: u32, full: bool) -> u32 {
        let least = if full { self.complete_min.min(outstanding).max(1) } else { 1 };
        if ended < least { 0 } else { ended.min(self.complete_max.max(least)) }
    }
}

// Address newtypes.

/// A logical map unit: the index of a map-unit-sized piece of the logical space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lpn(pub u64);

/// A physical map unit: a place in the NAND array that can hold one logical map unit.
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
            // No more than the minimum is asked for where the maximum is below it.
            (8, 4, 8, 32, 8),
            // Fewer are outstanding than are to be waited for.
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
