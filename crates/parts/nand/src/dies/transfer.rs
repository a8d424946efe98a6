//! Data between the controller and registers: on the channel alone, whatever the array of the die does; and from the
//! register of one plane to the data register of another.
//!
//! Registers that gather writes are beside the data register of the array (ZnG, section III-C), so that a die takes their
//! data while it works. A transfer asks for the channel as other data does: into a register like the data of a program,
//! out of one like that of a read.

use super::arbiter::Want;
use super::op::{Class, NO_OP, Op};
use super::{Backend, Event};
use crate::registers::Link;
use engine::{Cx, Time};
use std::convert::Infallible;

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
