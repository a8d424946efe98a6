//! Network on a chip: packets between endpoints, over the links of a topology.
//!
//! Packets are cut through: a packet requests a link when its head reaches it. The head moves on at once when the link
//! is free, and reaches the next link `latency` later. Each link carries `width` bytes per cycle, and serves requests
//! in order of arrival. Requests and answers have separate links, so answers never wait behind requests. Every waiting
//! packet has room, so no packet waits for another to free a buffer. Hence waits on a ring form no cycle, and virtual
//! channels are not needed.

pub mod topology;

use config::{
    SpecError,
    units::{Bytes, Frequency},
};
use engine::{Cx, Mutant, Slab, Time, planted, resource::Serial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use topology::{Topology, Wiring};

/// Class of a packet: request or answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Request.
    Request = 0,
    /// Answer.
    Answer = 1,
}

engine::events! {
    /// Events of the network.
    pub enum Event {
        /// The head of a packet is at a link.
        Head(u32),
        /// A packet has arrived as a whole.
        Tail(u32),
    }
}

/// Packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Out<P> {
    /// Endpoint of the receiver.
    pub to: u16,
    /// Payload of the packet.
    pub payload: P,
}

#[derive(Clone, Copy, Debug)]
struct Packet<P> {
    to: u16,
    class: Class,
    /// Link requested last, or to be requested next.
    link: u32,
    occupies: Time,
    payload: P,
}

/// Network whose packets carry `P`.
pub struct Noc<P> {
    topology: Box<dyn Wiring>,
    /// Links, each for requests and for answers.
    links: Vec<[Serial; 2]>,
    packets: Slab<Packet<P>>,
    cycle: Time,
    width: u64,
    header: u64,
    latency: Time,
    /// Packets and bytes moved, headers included, since the measured window began.
    pub stats: NocStats,
}

/// Traffic of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NocStats {
    /// Number of packets.
    pub packets: u64,
    /// Bytes, headers included, counted once per packet.
    pub bytes: u64,
}

impl<P: Copy> Noc<P> {
    /// Creates an idle network of `endpoints`.
    ///
    /// # Errors
    /// The spec cannot be built.
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

    /// Takes a packet of `bytes` of payload data, without its header.
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

    /// Sends a packet over its link. Returns the next link and the head's arrival there; for the last link, that link
    /// and the time when the tail has left it.
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

    /// Handles one of the network's own events.
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

    /// Returns the payload of an event's packet.
    #[inline]
    pub fn payload(&self, event: Event) -> &P {
        let (Event::Head(name) | Event::Tail(name)) = event;
        &self.packets[name].payload
    }

    /// Returns the number of packets in flight.
    pub fn outstanding(&self) -> usize {
        self.packets.len()
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self) {
        self.stats = NocStats::default();
    }
}

// Networks on a chip as specified by a user.

/// Network between the SMs, the banks of the shared cache and the memory controllers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NocSpec {
    /// Topology: the links that packets take.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(extend("default" = "crossbar"))]
    pub topology: Topology,
    /// Clock of the links.
    pub clock: Frequency,
    /// Bytes that a link carries per cycle.
    #[schemars(extend("x-minimum" = "1B"))]
    pub width: Bytes,
    /// Bytes of a packet besides its data: address, command, routing.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub header: Bytes,
    /// Cycles from link to link: through a crossbar, or from one stop of a ring to the next.
    #[schemars(range(max = 1_000_000), extend("x-unit" = "cycles"))]
    pub latency: u32,
}

/// Returns whether the topology is the default, which a spec may omit.
fn is_default(topology: &Topology) -> bool {
    *topology == Topology::default()
}

impl NocSpec {
    /// Checks that the network can be built.
    ///
    /// # Errors
    /// The first invalid value; its key is relative to the table `network`.
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
