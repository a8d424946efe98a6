//! Channels: who waits for one, and who holds it; and transfers between the controller and registers.

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
    /// A wake-up or the end of a data transfer will look at the waiting dies.
    pub(super) looks_again: bool,
    /// The present tenure is a data transfer, whose end is an event of its own.
    pub(super) moves_data: bool,
    /// Place in the schedule order of the wake-up at the end of the present tenure, whether it is needed or not.
    pub(super) wake: Option<Ticket>,
    pub(super) waiting: [VecDeque<(u32, u64)>; Want::COUNT],
    /// How many wait.
    pub(super) wanted: u32,
    pub(super) asked: u64,
    /// Operations not yet started, in order of arrival; kept only when the scheduler holds the line.
    pub(super) line: VecDeque<u32>,
    /// Who has or had it last.
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
    /// Arranges the wake-up at the end of the present tenure.
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

    /// A channel has become free: the next die gets it.
    pub(super) fn channel_free(&mut self, channel: u32, cx: &mut impl Cx<Event, Infallible>) {
        let c = &mut self.channels[channel as usize];
        if cx.now() < c.busy_until {
            // Somebody got it in this instant before the wake-up.
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
        // The grant holds the channel: look again at its end if others wait.
        self.serve(channel, cx);
    }

    /// The channel moves data of a class for `tenure` from now, which has an event of its own at its end.
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

    /// The channel is busy for a class for `tenure` from now.
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
        // The wake-up has its place even if nobody asks for it: folding it away leaves the same order behind.
        c.wake = Some(cx.reserve_late());
        if !self.fold && !c.looks_again {
            c.look_again(channel, cx);
        }
        if c.is_wanted() {
            self.is_held_while_wanted(channel, cx.now());
        }
    }
}

// What happens in dies and on channels.

engine::events! {
    /// The events of dies and channels.
    pub enum Event {
        /// The array of a die has finished.
        ArrayDone(u32),
        /// A read's data has left its die.
        TransferDone(u32),
        /// A channel has become free.
        ChannelFree(u32),
        /// A die that was told to suspend takes commands.
        Suspended(u32),
        /// A die has waited for host programs that could share its command.
        Gathered(u32),
        /// A transfer between the controller and a register is over.
        Moved(u32),
    }
}

// Data between the controller and registers: on the channel alone, whatever the array of the die does; and from the
// register of one plane to the data register of another.
//
// Registers that gather writes are beside the data register of the array (ZnG, section III-C), so that a die takes their
// data while it works. A transfer asks for the channel as other data does: into a register like the data of a program,
// out of one like that of a read.

/// Which way data goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Into a register.
    Into,
    /// Out of one.
    Out,
}

/// Data on its way between the controller and a register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Die of the register.
    pub die: u32,
    /// Bytes.
    pub bytes: u32,
    /// Which way they go.
    pub way: Way,
    /// What for: a word of the controller's, which is only carried here.
    pub tag: u8,
    /// Who waits for it.
    pub owner: u32,
}

/// Where the number of a unit would stand among those that wait for a channel: the name of a transfer.
pub(super) const TRANSFER: u32 = 1 << 31;

impl Backend {
    /// Asks for the channel of a transfer. [`Backend::transferred`] is due with its [`Event::Moved`].
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

    /// A transfer gets its channel now.
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

    /// A transfer is over.
    pub fn transferred(&mut self, name: u32, cx: &mut impl Cx<Event, Infallible>) -> Transfer {
        let transfer = self.transfers[name];
        self.transfers.remove(name);
        let channel = self.dies[transfer.die as usize].channel;
        self.channels[channel as usize].looks_again = false;
        self.serve(channel, cx);
        transfer
    }

    /// Transfers that wait or are under way.
    pub fn transfers(&self) -> usize {
        self.transfers.len()
    }
}

/// The links by which pages go from registers to the data registers of other planes.
pub(super) struct Links {
    link: Link,
    planes: u32,
}

impl Links {
    pub(super) fn new(link: Link, planes: u32) -> Links {
        Links { link, planes }
    }

    /// How long it takes from `at` until the data register of an operation's plane holds what it programs.
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
