//! What a command waited for inside a device, and who was in its way.

use engine::Time;

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
