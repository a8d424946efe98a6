//! A network on a chip: packets between endpoints, over the links of a topology.
//!
//! Packets are cut through: a packet asks for a link when its head is at it, the head goes on at once when the link is free, and is at
//! the next one `latency` later. Each link carries `width` bytes a cycle, and serves who asks first. Requests and answers have
//! links of their own, so that answers never wait behind requests. There is room for every packet that waits, so that no
//! packet ever waits for another to give up a buffer: there is no cycle of waits on a ring, and no need for virtual channels.

pub mod topology;

use config::{
    SpecError,
    units::{Bytes, Frequency},
};
use engine::{Cx, Mutant, Slab, Time, planted, resource::Serial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use topology::{Topology, Wiring};

/// Whether a packet asks or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Asks.
    Request = 0,
    /// Answers.
    Answer = 1,
}

engine::events! {
    /// The network's own events.
    pub enum Event {
        /// The head of a packet is at a link.
        Head(u32),
        /// A packet has arrived as a whole.
        Tail(u32),
    }
}

/// A packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Out<P> {
    /// Where.
    pub to: u16,
    /// What it carries.
    pub payload: P,
}

#[derive(Clone, Copy, Debug)]
struct Packet<P> {
    to: u16,
    class: Class,
    /// The link that it has asked for last, or asks for next.
    link: u32,
    occupies: Time,
    payload: P,
}

/// A network whose packets carry `P`.
pub struct Noc<P> {
    topology: Box<dyn Wiring>,
    /// Each for requests and for answers.
    links: Vec<[Serial; 2]>,
    packets: Slab<Packet<P>>,
    cycle: Time,
    width: u64,
    header: u64,
    latency: Time,
    /// Packets and bytes moved, headers included, since the measured window began.
    pub stats: NocStats,
}

/// What a network has moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NocStats {
    /// Packets.
    pub packets: u64,
    /// Bytes, headers included, once a packet.
    pub bytes: u64,
}

impl<P: Copy> Noc<P> {
    /// An idle network of `endpoints`.
    ///
    /// # Errors
    /// A spec that cannot be built.
    pub fn new(spec: &NocSpec, endpoints: u16) -> Result<Noc<P>, SpecError> {
        spec.check()?;
        let cycle = Time::period(spec.clock.hz());
        let topology = spec.topology.build(&endpoints);
        Ok(Noc {
            links: vec![Default::default(); topology.links() as usize],
            topology,
            packets: Slab::default(),
            cycle,
            width: spec.width.get(),
            header: spec.header.get(),
            latency: cycle.times(spec.latency.into()),
            stats: NocStats::default(),
        })
    }

    /// Takes a packet of `bytes` of payload data, its header not counted.
    #[inline]
    pub fn send(
        &mut self,
        (from, to): (u16, u16),
        class: Class,
        bytes: u64,
        payload: P,
        cx: &mut impl Cx<Event, Out<P>>,
    ) {
        let header = if planted(Mutant::FreeHeader) { 0 } else { self.header };
        let occupies = self.cycle.times((bytes + header).div_ceil(self.width));
        self.stats.packets += 1;
        self.stats.bytes += bytes + self.header;
        let link = self.topology.first(from, to);
        let packet = Packet { to, class, link, occupies, payload };
        let (next, delay) = self.pass(&packet, cx.now());
        let name = self.packets.insert(Packet { link: next, ..packet });
        let is_last = link == next;
        cx.after(delay, if is_last { Event::Tail(name) } else { Event::Head(name) });
    }

    /// A packet takes its link: the next one and when its head is there; of its last link the same, and when its tail has left it.
    #[inline(always)]
    fn pass(&mut self, packet: &Packet<P>, now: Time) -> (u32, Time) {
        let link = &mut self.links[packet.link as usize][packet.class as usize];
        if packet.link == u32::from(packet.to) {
            let occupies = if planted(Mutant::SharedLink) { Time::ZERO } else { packet.occupies };
            (packet.link, link.grant(now, occupies).since(now))
        } else {
            let leaves = link.grant(now, packet.occupies) - packet.occupies;
            (self.topology.next(packet.link, packet.to), leaves - now + self.latency)
        }
    }

    /// Runs one of the network's own events.
    #[inline]
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out<P>>) {
        match event {
            Event::Head(name) => {
                let packet = self.packets[name];
                let (next, delay) = self.pass(&packet, cx.now());
                if next == packet.link {
                    cx.after(delay, Event::Tail(name));
                } else {
                    self.packets[name].link = next;
                    cx.after(delay, Event::Head(name));
                }
            }
            Event::Tail(name) => {
                let Packet { to, payload, .. } = self.packets[name];
                self.packets.remove(name);
                cx.emit(Out { to, payload });
            }
        }
    }

    /// What the packet of an event carries.
    #[inline]
    pub fn payload(&self, event: Event) -> &P {
        let (Event::Head(name) | Event::Tail(name)) = event;
        &self.packets[name].payload
    }

    /// Packets under way.
    pub fn outstanding(&self) -> usize {
        self.packets.len()
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self) {
        self.stats = NocStats::default();
    }
}

// Networks on a chip as a user writes them.

/// The network between the multiprocessors, the banks of the shared cache and the controllers in front of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NocSpec {
    /// Which links packets take.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "crossbar"))]
    pub topology: Topology,
    /// Clock of the links.
    pub clock: Frequency,
    /// Bytes that a link carries in a cycle.
    #[schemars(extend("x-minimum" = "1B"))]
    pub width: Bytes,
    /// Bytes of a packet besides its data: address, command, routing.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub header: Bytes,
    /// Cycles from link to link: through a crossbar, or from one stop of a ring to the next.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

/// Whether a spec need not say it.
fn is_default(topology: &Topology) -> bool {
    *topology == Topology::default()
}

impl NocSpec {
    /// Whether it can be built.
    ///
    /// # Errors
    /// The first value that cannot be; its key is relative to the table `network`.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("clock", self.clock.hz())?;
        SpecError::positive("width", self.width.get())?;
        SpecError::positive("header", self.header.get())
    }
}

#[cfg(test)]
mod tests {
    use super::topology::Topology;
    use super::*;
    use config::units::{Bytes, Frequency};
    use engine::Recorder;

    fn crossbar() -> Noc<u32> {
        let spec = NocSpec {
            topology: Topology::crossbar,
            clock: Frequency::new(1_000_000_000),
            width: Bytes::new(32),
            header: Bytes::new(8),
            latency: 4,
        };
        Noc::new(&spec, 4).expect("a crossbar")
    }

    fn run(crossbar: &mut Noc<u32>, cx: &mut Recorder<Event, Out<u32>>) -> Vec<(u64, u16, u32)> {
        while let Some(event) = cx.queue.pop() {
            crossbar.handle(event, cx);
        }
        assert_eq!(crossbar.outstanding(), 0);
        cx.sent.drain(..).map(|(at, out)| (at.ns(), out.to, out.payload)).collect()
    }

    #[test]
    fn an_idle_crossbar_costs_its_latency_and_the_packet() {
        let (mut crossbar, mut cx) = (crossbar(), Recorder::default());
        crossbar.send((0, 2), Class::Request, 0, 1, &mut cx);
        crossbar.send((1, 3), Class::Answer, 128, 2, &mut cx);
        // 8 B: one cycle; 136 B: five.
        assert_eq!(run(&mut crossbar, &mut cx), [(5, 2, 1), (9, 3, 2)]);
    }

    #[test]
    fn packets_share_links_in_and_out_but_not_with_answers() {
        let (mut crossbar, mut cx) = (crossbar(), Recorder::default());
        for n in 0..2 {
            crossbar.send((0, 2), Class::Request, 128, n, &mut cx);
            crossbar.send((1, 2), Class::Request, 128, 10 + n, &mut cx);
            crossbar.send((0, 2), Class::Answer, 128, 20 + n, &mut cx);
        }
        let found = run(&mut crossbar, &mut cx);
        // Four requests of five cycles leave by one link: the last at 4 + 20; two answers at 9 and 14.
        assert_eq!(found, [(9, 2, 0), (9, 2, 20), (14, 2, 10), (14, 2, 21), (19, 2, 1), (24, 2, 11)]);
    }
}
