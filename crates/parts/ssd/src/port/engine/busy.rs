//! Pages with something under way, and the requests that wait for them.

use engine::{List, Lists};

/// A page on its way from flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fetch {
    None,
    /// For the FTL.
    Translating,
    /// At the device.
    Reading,
}

/// A place in the write buffer that a page waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// It does not.
    Unneeded,
    /// None of its set can be had yet.
    None,
    /// This one, when the page that has it has been read out.
    Of(u32),
}

/// A page that makes room in the write buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leaving {
    /// Lines of it that are here.
    pub(super) valid: u64,
    /// Its row.
    pub(super) row: u32,
    /// The busy page that waits for its place.
    pub(super) heir: u32,
    pub(super) translation: Translation,
}

/// Where a leaving page stands with the FTL.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Translation {
    Needed,
    UnderWay,
    Done,
    /// It waits until fewer pages are on their way to flash.
    Held,
}

/// A page on its way to flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outbound {
    No,
    /// Being read out of the DRAM.
    ReadOut,
    /// At the device.
    Writing,
}

/// A page with something under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Busy {
    pub(super) page: u64,
    pub(super) fetch: Fetch,
    /// Whether the fetch was asked for; if not, it is a prefetch.
    pub(super) asked: bool,
    pub(super) leaving: Option<Leaving>,
    /// A version of it that is no longer in a buffer.
    pub(super) outbound: Outbound,
    pub(super) place: Place,
    /// Requests that wait for it.
    waiting: List,
    /// Writes among those that wait.
    pub(super) writes: u32,
}

impl Busy {
    pub(super) fn new(page: u64) -> Busy {
        Busy {
            page,
            fetch: Fetch::None,
            asked: false,
            leaving: None,
            outbound: Outbound::No,
            place: Place::Unneeded,
            waiting: List::EMPTY,
            writes: 0,
        }
    }

    /// Nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.fetch == Fetch::None
            && self.leaving.is_none()
            && self.outbound == Outbound::No
            && self.place == Place::Unneeded
            && self.waiting.is_empty()
    }

    /// Whether the device has a command for it.
    pub(super) fn at_device(&self) -> bool {
        self.fetch == Fetch::Reading || self.outbound == Outbound::Writing
    }

    /// The request waits behind the others.
    #[inline]
    pub(super) fn wait(&mut self, id: u32, write: bool, waiting: &mut Lists<u32>) {
        waiting.push(&mut self.waiting, id);
        self.writes += u32::from(write);
    }

    /// Takes the list of those that wait.
    #[inline]
    pub(super) fn take_waiting(&mut self) -> List {
        self.writes = 0;
        self.waiting.take()
    }

    /// Those that wait.
    pub(super) fn waiting(&self) -> &List {
        &self.waiting
    }
}
