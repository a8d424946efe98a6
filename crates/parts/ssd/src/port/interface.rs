//! Host interfaces: a link with the protocol of its commands.
//!
//! Each file beside this one is one interface: the cost of bringing a command in, moving its data and sending its
//! completion. A drive has one for its host, and may have one for a processor inside it. [`Interface`] lists them;
//! `Protocol` is their common behaviour.

use super::ahci::AhciPort;
use super::memory_port::MemoryPort;
use super::nvme::NvmePort;
use engine::{Ticket, Time};
use net::pcie::Link;
use stats::EnergyReport;

/// First step of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// The doorbell reaches the fetching controller after this time.
    Rings(Time),
    /// The command is in the controller after this time.
    Fetched(Time),
}

impl Entry {
    /// Delays the entry by `wait`.
    #[inline]
    pub(super) fn later(self, wait: Time) -> Entry {
        match self {
            Entry::Rings(after) => Entry::Rings(after + wait),
            Entry::Fetched(after) => Entry::Fetched(after + wait),
        }
    }
}

/// Busy time of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkBusy {
    /// Full duplex: to the host, and to the device.
    Both {
        /// Direction to the host.
        to_host: Time,
        /// Direction to the device.
        to_device: Time,
    },
    /// Half duplex: both directions together.
    Either(Time),
}

impl LinkBusy {
    /// Busy time of a full-duplex link.
    pub(super) fn of(link: &Link, now: Time) -> LinkBusy {
        let (to_host, to_device) = link.busy(now);
        LinkBusy::Both { to_host, to_device }
    }

    /// Busy time of a half-duplex link.
    pub(crate) fn either(self) -> Option<Time> {
        match self {
            LinkBusy::Both { .. } => None,
            LinkBusy::Either(busy) => Some(busy),
        }
    }

    /// Busy time of each resource of the link.
    pub(crate) fn each(self) -> impl Iterator<Item = Time> {
        match self {
            LinkBusy::Both { to_host, to_device } => [Some(to_host), Some(to_device)],
            LinkBusy::Either(busy) => [Some(busy), None],
        }
        .into_iter()
        .flatten()
    }
}

/// Link with its protocol. Times are granted at the present, and queues are those of this interface.
pub(super) trait Protocol {
    /// Handles command `id` in its queue, with its doorbell. `reserve` takes its place in the order of events.
    fn enters(&mut self, queue: u16, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry;

    /// Handles a doorbell: one more entry of the queue may be fetched.
    fn doorbell(&mut self, queue: u16);

    /// Fetches a command, if there is room for it. Returns its name, its place in the order of events, and the
    /// duration.
    fn fetch(&mut self, now: Time) -> Option<(u32, Ticket, Time)>;

    /// Receives data of a write; returns the arrival of all data.
    fn data_in(&mut self, now: Time, bytes: u64) -> Time;

    /// Starts sending data of a read.
    fn data_out(&mut self, now: Time, bytes: u64);

    /// Sends the completion of a command; returns the time at which the host's software sees it.
    fn completes(&mut self, now: Time) -> Time;

    /// Handles a completed command. Returns true if another may be fetched for it.
    fn leaves(&mut self, queue: u16) -> bool;

    /// Busy time of the link up to `now`.
    fn busy(&self, now: Time) -> LinkBusy;

    /// Energy of the link since the measured window began, if known.
    fn energy(&self, now: Time) -> Option<EnergyReport>;

    /// Bytes since the measured window began, minimum and maximum consistent with the link's busy time. `None` if bytes
    /// take no time.
    fn carried(&self) -> Option<[u64; 2]>;

    /// Starts the measured window.
    fn reset_energy(&mut self, now: Time);

    /// Appends the state of the link and the queues' round-robin positions; nothing is outstanding.
    fn save(&self, out: &mut Vec<u8>);

    /// Replaces the state with one saved by an interface of the same parameters; `None` if it is truncated or
    /// malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

/// Available host interfaces.
#[derive(Clone, Debug)]
pub enum Interface {
    /// Memory port without queues.
    Memory(MemoryPort),
    /// NVMe queues over PCI Express, or over a link given only by its rate.
    Nvme(NvmePort),
    /// AHCI and native command queuing over Serial ATA.
    Ahci(AhciPort),
}

/// Dispatches to the interface at hand, with separate code for each and no call through a table.
macro_rules! with {
    ($interface:expr, $port:ident => $what:expr) => {
        match $interface {
            Interface::Memory($port) => $what,
            Interface::Nvme($port) => $what,
            Interface::Ahci($port) => $what,
        }
    };
}

impl Protocol for Interface {
    #[inline]
    fn enters(&mut self, queue: u16, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry {
        with!(self, port => port.enters(queue, id, reserve))
    }
    #[inline]
    fn doorbell(&mut self, queue: u16) {
        with!(self, port => port.doorbell(queue));
    }
    #[inline]
    fn fetch(&mut self, now: Time) -> Option<(u32, Ticket, Time)> {
        with!(self, port => port.fetch(now))
    }
    #[inline]
    fn data_in(&mut self, now: Time, bytes: u64) -> Time {
        with!(self, port => port.data_in(now, bytes))
    }
    #[inline]
    fn data_out(&mut self, now: Time, bytes: u64) {
        with!(self, port => port.data_out(now, bytes));
    }
    #[inline]
    fn completes(&mut self, now: Time) -> Time {
        with!(self, port => port.completes(now))
    }
    #[inline]
    fn leaves(&mut self, queue: u16) -> bool {
        with!(self, port => port.leaves(queue))
    }
    fn busy(&self, now: Time) -> LinkBusy {
        with!(self, port => port.busy(now))
    }
    fn energy(&self, now: Time) -> Option<EnergyReport> {
        with!(self, port => port.energy(now))
    }
    fn carried(&self) -> Option<[u64; 2]> {
        with!(self, port => port.carried())
    }
    fn reset_energy(&mut self, now: Time) {
        with!(self, port => port.reset_energy(now));
    }
    fn save(&self, out: &mut Vec<u8>) {
        with!(self, port => port.save(out));
    }
    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        with!(self, port => port.load(input))
    }
}
