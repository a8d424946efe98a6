//! Messages between controllers and packages.
//!
//! Commands without data are a beat or two: they go ahead of data and are charged their time in an idle network. Data
//! queue at every link. The pages of a plane use one port of its package and one way through the mesh, first in first
//! out, so that messages for a page never overtake each other.

use super::layout::Layout;
use super::spec::{DirectSpec, FlashNetwork};
use super::stats::Spread;
use super::{Event, Out};
use config::SpecError;
use kernel::resource::Serial;
use kernel::{Cx, Slab, Time};
use net::mesh::{Mesh, Reach};
use proto::memory::Lines;

/// What a message is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cargo {
    /// Lines from the array, for the commands of an operation.
    Fetched(u32),
    /// Lines from a register, for a command.
    Held(u32),
    /// Lines of a write.
    Write(u32),
    /// A page that goes out to the controller, on its way to the data register of an operation's plane.
    CopyOut(u32),
    /// The same on its way back.
    CopyIn(u32),
    /// Lines that the shared cache has taken; nobody waits for them.
    Parked,
}

impl Cargo {
    /// Whether it goes from a package to a controller.
    fn goes_out(self) -> bool {
        !matches!(self, Cargo::Write(_) | Cargo::CopyIn(_))
    }
}

#[derive(Clone, Copy, Debug)]
struct Message {
    cargo: Cargo,
    /// Port that it leaves or enters by.
    port: u32,
    /// Router that it goes to.
    to: u32,
    service: Time,
    at: Reach,
}

#[derive(Clone, Debug)]
enum Fabric {
    Mesh(Mesh),
    Bus,
}

/// Ports, links, messages.
#[derive(Clone, Debug)]
pub(super) struct Network {
    fabric: Fabric,
    /// Ports of all packages; with buses, the buses.
    ports: Vec<Serial>,
    /// Ports a package; zero with buses.
    each: u32,
    channels: u32,
    messages: Slab<Message>,
    /// How long so many lines take on a link, from a package and, with their command, to it: up to a whole page.
    out: Vec<Time>,
    into: Vec<Time>,
    /// The controller of each package, its router, and how long a command takes from there.
    controllers: Vec<u16>,
    routers: Vec<u32>,
    commands: Vec<Time>,
    /// How busy ports and links were when the window began.
    origin: (Vec<Time>, Vec<Time>),
}

/// The router of each controller, and the controller of each package: the nearest; of several, the one with the fewest
/// packages so far.
fn assign(mesh: &Mesh, count: u32) -> (Vec<u32>, Vec<u16>) {
    let packages = mesh.routers();
    let middle = |n: u32| (u64::from(2 * n + 1) * u64::from(packages) / u64::from(2 * count)) as u32;
    let stands: Vec<u32> = (0..count).map(middle).collect();
    let mut load = vec![0u32; count as usize];
    let controllers = (0..packages).map(|package| {
        let key = |n: &usize| (mesh.hops(stands[*n], package), load[*n], *n);
        let nearest = (0..count as usize).min_by_key(key).expect("there is a controller");
        load[nearest] += 1;
        nearest as u16
    });
    let controllers = controllers.collect();
    (stands, controllers)
}

impl Network {
    pub(super) fn new(spec: &DirectSpec, lines: Lines) -> Result<Network, SpecError> {
        let (geometry, count) = (&spec.geometry, spec.controller.count);
        let packages = geometry.all_packages();
        let (fabric, rate, ports) = match &spec.network {
            FlashNetwork::mesh(mesh) => {
                (Fabric::Mesh(Mesh::new(mesh)?), mesh.bytes_per_s(), packages * geometry.ports)
            }
            FlashNetwork::bus(bus) => {
                (Fabric::Bus, bus.width.get().saturating_mul(bus.rate.per_s()), geometry.channels)
            }
        };
        let command = Time::transfer(spec.command.get(), rate);
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
            Fabric::Mesh(mesh) => (0..).zip(&routers).map(|(p, r)| mesh.zero_load(*r, p, command)).collect(),
            Fabric::Bus => vec![command; packages as usize],
        };
        let bytes = |n: u32| u64::from(n) * lines.bytes();
        let mut network = Network {
            each: if matches!(fabric, Fabric::Bus) { 0 } else { geometry.ports },
            fabric,
            ports: vec![Serial::default(); ports as usize],
            channels: geometry.channels,
            messages: Slab::default(),
            out: (0..=lines.count()).map(|n| Time::transfer(bytes(n), rate)).collect(),
            into: (0..=lines.count()).map(|n| Time::transfer(spec.command.get() + bytes(n), rate)).collect(),
            controllers,
            routers,
            commands,
            origin: (Vec::new(), Vec::new()),
        };
        network.reset(Time::ZERO);
        Ok(network)
    }

    /// The controller of a package.
    #[inline]
    pub(super) fn controller(&self, package: u32) -> u16 {
        self.controllers[package as usize]
    }

    /// How long a command without data takes from the controller of a package to it.
    #[inline]
    pub(super) fn command(&self, package: u32) -> Time {
        self.commands[package as usize]
    }

    fn port(&self, layout: &Layout, plane: u32) -> (u32, u32) {
        let (package, within) = layout.package(plane);
        match self.each {
            0 => (package, package % self.channels),
            each => (package, package * each + within % each),
        }
    }

    /// Sends lines of a page of `plane` between its package and the package's controller. Returns when they have left
    /// where they were.
    pub(super) fn send(
        &mut self,
        layout: &Layout,
        cargo: Cargo,
        plane: u32,
        lines: u64,
        cx: &mut impl Cx<Event, Out>,
    ) -> Time {
        let (package, port) = self.port(layout, plane);
        let now = cx.now();
        let (out, count) = (cargo.goes_out(), lines.count_ones() as usize);
        let service = if out { self.out[count] } else { self.into[count] };
        let Fabric::Mesh(mesh) = &mut self.fabric else {
            let end = self.ports[port as usize].grant(now, service);
            let at = Reach { router: package, head: end, tail: end };
            let id = self.messages.insert(Message { cargo, port, to: package, service, at });
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
        let id = self.messages.insert(Message { cargo, port, to, service, at });
        cx.after(at.head - now, Event::Head(id));
        mesh.left(at)
    }

    /// The head of a message is at a router: it takes the next link.
    pub(super) fn head(&mut self, id: u32, cx: &mut impl Cx<Event, Out>) {
        let now = cx.now();
        let message = &mut self.messages[id];
        let Fabric::Mesh(mesh) = &mut self.fabric else { unreachable!("a bus has no routers") };
        if message.at.router != message.to {
            message.at = mesh.forward(now, message.at, message.to, message.service);
            cx.after(message.at.head - now, Event::Head(id));
            return;
        }
        let end = if message.cargo.goes_out() {
            mesh.eject(now, message.at, message.service).tail
        } else {
            self.ports[message.port as usize].grant(now, message.service).max(message.at.tail)
        };
        cx.after(end - now, Event::Delivered(id));
    }

    /// All of a message is where it was sent.
    #[inline]
    pub(super) fn delivered(&mut self, id: u32) -> Cargo {
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
    pub(super) fn reset(&mut self, now: Time) {
        self.origin = self.used(now);
    }

    /// How long ports and links have been busy since then.
    pub(super) fn busy(&self, now: Time) -> (Spread, Spread) {
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
        // Four controllers stand in the third column: a row each.
        let (stands, controllers) = assign(&mesh, 4);
        assert_eq!(stands, [2, 6, 10, 14]);
        assert_eq!(controllers, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
        // Two, in the second and the fourth row: the row between them goes where there are fewer.
        let (stands, controllers) = assign(&mesh, 2);
        assert_eq!(stands, [4, 12]);
        assert_eq!(controllers, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]);
    }
}
