//! Packets over a mesh, hop by hop.
//!
//! A packet takes whole transfers on every link of its path, and requests each link when its head reaches the router
//! before it. Packets of one sender to one receiver arrive in the order in which they were sent: they take the same
//! links, and links are first in, first out.
//!
//! Requests and answers share the links. Routers have room for every waiting packet, so no packet waits for another to
//! free a buffer. Hence waits form no cycle, and message classes need no virtual channels.

use crate::mesh::{Mesh, MeshSpec, Reach};
use config::SpecError;
use config::units::Bytes;
use engine::{Cx, Slab, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Network of packets over a mesh.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FabricSpec {
    /// Mesh of the network.
    pub mesh: MeshSpec,
    /// Bytes of a packet besides its data: address, command, routing.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub header: Bytes,
}

impl FabricSpec {
    /// Checks that the network can be built; keys are relative to the network's table.
    ///
    /// # Errors
    /// The first invalid value.
    pub fn check(&self) -> Result<(), SpecError> {
        let inside = |mut fault: SpecError| {
            fault.key.insert_str(0, "mesh.");
            fault
        };
        self.mesh.check().map_err(inside)?;
        SpecError::positive("header", self.header.get())
    }
}

engine::events! {
    /// Events of the network.
    pub enum Event {
        /// The head of a packet is at a router.
        Head(u32),
        /// A packet has arrived as a whole.
        Tail(u32),
    }
}

/// Packet that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Out<P> {
    /// Router of the receiver.
    pub to: u32,
    /// Payload of the packet.
    pub payload: P,
}

/// Traffic of a network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FabricStats {
    /// Number of packets.
    pub packets: u64,
    /// Bytes, headers included, counted once per packet.
    pub bytes: u64,
    /// Number of links between routers on the paths of packets.
    pub hops: u64,
}

#[derive(Clone, Copy, Debug)]
struct Packet<P> {
    to: u32,
    service: Time,
    at: Reach,
    payload: P,
}

/// Mesh whose packets carry `P`.
pub struct Fabric<P> {
    mesh: Mesh,
    packets: Slab<Packet<P>>,
    width: u64,
    header: u64,
    /// Traffic sent since the measured window began.
    pub stats: FabricStats,
}

impl<P: Copy> Fabric<P> {
    /// Creates an idle network.
    ///
    /// # Errors
    /// The first error of [`FabricSpec::check`].
    pub fn new(spec: &FabricSpec) -> Result<Fabric<P>, SpecError> {
        spec.check()?;
        Ok(Fabric {
            mesh: Mesh::new(&spec.mesh)?,
            packets: Slab::default(),
            width: spec.mesh.width.get(),
            header: spec.header.get(),
            stats: FabricStats::default(),
        })
    }

    /// Takes a packet of `bytes` of payload data, without its header, from the router `from` to the router `to`. If
    /// both are the same router, the packet takes the link in, the router, and the link out.
    #[inline]
    pub fn send(&mut self, (from, to): (u32, u32), bytes: u64, payload: P, cx: &mut impl Cx<Event, Out<P>>) {
        let bytes = bytes + self.header;
        let service = self.service(bytes);
        self.stats.packets += 1;
        self.stats.bytes += bytes;
        self.stats.hops += u64::from(self.mesh.hops(from, to));
        let at = self.mesh.inject(cx.now(), from, service);
        let name = self.packets.insert(Packet { to, service, at, payload });
        cx.after(at.head - cx.now(), Event::Head(name));
    }

    /// Returns the time of a packet of `bytes` on one link, in whole transfers.
    #[inline]
    fn service(&self, bytes: u64) -> Time {
        self.mesh.service(bytes.next_multiple_of(self.width))
    }

    /// Handles one of the network's own events.
    #[inline]
    pub fn handle(&mut self, event: Event, cx: &mut impl Cx<Event, Out<P>>) {
        match event {
            Event::Head(name) => {
                let now = cx.now();
                let packet = &mut self.packets[name];
                if packet.at.router == packet.to {
                    packet.at = self.mesh.eject(now, packet.at, packet.service);
                    cx.after(packet.at.tail - now, Event::Tail(name));
                } else {
                    packet.at = self.mesh.forward(now, packet.at, packet.to, packet.service);
                    cx.after(packet.at.head - now, Event::Head(name));
                }
            }
            Event::Tail(name) => {
                let Packet { to, payload, .. } = self.packets[name];
                self.packets.remove(name);
                cx.emit(Out { to, payload });
            }
        }
    }

    /// Returns the mesh, with its links and their busy times.
    pub fn mesh(&self) -> &Mesh {
        &self.mesh
    }

    /// Returns the number of packets in flight.
    pub fn outstanding(&self) -> usize {
        self.packets.len()
    }

    /// Starts the measured window.
    pub fn reset_stats(&mut self) {
        self.stats = FabricStats::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::Switching;
    use config::units::{Duration, TransferRate};
    use engine::Recorder;
    use proptest::prelude::*;

    /// AstriFlash, Table I, at 2 GHz: 16 B links, three cycles a hop. A header of 8 B is chosen.
    fn spec(switching: Switching) -> FabricSpec {
        let mesh = MeshSpec {
            rows: 4,
            columns: 4,
            width: Bytes::new(16),
            rate: TransferRate::new(2_000_000_000),
            router: Duration::new(Time::from_ps(1_500)),
            switching,
        };
        FabricSpec { mesh, header: Bytes::new(8) }
    }

    fn fabric(switching: Switching) -> Fabric<u32> {
        Fabric::new(&spec(switching)).expect("a mesh")
    }

    type Records = Recorder<Event, Out<u32>>;

    fn run(fabric: &mut Fabric<u32>, cx: &mut Records) -> Vec<(u64, u32, u32)> {
        while let Some(event) = cx.queue.pop() {
            fabric.handle(event, cx);
        }
        assert_eq!(fabric.outstanding(), 0);
        cx.sent.drain(..).map(|(at, out)| (at.ps(), out.to, out.payload)).collect()
    }

    #[test]
    fn an_idle_mesh_costs_its_zero_load_latency() {
        for switching in [Switching::cut_through, Switching::store_and_forward] {
            // 8 B are a transfer of half a nanosecond, 72 B five.
            for (from, to, bytes, transfers) in [(5, 5, 0, 1), (0, 15, 64, 5), (12, 3, 8, 1), (2, 8, 9, 2)] {
                let (mut fabric, mut cx) = (fabric(switching), Records::default());
                fabric.send((from, to), bytes, 9, &mut cx);
                let expected = fabric.mesh().zero_load(from, to, Time::from_ps(500 * transfers));
                assert_eq!(run(&mut fabric, &mut cx), [(expected.ps(), to, 9)]);
                assert_eq!(fabric.stats.hops, u64::from(fabric.mesh().hops(from, to)));
            }
        }
    }

    /// Corner to corner: six hops and the receiver's router at 3 cycles each, and a line of five transfers: 26 cycles.
    #[test]
    fn a_line_crosses_the_mesh_of_astriflash_in_26_cycles() {
        let (mut fabric, mut cx) = (fabric(Switching::cut_through), Records::default());
        fabric.send((0, 15), 64, 1, &mut cx);
        assert_eq!(run(&mut fabric, &mut cx), [(26 * 500, 15, 1)]);
        assert_eq!(fabric.stats, FabricStats { packets: 1, bytes: 72, hops: 6 });
    }

    /// In cycles: two lines from 0 and 1 to 2 share the links from 1 to 2 and out of 2. The one from 1 requests at 3,
    /// holds the link from 3 to 8, is at router 2 at 6 and out at 11. The one from 0 is at router 1 at 6, holds the
    /// link from 8 to 13, is at router 2 at 11 and out at 16. A packet from 4 to 0 meets neither.
    #[test]
    fn packets_wait_for_a_link_that_they_share() {
        let (mut fabric, mut cx) = (fabric(Switching::cut_through), Records::default());
        fabric.send((0, 2), 64, 1, &mut cx);
        fabric.send((1, 2), 64, 2, &mut cx);
        fabric.send((4, 0), 64, 3, &mut cx);
        let found = run(&mut fabric, &mut cx);
        assert_eq!(found, [(11 * 500, 2, 2), (11 * 500, 0, 3), (16 * 500, 2, 1)]);
    }

    #[test]
    fn faults_name_their_key() {
        let fault = |spec: FabricSpec| Fabric::<u32>::new(&spec).err().expect("unsound").key;
        let sound = spec(Switching::cut_through);
        let mesh = MeshSpec { rows: 0, ..sound.mesh.clone() };
        assert_eq!(fault(FabricSpec { mesh, ..sound.clone() }), "mesh.rows");
        assert_eq!(fault(FabricSpec { header: Bytes::new(0), ..sound }), "header");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Every packet arrives once, at its destination. It arrives no sooner than through an idle mesh, and never
        /// before an earlier packet of the same sender and receiver. Links are busy for each of their packets.
        #[test]
        fn nothing_is_lost_made_or_overtaken(
            store in any::<bool>(),
            sends in prop::collection::vec((0u32..12, 0u32..16, 0u32..16, 0u64..80), 1..120),
        ) {
            let switching = if store { Switching::store_and_forward } else { Switching::cut_through };
            let (mut fabric, mut cx) = (fabric(switching), Records::default());
            let mut sent = Vec::new();
            let mut busy = Time::ZERO;
            for (name, (events, from, to, bytes)) in sends.iter().enumerate() {
                for _ in 0..*events {
                    let Some(event) = cx.queue.pop() else { break };
                    fabric.handle(event, &mut cx);
                }
                fabric.send((*from, *to), *bytes, name as u32, &mut cx);
                let service = Time::from_ps((bytes + 8).div_ceil(16) * 500);
                sent.push((cx.queue.now(), *from, *to, service));
                busy += service.times(u64::from(fabric.mesh().hops(*from, *to)) + 2);
            }
            let hops = sent.iter().map(|(_, f, t, _)| u64::from(fabric.mesh().hops(*f, *t))).sum::<u64>();
            let bytes = sends.iter().map(|(.., bytes)| bytes + 8).sum::<u64>();
            prop_assert_eq!(&fabric.stats, &FabricStats { packets: sent.len() as u64, bytes, hops });
            let arrived = run(&mut fabric, &mut cx);
            prop_assert_eq!(arrived.len(), sent.len());
            let mut last = [[None; 16]; 16];
            let mut seen = vec![false; sent.len()];
            for (at, at_router, name) in arrived {
                let (begun, from, to, service) = sent[name as usize];
                prop_assert!(!std::mem::replace(&mut seen[name as usize], true));
                prop_assert_eq!(at_router, to);
                prop_assert!(at >= (begun + fabric.mesh().zero_load(from, to, service)).ps());
                let before = last[from as usize][to as usize].replace(name);
                prop_assert!(before < Some(name));
            }
            let end = Time::from_ms(1);
            let used = fabric.mesh().links().fold(Time::ZERO, |sum, link| sum + link.busy(end));
            prop_assert_eq!(used, busy);
        }
    }
}
