//! What flash as memory asks of its planes and its network.

use engine::Time;
use ftl::log::layout::Place;
use nand::planes;
use nand::planes::network::Way;

/// What an operation is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Reads a page for commands.
    Read,
    /// Programs the page of a register.
    Program {
        /// The register.
        register: u32,
    },
}

/// An operation on a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) place: Place,
    pub(super) page: u64,
    /// Lines that a read is for.
    pub(super) lines: u64,
    /// First command of a read.
    pub(super) first: u32,
    /// Until when the data register holds what a read has sensed; `MAX` before it is sensed.
    pub(super) held: Time,
}

impl Op {
    pub(super) fn new(kind: Kind, place: Place, page: u64, lines: u64, first: u32) -> Op {
        Op { kind, place, page, lines, first, held: Time::MAX }
    }

    /// What its plane does.
    pub(super) fn work(&self) -> planes::Kind {
        match self.kind {
            Kind::Read => planes::Kind::Read,
            Kind::Program { .. } => planes::Kind::Program,
        }
    }
}

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
    pub(super) fn way(self) -> Way {
        match self {
            Cargo::Write(_) | Cargo::CopyIn(_) => Way::Into,
            Cargo::Fetched(_) | Cargo::Held(_) | Cargo::CopyOut(_) | Cargo::Parked => Way::Out,
        }
    }
}
