//! Channels: their waiters and tenants; transfers between the controller and registers.

use super::Backend;
use super::arbiter::Want;
use super::op::{Class, NO_OP, Op};
use crate::registers::Link;
use engine::{Cx, Ticket, Time};
use std::collections::VecDeque;
use std::convert::Infallible;

#[derive(Clone, Debug)]
pub(super) struct Channel {
    pub(super) busy_until: Time,
    pub(super) busy: Time,
    /// True if a wake-up or the end of a data transfer will check the waiting dies.
    pub(super) looks_again: bool,
    /// True if the current tenure is a data transfer, whose end is an event of its own.
    pub(super) moves_data: bool,
    /// Place in the schedule order of the wake-up at the end of the current tenure, needed or not.
    pub(super) wake: Option<Ticket>,
    pub(super) waiting: [VecDeque<(u32, u64)>; Want::COUNT],
    /// Number of waiters.
    pub(super) wanted: u32,
    pub(super) asked: u64,
    /// Operations not yet started, in order of arrival; kept only if the scheduler holds the line.
    pub(super) line: VecDeque<u32>,
    /// Class of the current or last tenant.
    pub(super) tenant: Class,
}

impl Default for Channel {
    fn default() -> Channel {
        Channel {
            busy_until: Time::ZERO,
            busy: Time::ZERO,
            looks_again: false,
            moves_data: false,
            wake: None,
            waiting: Default::default(),
            wanted: 0,
            asked: 0,
            line: VecDeque::new(),
            tenant: Class::HostRead,
        }
    }
}

impl Channel {
    /// Schedules the wake-up at the end of the current tenure.
    #[inline]
    pub(super) fn look_again(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        self.looks_again = true;
        let place = self.wake.unwrap_or_else(|| cx.reserve_late());
        cx.at_place(place, self.busy_until.since(cx.now()), Event::ChannelFree(channel));
    }

    #[inline]
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted > 0
    }
}

impl Backend {
    /// Queues a die at its channel.
    #[inline]
    pub(super) fn ask(&mut self, die: u32, want: Want, cx: &mut impl Cx<Event, Infallible>) {
        let channel = self.dies[die as usize].channel;
        self.ask_channel(channel, die, want, cx);
    }

    /// Queues a unit or a transfer at a channel.
    #[inline]
    pub(super) fn ask_channel(
        &mut self,
        channel: u32,
        unit: u32,
        want: Want,
        cx: &mut impl Cx<Event, Infallible>,
    ) {
        if self.holders.is_some() {
            self.asks_for_channel(channel, cx.now());
        }
        let c = &mut self.channels[channel as usize];
        c.asked += 1;
        c.wanted += 1;
        c.waiting[want as usize].push_back((unit, c.asked));
        if !c.looks_again {
            c.look_again(channel, cx);
        }
    }

    /// Grants a free channel to the next die.
    pub(super) fn channel_free(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        let c = &mut self.channels[channel as usize];
        if cx.now() < c.busy_until {
            // The channel was granted in this instant before the wake-up.
            if !c.moves_data {
                c.look_again(channel, cx);
            }
            return;
        }
        c.looks_again = false;
        self.serve(channel, cx);
    }

    pub(super) fn serve(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        let c = &mut self.channels[channel as usize];
        if c.looks_again || !c.is_wanted() {
            return;
        }
        if cx.now() < c.busy_until {
            c.look_again(channel, cx);
            return;
        }
        let heads = Want::ALL.map(|want| c.waiting[want as usize].front().map(|(_, asked)| *asked));
        let want = self.arbiter.pick(&heads);
        let Some((die, _)) = c.waiting[want as usize].pop_front() else { return };
        c.wanted -= 1;
        self.grant(die, cx);
        // The grant holds the channel: check again at its end if others wait.
        self.serve(channel, cx);
    }

    /// Moves data of a class over the channel for `tenure` from now, with an event of its own at the end.
    #[inline]
    pub(super) fn move_data(
        &mut self,
        channel: u32,
        (class, tenure): (Class, Time),
        end: Event,
        cx: &mut impl Cx<Event, Infallible>,
    ) {
        let c = &mut self.channels[channel as usize];
        c.tenant = class;
        c.busy_until = cx.now() + tenure;
        c.busy += tenure;
        c.looks_again = true;
        c.moves_data = true;
        let is_wanted = c.is_wanted();
        cx.after(tenure, end);
        if is_wanted {
            self.is_held_while_wanted(channel, cx.now());
        }
    }

    /// Holds the channel for a class for `tenure` from now.
    #[inline]
    pub(super) fn hold(
        &mut self,
        channel: u32,
        (class, tenure): (Class, Time),
        cx: &mut impl Cx<Event, Infallible>,
    ) {
        let c = &mut self.channels[channel as usize];
        c.tenant = class;
        c.busy_until = cx.now() + tenure;
        c.busy += tenure;
        c.moves_data = false;
        // The wake-up gets its place even if it is not needed, so that folding it away leaves the same order.
        c.wake = Some(cx.reserve_late());
        if !self.fold && !c.looks_again {
            c.look_again(channel, cx);
        }
        if c.is_wanted() {
            self.is_held_while_wanted(channel, cx.now());
        }
    }
}

// Events of dies and channels.

engine::events! {
    /// Events of dies and channels.
    pub enum Event {
        /// The array of a die has finished.
        ArrayDone(u32),
        /// The data of a read has left its die.
        TransferDone(u32),
        /// A channel has become free.
        ChannelFree(u32),
        /// A die that was told to suspend can take commands.
        Suspended(u32),
        /// A die has waited for host programs that could share its command.
        Gathered(u32),
        /// A transfer between the controller and a register has ended.
        Moved(u32),
    }
}

// Data between the controller and registers, which needs only the channel, whatever the array of the die does; and data
// from the register of one plane to the data register of a different one.
//
// Registers that gather writes are separate from the array's data register (ZnG, section III-C), so a die takes their
// data while it works. A transfer requests the channel like other data: into a register like the data of a program, out
// of one like that of a read.

/// Direction of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Into a register.
    Into,
    /// Out of a register.
    Out,
}

/// Data in transfer between the controller and a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Die of the register.
    pub die: u32,
    /// Number of bytes.
    pub bytes: u32,
    /// Direction.
    pub way: Way,
    /// Purpose: a word of the controller, opaque here.
    pub tag: u8,
    /// Waiter for the transfer.
    pub owner: u32,
}

/// Flag that marks a transfer among the units that wait for a channel.
pub(super) const TRANSFER: u32 = 1 << 31;

impl Backend {
    /// Requests the channel for a transfer. [`Backend::transferred`] is due at its [`Event::Moved`].
    pub fn transfer(&mut self, transfer: Transfer, cx: &mut impl Cx<Event, Infallible>) {
        let name = self.transfers.insert(transfer);
        let channel = self.dies[transfer.die as usize].channel;
        let c = &self.channels[channel as usize];
        if cx.now() >= c.busy_until && !c.is_wanted() {
            return self.grant_transfer(TRANSFER | name, cx);
        }
        let want = match transfer.way {
            Way::Into => Want::DataIn,
            Way::Out => Want::DataOut,
        };
        self.ask_channel(channel, TRANSFER | name, want, cx);
    }

    /// Starts a transfer that gets its channel now.
    pub(super) fn grant_transfer(&mut self, waiting: u32, cx: &mut impl Cx<Event, Infallible>) {
        let name = waiting & !TRANSFER;
        let transfer = self.transfers[name];
        let bytes = u64::from(transfer.bytes);
        let tenure = match transfer.way {
            Way::Into => self.timing.enter(bytes),
            Way::Out => self.timing.column_command + self.timing.leave(bytes),
        };
        if let Some(meter) = &mut self.meter {
            meter.transfer(bytes, cx.now(), cx.now() + tenure);
        }
        let channel = self.dies[transfer.die as usize].channel;
        let class = match transfer.way {
            Way::Into => Class::HostProgram,
            Way::Out => Class::HostRead,
        };
        self.move_data(channel, (class, tenure), Event::Moved(name), cx);
    }

    /// Ends a transfer.
    pub fn transferred(&mut self, name: u32, cx: &mut impl Cx<Event, Infallible>) -> Transfer {
        let transfer = self.transfers[name];
        self.transfers.remove(name);
        let channel = self.dies[transfer.die as usize].channel;
        self.channels[channel as usize].looks_again = false;
        self.serve(channel, cx);
        transfer
    }

    /// Returns the number of transfers waiting or in flight.
    pub fn transfers(&self) -> usize {
        self.transfers.len()
    }
}

/// Links over which pages go from registers to the data registers of other planes.
pub(super) struct Links {
    link: Link,
    planes: u32,
}

impl Links {
    pub(super) fn new(link: Link, planes: u32) -> Links {
        Links { link, planes }
    }

    /// Returns the time, from `at` on, until the data register of an operation's plane holds its data.
    pub(super) fn reach(&mut self, op: &Op, at: Time) -> Time {
        let plane = op.die * self.planes + u32::from(op.plane);
        if op.register == NO_OP || op.register == plane {
            return Time::ZERO;
        }
        self.link.shift(op.register, at).since(at)
    }

    pub(crate) fn save(&self, out: &mut Vec<u8>) {
        self.link.save(out);
    }

    pub(crate) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.link.load(input)
    }
}
