//! Mesh of routers: links between neighbours, a link in and a link out at every router, XY routing.
//!
//! A message is one grant on each link of its path. The mesh holds no messages: the sender requests the next link when
//! the message's head has reached a router.

use config::SpecError;
use config::units::{Bytes, Duration, TransferRate};
use engine::{Mutant, Time, planted, resource::Serial};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

config::policies! {
    /// Condition under which a router forwards a message.
    #[derive(Copy, Eq)]
    pub family Switching: choice {
        /// As soon as the head has arrived; the router buffers the whole message if the next link is busy (virtual
        /// cut-through).
        ///
        /// Kermani and Kleinrock, Computer Networks 3, 1979.
        default cut_through,
        /// Once the whole message has arrived.
        store_and_forward,
    }
}

/// Mesh of routers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MeshSpec {
    /// Routers in a column.
    #[schemars(range(min = 1, max = 65_536))]
    pub rows: u32,
    /// Routers in a row. Router `n` is in row `n / columns`.
    #[schemars(range(min = 1, max = 65_536))]
    pub columns: u32,
    /// Bytes that a link moves in one transfer.
    #[schemars(extend("x-minimum" = "1B", "x-maximum" = "1MiB"))]
    pub width: Bytes,
    /// Transfers per second of a link.
    pub rate: TransferRate,
    /// Time that a router takes to forward a head.
    pub router: Duration,
    /// Condition under which a router forwards a message.
    pub switching: Switching,
}

impl Default for MeshSpec {
    /// Flash network of ZnG's Table I; rows, columns and the router's time are chosen.
    fn default() -> MeshSpec {
        MeshSpec {
            rows: 4,
            columns: 4,
            width: Bytes::new(8),
            rate: TransferRate::new(800_000_000),
            router: Duration::new(Time::from_ps(2_500)),
            switching: Switching::cut_through,
        }
    }
}

impl MeshSpec {
    /// Checks that the mesh can be built; keys are relative to the mesh's table.
    ///
    /// # Errors
    /// A count or a rate is zero, or the mesh has more than 65,536 routers.
    pub fn check(&self) -> Result<(), SpecError> {
        SpecError::positive("rows", self.rows.into())?;
        SpecError::positive("columns", self.columns.into())?;
        SpecError::positive("width", self.width.get())?;
        SpecError::positive("rate", self.rate.per_s())?;
        if u64::from(self.rows) * u64::from(self.columns) > 1 << 16 {
            let what = format!("{} rows of {} routers; at most 65,536 are modelled", self.rows, self.columns);
            return Err(SpecError::new("rows", what));
        }
        Ok(())
    }

    /// Returns bytes per second of one link.
    pub fn bytes_per_s(&self) -> u64 {
        self.width.get().saturating_mul(self.rate.per_s())
    }

    /// Returns the number of routers.
    pub fn routers(&self) -> u32 {
        self.rows * self.columns
    }
}

/// Position of a message, with the arrival times of its head and tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reach {
    /// Router; on the last link of a path, the router that the message has left.
    pub router: u32,
    /// Time at which the next link may be requested; at the end of the path, the arrival of the whole message.
    pub head: Time,
    /// Arrival time of the last byte.
    pub tail: Time,
}

/// Links of a router, by destination.
const LINKS: usize = 6;
const EAST: usize = 0;
const WEST: usize = 1;
const SOUTH: usize = 2;
const NORTH: usize = 3;
const OUT: usize = 4;
const IN: usize = 5;

/// State of a mesh of routers.
#[derive(Clone, Debug)]
pub struct Mesh {
    columns: u32,
    routers: u32,
    router: Time,
    bytes_per_s: u64,
    switching: Switching,
    links: Vec<Serial>,
}

impl Mesh {
    /// Creates an idle mesh.
    ///
    /// # Errors
    /// The first error of [`MeshSpec::check`].
    pub fn new(spec: &MeshSpec) -> Result<Mesh, SpecError> {
        spec.check()?;
        Ok(Mesh {
            columns: spec.columns,
            routers: spec.routers(),
            router: spec.router.time(),
            bytes_per_s: spec.bytes_per_s(),
            switching: spec.switching,
            links: vec![Serial::default(); spec.routers() as usize * LINKS],
        })
    }

    /// Returns the time of `bytes` on one link.
    pub fn service(&self, bytes: u64) -> Time {
        Time::transfer(bytes, self.bytes_per_s)
    }

    /// Returns the number of links between the routers `from` and `to`.
    pub fn hops(&self, from: u32, to: u32) -> u32 {
        let (fy, fx) = (from / self.columns, from % self.columns);
        let (ty, tx) = (to / self.columns, to % self.columns);
        fx.abs_diff(tx) + fy.abs_diff(ty)
    }

    /// Returns the latency of a message from a device at `from` to one at `to` through an idle mesh. The message passes
    /// one more router than hops. With cut-through the bytes count once, otherwise on every link, the links in and out
    /// included.
    pub fn zero_load(&self, from: u32, to: u32, service: Time) -> Time {
        let hops = u64::from(self.hops(from, to));
        let links = match self.switching {
            Switching::cut_through => 1,
            Switching::store_and_forward => hops + 2,
        };
        self.router.times(hops + 1) + service.times(links)
    }

    /// Sends a message of the device at `router` over the link in.
    #[inline]
    pub fn inject(&mut self, now: Time, router: u32, service: Time) -> Reach {
        let end = self.links[router as usize * LINKS + IN].grant(now, service);
        self.passed(router, end, service, end)
    }

    /// Registers a message that leaves a device's own port, where it was granted until `end`, towards `router`.
    #[inline]
    pub fn entered(&self, router: u32, end: Time, service: Time) -> Reach {
        self.passed(router, end, service, end)
    }

    /// Returns the time at which the last byte of a message that reaches its first router at `at` leaves the sender.
    #[inline]
    pub fn left(&self, at: Reach) -> Time {
        at.tail - self.router
    }

    /// Forwards a message whose head is at `at` over the next link to `to`, along its row first; `at` and `to` differ.
    #[inline]
    pub fn forward(&mut self, now: Time, at: Reach, to: u32, service: Time) -> Reach {
        let (y, x) = (at.router / self.columns, at.router % self.columns);
        let (ty, tx) = (to / self.columns, to % self.columns);
        let (link, next) = if tx > x {
            (EAST, at.router + 1)
        } else if tx < x {
            (WEST, at.router - 1)
        } else if ty > y {
            (SOUTH, at.router + self.columns)
        } else {
            (NORTH, at.router - self.columns)
        };
        debug_assert!(at.router != to, "a message at its destination must be ejected");
        let service = if planted(Mutant::FreeHop) { Time::ZERO } else { service };
        let end = self.links[at.router as usize * LINKS + link].grant(now, service);
        self.passed(next, end, service, end.max(at.tail))
    }

    /// Sends a message whose head is at its last router over the router's link out.
    #[inline]
    pub fn eject(&mut self, now: Time, at: Reach, service: Time) -> Reach {
        let end = self.links[at.router as usize * LINKS + OUT].grant(now, service).max(at.tail);
        Reach { router: at.router, head: end, tail: end }
    }

    /// Returns the reach of a message whose link was granted until `end`, with the last byte through at `tail`.
    #[inline]
    fn passed(&self, router: u32, end: Time, service: Time, tail: Time) -> Reach {
        let head = match self.switching {
            Switching::cut_through => end - service,
            Switching::store_and_forward => tail,
        };
        Reach { router, head: head + self.router, tail: tail + self.router }
    }

    /// Returns the number of routers.
    pub fn routers(&self) -> u32 {
        self.routers
    }

    /// Iterates over the existing links: between neighbours, and in and out of every router.
    pub fn links(&self) -> impl Iterator<Item = &Serial> {
        let (columns, routers) = (self.columns, self.routers);
        self.links
            .iter()
            .enumerate()
            .filter(move |(n, _)| {
                let (router, link) = ((*n / LINKS) as u32, *n % LINKS);
                match link {
                    EAST => (router + 1) % columns != 0,
                    WEST => router % columns != 0,
                    SOUTH => router + columns < routers,
                    NORTH => router >= columns,
                    _ => true,
                }
            })
            .map(|(_, link)| link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mesh(switching: Switching) -> Mesh {
        Mesh::new(&MeshSpec { switching, ..MeshSpec::default() }).expect("the default is sound")
    }

    /// Sends messages through the mesh at once, requesting each link when the head arrives; returns their arrival
    /// times.
    fn run(mesh: &mut Mesh, ways: &[(u32, u32)], service: Time) -> Vec<Time> {
        let mut arrived = vec![Time::ZERO; ways.len()];
        let mut heads: Vec<(Time, usize, Reach)> = Vec::new();
        for (n, (from, _)) in ways.iter().enumerate() {
            let reach = mesh.inject(Time::ZERO, *from, service);
            heads.push((reach.head, n, reach));
        }
        while let Some(first) = (0..heads.len()).min_by_key(|n| (heads[*n].0, heads[*n].1)) {
            let (now, n, at) = heads.swap_remove(first);
            if at.router == ways[n].1 {
                arrived[n] = mesh.eject(now, at, service).tail;
            } else {
                let reach = mesh.forward(now, at, ways[n].1, service);
                heads.push((reach.head, n, reach));
            }
        }
        arrived
    }

    /// 4 KiB at 6.4 GB/s are 640 ns; every router adds 2.5 ns; corner to corner of 4 x 4 are 6 hops.
    #[test]
    fn an_idle_mesh_costs_a_router_a_hop_and_the_bytes_once() {
        let page = Time::from_ns(640);
        for (from, to, hops) in [(5, 5, 0), (0, 1, 1), (0, 15, 6), (12, 3, 6), (2, 8, 4)] {
            let mut cut = mesh(Switching::cut_through);
            assert_eq!((cut.service(4096), cut.hops(from, to)), (page, hops));
            let expected = page + Time::from_ps(2_500 * u64::from(hops + 1));
            assert_eq!(run(&mut cut, &[(from, to)], page), [expected], "{from} to {to}");
            assert_eq!(cut.zero_load(from, to, page), expected);
            let mut whole = mesh(Switching::store_and_forward);
            let expected = page.times(u64::from(hops) + 2) + Time::from_ps(2_500 * u64::from(hops + 1));
            assert_eq!(run(&mut whole, &[(from, to)], page), [expected], "{from} to {to}");
            assert_eq!(whole.zero_load(from, to, page), expected);
        }
    }

    /// Two flows of 100 pages over the link from 1 to 2 take as long as 200 pages; over separate links, as 100.
    #[test]
    fn flows_that_share_a_link_halve() {
        let page = Time::from_ns(640);
        let flows = |a: (u32, u32), b: (u32, u32)| {
            let ways: Vec<_> = (0..100).flat_map(|_| [a, b]).collect();
            run(&mut mesh(Switching::cut_through), &ways, page).into_iter().max().expect("messages")
        };
        let head = Time::from_ps(2_500);
        // 0 to 2 and 1 to 6 both take the link from 1 to 2: XY routing goes along the row first. The link is busy from
        // the time when 1's first message has passed one router; the last message, 0's, passes one more.
        assert_eq!(flows((0, 2), (1, 6)), page.times(200) + head.times(2));
        // 1 to 5 and 0 to 2 share the router 1, but no link.
        assert_eq!(flows((0, 2), (1, 5)), page.times(100) + head.times(3));
    }

    #[test]
    fn a_mesh_has_the_links_of_a_grid() {
        // 4 x 4: 24 neighbour pairs in both directions, and a link in and a link out at each of 16 routers.
        assert_eq!(mesh(Switching::cut_through).links().count(), 48 + 32);
        let line = Mesh::new(&MeshSpec { rows: 1, columns: 3, ..MeshSpec::default() }).expect("sound");
        assert_eq!(line.links().count(), 4 + 6);
    }

    #[test]
    fn nothing_of_zero_can_be_built() {
        let fault = |spec: MeshSpec| Mesh::new(&spec).expect_err("unsound").key;
        assert_eq!(fault(MeshSpec { rows: 0, ..MeshSpec::default() }), "rows");
        assert_eq!(fault(MeshSpec { width: Bytes::new(0), ..MeshSpec::default() }), "width");
        assert_eq!(fault(MeshSpec { rows: 1 << 10, columns: 1 << 10, ..MeshSpec::default() }), "rows");
    }
}
