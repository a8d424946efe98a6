//! Ring with two directions.

use super::Wiring;

/// Ring topology. Stop `n` has a link to stop `n + 1` and one to stop `n - 1`. A packet takes the shorter direction
/// from its sender's stop to its receiver's. If both directions are equally long, packets from even stops go up and
/// those from odd stops down, so that uniform traffic loads both directions alike.
#[derive(Clone, Debug)]
pub struct Ring {
    stops: u32,
}

impl Ring {
    /// Builds the topology.
    pub fn new(endpoints: &u16) -> Ring {
        Ring { stops: (*endpoints).into() }
    }

    /// Returns whether the path between two stops goes up.
    fn goes_up(&self, from: u32, to: u32) -> bool {
        let up = if to >= from { to - from } else { to + self.stops - from };
        let down = self.stops - up;
        up < down || (up == down && from.is_multiple_of(2))
    }

    /// Returns the link of a packet at a stop, whether it arrived there or starts there.
    fn onward(&self, stop: u32, up: bool, to: u32) -> u32 {
        match (stop == to, up) {
            (true, _) => to,
            (false, true) => self.stops + stop,
            (false, false) => 2 * self.stops + stop,
        }
    }
}

impl Wiring for Ring {
    fn links(&self) -> u32 {
        3 * self.stops
    }
    #[inline]
    fn first(&self, from: u16, to: u16) -> u32 {
        let (from, to) = (from.into(), to.into());
        self.onward(from, self.goes_up(from, to), to)
    }
    #[inline]
    fn next(&self, link: u32, to: u16) -> u32 {
        let up = link < 2 * self.stops;
        let stop = if up {
            let next = link - self.stops + 1;
            if next == self.stops { 0 } else { next }
        } else {
            let stop = link - 2 * self.stops;
            if stop == 0 { self.stops - 1 } else { stop - 1 }
        };
        self.onward(stop, up, to.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Topology;
    use crate::noc::{Class, Event, Noc, NocSpec, Out};
    use config::units::{Bytes, Frequency};
    use engine::{Recorder, Time};
    use proptest::prelude::*;

    /// Ring with cycles of a nanosecond, 32 B wide, headers of 8 B, two cycles per hop.
    fn ring(stops: u16) -> Noc<u32> {
        let spec = NocSpec {
            topology: Topology::ring,
            clock: Frequency::new(1_000_000_000),
            width: Bytes::new(32),
            header: Bytes::new(8),
            latency: 2,
        };
        Noc::new(&spec, stops).expect("a ring")
    }

    type Records = Recorder<Event, Out<u32>>;

    /// Returns each arrival: time, endpoint and payload.
    fn run(ring: &mut Noc<u32>, cx: &mut Records) -> Vec<(u64, u16, u32)> {
        while let Some(event) = cx.queue.pop() {
            ring.handle(event, cx);
        }
        assert_eq!(ring.outstanding(), 0);
        cx.sent.drain(..).map(|(at, out)| (at.ns(), out.to, out.payload)).collect()
    }

    /// Dally and Towles, section 5.2: on `n` stops, the path from `a` to `b` has `min(|a - b|, n - |a - b|)` links.
    fn hops(stops: u16, from: u16, to: u16) -> u64 {
        let apart = from.abs_diff(to);
        apart.min(stops - apart).into()
    }

    #[test]
    fn an_idle_ring_costs_its_hops_and_the_packet_once() {
        for stops in [1, 2, 5, 8] {
            for (from, to) in (0..stops).flat_map(|from| (0..stops).map(move |to| (from, to))) {
                // 8 B are a cycle, 136 B five.
                for (bytes, cycles) in [(0, 1), (128, 5)] {
                    let (mut ring, mut cx) = (ring(stops), Records::default());
                    ring.send((from, to), Class::Request, bytes, 7, &mut cx);
                    let expected = 2 * hops(stops, from, to) + cycles;
                    assert_eq!(run(&mut ring, &mut cx), [(expected, to, 7)], "{from} to {to} of {stops}");
                }
            }
        }
    }

    /// In cycles, lines of five, all to stop 2 of 6. From 0 over stop 1: the link to 1 from 0, the link to 2 from 2 to
    /// 7, out from 4 to 9. From 1: it requested the link to 2 at 0 and gets it first, from 0 to 5, and is out from 2 to
    /// 7. So 0's has that link from 5 to 10, and the link out from 7 to 12. From 3, the other direction: the link to 2
    /// from 0, the link out when 1's is done, before 0's: from 7 to 12; 0's ends at 17. An answer from 0 meets none of
    /// them.
    #[test]
    fn packets_wait_for_links_that_they_share() {
        let (mut ring, mut cx) = (ring(6), Records::default());
        ring.send((0, 2), Class::Request, 128, 1, &mut cx);
        ring.send((1, 2), Class::Request, 128, 2, &mut cx);
        ring.send((3, 2), Class::Request, 128, 3, &mut cx);
        ring.send((0, 2), Class::Answer, 128, 4, &mut cx);
        assert_eq!(run(&mut ring, &mut cx), [(7, 2, 2), (9, 2, 4), (12, 2, 3), (17, 2, 1)]);
    }

    /// Dally and Towles, section 5.2.1: uniform traffic between all pairs of `n` stops loads each link of a ring with
    /// `n^2 / 8` packets (half of `n^2 / 4` for each direction), and each link out with `n - 1`. No ring can finish
    /// sooner than its busiest link; ours takes that long, plus one path through it.
    #[test]
    fn traffic_of_all_to_all_is_limited_by_the_links_of_the_ring() {
        const STOPS: u16 = 16;
        const ROUNDS: u64 = 10;
        let (mut ring, mut cx) = (ring(STOPS), Records::default());
        for round in 0..ROUNDS {
            for (apart, from) in (1..STOPS).flat_map(|apart| (0..STOPS).map(move |from| (apart, from))) {
                // Each round begins with a different distance: not all request the same link out at once.
                let apart = (apart + round as u16) % (STOPS - 1) + 1;
                ring.send((from, (from + apart) % STOPS), Class::Request, 128, 0, &mut cx);
            }
        }
        let arrived = run(&mut ring, &mut cx);
        assert_eq!(arrived.len() as u64, ROUNDS * u64::from(STOPS) * u64::from(STOPS - 1));
        let n = u64::from(STOPS);
        let bound = ROUNDS * n * n / 8 * 5;
        let end = Time::from_ms(1);
        for (link, [requests, answers]) in ring.links.iter().enumerate() {
            let expected = if link < n as usize { ROUNDS * (n - 1) * 5 } else { bound };
            assert_eq!((requests.busy(end).ns(), answers.busy(end)), (expected, Time::ZERO), "link {link}");
        }
        let last = arrived.last().expect("packets").0;
        assert!((bound..bound + bound / 10).contains(&last), "{last} cycles, the links need {bound}");
    }

    /// Two neighbours that never stop sending to the stop between them get half of its link out each.
    #[test]
    fn both_directions_have_their_share_of_a_link_out() {
        let (mut ring, mut cx) = (ring(8), Records::default());
        for _ in 0..100 {
            ring.send((3, 4), Class::Answer, 128, 0, &mut cx);
            ring.send((5, 4), Class::Answer, 128, 1, &mut cx);
        }
        let arrived = run(&mut ring, &mut cx);
        for (n, (at, _, from)) in arrived.iter().enumerate() {
            assert_eq!((*at, *from), (2 + 5 * (n as u64 + 1), n as u32 % 2));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Every packet arrives once, at its destination. It arrives no sooner than on an idle ring, and after the
        /// earlier packets of its class between the same stops.
        #[test]
        fn nothing_is_lost_made_or_overtaken(
            stops in 1u16..12,
            sends in prop::collection::vec((0u32..12, 0u16..12, 0u16..12, 0u64..80, any::<bool>()), 1..120),
        ) {
            let (mut ring, mut cx) = (ring(stops), Records::default());
            let mut sent = Vec::new();
            for (name, (events, from, to, bytes, asks)) in sends.into_iter().enumerate() {
                for _ in 0..events {
                    let Some(event) = cx.queue.pop() else { break };
                    ring.handle(event, &mut cx);
                }
                let (from, to) = (from % stops, to % stops);
                let class = if asks { Class::Request } else { Class::Answer };
                ring.send((from, to), class, bytes, name as u32, &mut cx);
                sent.push((cx.queue.now().ns(), from, to, (bytes + 8).div_ceil(32), class));
            }
            let arrived = run(&mut ring, &mut cx);
            prop_assert_eq!(arrived.len(), sent.len());
            let mut seen = vec![false; sent.len()];
            let mut last = [[[None; 2]; 12]; 12];
            for (at, at_stop, name) in arrived {
                let (begun, from, to, cycles, class) = sent[name as usize];
                prop_assert!(!std::mem::replace(&mut seen[name as usize], true));
                prop_assert_eq!(at_stop, to);
                prop_assert!(at >= begun + 2 * hops(stops, from, to) + cycles);
                let before = last[usize::from(from)][usize::from(to)][class as usize].replace(name);
                prop_assert!(before < Some(name));
            }
        }
    }
}
