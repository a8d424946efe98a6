//! Operation on the NAND array.

use super::{Backend, Die, DieState};
use crate::{
    array::OOB_BYTES,
    geometry::{Address, Geometry},
};
use engine::Time;
use proto::Slot;

/// Kind of operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpKind {
    /// Moves data from the array to the page register, then over the channel.
    Read,
    /// Moves data over the channel, then into the array.
    Program,
    /// Erases a block.
    Erase,
    /// Moves data from array to array inside a plane, without the channel.
    CopyBack,
}

/// Purpose and urgency of an operation: the queues of a die. The order is the default priority, most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Class {
    /// Read of a mapping page that a command waits for.
    MapRead,
    /// Host read of an urgent command.
    UrgentRead,
    /// Host read of high priority.
    HighRead,
    /// Host read.
    HostRead,
    /// Host read of low priority.
    LowRead,
    /// Read-ahead of a stream: nothing waits for it yet.
    AheadRead,
    /// Program of host data.
    HostProgram,
    /// Program of a mapping page.
    MapProgram,
    /// Read of garbage collection.
    GcRead,
    /// Program of garbage collection.
    GcProgram,
    /// Erase.
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
    /// Number of classes.
    pub const COUNT: usize = Class::ALL.len();

    /// Returns whether the class holds reads with a waiter.
    pub fn is_waited_read(self) -> bool {
        self <= Class::LowRead
    }
    /// Returns whether an independently reading plane serves the class: reads of garbage collection take the whole die.
    pub fn is_plane_read(self) -> bool {
        self <= Class::AheadRead
    }
    /// Returns whether the class belongs to garbage collection.
    pub fn is_collection(self) -> bool {
        self >= Class::GcRead
    }
    /// Returns the read class of a host priority: 0 urgent, 1 high, 2 medium, 3 low.
    #[inline]
    pub fn host_read(priority: u8) -> Class {
        [Class::UrgentRead, Class::HighRead, Class::HostRead, Class::LowRead][usize::from(priority & 3)]
    }
}

/// No operation.
pub const NO_OP: u32 = u32::MAX;

/// Operation, from being queued at its die to its end.
#[derive(Clone, Copy, Debug)]
pub struct Op {
    /// Kind of operation.
    pub kind: OpKind,
    /// Queue at the die.
    pub class: Class,
    /// Continuation after the operation: a word of the controller, opaque here.
    pub tag: u8,
    /// Plane in the die.
    pub plane: u8,
    /// Number of suspends so far.
    pub suspends: u8,
    /// Number of further steps that a read needed.
    pub(crate) steps: u8,
    /// Number of map units.
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
    /// Erase count of the block; zero if times do not depend on wear.
    pub erases: u32,
    /// Number of bytes over the channel.
    pub bytes: u32,
    /// Plane of the register that holds the data to program; [`NO_OP`] if the data come over the channel.
    pub register: u32,
    /// Waiter for the operation; its meaning depends on the class.
    pub owner: u32,
    /// True if the block holds one bit per cell.
    pub is_slc: bool,
    /// True for a read whose page the last step could not correct.
    pub is_lost: bool,
    /// True if the command has gone out.
    pub(crate) is_begun: bool,
    /// True if the operation needs no sensing of its own because it has joined another read of its page.
    pub(crate) has_joined: bool,
    /// True if the operation needs no sensing because its plane's register holds the page.
    pub(crate) from_register: bool,
    /// Next operation in the queue.
    pub(crate) next: u32,
    /// Next operation of the same multi-plane command.
    pub(crate) mate: u32,
    /// Next of the reads of the same page that share its sensing.
    pub(crate) joined: u32,
    /// Time when the operation was queued.
    pub queued: Time,
    /// Time when its command went out.
    pub started: Time,
    /// Time when the array had finished a read.
    pub sensed: Time,
    /// Time when its data began to leave.
    pub moved: Time,
}

impl Op {
    /// Creates an operation that has not been queued yet, without a tag.
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

// State of the dies at a power cut, and the time to scan them.

impl Backend {
    /// Calls `f` with each operation that an array is working on at `now`, or was when it was suspended.
    pub fn at_work_at(&self, now: Time, mut f: impl FnMut(&Op)) {
        for die in &self.dies {
            let working = die.state == DieState::Working && now > die.array_from;
            let suspended = die.suspended.map_or(NO_OP, |(op, _)| op);
            for mut at in [if working { die.active } else { NO_OP }, suspended] {
                while at != NO_OP {
                    f(&self.ops[at]);
                    at = self.ops[at].mate;
                }
            }
        }
    }

    /// Returns the time to read the out-of-band area of the first `pages` pages of each block, and to erase some
    /// blocks, on the busiest die or channel.
    pub fn time_of_scan(&self, geo: &Geometry, pages: &[u32], erased: &[u64]) -> Time {
        let mut dies = vec![Time::ZERO; self.dies.len()];
        let mut channels = vec![Time::ZERO; self.channels.len()];
        let bytes = OOB_BYTES * geo.units_per_page();
        let op = |kind, block| {
            let slot = geo.first_slot(block);
            Op::new(kind, Class::MapRead, geo.address(slot), slot, 1, bytes, 0)
        };
        // Array time of the first pages of a block, by their number. One page is sensed at a time.
        let mut sensing = vec![Time::ZERO];
        for page in 0..geo.shape.pages {
            let longer = sensing[page as usize] + self.timing.sense(page, 1);
            sensing.push(longer);
        }
        for (block, pages) in (0u64..).zip(pages) {
            let read = op(OpKind::Read, block);
            let moving = (self.timing.command(&read) + self.timing.leave(u64::from(read.bytes)))
                .times(u64::from(*pages));
            dies[read.die as usize] += sensing[*pages as usize] + moving;
            channels[self.dies[read.die as usize].channel as usize] += moving;
        }
        for block in erased {
            let erase = op(OpKind::Erase, *block);
            dies[erase.die as usize] += self.timing.command(&erase) + self.timing.array(&erase);
        }
        dies.into_iter().chain(channels).max().unwrap_or(Time::ZERO)
    }
}

// State queries of dies and channels.

impl Backend {
    /// Returns whether a die has neither active nor waiting work.
    pub fn is_idle(&self, die: u32) -> bool {
        let d = &self.dies[die as usize];
        d.state == DieState::Idle && d.reading == 0 && self.queues.waiting(die) == 0
    }

    /// Returns the number of operations at a die, waiting and in flight.
    pub fn load(&self, die: u32) -> u32 {
        let d = &self.dies[die as usize];
        self.queues.backlog(die) + u32::from(d.state != DieState::Idle) + u32::from(d.reading)
    }

    /// Returns the busy time of each channel up to `now`.
    pub fn channel_busy(&self, now: Time) -> Vec<Time> {
        self.busy_channels(now).collect()
    }

    /// Returns the busy time of each die up to `now`.
    pub fn die_busy(&self, now: Time) -> Vec<Time> {
        self.busy_dies(now).collect()
    }

    /// Returns the busy time of all channels and that of all dies up to `now`, as two sums in picoseconds.
    pub fn total_busy_ps(&self, now: Time) -> (u128, u128) {
        let sum = |total: u128, busy: Time| total + u128::from(busy.ps());
        (self.busy_channels(now).fold(0, sum), self.busy_dies(now).fold(0, sum))
    }

    fn busy_channels(&self, now: Time) -> impl Iterator<Item = Time> + '_ {
        self.channels.iter().map(move |c| c.busy - c.busy_until.since(now))
    }

    fn busy_dies(&self, now: Time) -> impl Iterator<Item = Time> + '_ {
        let open = move |d: &Die| {
            let working = !matches!(d.state, DieState::Idle | DieState::Asking) || d.suspended.is_some();
            if working || d.reading > 0 { now - d.busy_since } else { Time::ZERO }
        };
        self.dies.iter().take(self.die_count as usize).map(move |d| d.busy + open(d))
    }

    /// Returns the queueing time of each operation that still waits at a die, as Little's identity needs at the end.
    pub fn waiting_since(&self) -> Vec<Time> {
        let mut times = Vec::new();
        for mut at in self.queues.names(&self.ops) {
            while at != NO_OP {
                times.push(self.ops[at].queued);
                at = self.ops[at].joined;
            }
        }
        times
    }
}
