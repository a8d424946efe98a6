//! The port of a drive: its host interfaces, controller cores, and a link that may sleep. It knows nothing of what a command asks for.

use crate::port::cores::{CoreParams, Cores};
use crate::port::interface::{Entry, Interface, LinkBusy, Protocol};
use config::SleepSpec;
use engine::{Snapshot, Ticket, Time};
use proto::INNER;
use stats::EnergyReport;

/// How commands reach the device.
#[derive(Clone, Debug)]
pub struct HostParams {
    /// The host's way.
    pub outer: Entrance,
    /// Sleep of the host's link, if it sleeps.
    pub sleep: Option<LinkSleep>,
    /// The way of a processor inside the drive, if there is one.
    pub inner: Option<Entrance>,
    /// Controller cores, which both share.
    pub cores: CoreParams,
}

/// One way into the device.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// The link and its protocol.
    pub interface: Interface,
    /// Core time a command.
    pub command_cost: Time,
}

/// The port of a drive.
pub struct Host {
    outer: Entrance,
    sleep: Option<LinkSleep>,
    inner: Option<Entrance>,
    cores: Cores,
}

impl Entrance {
    fn save(&self, out: &mut Vec<u8>) {
        let Entrance { interface, command_cost: _ } = self;
        interface.save(out);
    }
}

impl Host {
    /// An idle port.
    pub fn new(params: HostParams) -> Host {
        let HostParams { outer, sleep, inner, cores } = params;
        Host { outer, sleep, inner, cores: Cores::new(cores) }
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
    pub fn enters(&mut self, queue: u16, now: Time, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry {
        let entry = self.way(queue).interface.enters(queue & !INNER, id, reserve);
        match &mut self.sleep {
            Some(sleep) if queue & INNER == 0 => entry.later(sleep.enters(now)),
            _ => entry,
        }
    }

    /// A doorbell has arrived: one more entry of the queue may be fetched.
    pub fn doorbell(&mut self, queue: u16) {
        self.way(queue).interface.doorbell(queue & !INNER);
    }

    /// Fetches a command from the queues that lie beside `queue`, if the controller has room: its name, its place in the
    /// order of events, and how long that takes.
    pub fn fetch(&mut self, queue: u16, now: Time) -> Option<(u32, Ticket, Time)> {
        self.way(queue).interface.fetch(now)
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
        self.way(queue).interface.data_in(now, bytes)
    }

    /// Data of a read begins its way out over the link of its queue.
    #[inline]
    pub fn data_out(&mut self, queue: u16, now: Time, bytes: u64) {
        self.way(queue).interface.data_out(now, bytes);
    }

    /// The completion of a command goes out; when the host's software sees it.
    #[inline]
    pub fn completes(&mut self, queue: u16, now: Time) -> Time {
        let seen = self.way(queue).interface.completes(now);
        if let Some(sleep) = &mut self.sleep
            && queue & INNER == 0
        {
            sleep.completes(seen);
        }
        seen
    }

    /// A command has left the controller. Whether another may be fetched for it.
    #[inline]
    pub fn leaves(&mut self, queue: u16) -> bool {
        self.way(queue).interface.leaves(queue & !INNER)
    }

    /// Time that the host's link has been busy, and the controller's cores, up to `now`.
    pub fn busy(&self, now: Time) -> (LinkBusy, Time) {
        (self.outer.interface.busy(now), self.cores.busy(now))
    }

    /// Time that the link of a processor inside the drive has been busy up to `now`.
    pub fn inner_busy(&self, now: Time) -> Option<LinkBusy> {
        self.inner.as_ref().map(|inner| inner.interface.busy(now))
    }

    /// Energy of the host's link since the measured window began, if it is known what it costs.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.outer.interface.energy(now)
    }

    /// Bytes over the host's link since the measured window began, by the time for which it was booked: at least and at most.
    pub fn carried(&self) -> Option<[u64; 2]> {
        self.outer.interface.carried()
    }

    /// Starts the measured window.
    pub fn reset_energy(&mut self, now: Time) {
        self.outer.interface.reset_energy(now);
    }

    /// Controller cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Appends the state of the links, the cores and the queues' turns; nothing is outstanding.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Host { outer, sleep, inner, cores } = self;
        outer.save(out);
        sleep.iter().for_each(|sleep| sleep.save(out));
        inner.iter().for_each(|inner| inner.save(out));
        cores.save(out);
    }

    /// Replaces it by what a host interface of the same parameters saved; `None` if that is cut short or malformed.
    pub fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.outer.interface.load(input)?;
        if let Some(sleep) = &mut self.sleep {
            sleep.load(input)?;
        }
        if let Some(inner) = &mut self.inner {
            inner.interface.load(input)?;
        }
        self.cores.load(input)
    }
}

// A link that sleeps while no command is outstanding.
//
// AHCI 1.3.1, section 8.3.1.3 (aggressive link power management): the adapter asks for Partial or Slumber when no command is
// outstanding. PCI Express leaves the moment of entering L1 to the device. Frames that cross while commands are outstanding find the link awake.

/// Whether the link sleeps, and until when it wakes.
#[derive(Clone, Debug)]
pub struct LinkSleep {
    spec: SleepSpec,
    /// Commands between their doorbell and their completion.
    outstanding: u32,
    /// When the host saw the last completion.
    idle_since: Time,
    /// When the link is awake.
    awake: Time,
}

impl LinkSleep {
    /// A link that is idle from the beginning.
    pub fn new(spec: SleepSpec) -> LinkSleep {
        LinkSleep { spec, outstanding: 0, idle_since: Time::ZERO, awake: Time::ZERO }
    }

    /// A command enters; what it waits until the link is awake.
    pub(super) fn enters(&mut self, now: Time) -> Time {
        if self.outstanding == 0 {
            self.awake = now + self.spec.wait(self.idle_since, now);
        }
        self.outstanding += 1;
        self.awake.since(now)
    }

    /// The host sees a completion at this time.
    pub(super) fn completes(&mut self, seen: Time) {
        self.outstanding -= 1;
        self.idle_since = self.idle_since.max(seen);
    }

    /// Appends since when it is idle; nothing is outstanding.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let LinkSleep { spec: _, outstanding: _, idle_since, awake: _ } = self;
        idle_since.save(out);
    }

    /// Replaces it by what a link saved; `None` if that is cut short.
    pub(super) fn load(&mut self, input: &mut &[u8]) -> Option<()> {
        self.idle_since = Time::load(input)?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::Duration;

    fn us(us: u64) -> Time {
        Time::from_us(us)
    }

    fn link() -> LinkSleep {
        LinkSleep::new(SleepSpec { after: Duration::new(us(5)), exit: Duration::new(us(40)) })
    }

    /// The first command wakes the link, the second waits for what is left of that, and none waits while another is under way.
    #[test]
    fn one_command_wakes_the_link_for_those_that_follow() {
        let mut link = link();
        assert_eq!([100, 110, 200].map(|now| link.enters(us(now))), [us(40), us(30), us(0)]);
        for seen in [300, 310, 320] {
            link.completes(us(seen));
        }
        assert_eq!(link.enters(us(324)), us(0));
        link.completes(us(400));
        assert_eq!(link.enters(us(405)), us(40));
    }

    #[test]
    fn an_idle_link_goes_on_from_what_it_saved() {
        let (mut before, mut after, mut saved) = (link(), link(), Vec::new());
        before.enters(us(10));
        before.completes(us(100));
        before.save(&mut saved);
        assert_eq!(after.load(&mut saved.as_slice()), Some(()));
        assert_eq!(after.enters(us(104)), us(0));
    }
}
