//! Host interfaces: a link with the protocol by which commands cross it.
//!
//! Each is a file beside this one: what it costs to bring a command in, move its data and bring its completion out. A drive has one
//! for its host, and may have one for a processor inside it. Which there are is [`Interface`]; what each does, `Protocol`.

use super::ahci::AhciPort;
use super::memory_port::MemoryPort;
use super::nvme::NvmePort;
use engine::{Ticket, Time};
use net::pcie::Link;
use stats::EnergyReport;

/// What a command meets first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Its doorbell reaches who fetches it after this time.
    Rings(Time),
    /// It is in the controller after this time.
    Fetched(Time),
}

impl Entry {
    /// It comes so much later.
    #[inline]
    pub(super) fn later(self, wait: Time) -> Entry {
        match self {
            Entry::Rings(after) => Entry::Rings(after + wait),
            Entry::Fetched(after) => Entry::Fetched(after + wait),
        }
    }
}

/// For how long a link has been busy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkBusy {
    /// It sends both ways at once: to the host, and to the device.
    Both {
        /// To the host.
        to_host: Time,
        /// To the device.
        to_device: Time,
    },
    /// It sends one way at a time: both together.
    Either(Time),
}

impl LinkBusy {
    /// Of a link that sends both ways at once.
    pub(super) fn of(link: &Link, now: Time) -> LinkBusy {
        let (to_host, to_device) = link.busy(now);
        LinkBusy::Both { to_host, to_device }
    }

    /// Of a link that sends one way at a time.
    pub(crate) fn either(self) -> Option<Time> {
        match self {
            LinkBusy::Both { .. } => None,
            LinkBusy::Either(busy) => Some(busy),
        }
    }

    /// Each resource that the link has.
    pub(crate) fn each(self) -> impl Iterator<Item = Time> {
        match self {
            LinkBusy::Both { to_host, to_device } => [Some(to_host), Some(to_device)],
            LinkBusy::Either(busy) => [Some(busy), None],
        }
        .into_iter()
        .flatten()
    }
}

/// A link with its protocol. Times are granted at the present, and queues are those of this interface.
pub(super) trait Protocol {
    /// The command `id` is in its queue, and the doorbell rings. `reserve` takes its place in the order of events.
    fn enters(&mut self, queue: u16, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry;

    /// A doorbell has arrived: one more entry of the queue may be fetched.
    fn doorbell(&mut self, queue: u16);

    /// Fetches a command, if there is room for it: its name, its place in the order of events, and how long that takes.
    fn fetch(&mut self, now: Time) -> Option<(u32, Ticket, Time)>;

    /// Data of a write comes in; when all of it is here.
    fn data_in(&mut self, now: Time, bytes: u64) -> Time;

    /// Data of a read begins its way out.
    fn data_out(&mut self, now: Time, bytes: u64);

    /// The completion of a command goes out; when the host's software sees it.
    fn completes(&mut self, now: Time) -> Time;

    /// A command has been completed. Whether another may be fetched for it.
    fn leaves(&mut self, queue: u16) -> bool;

    /// Time that the link has been busy up to `now`.
    fn busy(&self, now: Time) -> LinkBusy;

    /// Energy of the link since the measured window began, if it is known what it costs.
    fn energy(&self, now: Time) -> Option<EnergyReport>;

    /// Bytes since the measured window began, by the time for which the link was booked: at least and at most. `None` if bytes
    /// take no time.
    fn carried(&self) -> Option<[u64; 2]>;

    /// Starts the measured window.
    fn reset_energy(&mut self, now: Time);

    /// Appends the state of the link and the queues' turns; nothing is outstanding.
    fn save(&self, out: &mut Vec<u8>);

    /// Replaces it by what an interface of the same parameters saved; `None` if that is cut short or malformed.
    fn load(&mut self, input: &mut &[u8]) -> Option<()>;
}

/// The host interfaces that there are.
#[derive(Clone, Debug)]
pub enum Interface {
    /// A memory port: no queues.
    Memory(MemoryPort),
    /// NVMe queues over PCI Express, or a link of which only the rate is known.
    Nvme(NvmePort),
    /// AHCI and native command queuing over Serial ATA.
    Ahci(AhciPort),
}

/// Does the same with whichever interface it is: code of its own for each, and no call through a table.
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
