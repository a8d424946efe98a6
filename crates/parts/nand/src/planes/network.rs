//! Network messages between controllers and packages.
//!
//! Commands without data take a beat or two: they precede data and are charged their time in an idle network. Data
//! queue at every link. The pages of a plane use one port of its package and one path through the mesh, first in first
//! out, so that messages for a page never overtake each other.

use super::Spread;
use super::spec::{DirectGeometry, FlashNetwork};
use crate::numbers::Packages;
use config::SpecError;
use engine::resource::Serial;
use engine::{Cx, Slab, Time};
use net::mesh::{Mesh, Reach};
use proto::memory::Lines;
use std::convert::Infallible;

engine::events! {
    /// Events of the network.
    pub enum Event {
        /// The head of a message is at a router.
        Head(u32),
        /// All of a message is at its destination.
        Delivered(u32),
    }
}

/// Direction of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// From a package to its controller.
    Out,
    /// To a package, after its command.
    Into,
}

#[derive(Clone, Copy, Debug)]
struct Message<C> {
    cargo: C,
    way: Way,
    /// Port that the message leaves or enters by.
    port: u32,
    /// Destination router.
    to: u32,
    service: Time,
    at: Reach,
}

#[derive(Clone, Debug)]
enum Fabric {
    Mesh(Mesh),
    Bus,
}

/// Ports, links, and messages with an opaque payload.
#[derive(Clone, Debug)]
pub struct Network<C> {
    fabric: Fabric,
    /// Ports of all packages; with buses, the buses.
    ports: Vec<Serial>,
    /// Ports per package; zero with buses.
    each: u32,
    channels: u32,
    messages: Slab<Message<C>>,
    /// Link times by number of lines, from a package and, with their command, to it: up to a whole page.
    out: Vec<Time>,
    into: Vec<Time>,
    /// Controller of each package; the controller's router and its command time follow.
    controllers: Vec<u16>,
    routers: Vec<u32>,
    commands: Vec<Time>,
    /// Busy times of ports and links when the window began.
    origin: (Vec<Time>, Vec<Time>),
}

/// Returns the router of each controller, and the controller of each package: the nearest one or, among several, the
/// one with the fewest packages so far.
fn assign(mesh: &Mesh, count: u32) -> (Vec<u32>, Vec<u16>) {
    let packages = mesh.routers();
    let middle = |n: u32| (u64::from(2 * n + 1) * u64::from(packages) / u64::from(2 * count)) as u32;
    let stands: Vec<u32> = (0..count).map(middle).collect();
    let mut load = vec![0u32; count as usize];
    let controllers = (0..packages).map(|package| {
        let key = |n: &usize| (mesh.hops(stands[*n], package), load[*n], *n);
        let nearest = (0..count as usize).min_by_key(key).expect("at least one controller");
        load[nearest] += 1;
        nearest as u16
    });
    let controllers = controllers.collect();
    (stands, controllers)
}

impl<C: Copy> Network<C> {
    /// Creates a network of controllers with commands of `command` bytes.
    pub fn new(
        geometry: &DirectGeometry,
        spec: &FlashNetwork,
        (count, command): (u32, u64),
        lines: Lines,
    ) -> Result<Network<C>, SpecError> {
        let packages = geometry.all_packages();
        let (fabric, rate, ports) = match spec {
            FlashNetwork::mesh(mesh) => {
                (Fabric::Mesh(Mesh::new(mesh)?), mesh.bytes_per_s(), packages * geometry.ports)
            }
            FlashNetwork::bus(bus) => {
                (Fabric::Bus, bus.width.get().saturating_mul(bus.rate.per_s()), geometry.channels)
            }
        };
        let beat = Time::transfer(command, rate);
        let (stands, controllers) = match &fabric {
            Fabric::Mesh(mesh) => assign(mesh, count),
            Fabric::Bus => {
                let of = |channel: u32| u64::from(channel) * u64::from(count) / u64::from(geometry.channels);
                (Vec::new(), (0..packages).map(|p| of(p % geometry.channels) as u16).collect())
            }
        };
        let routers: Vec<u32> = match &fabric {
            Fabric::Mesh(_) => controllers.iter().map(|c| stands[usize::from(*c)]).collect(),
            Fabric::Bus => Vec::new(),
        };
        let commands = match &fabric {
            Fabric::Mesh(mesh) => (0..).zip(&routers).map(|(p, r)| mesh.zero_load(*r, p, beat)).collect(),
            Fabric::Bus => vec![beat; packages as usize],
        };
        let bytes = |n: u32| u64::from(n) * lines.bytes();
        let mut network = Network {
            each: if matches!(fabric, Fabric::Bus) { 0 } else { geometry.ports },
            fabric,
            ports: vec![Serial::default(); ports as usize],
            channels: geometry.channels,
            messages: Slab::default(),
            out: (0..=lines.count()).map(|n| Time::transfer(bytes(n), rate)).collect(),
            into: (0..=lines.count()).map(|n| Time::transfer(command + bytes(n), rate)).collect(),
            controllers,
            routers,
            commands,
            origin: (Vec::new(), Vec::new()),
        };
        network.reset(Time::ZERO);
        Ok(network)
    }

    /// Returns the controller of a package.
    #[inline]
    pub fn controller(&self, package: u32) -> u16 {
        self.controllers[package as usize]
    }

    /// Returns the time of a command without data from a package's controller to the package.
    #[inline]
    pub fn command(&self, package: u32) -> Time {
        self.commands[package as usize]
    }

    fn port(&self, packages: &Packages, plane: u32) -> (u32, u32) {
        let (package, within) = packages.package(plane);
        match self.each {
            0 => (package, package % self.channels),
            each => (package, package * each + within % each),
        }
    }

    /// Sends lines of a page of `plane` between its package and the package's controller. Returns the time when they
    /// have left the sender.
    pub fn send(
        &mut self,
        packages: &Packages,
        (cargo, way): (C, Way),
        plane: u32,
        lines: u32,
        cx: &mut impl Cx<Event, Infallible>,
    ) -> Time {
        let (package, port) = self.port(packages, plane);
        let now = cx.now();
        let (out, count) = (way == Way::Out, lines as usize);
        let service = if out { self.out[count] } else { self.into[count] };
        let Fabric::Mesh(mesh) = &mut self.fabric else {
            let end = self.ports[port as usize].grant(now, service);
            let at = Reach { router: package, head: end, tail: end };
            let id = self.messages.insert(Message { cargo, way, port, to: package, service, at });
            cx.after(end - now, Event::Delivered(id));
            return end;
        };
        let router = self.routers[package as usize];
        let (at, to) = if out {
            let end = self.ports[port as usize].grant(now, service);
            (mesh.entered(package, end, service), router)
        } else {
            (mesh.inject(now, router, service), package)
        };
        let id = self.messages.insert(Message { cargo, way, port, to, service, at });
        cx.after(at.head - now, Event::Head(id));
        mesh.left(at)
    }

    /// Handles a message head at a router: it takes the next link.
    pub fn head(&mut self, id: u32, cx: &mut impl Cx<Event, Infallible>) {
        let now = cx.now();
        let message = &mut self.messages[id];
        let Fabric::Mesh(mesh) = &mut self.fabric else { unreachable!("a bus has no routers") };
        if message.at.router != message.to {
            message.at = mesh.forward(now, message.at, message.to, message.service);
            cx.after(message.at.head - now, Event::Head(id));
            return;
        }
        let end = if message.way == Way::Out {
            mesh.eject(now, message.at, message.service).tail
        } else {
            self.ports[message.port as usize].grant(now, message.service).max(message.at.tail)
        };
        cx.after(end - now, Event::Delivered(id));
    }

    /// Handles a message that has completely arrived.
    #[inline]
    pub fn delivered(&mut self, id: u32) -> C {
        let cargo = self.messages[id].cargo;
        self.messages.remove(id);
        cargo
    }

    fn used(&self, now: Time) -> (Vec<Time>, Vec<Time>) {
        let ports = self.ports.iter().map(|p| p.busy(now)).collect();
        let links = match &self.fabric {
            Fabric::Mesh(mesh) => mesh.links().map(|l| l.busy(now)).collect(),
            Fabric::Bus => Vec::new(),
        };
        (ports, links)
    }

    /// Starts the measured window.
    pub fn reset(&mut self, now: Time) {
        self.origin = self.used(now);
    }

    /// Returns the busy times of ports and links since the window began.
    pub fn busy(&self, now: Time) -> (Spread, Spread) {
        let (ports, links) = self.used(now);
        let since =
            |used: Vec<Time>, origin: &[Time]| Spread::of(used.iter().zip(origin).map(|(t, o)| t.since(*o)));
        (since(ports, &self.origin.0), since(links, &self.origin.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::mesh::MeshSpec;

    #[test]
    fn packages_go_to_the_nearest_controller() {
        let mesh = Mesh::new(&MeshSpec::default()).expect("sound");
        let (stands, controllers) = assign(&mesh, 16);
        assert!(
            stands.iter().zip(&controllers).enumerate().all(|(n, (s, c))| (*s, *c) == (n as u32, n as u16))
        );
        // Four controllers are in the third column, one per row.
        let (stands, controllers) = assign(&mesh, 4);
        assert_eq!(stands, [2, 6, 10, 14]);
        assert_eq!(controllers, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        // Two, in the second and the fourth row: the row between them goes to the one with fewer packages.
        let (stands, controllers) = assign(&mesh, 2);
        assert_eq!(stands, [4, 12]);
        assert_eq!(controllers, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
