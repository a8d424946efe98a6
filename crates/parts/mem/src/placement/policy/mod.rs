//! Policies of placement: which page lies in which frame of which memory, and which pages change their places.
//! Policies see memories as [`Targets`].

pub mod first_touch;
pub mod hot;
pub mod interleave;
pub mod ranges;

use config::SpecError;
use engine::{Mutant, Time, planted};

config::policies! {
    /// Which page lies in which of several memories.
    pub family PlacementPolicy: dyn Placing, context Targets {
        /// Addresses fill the memories in order.
        ///
        /// The first bytes lie in the first memory, as many as it has, the next in the second, and so on.
        default ranges => ranges::Ranges::new,
        /// Granules of addresses go to the memories in turn, in the proportion of their sizes.
        ///
        /// Of `n` granules that did not go to an earlier memory, the next memory takes `ceil(n * size / (size + sizes of
        /// those behind it))`, for each `n`: equal memories take one each in turn, and each byte of each size is used.
        interleave(interleave::Params) => interleave::Interleave::new,
        /// A page gets a frame in the first memory that has room, when it is used for the first time.
        ///
        /// Linux, `mempolicy` `local` with fallback in the order of nodes. Page tables have their frames before all data.
        first_touch => first_touch::FirstTouch::new,
        /// First touch; pages that are used soon after they were marked change places with pages of the first memory.
        ///
        /// Linux's memory tiering by NUMA balancing (`kernel/sched/fair.c`: `numa_hint_fault_latency`,
        /// `numa_promotion_rate_limit`): hot page selection and rate limit. The page that makes room is found by a clock
        /// with a second chance. Page tables stay where they are.
        hot(hot::Params) => hot::Hot::new,
    }
}

/// What becomes of a page that has been used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It stays.
    Stay,
    /// It is to change places with another: see [`Placing::makes_room`].
    Rise,
    /// It would rise, if not too many had done so.
    Limited,
}

/// Says where pages lie.
///
/// Contract: pages that have a place have a place each, and [`Placing::page_in`] is the inverse of [`Placing::find`] at all
/// times; a place changes in [`Placing::exchanged`] only. Nothing is allocated after [`Placing::settle`].
pub trait Placing {
    /// Whether it can work with its memories.
    ///
    /// # Errors
    /// A parameter that does not fit; its key is relative to the table of the placement.
    fn check(&self) -> Result<(), SpecError> {
        Ok(())
    }
    /// The pages that there are, not more than frames: before anything else is asked, and once.
    fn settle(&mut self, extent: &Extent);
    /// Where a page is; whether it has just been given its place.
    fn place(&mut self, page: u32, now: Time) -> (Place, bool);
    /// Where a page is, if it has a place.
    fn find(&self, page: u32) -> Option<Place>;
    /// The page in a place.
    fn page_in(&self, place: Place) -> Option<u32>;
    /// Frames of a memory, from its first, that may ever hold a page.
    fn frames(&self, target: u8) -> u32;
    /// Exchanges of pages that may be under way at once; zero if pages never change their places.
    fn exchanges(&self) -> u32 {
        0
    }
    /// A page is used, where it is.
    fn used(&mut self, _page: u32, _place: Place, _now: Time) -> Verdict {
        Verdict::Stay
    }
    /// The page that makes room for one that rises, among those for which `may` holds.
    fn makes_room(&mut self, _may: &dyn Fn(u32) -> bool) -> Option<u32> {
        None
    }
    /// Two pages have changed places.
    fn exchanged(&mut self, _risen: u32, _sunk: u32, _now: Time) {}
}

// A table of pages: the frame of each, and the page in each frame.

/// No page, or no frame.
const NONE: u32 = u32::MAX;

/// Frames are given in the order of their numbers: a page gets one in the first memory that has room.
#[derive(Clone, Debug)]
pub(super) struct Table {
    targets: Targets,
    /// The number of the frame of each page.
    frames: Vec<u32>,
    /// The page in each frame, by the frame's number.
    pages: Vec<u32>,
    /// Frames that are taken.
    taken: u32,
}

impl Table {
    pub(super) fn new(targets: &Targets) -> Table {
        Table { targets: targets.clone(), frames: Vec::new(), pages: Vec::new(), taken: 0 }
    }

    /// Page tables are placed before anything else.
    pub(super) fn settle(&mut self, extent: &Extent) {
        self.frames = vec![NONE; extent.end as usize];
        self.pages = vec![NONE; extent.end as usize];
        (extent.tables..extent.end).for_each(|page| {
            self.place(page);
        });
    }

    /// Where a page is; whether it has just been given its frame.
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

    /// Where a page is, if it has a frame.
    pub(super) fn find(&self, page: u32) -> Option<Place> {
        let frame = *self.frames.get(page as usize)?;
        (frame != NONE).then(|| self.targets.place(frame))
    }

    /// The page in a frame.
    #[inline]
    pub(super) fn page_in(&self, place: Place) -> Option<u32> {
        let page = *self.pages.get(self.targets.number(place) as usize)?;
        (page != NONE).then_some(page)
    }

    /// Two pages change their frames.
    pub(super) fn exchange(&mut self, one: u32, other: u32) {
        self.frames.swap(one as usize, other as usize);
        if planted(Mutant::StaleFrame) {
            return;
        }
        for page in [one, other] {
            self.pages[self.frames[page as usize] as usize] = page;
        }
    }

    /// Frames of a memory that are ever used: as many as there are pages, those of the first memory first.
    pub(super) fn used(&self, target: u8) -> u32 {
        self.targets.among(self.pages.len() as u32, target)
    }
}

/// A frame of a memory: both are counted from zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    /// The memory.
    pub target: u8,
    /// The frame of a page there.
    pub frame: u32,
}

/// The frames of all memories, which can be counted through: those of the first memory, then those of the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Targets {
    /// The number of each memory's first frame, and, behind the last of them, the number of all frames.
    bases: Vec<u32>,
}

impl Targets {
    /// Memories of so many frames each, fewer than 2^32 together.
    pub(super) fn new(frames: impl Iterator<Item = u32>) -> Targets {
        let mut bases = vec![0];
        let mut sum = 0;
        bases.extend(frames.map(|count| {
            sum += count;
            sum
        }));
        Targets { bases }
    }

    /// Memories.
    pub fn count(&self) -> u8 {
        (self.bases.len() - 1) as u8
    }

    /// Frames of one.
    pub fn frames(&self, target: u8) -> u32 {
        let target = usize::from(target);
        self.bases[target + 1] - self.bases[target]
    }

    /// Frames of all.
    pub fn total(&self) -> u32 {
        self.bases[self.bases.len() - 1]
    }

    /// The frame of a number.
    ///
    /// # Panics
    /// If there are no more frames than that.
    #[inline]
    pub fn place(&self, number: u32) -> Place {
        let mut target = 0;
        while number >= self.bases[target + 1] {
            target += 1;
        }
        Place { target: target as u8, frame: number - self.bases[target] }
    }

    /// The number of a frame.
    #[inline]
    pub fn number(&self, place: Place) -> u32 {
        self.bases[usize::from(place.target)] + place.frame
    }

    /// Of the first so many frames, those in one memory.
    pub fn among(&self, first: u32, target: u8) -> u32 {
        first.saturating_sub(self.bases[usize::from(target)]).min(self.frames(target))
    }
}

/// The pages in front of a placement, by number: data, and the page tables behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// The first page that holds page tables.
    pub tables: u32,
    /// Pages in all.
    pub end: u32,
}
