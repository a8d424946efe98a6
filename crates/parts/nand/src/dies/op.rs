//! One operation on the NAND array.

use crate::geometry::Address;
use engine::Time;
use proto::Slot;

/// What the die does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Array to page register, then over the channel.
    Read,
    /// Over the channel, then into the array.
    Program,
    /// Erases a block.
    Erase,
    /// Array to array inside a plane, without the channel.
    CopyBack,
}

/// On whose behalf, and how urgently: the queues of a die. Order is the default priority, most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Class {
    /// Mapping page that a command waits for.
    MapRead,
    /// Host read of an urgent command.
    UrgentRead,
    /// Host read of high priority.
    HighRead,
    /// Host read.
    HostRead,
    /// Host read of low priority.
    LowRead,
    /// Read ahead of a stream: nobody waits for it yet.
    AheadRead,
    /// Host data.
    HostProgram,
    /// Mapping page.
    MapProgram,
    /// Garbage collection reads.
    GcRead,
    /// Garbage collection programs.
    GcProgram,
    /// Erases.
    Erase,
}

impl Class {
    /// All classes, in order.
    pub const ALL: [Class; 11] = [
        Class::MapRead,
        Class::UrgentRead,
        Class::HighRead,
        Class::HostRead,
        Class::LowRead,
        Class::AheadRead,
        Class::HostProgram,
        Class::MapProgram,
        Class::GcRead,
        Class::GcProgram,
        Class::Erase,
    ];
    /// Classes.
    pub const COUNT: usize = Class::ALL.len();

    /// Whether the class holds reads that somebody waits for.
    pub fn is_waited_read(self) -> bool {
        self <= Class::LowRead
    }
    /// Whether a plane that reads on its own serves the class: reads of garbage collection take the whole die.
    pub fn is_plane_read(self) -> bool {
        self <= Class::AheadRead
    }
    /// Whether the class is work of garbage collection.
    pub fn is_collection(self) -> bool {
        self >= Class::GcRead
    }
    /// The read class of a host priority: 0 urgent, 1 high, 2 medium, 3 low.
    #[inline]
    pub fn host_read(priority: u8) -> Class {
        [Class::UrgentRead, Class::HighRead, Class::HostRead, Class::LowRead][usize::from(priority & 3)]
    }
}

/// No operation.
pub const NO_OP: u32 = u32::MAX;

/// An operation, from the moment it is queued at its die to its end.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// What the die does.
    pub kind: OpKind,
    /// Queue at the die.
    pub class: Class,
    /// What becomes of it when it is done: a word of its controller's, which is only carried here.
    pub tag: u8,
    /// Plane in the die.
    pub plane: u8,
    /// How often it has been suspended.
    pub suspends: u8,
    /// Further steps that a read was found to need.
    pub(crate) steps: u8,
    /// Map units it covers.
    pub units: u16,
    /// Die.
    pub die: u32,
    /// First map unit.
    pub slot: Slot,
    /// Block number in the plane.
    pub block: u32,
    /// Page in the block.
    pub page: u32,
    /// Page that a copy-back reads.
    pub source_page: u32,
    /// Block of that page.
    pub source_block: u32,
    /// Erase count of the block; left at zero when times do not depend on wear.
    pub erases: u32,
    /// Bytes over the channel.
    pub bytes: u32,
    /// Plane of the register that holds what is programmed, [`NO_OP`] if the data come over the channel.
    pub register: u32,
    /// Who waits for it: meaning depends on the class.
    pub owner: u32,
    /// Its block holds one bit a cell.
    pub is_slc: bool,
    /// A read whose page the last step could not correct.
    pub is_lost: bool,
    /// Its command has gone out.
    pub(crate) is_begun: bool,
    /// It needs no sensing of its own: it has joined another read of its page.
    pub(crate) has_joined: bool,
    /// It needs no sensing: its plane's register holds the page.
    pub(crate) from_register: bool,
    /// Next in the queue.
    pub(crate) next: u32,
    /// Next operation of the same multi-plane command.
    pub(crate) mate: u32,
    /// Next of the reads of the same page that share its sensing.
    pub(crate) joined: u32,
    /// When it was queued.
    pub queued: Time,
    /// When its command went out.
    pub started: Time,
    /// When the array had finished a read.
    pub sensed: Time,
    /// When its data began to leave.
    pub moved: Time,
}

impl Op {
    /// An operation that has not been queued yet, without a tag.
    pub fn new(
        kind: OpKind,
        class: Class,
        at: Address,
        slot: Slot,
        units: u16,
        bytes: u32,
        owner: u32,
    ) -> Op {
        Op {
            kind,
            class,
            tag: 0,
            plane: at.plane,
            suspends: 0,
            steps: 0,
            units,
            die: at.die,
            slot,
            block: at.block,
            page: at.page,
            source_page: 0,
            source_block: 0,
            erases: 0,
            bytes,
            register: NO_OP,
            owner,
            is_slc: false,
            is_lost: false,
            is_begun: false,
            has_joined: false,
            from_register: false,
            next: NO_OP,
            mate: NO_OP,
            joined: NO_OP,
            queued: Time::ZERO,
            started: Time::ZERO,
            sensed: Time::ZERO,
            moved: Time::ZERO,
        }
    }
}
