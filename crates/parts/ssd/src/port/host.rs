//! Port of a drive: its host interfaces, controller cores, and a link that may sleep. It does not know what a command
//! asks for.

use crate::port::cores::{CoreParams, Cores};
use crate::port::interface::{Entry, Interface, LinkBusy, Protocol};
use config::SleepSpec;
use engine::{Snapshot, Ticket, Time};
use proto::INNER;
use stats::EnergyReport;

/// Paths of commands to the device.
#[derive(Clone, Debug)]
pub struct HostParams {
    /// Entrance of the host.
    pub outer: Entrance,
    /// Sleep of the host's link, if enabled.
    pub sleep: Option<LinkSleep>,
    /// Entrance of a processor inside the drive, if any.
    pub inner: Option<Entrance>,
    /// Controller cores shared by both entrances.
    pub cores: CoreParams,
}

/// Entrance of the device.
#[derive(Clone, Debug)]
pub struct Entrance {
    /// Link with its protocol.
    pub interface: Interface,
    /// Core time of each command.
    pub command_cost: Time,
}

/// Port of a drive.
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
    /// Creates an idle port.
    pub fn new(params: HostParams) -> Host {
        let HostParams { outer, sleep, inner, cores } = params;
        Host { outer, sleep, inner, cores: Cores::new(cores) }
    }

    /// Entrance used by commands of a queue.
    #[inline]
    fn way(&mut self, queue: u16) -> &mut Entrance {
        match &mut self.inner {
            Some(inner) if queue & INNER != 0 => inner,
            _ => &mut self.outer,
        }
    }

    /// Handles command `id` in its submission queue, with its doorbell. `reserve` takes its place in the order of
    /// events.
    #[inline]
    pub fn enters(&mut self, queue: u16, now: Time, id: u32, reserve: impl FnOnce() -> Ticket) -> Entry {
        let entry = self.way(queue).interface.enters(queue & !INNER, id, reserve);
        match &mut self.sleep {
            Some(sleep) if queue & INNER == 0 => entry.later(sleep.enters(now)),
            _ => entry,
        }
    }

    /// Handles a doorbell: one more entry of the queue may be fetched.
    pub fn doorbell(&mut self, queue: u16) {
        self.way(queue).interface.doorbell(queue & !INNER);
    }

    /// Fetches a command from the queues of the same interface as `queue`, if the controller has room. Returns its
    /// name, its place in the order of events, and the duration.
    pub fn fetch(&mut self, queue: u16, now: Time) -> Option<(u32, Ticket, Time)> {
        self.way(queue).interface.fetch(now)
    }

    /// Processes a command that touches `units` map units on the cores; returns the end.
    #[inline]
    pub fn work(&mut self, now: Time, queue: u16, writes: bool, units: u64) -> Time {
        let cost = self.way(queue).command_cost;
        self.cores.work(now, writes, cost, units)
    }

    /// Returns the time at which cores have found new places for `units` map units moved by garbage collection.
    #[inline]
    pub fn moves(&mut self, now: Time, units: u64) -> Time {
        self.cores.moves(now, units)
    }

    /// Receives data of a write over the link of its queue; returns the arrival of all data.
    #[inline]
    pub fn data_in(&mut self, queue: u16, now: Time, bytes: u64) -> Time {
        self.way(queue).interface.data_in(now, bytes)
    }

    /// Starts sending data of a read over the link of its queue.
    #[inline]
    pub fn data_out(&mut self, queue: u16, now: Time, bytes: u64) {
        self.way(queue).interface.data_out(now, bytes);
    }

    /// Sends the completion of a command; returns the time at which the host's software sees it.
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

    /// Handles a command that has left the controller. Returns true if another may be fetched for it.
    #[inline]
    pub fn leaves(&mut self, queue: u16) -> bool {
        self.way(queue).interface.leaves(queue & !INNER)
    }

    /// Busy time of the host's link, and of the controller's cores, up to `now`.
    pub fn busy(&self, now: Time) -> (LinkBusy, Time) {
        (self.outer.interface.busy(now), self.cores.busy(now))
    }

    /// Busy time of the link of a processor inside the drive, up to `now`.
    pub fn inner_busy(&self, now: Time) -> Option<LinkBusy> {
        self.inner.as_ref().map(|inner| inner.interface.busy(now))
    }

    /// Energy of the host's link since the measured window began, if known.
    pub fn energy(&self, now: Time) -> Option<EnergyReport> {
        self.outer.interface.energy(now)
    }

    /// Bytes over the host's link since the measured window began, minimum and maximum consistent with its busy time.
    pub fn carried(&self) -> Option<[u64; 2]> {
        self.outer.interface.carried()
    }

    /// Starts the measured window.
    pub fn reset_energy(&mut self, now: Time) {
        self.outer.interface.reset_energy(now);
    }

    /// Number of controller cores.
    pub fn cores(&self) -> usize {
        self.cores.len()
    }

    /// Appends the state of the links, the cores and the queues' round-robin positions; nothing is outstanding.
    pub fn save(&self, out: &mut Vec<u8>) {
        let Host { outer, sleep, inner, cores } = self;
        outer.save(out);
        sleep.iter().for_each(|sleep| sleep.save(out));
        inner.iter().for_each(|inner| inner.save(out));
        cores.save(out);
    }

    /// Replaces the state with one saved by a host interface of the same parameters; `None` if it is truncated or
    /// malformed.
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

// Sleep of a link while no command is outstanding.
//
// AHCI 1.3.1, section 8.3.1.3 (aggressive link power management): the adapter asks for Partial or Slumber when no command is
// outstanding. PCI Express leaves the moment of entering L1 to the device. Frames that cross while commands are outstanding find the link awake.

/// Sleep state of the link, and the end of its wake-up.
#[derive(Clone, Debug)]
pub struct LinkSleep {
    spec: SleepSpec,
    /// Commands between doorbell and completion.
    outstanding: u32,
    /// Time at which the host saw the last completion.
    idle_since: Time,
    /// Time at which the link is awake.
    awake: Time,
}

impl LinkSleep {
    /// Creates a link that is idle from the beginning.
    pub fn new(spec: SleepSpec) -> LinkSleep {
        LinkSleep { spec, outstanding: 0, idle_since: Time::ZERO, awake: Time::ZERO }
    }

    /// Handles an arriving command; returns its wait until the link is awake.
    pub(super) fn enters(&mut self, now: Time) -> Time {
        if self.outstanding == 0 {
            self.awake = now + self.spec.wait(self.idle_since, now);
        }
        self.outstanding += 1;
        self.awake.since(now)
    }

    /// Notes a completion seen by the host at this time.
    pub(super) fn completes(&mut self, seen: Time) {
        self.outstanding -= 1;
        self.idle_since = self.idle_since.max(seen);
    }

    /// Appends the start of the idle time; nothing is outstanding.
    pub(super) fn save(&self, out: &mut Vec<u8>) {
        let LinkSleep { spec: _, outstanding: _, idle_since, awake: _ } = self;
        idle_since.save(out);
    }

    /// Replaces the state with one saved by a link; `None` if it is truncated.
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

    /// The first command wakes the link, the second waits for the rest of the wake-up, and none waits while another is
    /// under way.
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
