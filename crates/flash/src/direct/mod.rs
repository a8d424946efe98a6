//! Flash as memory: planes behind flash controllers on the cores' network, without an SSD engine (ZnG, sections III-B to
//! IV-C).

mod layout;
pub mod spec;
mod stats;
#[cfg(test)]
mod testing;

pub use layout::{Layout, Place};
pub use spec::DirectSpec;
pub use stats::{DirectBusy, DirectStats, Dirty, Spread};

use crate::Check;
use config::SpecError;
use kernel::{Cx, Time};
use proto::memory::{MemCommand, PAGE, Tally};
use std::ops::Range;

kernel::events! {
    /// The part's own events.
    pub enum Event {
        /// A read has reached its package.
        Arrived(u32),
        /// A write leaves its controller.
        Dispatched(u32),
        /// The head of a message is at a router.
        Head(u32),
        /// All of a message is where it was sent.
        Delivered(u32),
        /// The array of a plane has finished.
        ArrayDone(u32),
        /// The data register of a plane may be free.
        PlaneFree(u32),
        /// The page in a register has been taken by the shared cache, unless it has been refused.
        Taken(u32),
    }
}

/// Messages that the part sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Out {
    /// A command is done: the lines of a read are at the controller, those of a write in a register.
    Done(MemCommand),
    /// The registers thrash: the shared cache is to keep these lines of a page, or to say [`Direct::refused`] before time
    /// advances.
    Park {
        /// First byte of the page.
        page: u64,
        /// Its dirty lines.
        lines: u32,
        /// The application that wrote them last.
        app: u8,
    },
    /// Merging of log blocks begins to block an application, or blocks it no longer.
    Reclaim {
        /// The application.
        app: u8,
        /// Whether it begins.
        begins: bool,
    },
}

/// Flash as memory.
pub struct Direct {
    layout: Layout,
    /// What happened since the window began.
    pub stats: DirectStats,
    /// What commands have waited for.
    pub tally: Tally,
}

impl Direct {
    /// Idle flash. Keys of errors are relative to the part's table.
    ///
    /// # Errors
    /// What [`DirectSpec::check`] says.
    pub fn new(spec: &DirectSpec, _seed: u64) -> Result<Direct, SpecError> {
        spec.check()?;
        Ok(Direct { layout: Layout::new(spec), stats: DirectStats::default(), tally: Tally::default() })
    }

    /// Flash controllers.
    pub fn controllers(&self) -> u16 {
        0
    }

    /// The controller of the page at an address.
    pub fn controller_of(&self, page: u64) -> u16 {
        self.layout.place(page / PAGE).plane as u16
    }

    /// Bytes of the address space.
    pub fn capacity(&self) -> u64 {
        self.layout.pages * PAGE
    }

    /// Bytes of the address space that one entry of the block table covers.
    pub fn reach(&self) -> u64 {
        0
    }

    /// Lets the log blocks of the addresses in `bytes` have only `left` free pages left.
    pub fn fill_logs(&mut self, _bytes: Range<u64>, _left: u32) {}

    /// A command arrives at its controller.
    pub fn command(&mut self, _command: MemCommand, _cx: &mut impl Cx<Event, Out>) {}

    /// The shared cache has no room for a page that was to be parked.
    pub fn refused(&mut self, _page: u64, _lines: u32, _app: u8, _cx: &mut impl Cx<Event, Out>) {}

    /// Runs one of the part's own events.
    pub fn handle(&mut self, _event: Event, _cx: &mut impl Cx<Event, Out>) {}

    /// Commands inside.
    pub fn outstanding(&self) -> usize {
        0
    }

    /// What registers hold that flash does not: at the end of a run it stays there.
    pub fn dirty(&self) -> Dirty {
        Dirty::default()
    }

    /// How long resources have been busy since the window began.
    pub fn busy(&self, _now: Time) -> DirectBusy {
        DirectBusy::default()
    }

    /// Starts the measured window: what happened before is forgotten.
    pub fn reset_stats(&mut self, _now: Time) {}

    /// Whether what was counted in one place agrees with what was counted in another.
    pub fn checks(&self) -> Vec<Check> {
        Vec::new()
    }
}
