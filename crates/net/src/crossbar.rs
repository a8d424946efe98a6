//! A crossbar: every endpoint has a link into it and a link out of it, and between links there is no contention.
//!
//! Packets are cut through: the head leaves at once when its link in is free, crosses in `latency`, and waits for the link
//! out of its destination. Each link carries `width` bytes a cycle. Requests and answers have links of their own, so that
//! answers never wait behind requests.

use crate::spec::CrossbarSpec;
use config::SpecError;
use kernel::{Cx, Mutant, Slab, Time, planted, resource::Serial};

/// Whether a packet asks or answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Asks.
    Request = 0,
    /// Answers.
    Answer = 1,
}

kernel::events! {
    /// The crossbar's own events.
    pub enum Event {
        /// The head of a packet has reached the link out of its destination.
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

#[derive(Clone, Debug, Default)]
struct Endpoint {
    inward: [Serial; 2],
    outward: [Serial; 2],
}

#[derive(Clone, Copy, Debug)]
struct Packet<P> {
    to: u16,
    class: Class,
    occupies: Time,
    payload: P,
}

/// A crossbar whose packets carry `P`.
pub struct Crossbar<P> {
    endpoints: Vec<Endpoint>,
    packets: Slab<Packet<P>>,
    cycle: Time,
    width: u64,
    header: u64,
    latency: Time,
    /// Packets and bytes moved, headers included, since the measured window began.
    pub stats: CrossbarStats,
}

/// What a crossbar has moved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CrossbarStats {
    /// Packets.
    pub packets: u64,
    /// Bytes, headers included.
    pub bytes: u64,
}

impl<P: Copy> Crossbar<P> {
    /// An idle crossbar of `endpoints`.
    ///
    /// # Errors
    /// A spec that cannot be built.
    pub fn new(spec: &CrossbarSpec, endpoints: u16) -> Result<Crossbar<P>, SpecError> {
        spec.check()?;
        let cycle = Time::period(spec.clock.hz());
        Ok(Crossbar {
            endpoints: vec![Endpoint::default(); usize::from(endpoints)],
            packets: Slab::default(),
            cycle,
            width: spec.width.get(),
            header: spec.header.get(),
            latency: cycle.times(spec.latency.into()),
            stats: CrossbarStats::default(),
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
        let link = &mut self.endpoints[usize::from(from)].inward[class as usize];
        let leaves = link.grant(cx.now(), occupies).since(occupies);
        let name = self.packets.insert(Packet { to, class, occupies, payload });
        cx.after(leaves.since(cx.now()) + self.latency, Event::Head(name));
    }

    /// Runs one of the crossbar's own events.
    #[inline]
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out<P>>) {
        match event {
            Event::Head(name) => {
                let packet = &self.packets[name];
                let link = &mut self.endpoints[usize::from(packet.to)].outward[packet.class as usize];
                let occupies = if planted(Mutant::SharedLink) { Time::ZERO } else { packet.occupies };
                let end = link.grant(cx.now(), occupies);
                cx.after(end.since(cx.now()), Event::Tail(name));
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

    /// Time that the links out of an endpoint's side of the crossbar have been busy: requests, answers.
    pub fn busy(&self, endpoint: u16, now: Time) -> [Time; 2] {
        let links = &self.endpoints[usize::from(endpoint)].outward;
        [links[0].busy(now), links[1].busy(now)]
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self) {
        self.stats = CrossbarStats::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::units::{Bytes, Frequency};
    use kernel::Recorder;

    fn crossbar() -> Crossbar<u32> {
        let spec = CrossbarSpec {
            clock: Frequency::new(1_000_000_000),
            width: Bytes::new(32),
            header: Bytes::new(8),
            latency: 4,
        };
        Crossbar::new(&spec, 4).expect("a crossbar")
    }

    fn run(crossbar: &mut Crossbar<u32>, cx: &mut Recorder<Event, Out<u32>>) -> Vec<(u64, u16, u32)> {
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
