//! Block commands and completions.

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
