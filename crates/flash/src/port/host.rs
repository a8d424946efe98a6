//! The port of a drive: its links, NVMe queues and controller cores. What a command asks for is no concern of it.

use crate::port::cores::{CoreParams, Cores};
use crate::port::nvme::{Arbitration, Nvme};
use kernel::{Ticket, Time};
use net::pcie::Link;
use proto::INNER;
use stats::EnergyReport;

/// Bytes of a completion queue entry.
const COMPLETION_BYTES: u64 = 16;

/// How commands reach the device.
#[derive(Clone, Debug)]
pub struct HostParams {
    /// The host's way.
    pub outer: EntranceParams,
    /// The way of a processor inside the drive, if there is one.
    pub inner: Option<EntranceParams>,
    /// Controller cores, which both share.
    pub cores: CoreParams,
}

/// One way into the device.
#[derive(Clone, Debug)]
pub struct EntranceParams {
    /// The link.
    pub link: Link,
    /// Core time a command.
    pub command_cost: Time,
    /// NVMe queues; without, commands arrive over a memory port after the link's latency.
    pub nvme: Option<NvmeParams>,
    /// Whether the doorbell is folded into the fetch where nothing can come between.
    pub fold: bool,
}

/// NVMe queues.
#[derive(Clone, Debug)]
pub struct NvmeParams {
    /// Submission queues.
    pub queues: u16,
    /// Entries a submission queue.
    pub depth: u32,
    /// Commands that the controller holds at once, over all queues.
    pub in_controller: u32,
    /// Who is fetched next.
    pub arbitration: Arbitration,
    /// Doorbell write to fetch request, beyond the link's latency.
    pub doorbell: Time,
    /// Fetch request to command in the controller, beyond the link's round trip.
    pub fetch: Time,
    /// Completion entry written to host software running.
    pub interrupt: Time,
}

/// The port of a drive.
pub struct Host {
    outer: Entrance,
    inner: Option<Entrance>,
    cores: Cores,
}

/// What a command meets first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry {
    /// Its doorbell reaches the controller after this time.
    Rings(Time),
    /// It is in the controller after this time.
    Fetched(Time),
}

/// One way into the device.
struct Entrance {
    link: Link,
    command_cost: Time,
    nvme: Option<Nvme>,
    /// From the doorbell to the controller, and from there until the command has been fetched.
    doorbell: Time,
    fetch: Time,
    interrupt: Time,
    /// Nothing can hold a command back in its submission queue.
    folds: bool,
}

impl Entrance {
    fn new(params: EntranceParams) -> Entrance {
        let latency = params.link.latency();
        let (doorbell, fetch, interrupt) = match &params.nvme {
            Some(n) => (latency + n.doorbell, latency.times(2) + n.fetch, latency + n.interrupt),
            None => (latency, Time::ZERO, latency),
        };
        let never_full = params
            .nvme
            .as_ref()
            .is_none_or(|n| u64::from(n.in_controller) >= u64::from(n.queues) * u64::from(n.depth));
        Entrance {
            command_cost: params.command_cost,
            nvme: params.nvme.map(|n| Nvme::new(n.queues, n.in_controller, n.arbitration)),
            doorbell,
            fetch,
            interrupt,
            folds: params.fold && never_full,
            link: params.link,
        }
    }

    fn save(&self, out: &mut Vec<u8>) {
        let Entrance { link, command_cost: _, nvme, doorbell: _, fetch: _, interrupt: _, folds: _ } = self;
        link.save(out);
        nvme.iter().for_each(|n| n.save(out));
    }

    fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.link.load(input)?;
        self.nvme.as_mut().map_or(Some(()), |n| n.load(input))
    }
}

impl Host {
    /// An idle port.
    pub fn new(params: HostParams) -> Host {
        Host {
            outer: Entrance::new(params.outer),
            inner: params.inner.map(Entrance::new),
            cores: Cores::new(params.cores),
        }
    }

    /// The way by which commands of a queue come and go.
    #[inline]
    fn way(&mut self, queue: u16) -> &mut Entrance {
        match &mut self.inner {
            Some(inner) if queue & INNER != 0 => inner,
            _ => &mut self.outer,
        }
    }

    /// The command `id` is in its submission queue, and the doorbell rings. `reserve` takes its place in the order of events.
    #[inline]
    pub fn enters(&mut self, queue: u16, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry {
        let way = self.way(queue);
        match &mut way.nvme {
            Some(nvme) if !way.folds => {
                nvme.ring(queue & !INNER, id, reserve());
                Entry::Rings(way.doorbell)
            }
            Some(_) => Entry::Fetched(way.doorbell + way.fetch),
            None => Entry::Fetched(way.doorbell),
        }
    }

    /// A doorbell write has arrived: one more entry of the queue may be fetched.
    pub fn doorbell(&mut self, queue: u16) {
        if let Some(nvme) = &mut self.way(queue).nvme {
            nvme.arrive(queue & !INNER);
        }
    }

    /// Fetches a command from the queues that lie beside `queue`, if the controller has room: its name, its place in the
    /// order of events, and how long that takes.
    pub fn fetch(&mut self, queue: u16) -> Option<(u32, Ticket, Time)> {
        let way = self.way(queue);
        let (id, place) = way.nvme.as_mut()?.fetch()?;
        Some((id, place, way.fetch))
    }

    /// Cores work on a command that touches so many map units; when they have done so.
    #[inline]
    pub fn work(&mut self, now: Time, queue: u16, writes: bool, units: u64) -> Time {
        let cost = self.way(queue).command_cost;
        self.cores.work(now, writes, cost, units)
    }

    /// When cores have found a new place for so many map units that collection moves.
    #[inline]
    pub fn moves(&mut self, now: Time, units: u64) -> Time {
        self.cores.moves(now, units)
    }

    /// Data of a write comes in over the link of its queue; when all of it is here.
    #[inline]
    pub fn data_in(&mut self, queue: u16, now: Time, bytes: u64) -> Time {
        let way = self.way(queue);
        way.link.to_device(now, bytes) + way.link.latency()
    }

    /// The completion of a command goes out; when the host's software sees it.
    #[inline]
    pub fn completes(&mut self, queue: u16, now: Time) -> Time {
        let way = self.way(queue);
        let bytes = if way.nvme.is_some() { COMPLETION_BYTES } else { 0 };
        way.link.to_host(now, bytes) + way.interrupt
    }

    /// A command has left the controller. Whether another may be fetched for it.
    pub fn leaves(&mut self, queue: u16) -> bool {
        let way = self.way(queue);
        match &mut way.nvme {
            Some(nvme) if !way.folds => {
                nvme.done(queue & !INNER);
                true
            }
            _ => false,
        }
    }

    /// Time that the host's link has been busy, to the host and to the device, and the controller's cores, up to `now`.
    pub fn busy(&self, now: Time) -> ((Time, Time), Time) {
        (self.outer.link.busy(now), self.cores.busy(now))
    }

    /// Time that the link of a processor inside the drive has been busy, to it and to the device, up to `now`.
    pub fn inner_busy(&self, now: Time) -> Option<(Time, Time)> {
        self.inner.as_ref().map(|inner| inner.link.busy(now))
    }

    /// Energy of the host's link since the measured window began, if it is known what it costs.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.outer.link.energy(now)
    }

    /// Starts the measured window.
    pub fn reset_energy(&mut self, now: Time) {
        self.outer.link.reset_energy(now);
    }

    /// Controller cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Data of a read begins its way out over the link of its queue.
    #[inline]
    pub fn data_out(&mut self, queue: u16, now: Time, bytes: u64) {
        self.way(queue).link.to_host(now, bytes);
    }

    /// Appends the state of the links, the cores and the queues' turns; nothing is outstanding.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Host { outer, inner, cores } = self;
        outer.save(out);
        inner.iter().for_each(|inner| inner.save(out));
        cores.save(out);
    }

    /// Replaces it by what a host interface of the same parameters saved; `None` if that is cut short or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.outer.load(input)?;
        if let Some(inner) = &mut self.inner {
            inner.load(input)?;
        }
        self.cores.load(input)
    }
}
