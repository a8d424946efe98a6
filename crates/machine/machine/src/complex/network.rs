//! The network of a complex.

use crate::packet::Packet;
use crate::wires::Here;
use net::fabric::Fabric;
use net::noc::{Class, Noc};

/// A network that carries packets between endpoints.
pub enum Network {
    /// Endpoints, and the links of a topology; requests and answers have links of their own.
    Noc(Noc<Packet>),
    /// Routers in rows and columns; requests and answers share links.
    Mesh(Fabric<Packet>),
}

impl Network {
    /// Its name in reports.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Network::Noc(_) => "the network",
            Network::Mesh(_) => "the mesh",
        }
    }

    /// Sends a packet of so many bytes besides its header from one endpoint to another.
    #[inline]
    pub(crate) fn send(
        &mut self,
        (from, to): (u32, u32),
        class: Class,
        bytes: u64,
        packet: Packet,
        here: &mut Here<'_>,
    ) {
        match self {
            Network::Noc(noc) => {
                noc.send((from as u16, to as u16), class, bytes, packet, here);
            }
            Network::Mesh(mesh) => mesh.send((from, to), bytes, packet, here),
        }
    }

    /// The network on a chip.
    ///
    /// # Panics
    /// If it is none.
    #[inline]
    pub(crate) fn noc(&mut self) -> &mut Noc<Packet> {
        let Network::Noc(noc) = self else { unreachable!("an event of a network on a chip") };
        noc
    }

    /// The mesh.
    ///
    /// # Panics
    /// If it is none.
    #[inline]
    pub(crate) fn mesh(&mut self) -> &mut Fabric<Packet> {
        let Network::Mesh(mesh) = self else { unreachable!("an event of a mesh") };
        mesh
    }

    /// Packets under way.
    pub(crate) fn outstanding(&self) -> usize {
        match self {
            Network::Noc(noc) => noc.outstanding(),
            Network::Mesh(mesh) => mesh.outstanding(),
        }
    }

    /// Bytes moved in the measured window, headers included.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Network::Noc(noc) => noc.stats.bytes,
            Network::Mesh(mesh) => mesh.stats.bytes,
        }
    }

    /// Starts the measured window.
    pub(crate) fn reset_stats(&mut self) {
        match self {
            Network::Noc(noc) => noc.reset_stats(),
            Network::Mesh(mesh) => mesh.reset_stats(),
        }
    }
}
