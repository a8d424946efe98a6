//! Placement policies: the memory and frame of each page, and the pages that move. Policies see memories as
//! [`Targets`].

pub mod first_touch;
pub mod hot;
pub mod interleave;
pub mod ranges;

use config::SpecError;
use engine::{Mutant, Time, planted};

config::policies! {
    /// Placement policy of pages over several memories.
    pub family PlacementPolicy: dyn Placing, context Targets {
        /// Addresses fill the memories in order.
        ///
        /// The first bytes are in the first memory, up to its size, the next in the second, and so on.
        default ranges => ranges::Ranges::new,
        /// Granules of addresses go to the memories in turn, in proportion to their sizes.
        ///
        /// Of `n` granules that did not go to an earlier memory, the next memory takes `ceil(n * size / (size + sizes
        /// of those behind it))`, for each `n`: equal memories take one each in turn, and each byte of each size is
        /// used.
        interleave(interleave::Params) => interleave::Interleave::new,
        /// A page gets a frame in the first memory with room, at its first use.
        ///
        /// As Linux's `mempolicy` `local` with fallback in the order of nodes. Page tables have their frames before all
        /// data.
        first_touch => first_touch::FirstTouch::new,
        /// First touch; pages used soon after they were marked are exchanged with pages of the first memory.
        ///
        /// As Linux's memory tiering by NUMA balancing (`kernel/sched/fair.c`: `numa_hint_fault_latency`,
        /// `numa_promotion_rate_limit`): hot page selection and rate limit. A clock with a second chance finds the page
        /// that makes room. Page tables do not move.
        hot(hot::Params) => hot::Hot::new,
    }
}

/// Decision on a page that has been used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Stay in place.
    Stay,
    /// Rise: change places with another page, see [`Placing::makes_room`].
    Rise,
    /// Would rise, but the rate limit is reached.
    Limited,
}

/// Decides on the places of pages.
///
/// Contract: each page with a place has its own, and [`Placing::page_in`] is the inverse of [`Placing::find`] at all
/// times; a place changes only in [`Placing::exchanged`]. Nothing is allocated after [`Placing::settle`].
pub trait Placing {
    /// Checks that the policy can work with its memories.
    ///
    /// # Errors
    /// Returns an invalid parameter; its key is relative to the table of the placement.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// Sets the existing pages, at most as many as frames: once, before any other call.
    fn settle(&mut self, extent: &Extent);
    /// Returns the place of a page, and whether the page has just been given it.
    fn place(&mut self, page: u32, now: Time) -> (Place, bool);
    /// Returns the place of a page, if it has one.
    fn find(&self, page: u32) -> Option<Place>;
    /// Returns the page in a place.
    fn page_in(&self, place: Place) -> Option<u32>;
    /// Returns the number of frames of a memory, from its first, that may ever hold a page.
    fn frames(&self, target: u8) -> u32;
    /// Returns the maximum concurrent exchanges of pages; zero if pages never move.
    fn exchanges(&self) -> u32 {
        0
    }
    /// Handles a use of a page in its place.
    fn used(&mut self, _page: u32, _place: Place, _now: Time) -> Verdict {
        Verdict::Stay
    }
    /// Returns the page that makes room for a rising one, among those for which `may` holds.
    fn makes_room(&mut self, _may: &dyn Fn(u32) -> bool) -> Option<u32> {
        None
    }
    /// Notes that two pages have changed places.
    fn exchanged(&mut self, _risen: u32, _sunk: u32, _now: Time) {}
}

// Page table of a placement: the frame of each page, and the page in each frame.

/// Invalid page or frame number.
const NONE: u32 = u32::MAX;

/// Table of pages and frames. Frames are given in the order of their numbers: a page gets one in the first memory with
/// room.
#[derive(Clone, Debug)]
pub(super) struct Table {
    targets: Targets,
    /// Frame number of each page.
    frames: Vec<u32>,
    /// Page in each frame, by the frame's number.
    pages: Vec<u32>,
    /// Number of frames taken.
    taken: u32,
}

impl Table {
    pub(super) fn new(targets: &Targets) -> Table {
        Table { targets: targets.clone(), frames: Vec::new(), pages: Vec::new(), taken: 0 }
    }

    /// Places page tables before any other page.
    pub(super) fn settle(&mut self, extent: &Extent) {
        self.frames = vec![NONE; extent.end as usize];
        self.pages = vec![NONE; extent.end as usize];
        (extent.tables..extent.end).for_each(|page| {
            self.place(page);
        });
    }

    /// Place of a page, and whether it has just been given its frame.
    #[inline]
    pub(super) fn place(&mut self, page: u32) -> (Place, bool) {
        let frame = &mut self.frames[page as usize];
        let is_new = *frame == NONE;
        if is_new {
            *frame = self.taken;
            self.pages[self.taken as usize] = page;
            self.taken += 1;
        }
        (self.targets.place(*frame), is_new)
    }

    /// Place of a page, if it has a frame.
    pub(super) fn find(&self, page: u32) -> Option<Place> {
        let frame = *self.frames.get(page as usize)?;
        (frame != NONE).then(|| self.targets.place(frame))
    }

    /// Page in a frame.
    #[inline]
    pub(super) fn page_in(&self, place: Place) -> Option<u32> {
        let page = *self.pages.get(self.targets.number(place) as usize)?;
        (page != NONE).then_some(page)
    }

    /// Exchanges the frames of two pages.
    pub(super) fn exchange(&mut self, one: u32, other: u32) {
        self.frames.swap(one as usize, other as usize);
        if planted(Mutant::StaleFrame) {
            return;
        }
        for page in [one, other] {
            self.pages[self.frames[page as usize] as usize] = page;
        }
    }

    /// Number of frames of a memory ever used: as many as there are pages, those of the first memory first.
    pub(super) fn used(&self, target: u8) -> u32 {
        self.targets.among(self.pages.len() as u32, target)
    }
}

/// Frame of a memory, both counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// Number of the memory.
    pub target: u8,
    /// Frame number in that memory.
    pub frame: u32,
}

/// Frames of all memories, numbered consecutively: those of the first memory, then those of the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Targets {
    /// Number of each memory's first frame, followed by the number of all frames.
    bases: Vec<u32>,
}

impl Targets {
    /// Creates memories with these numbers of frames, fewer than 2^32 together.
    pub(super) fn new(frames: impl Iterator<Item = u32>) -> Targets {
        let mut bases = vec![0];
        let mut sum = 0;
        bases.extend(frames.map(|count| {
            sum += count;
            sum
        }));
        Targets { bases }
    }

    /// Number of memories.
    pub fn count(&self) -> u8 {
        (self.bases.len() - 1) as u8
    }

    /// Number of frames of one memory.
    pub fn frames(&self, target: u8) -> u32 {
        let target = usize::from(target);
        self.bases[target + 1] - self.bases[target]
    }

    /// Number of frames of all memories.
    pub fn total(&self) -> u32 {
        self.bases[self.bases.len() - 1]
    }

    /// Frame of a number.
    ///
    /// # Panics
    /// Panics if the number is beyond the last frame.
    #[inline]
    pub fn place(&self, number: u32) -> Place {
        let mut target = 0;
        while number >= self.bases[target + 1] {
            target += 1;
        }
        Place { target: target as u8, frame: number - self.bases[target] }
    }

    /// Number of a frame.
    #[inline]
    pub fn number(&self, place: Place) -> u32 {
        self.bases[usize::from(place.target)] + place.frame
    }

    /// Number of frames, among the first `first`, in one memory.
    pub fn among(&self, first: u32, target: u8) -> u32 {
        first.saturating_sub(self.bases[usize::from(target)]).min(self.frames(target))
    }
}

/// Pages in front of a placement, by number: data, and the page tables behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// First page that holds page tables.
    pub tables: u32,
    /// Number of all pages.
    pub end: u32,
}
